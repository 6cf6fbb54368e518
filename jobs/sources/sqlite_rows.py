"""The rows of an SQLite database that is a log: of one session after the other, numbered within it."""

import os
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final, Protocol

import zstandard

from jobs.sources.fields import YEAR_10000, short
from jobs.sources.log_files import LineReader

_MAGIC: Final = b"SQLite format 3\0"
_NOT_CREATED: Final = ("SQLITE_CANTOPEN", "SQLITE_READONLY")
_PATIENCE: Final = 0.1
"""Seconds to wait for a writer's lock; with a write-ahead log there is none to wait for."""
_STEPS: Final = 1000
"""Of SQLite's machine, after which it asks whether to go on."""

BESIDE: Final = ("-wal", "-shm", "-journal")
"""What SQLite names the files that it keeps beside a database."""

Place = tuple[int, str, int]
"""Of a row: its rowid, session and number."""
Row = tuple[int, bytes | None]
"""A number, and the JSON of a record if it can be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLimits:
    """How much is held at a time, in bytes."""

    chunk: int = 1 << 20
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
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


def is_database(path: str) -> bool:
    """Whether a regular file begins as an SQLite database does. Raises OSError."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        return stat.S_ISREG(os.fstat(file).st_mode) and os.pread(file, len(_MAGIC), 0) == _MAGIC
    finally:
        os.close(file)


def opened(path: str, limits: RowLimits) -> Reading:
    """Return a connection that reads. Raises sqlite3.Error."""
    _look_beside(Path(path).resolve())
    address = Path(path).as_uri()
    try:
        return _connected(f"{address}?mode=ro", limits)
    except sqlite3.OperationalError as error:
        # Where nothing may be created, not even a reader can share a write-ahead log with others.
        # Without such a log nobody is writing.
        if not error.sqlite_errorname.startswith(_NOT_CREATED) or Path(f"{path}-wal").exists():
            raise
        return _connected(f"{address}?immutable=1", limits)


def _look_beside(path: Path) -> None:
    # SQLite would open a pipe and wait for its writer.
    for end in BESIDE:
        beside = Path(f"{path}{end}")
        if beside.exists() and not beside.is_file():
            raise sqlite3.OperationalError(f"{beside.name} is not a regular file")


def _connected(address: str, limits: RowLimits) -> Reading:
    # A look goes on in whatever thread asks for the next batch.
    database = sqlite3.connect(
        address,
        uri=True,
        timeout=_PATIENCE,
        isolation_level=None,
        check_same_thread=False,
        factory=Reading,
    )
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


def newest(database: sqlite3.Connection, form: TableFormat) -> tuple[int, str, int] | None:
    """Return the row that was written last."""
    (rowid,) = database.execute(form.newest).fetchone()
    return _row_at(database, form, rowid) if isinstance(rowid, int) else None


def _row_at(database: sqlite3.Connection, form: TableFormat, rowid: int) -> tuple[int, str, int] | None:
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
) -> list[Row]:
    """Return the next rows, about a chunk of them. Raises sqlite3.Error."""
    taken: list[Row] = []
    size, unpacker = 0, zstandard.ZstdDecompressor()  # no two threads may share one
    try:
        # The rows of a chunk are fetched and the lock is gone before anything is done with them.
        with closing(database.execute(form.rows, (head.session, after, head.number))) as rows:
            for number, text, frame in rows:
                record = _record(text, frame, unpacker, limits.longest_row)
                taken.append((number, record))
                size += len(record or b"")
                if size >= limits.chunk:
                    break
    except sqlite3.DataError:
        return taken or _take_one(database, form, head, after, limits)
    except sqlite3.DatabaseError:
        if not taken:
            raise
    return taken


def _take_one(
    database: sqlite3.Connection, form: TableFormat, head: Head, after: int, limits: RowLimits
) -> list[Row]:
    """Take the next row if there is one, where that or the one behind it is too long."""
    (number,) = database.execute(form.next_row, (head.session, after)).fetchone()
    if number is None:
        return []
    try:
        with closing(database.execute(form.rows, (head.session, after, number))) as rows:
            _, text, frame = rows.fetchone() or (number, None, None)
    except sqlite3.DataError:
        return [(number, None)]
    return [(number, _record(text, frame, zstandard.ZstdDecompressor(), limits.longest_row))]


def _record(text: object, frame: object, unpacker: zstandard.ZstdDecompressor, most: int) -> bytes | None:
    if isinstance(text, bytes):
        return text
    return _unpacked(frame, unpacker, most) if text is None and isinstance(frame, bytes) else None


def _unpacked(frame: bytes, unpacker: zstandard.ZstdDecompressor, most: int) -> bytes | None:
    try:
        if zstandard.frame_content_size(frame) > most:
            return None
        return unpacker.decompress(frame, max_output_size=most)
    except zstandard.ZstdError:
        return None
