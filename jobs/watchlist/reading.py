"""loopwarden.toml -> a watch list in which every name leads somewhere."""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from jobs.thrash.price import NO_PRICES, Prices
from jobs.verification.spec import WorkflowSpec
from jobs.watchlist.entries import check_keys
from jobs.watchlist.error import WatchlistError
from jobs.watchlist.file import text_of
from jobs.watchlist.killers import KillerSpec, parse_killers
from jobs.watchlist.prices import parse_prices
from jobs.watchlist.sources import SourceSpec, check_names_in, parse_sources
from jobs.watchlist.syntax import tables_in
from jobs.watchlist.workflows import parse_workflows

_MOST: Final = 1000
"""Entries: each is compared with the others, and asked about if it changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watchlist:
    """All of a watch list, checked: every name in it leads somewhere."""

    sources: tuple[SourceSpec, ...]
    killers: Mapping[str, KillerSpec]
    prices: Prices = NO_PRICES
    workflows: Mapping[str, WorkflowSpec] = field(default_factory=dict)


def read_watchlist(path: Path, formats: Collection[str]) -> Watchlist:
    """Read and parse the file; its relative paths start from its folder. Blocks.

    Raises:
        WatchlistError: the file cannot be read (the message says what to do), or is wrong.
    """
    return parse_watchlist(text_of(f"{path}"), path.parent, formats)


def parse_watchlist(text: str, folder: Path, formats: Collection[str]) -> Watchlist:
    """Parse a watch list whose relative paths start from `folder` and whose logs have one of `formats`.

    Raises:
        WatchlistError: the first thing that is wrong.
    """
    start, tables = os.path.abspath(folder), tables_in(text)
    check_keys(tables, ("sources", "killers", "prices", "workflows"), "", "table")
    prices = parse_prices(tables.get("prices", {}))
    killers = parse_killers(tables.get("killers", {}), start)
    sources = tuple(parse_sources(tables.get("sources", []), start))
    for source in sources:
        check_names_in(source, killers, formats)
    workflows = parse_workflows(tables.get("workflows", {}), start, [source.name for source in sources])
    if not sources and not workflows:
        raise WatchlistError("nothing to watch: there is neither [[sources]] nor [workflows.NAME]")
    if (count := len(sources) + len(killers) + len(workflows)) > _MOST:
        raise WatchlistError(f"{count:,} sources, killers and workflows; at most {_MOST:,} are watched")
    return Watchlist(sources=sources, killers=killers, prices=prices, workflows=workflows)
