"""Tells which format a log has by how it begins. Each format's own module says what is one of its records."""

import errno
import os
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from itertools import islice
from typing import Final

import msgspec

from jobs.opening import is_database, opened_to_read
from jobs.sources.log_format import LogFormat, Record
from jobs.sources.sqlite_process import ReaderLostError, TableReader
from jobs.sources.sqlite_talk import Kind, Problem, Recognise
from jobs.sources.table_format import name_of

_BEGINNING: Final = 1 << 16
"""Bytes of a file that are looked at."""
LONGEST_LINE: Final = 8 << 20
"""And so many if not even its first line ends within them."""
_LINES: Final = 50
_PREAMBLE: Final = 2 << 20
"""Bytes that are looked at where these lines are records of no format: much may come before what tells it."""
_PREAMBLE_LINES: Final = 20_000

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


def recognise(path: str, formats: Formats, tables: TableReader) -> str | Unknown:
    """Return the name of the format that a file has, or what else it is. Raises OSError."""
    if is_database(path):
        return _format_of_tables(path, formats, tables)
    beginning = _beginning(path)
    kind = _format_of_lines(path, formats, beginning, _LINES)
    if kind is Unknown.RECORDS and (len(beginning) == _BEGINNING or beginning.count(b"\n") > _LINES):
        return _format_of_lines(path, formats, _start(path, _PREAMBLE), _PREAMBLE_LINES)
    return kind


def _format_of_lines(path: str, formats: Formats, content: bytes, most: int) -> str | Unknown:
    """Return what the first lines of a file show."""
    content, has_records = content.lstrip(b"\0"), False
    for record in _records(content, most):
        # What would fit two formats tells nothing, so that their order does not matter.
        fitting = [name for name, form in formats.items() if form.is_record(record) and form.is_path(path)]
        if len(fitting) == 1:
            return fitting[0]
        has_records = True
    if b"\n" not in content:
        return Unknown.BLANK
    return Unknown.RECORDS if has_records else Unknown.OTHER


def _beginning(path: str) -> bytes:
    """Return what is looked at first, the first line as a whole."""
    beginning = _start(path, _BEGINNING)
    if len(beginning) < _BEGINNING or b"\n" in beginning:
        return beginning
    longer = _start(path, LONGEST_LINE)
    return longer[: longer.find(b"\n") + 1] or longer


def _start(path: str, size: int) -> bytes:
    file = opened_to_read(path)
    try:
        return os.pread(file, size, 0)
    finally:
        os.close(file)


def _records(content: bytes, most: int) -> Iterator[Record]:
    """Yield the objects among the first lines; the last one may be complete without its end."""
    for line in islice(content.split(b"\n"), most):
        try:
            record = msgspec.json.decode(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            yield record


def _format_of_tables(path: str, formats: Formats, tables: TableReader) -> str | Unknown:
    asked = [(name, name_of(table)) for name, form in formats.items() for table in form.tables]
    try:
        replies = list(tables.ask(Recognise(path=path, formats=[table for _, table in asked])))
    except ReaderLostError as lost:
        raise OSError(errno.EIO, str(lost), path) from lost
    match replies:
        case [Kind(format=int(index))] if index < len(asked):
            return asked[index][0]
        case [Kind(is_database=True, has_tables=has_tables)]:
            return Unknown.TABLES if has_tables else Unknown.BLANK
        case [Problem(text=text)]:
            raise OSError(errno.EIO, text, path)
        case _:
            return Unknown.OTHER  # it only begins as one
