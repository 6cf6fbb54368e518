"""What logs there are, as a table for a terminal, and as lines for a watch list."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from bot.glance import Glance
from bot.views.cleaning import in_encoding, one_line
from bot.views.measure import amount, plural, span
from jobs.sources.ends import Sample

_PATH_LIMIT: Final = 120
_KILOBYTE: Final = 1024
_HEAD: Final = """\
# For loopwarden.toml. An entry without a killer is only observed; loopwarden.example.toml shows the killers.
"""
_ENTRY: Final = """\

[[sources]]
name = "{name}"
format = "{format}"
path = {path}
# killer = "{killer}"
"""
_SIGNALS: Final = """\

# These send signals. A process may run several sessions, all of which end with it. They need the hook (README, Hooks).
"""
_KILLER: Final = """\

# [killers.{name}]
# kind = "process"
# match = '{match}'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovered:
    """The logs at one place."""

    name: str
    """What the watch list would call them."""
    format: str
    path: str
    """The pattern, from `~` if it lies there."""
    process: str | None
    """What the command line of the program's process matches."""
    seen: Glance


def lines_of(
    found: Sequence[Discovered], sample: Sample, now: float, encoding: str
) -> Iterator[Table | Text]:
    """Yield a table with a row for each place, and what its numbers leave out."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for title in ("Format", "Path"):
        table.add_column(title, overflow="fold")
    for title in ("Files", "Sessions", "Calls", "Last call", "Unreadable lines"):
        table.add_column(title, justify="right")
    for entry in found:
        table.add_row(*(Text(in_encoding(cell, encoding)) for cell in _cells(entry, now)))
    yield table
    if not all(entry.seen.is_all for entry in found):
        yield Text(in_encoding(_left_out(sample), encoding) + "\n")


def watchlist_of(found: Sequence[Discovered]) -> str:
    """Return entries for a watch list, and for the programs found what would stop them, commented."""
    killers = {entry.format: entry.process for entry in found if entry.process}
    entries = (
        _ENTRY.format(
            name=entry.name,
            format=entry.format,
            path=_quoted(entry.path),
            killer=entry.format if entry.format in killers else "...",
        )
        for entry in found
    )
    blocks = (_KILLER.format(name=name, match=match) for name, match in killers.items())
    return "".join([_HEAD, *entries, *([_SIGNALS] if killers else []), *blocks])


def nothing_at(places: Sequence[str], encoding: str) -> str:
    """Say that there are no logs, and where they were looked for."""
    listed = "".join(f"  {one_line(place, _PATH_LIMIT)}\n" for place in places)
    said = f"No logs of agents were found. Looked at:\n{listed}"
    return in_encoding(f"{said}What lies elsewhere, a watch list can name.\n", encoding)


def _cells(entry: Discovered, now: float) -> tuple[str, ...]:
    seen, more = entry.seen, "" if entry.seen.is_all else "+"
    if seen.last_ts is None:
        last = "" if seen.is_all else "?"
    else:
        last = f"{span(now - seen.last_ts)} ago" if seen.last_ts <= now else "in the future"
    return (
        entry.format,
        one_line(entry.path, _PATH_LIMIT),
        amount(len(seen.files)),
        f"{amount(len(seen.sessions))}{more}",
        f"{amount(seen.calls)}{more}",
        last,
        f"{amount(seen.unreadable)}{more}",
    )


def _left_out(sample: Sample) -> str:
    return (
        f"+ at least: of each place the newest {plural(sample.files, 'file')} were read, of each the last "
        f"{sample.size // _KILOBYTE} KiB; of a database the newest {plural(sample.sessions, 'session')}, of each "
        f"the last {plural(sample.rows, 'row')}."
    )


def _quoted(text: str) -> str:
    """Return a TOML string, in plain ASCII."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    return char if char.isascii() and char.isprintable() else f"\\U{ord(char):08X}"
