"""`[[sources]]`: where tool calls are logged."""

import glob
from collections.abc import Collection, Iterator
from typing import Final

import msgspec

from jobs.thrash.policy import OnDetection
from jobs.watchlist.entries import absolute, check_name, convert, type_of
from jobs.watchlist.error import WatchlistError, key_of, unknown

AUTO: Final = "auto"
"""In place of a format's name: each file's own is found out."""
FORMAT_NAMES: Final = frozenset({"claude-code", "codex", "gateway", "gemini-cli", "openclaw", "opencode"})
"""What is registered in jobs/sources/registry.py."""


class SourceSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A `[[sources]]` entry: where tool calls are logged, and what a detection there leads to."""

    name: str
    format: str = AUTO
    path: str
    """A glob, absolute once parsed."""
    killer: str | None = None
    on_detection: OnDetection | None = None
    """None leaves it to the settings."""


def parse_sources(entries: object, folder: str) -> Iterator[SourceSpec]:
    if not isinstance(entries, list):
        raise WatchlistError(f"sources: expected array, got {type_of(entries)}; each begins with [[sources]]")
    places: dict[str, str] = {}
    for index, entry in enumerate(entries):
        place = f"sources[{index}]"
        source = _source(entry, place, folder)
        if source.name in places:
            raise WatchlistError(f"{place}.name: already the name of {places[source.name]}")
        places[source.name] = place
        yield source


def _source(entry: object, place: str, folder: str) -> SourceSpec:
    source = convert(entry, SourceSpec, place)
    check_name(source.name, f"{place}.name")
    path = absolute(source.path, folder, f"{place}.path", glob.escape)
    return msgspec.structs.replace(source, path=path)


def check_names_in(source: SourceSpec, killers: Collection[str], formats: Collection[str]) -> None:
    place = f"sources.{key_of(source.name)}"
    formats = (AUTO, *formats)
    if source.format not in formats:
        raise WatchlistError(f"{place}.format: {unknown('unknown format', source.format, formats)}")
    if source.killer is not None and source.killer not in killers:
        raise WatchlistError(f"{place}.killer: {unknown('no killer of that name', source.killer, killers)}")
