"""Where to begin so that only the newest of what a pattern finds is read: for a glance at logs of gigabytes."""

import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from jobs.opening import BESIDE, is_database
from jobs.pattern import find_files
from jobs.ports import Cursor
from jobs.sources.sqlite_log import near_end_of_tables
from jobs.sources.sqlite_process import TableReader
from jobs.sources.table_format import TableFormat
from jobs.sources.tail import near_end


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """How much of the newest is enough."""

    files: int
    size: int
    """Bytes at the end of a file."""
    sessions: int = 50
    """Of a database."""
    rows: int = 1000
    """At the end of a session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Places near the ends."""

    places: Mapping[str, Cursor]
    is_all: bool
    """Whether they leave nothing out."""


def ends_of(pattern: str, tables: Sequence[TableFormat], sample: Sample, now: float) -> Ends:
    """Return where to begin in each file: near its end, or at its end if enough others are newer."""
    found = [
        (path, seen)
        for path in find_files(pattern, [])
        if not path.endswith(BESIDE) and (seen := _regular(path))
    ]
    found.sort(key=lambda file: file[1].st_mtime_ns, reverse=True)
    places: dict[str, Cursor] = {}
    is_all = len(found) <= sample.files
    with TableReader() as reader:
        for rank, (path, seen) in enumerate(found):
            is_new = rank < sample.files
            # What cannot be opened gets no place: reading it will say why.
            with suppress(OSError):
                if is_database(path):
                    sessions = sample.sessions if is_new else 0
                    places[path], is_whole = near_end_of_tables(
                        path, seen, tables, reader, sessions=sessions, rows=sample.rows, now=now
                    )
                else:
                    places[path] = near_end(path, seen, sample.size if is_new else 0, now)
                    is_whole = seen.st_size <= sample.size
                is_all = is_all and is_whole
    return Ends(places=places, is_all=is_all)


def _regular(path: str) -> os.stat_result | None:
    try:
        seen = Path(path).stat()
    except OSError:
        return None
    return seen if stat.S_ISREG(seen.st_mode) else None
