"""loopwarden.toml -> a watch list in which every name leads somewhere."""

import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jobs.thrash.price import NO_PRICES, Prices
from jobs.watchlist.entries import check_keys
from jobs.watchlist.error import WatchlistError
from jobs.watchlist.killers import KillerSpec, parse_killers
from jobs.watchlist.prices import parse_prices
from jobs.watchlist.sources import SourceSpec, check_names_in, parse_sources
from jobs.watchlist.syntax import tables_in

_LARGEST_FILE: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Watchlist:
    """All of a watch list, checked: every name in it leads somewhere."""

    sources: tuple[SourceSpec, ...]
    killers: Mapping[str, KillerSpec]
    prices: Prices = NO_PRICES


def read_watchlist(path: Path, formats: Collection[str]) -> Watchlist:
    """Read and parse the file; its relative paths start from its folder. Blocks.

    Raises:
        WatchlistError: the file cannot be read (the message says what to do), or is wrong.
    """
    return parse_watchlist(_text(path), path.absolute().parent, formats)


def parse_watchlist(text: str, folder: Path, formats: Collection[str]) -> Watchlist:
    """Parse a watch list whose relative paths start from `folder` and whose logs have one of `formats`.

    Raises:
        WatchlistError: the first thing that is wrong.
    """
    tables = tables_in(text)
    check_keys(tables, ("sources", "killers", "prices"), "", "table")
    prices = parse_prices(tables.get("prices", {}))
    killers = parse_killers(tables.get("killers", {}), folder)
    sources = tuple(parse_sources(tables.get("sources", []), folder))
    for source in sources:
        check_names_in(source, killers, formats)
    return Watchlist(sources=sources, killers=killers, prices=prices)


def _text(path: Path) -> str:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise WatchlistError(f"{path}: not a regular file; name the watch list itself")
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except FileNotFoundError:
        hint = "write one after loopwarden.example.toml, or let LOOPWARDEN_WATCHLIST name yours"
        raise WatchlistError(f"{path}: no such file; {hint}") from None
    except OSError as error:
        raise WatchlistError(f"{path}: cannot be read ({error.strerror}); check its owner and mode") from None
    if len(content) > _LARGEST_FILE:
        raise WatchlistError(f"{path}: larger than 1 MiB; is that the watch list?")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise WatchlistError(f"{path}: not UTF-8 at byte {error.start + 1}; save it as UTF-8") from None
