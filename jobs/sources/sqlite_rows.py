"""The rows of an SQLite database that is a log: of one session after the other, numbered within it."""

import os.path
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from time import monotonic
from typing import Final

import msgspec
import zstandard

from jobs.opening import BESIDE
from jobs.sources.fields import YEAR_10000, short
from jobs.sources.table_format import RowLimits, TableFormat

_NOT_CREATED: Final = ("SQLITE_CANTOPEN", "SQLITE_READONLY")
_PATIENCE: Final = 0.1
"""Seconds to wait for a writer's lock; with a write-ahead log there is none to wait for."""
_STEPS: Final = 1000
"""Of SQLite's machine, after which it asks whether to go on."""

_COST_OF_ROW: Final = 100
"""In bytes, beside its own: a row of one byte is no less work than a short line."""
_unpack: Final = zstandard.ZstdDecompressor().decompress  # for one thread

Place = tuple[int, str, int]
"""Of a row: its rowid, session and number."""
Row = tuple[int, bytes | None]
"""A number, and the JSON of a record if it can be read."""


class Head(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Up to where a session has been written."""

    session: str
    number: int
    touched: float

    @property
    def key(self) -> str:
        return short(self.session)


class Reading(sqlite3.Connection):
    """Is interrupted when it takes too long: anybody can write a database whose rows never end."""

    most: float
    """Seconds."""
    _since: float
    _spent: float = 0

    def begin(self, most: float) -> None:
        """Allow so many seconds from now on, and as many for all that is timed."""
        self.most, self._since = most, monotonic()
        self.set_progress_handler(self._is_over, _STEPS)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Do something for which SQLite is needed; what is done between such does not count."""
        if self._spent > self.most:
            raise sqlite3.OperationalError("interrupted")
        self._since = monotonic()
        try:
            yield
        finally:
            self._spent += monotonic() - self._since

    def _is_over(self) -> bool:
        return self._spent + monotonic() - self._since > self.most


def opened(path: str, limits: RowLimits) -> Reading:
    """Return a connection that reads. Raises sqlite3.Error."""
    _look_beside(os.path.realpath(path))
    address = _address(path)
    try:
        return _connected(f"{address}?mode=ro", limits)
    except sqlite3.OperationalError as error:
        # Where nothing may be created, not even a reader can share a write-ahead log with others.
        # Without such a log nobody is writing.
        if not error.sqlite_errorname.startswith(_NOT_CREATED) or os.path.exists(f"{path}-wal"):
            raise
        return _connected(f"{address}?immutable=1", limits)


def _look_beside(path: str) -> None:
    # SQLite would open a pipe and wait for its writer.
    for end in BESIDE:
        beside = f"{path}{end}"
        if os.path.exists(beside) and not os.path.isfile(beside):
            raise sqlite3.OperationalError(f"{os.path.basename(beside)} is not a regular file")


def _address(path: str) -> str:
    for sign in "%?#":
        path = path.replace(sign, f"%{ord(sign):x}")
    return f"file://{path}"


def _connected(address: str, limits: RowLimits) -> Reading:
    database = sqlite3.connect(address, uri=True, timeout=_PATIENCE, isolation_level=None, factory=Reading)
    try:
        database.begin(limits.seconds)
        database.execute("PRAGMA trusted_schema = OFF").close()
        database.text_factory = bytes
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limits.longest_row)
        database.execute("SELECT 1 FROM sqlite_master").close()
    except sqlite3.Error:
        database.close()
        raise
    return database


def format_of(database: sqlite3.Connection, formats: Sequence[TableFormat]) -> TableFormat:
    """Return the format of a database. Raises sqlite3.Error."""
    found = next((form for form in formats if has_tables(database, form)), None)
    if found is None:
        raise sqlite3.NotSupportedError(f"it has no table {' or '.join(form.table for form in formats)}")
    return found


def has_tables(database: sqlite3.Connection, form: TableFormat) -> bool:
    """Whether a database has a format's table, and no view in the place of one. Raises sqlite3.Error.

    Views may be nested so that SQLite does not even get to the point where it can be interrupted.
    """
    found = database.execute("SELECT name, type = 'table' AND rootpage > 0 FROM sqlite_master").fetchall()
    are_tables = {
        name.decode(errors="replace").lower(): bool(is_table)
        for name, is_table in found
        if isinstance(name, bytes)
    }
    return are_tables.get(form.table, False) and all(are_tables.get(other, True) for other in form.others)


def newest(database: sqlite3.Connection, form: TableFormat) -> Place | None:
    """Return the row that was written last."""
    (rowid,) = database.execute(form.newest).fetchone()
    return _row_at(database, form, rowid) if isinstance(rowid, int) else None


def _row_at(database: sqlite3.Connection, form: TableFormat, rowid: int) -> Place | None:
    match database.execute(form.row, (rowid,)).fetchone():
        case (bytes(session), int(number)):
            return rowid, short(session.decode(errors="replace")), number
        case _:
            return None


def heads(database: sqlite3.Connection, form: TableFormat, since: Place | None) -> list[Head]:
    """Return at least the sessions that have been written to since a row was the newest one."""
    if since and since == _row_at(database, form, since[0]):
        # Rows that came later have greater rowids: those are given anew only if the greatest is gone, or by a vacuum.
        found = database.execute(form.heads_since, (since[0],))
    else:
        found = database.execute(form.heads)
    return [
        Head(session=session.decode(errors="replace"), number=number, touched=_seconds(touched))
        for session, number, touched in found
        if isinstance(session, bytes) and isinstance(number, int)
    ]


def _seconds(touched: object) -> float:
    """Return a time that was given in ms, or 0 for what is none; SQLite has infinite numbers, JSON has not."""
    seconds = touched / 1000 if isinstance(touched, int | float) else 0
    return seconds if 0 <= seconds < YEAR_10000 else 0


def take(
    database: sqlite3.Connection, form: TableFormat, head: Head, after: int, limits: RowLimits
) -> tuple[list[Row], int]:
    """Return the next rows, about a chunk of them, and what they cost. Raises sqlite3.Error."""
    taken: list[Row] = []
    size, chunk, longest = 0, limits.chunk, limits.longest_row
    try:
        # The rows of a chunk are fetched and the lock is gone before anything is done with them.
        with closing(database.execute(form.rows, (head.session, after, head.number))) as rows:
            for number, text, frame in rows:
                record = text if isinstance(text, bytes) else _unpacked(text, frame, longest)
                taken.append((number, record))
                size += _COST_OF_ROW
                if record is not None:
                    size += len(record)
                if size >= chunk:
                    break
    except sqlite3.DataError:
        return (taken, size) if taken else _take_one(database, form, head, after, limits)
    except sqlite3.DatabaseError:
        if not taken:
            raise
    return taken, size


def _take_one(
    database: sqlite3.Connection, form: TableFormat, head: Head, after: int, limits: RowLimits
) -> tuple[list[Row], int]:
    """Take the next row if there is one, where that or the one behind it is too long."""
    (number,) = database.execute(form.next_row, (head.session, after)).fetchone()
    if number is None:
        return [], 0
    try:
        with closing(database.execute(form.rows, (head.session, after, number))) as rows:
            _, text, frame = rows.fetchone() or (number, None, None)
    except sqlite3.DataError:
        return [(number, None)], _COST_OF_ROW
    record = text if isinstance(text, bytes) else _unpacked(text, frame, limits.longest_row)
    return [(number, record)], _COST_OF_ROW + len(record or b"")


def _unpacked(text: object, frame: object, most: int) -> bytes | None:
    """Return a record that is packed, None if it is neither that nor a text."""
    if text is not None or not isinstance(frame, bytes):
        return None
    try:
        size = zstandard.frame_content_size(frame)
        if 0 <= size <= most:
            return _unpack(frame)
        return _unpack(frame, max_output_size=most) if size < 0 else None
    except zstandard.ZstdError:
        return None
