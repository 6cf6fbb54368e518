"""What a log format is whose records are rows of an SQLite database, and how much of one is read at a time.

A format's tables are read in a process of their own (`sqlite_child`), which imports their module by its name. So that
it starts quickly, that module should not import more than reading needs.
"""

import sqlite3
from typing import Protocol

import msgspec

from jobs.sources.line_reader import LineReader


class RowLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much is held at a time, in bytes."""

    chunk: int = 1 << 18
    """What is made of it fits into a processor's cache."""
    longest_row: int = 8 << 20
    """A row longer than this is skipped and counted."""
    look: int = 2 << 30
    """Of one database at one look, for the sake of the others."""
    seconds: float = 5
    """That SQLite may take to find what there is in a database, and to read it; no program's own takes so long."""


class TableFormat(Protocol):
    """What a log format is whose records are rows, numbered within their session and never changed."""

    table: str
    """That a database must have."""
    others: tuple[str, ...]
    """That are asked too if they are there."""
    heads: str
    """SQL: every session, the number of its newest row, and the time in ms when it was last written to, or later."""
    heads_since: str
    """SQL: the same of the rows behind a rowid; `?`: that rowid."""
    newest: str
    """SQL: the greatest rowid."""
    row: str
    """SQL: session and number; `?`: a rowid."""
    rows: str
    """SQL: number, JSON, the same as a zstd frame if the JSON is null; `?`: session, after and up to which number."""
    next_row: str
    """SQL: the next number; `?`: session, after which number."""

    def reader(self, database: sqlite3.Connection, path: str, session: str, state: str, /) -> LineReader:
        """Begin to read a session, or go on where `state` was given; `""` at its start. Raises sqlite3.Error."""
        ...


def name_of(form: TableFormat) -> str:
    """Return what another process finds a format by."""
    return f"{type(form).__module__}:{type(form).__qualname__}"
