"""Tells which format a log has by how it begins. Each format's own module says what is one of its records."""

import errno
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from enum import Enum, auto
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from jobs.sources.log_format import LogFormat, Record
from jobs.sources.sqlite_rows import RowLimits, TableFormat, has_tables, is_database, opened

_BEGINNING: Final = 1 << 16
"""Bytes of a file that are looked at."""
_LONGEST_LINE: Final = 8 << 20
"""And so many if not even its first line ends within them."""
_LINES: Final = 50

Formats = Mapping[str, LogFormat]


class Unknown(Enum):
    """What a file is that has no known format."""

    BLANK = auto()
    """It holds no whole line, or no table: what it will be is still to be seen."""
    RECORDS = auto()
    """JSON, an object a line."""
    TABLES = auto()
    """A database."""
    OTHER = auto()
    """Text, or bytes."""


def recognise(path: str, formats: Formats) -> str | Unknown:
    """Return the name of the format that a file has, or what else it is. Raises OSError."""
    if is_database(path):
        return _format_of_tables(path, formats)
    beginning = _beginning(path).lstrip(b"\0")
    has_records = False
    for record in _records(beginning):
        # What would fit two formats tells nothing, so that their order does not matter.
        fitting = [name for name, form in formats.items() if form.is_record(record)]
        if len(fitting) == 1:
            return fitting[0]
        has_records = True
    if b"\n" not in beginning:
        return Unknown.BLANK
    return Unknown.RECORDS if has_records else Unknown.OTHER


def _beginning(path: str) -> bytes:
    # Should the path be a pipe's by now, opening it does not wait for a writer.
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        beginning = os.pread(file, _BEGINNING, 0)
        if len(beginning) < _BEGINNING or b"\n" in beginning:
            return beginning
        longer = os.pread(file, _LONGEST_LINE, 0)
        return longer[: longer.find(b"\n") + 1] or longer
    finally:
        os.close(file)


def _records(beginning: bytes) -> Iterator[Record]:
    """Yield the objects among the first lines; the last one may be complete without its end."""
    for line in islice(beginning.split(b"\n"), _LINES):
        try:
            record = msgspec.json.decode(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            yield record


def _format_of_tables(path: str, formats: Formats) -> str | Unknown:
    try:
        with closing(opened(str(Path(path).absolute()), RowLimits())) as database:
            for name, form in formats.items():
                if any(_answers(database, table) for table in form.tables):
                    return name
            tables = database.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        raise OSError(errno.EIO, str(error), path) from error
    except sqlite3.DatabaseError:
        return Unknown.OTHER  # it only begins as one
    return Unknown.TABLES if tables else Unknown.BLANK


def _answers(database: sqlite3.Connection, form: TableFormat) -> bool:
    """Whether a database has all that the format asks for; nothing of it is read."""
    if not has_tables(database, form):
        return False
    try:
        database.execute(f"EXPLAIN {form.heads}").close()
        database.execute(f"EXPLAIN {form.rows}", ("", 0, 0)).close()
    except sqlite3.OperationalError as error:
        if "no such" in str(error):
            return False
        raise
    return True
