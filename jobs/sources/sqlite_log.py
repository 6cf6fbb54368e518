"""The calls in the SQLite databases that a pattern names, read while their programs write."""

import os
import sqlite3
import stat
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Raw

from jobs.ports import Batch, Cursor
from jobs.sources.fields import NOTHING
from jobs.sources.log_files import LineReader, batch_of
from jobs.sources.pattern import find_files
from jobs.sources.sqlite_rows import (
    BESIDE,
    Head,
    Place,
    Reading,
    Row,
    RowLimits,
    TableFormat,
    format_of,
    heads,
    is_database,
    newest,
    opened,
    take,
)
from jobs.sources.tail import identity, identity_of
from jobs.thrash.call import Entry

_CLOCK_SLACK: Final = 2
"""Seconds by which a file system's times may lie behind the bot's clock."""
_KEPT: Final = 200
"""So many sessions of a database are remembered, those that were written to last."""
_KEPT_BEHIND: Final = 5000
"""And about so many while there are others that have not been read: what is older of those is lost otherwise."""
_COST_OF_ROW: Final = 100
"""In bytes, beside its own: a row of one byte is no less work than a short line."""


class _Known(msgspec.Struct, array_like=True, gc=False):
    """What has been read of one session."""

    number: int = -1
    """Of the last row."""
    ts: float = 0
    """Of the newest entry."""
    after: float = -1.0
    """What is not newer than this was told before the session was forgotten, or its rows were replaced."""
    touched: float = 0
    """When it was last written to, or later."""
    memory: Raw = NOTHING
    """The reader's state."""


class _Kept(msgspec.Struct, omit_defaults=True):
    """What a cursor remembers of a database."""

    sessions: dict[str, _Known] = {}
    forgotten: float = -1.0
    """No row of a session that is not remembered has been read that is newer than this."""
    seen: tuple[int, ...] = ()
    """Sizes and times of the files at the last complete look."""
    newest: Place | None = None
    """Of the row that was written last before that look: its rowid, session and number."""


_decode_kept: Final = msgspec.json.Decoder(_Kept).decode


@dataclass(slots=True, kw_only=True)
class _Look:
    """One look at one database."""

    path: str
    seen: os.stat_result
    now: float
    kept: _Kept
    unreadable: int
    forgotten: float = -1.0
    """As it was before the look."""
    entries: list[Entry] = field(default_factory=list)
    size: int = 0
    """Of the rows that `entries` are from."""

    def take_in(self, known: _Known, reader: LineReader, rows: Sequence[Row]) -> int:
        """Read a session's next rows; return how many bytes that were."""
        before = self.size
        for number, record in rows:
            found = None if record is None else reader.read(record)
            if found is None:
                self.unreadable += 1
            else:
                self._tell(known, found)
            self.size += _COST_OF_ROW + len(record or b"")
            known.number = number
        return self.size - before

    def _tell(self, known: _Known, found: Sequence[Entry]) -> None:
        for entry in found:
            if entry.ts > known.after:
                self.entries.append(entry)
                known.ts = max(known.ts, entry.ts)

    def batch(self, *, is_last: bool) -> Batch:
        """Return what has been read since the last batch."""
        device, inode = identity(self.seen)
        cursor = Cursor(
            device=device,
            inode=inode,
            offset=self.seen.st_size,
            head="",
            tail="",
            is_behind=not is_last,
            unreadable=self.unreadable,
            read_at=self.now,
            state=msgspec.json.encode(self.kept).decode(),
        )
        batch = batch_of(self.path, cursor, self.entries, self.size)
        self.entries, self.size = [], 0
        return batch


@dataclass(slots=True, kw_only=True)
class Databases:
    """A `CallSource`: every database that matches, whether or not its program is writing.

    Nothing is written to it, but SQLite may create the files that it keeps beside one.

    Of each session the number of the last row is remembered, for the sessions that were written to last. Of all
    others it is known how new their newest entry may be: should one go on, only what is newer is told.
    """

    name: str
    pattern: str
    """An absolute path with a shell's wildcards and `**`."""
    formats: Sequence[TableFormat]
    """A database is of the first whose table it has."""
    takes: Callable[[str], bool] | None = None
    """Whether a path that matches is a database; then others are somebody else's concern."""
    limits: RowLimits = field(default_factory=RowLimits)
    _problems: list[str] = field(default_factory=list, init=False)

    def read_new(self, cursors: Mapping[str, Cursor], now: float) -> Iterator[Batch]:
        """Yield what came since `cursors`, session by session, in batches of about a chunk."""
        self._problems.clear()
        for path, seen in self._found(cursors).items():
            try:
                yield from self._read(path, seen, _cursor_of(path, seen, cursors), now)
            except Exception as error:  # noqa: BLE001 - one database never keeps the others from being read
                if Path(path).exists():  # else it was deleted since it was found
                    self._problems.append(_refused(path, error))

    def problems(self) -> Sequence[str]:
        """What the last `read_new` could not read, one sentence each."""
        return tuple(self._problems)

    def _found(self, cursors: Mapping[str, Cursor]) -> dict[str, os.stat_result]:
        paths = sorted(find_files(self.pattern, self._problems), key=lambda path: (path not in cursors, path))
        found: dict[str, os.stat_result] = {}
        for path in paths:
            if path.endswith(BESIDE) or (self.takes and not self.takes(path)):
                continue
            try:
                seen = Path(path).stat()
                if not self.takes and not is_database(path):
                    self._leave_out(path, seen)
                elif identity(seen) not in map(identity, found.values()):
                    found[path] = seen
            except (FileNotFoundError, NotADirectoryError):
                pass
            except OSError as error:
                self._problems.append(f"{path} cannot be read: {error.strerror}.")
        return found

    def _leave_out(self, path: str, seen: os.stat_result) -> None:
        # An empty file will be a database as soon as its program has written to it.
        if seen.st_size or not stat.S_ISREG(seen.st_mode):
            self._problems.append(f"{path} is not read: it is no SQLite database.")

    def _read(self, path: str, seen: os.stat_result, cursor: Cursor | None, now: float) -> Iterator[Batch]:
        stamp, changed_at = _stamp(path, seen)
        kept = _kept_in(cursor)
        is_lost, kept = kept is None, kept or _Kept()
        look = _Look(path=path, seen=seen, now=now, kept=kept, unreadable=cursor.unreadable if cursor else 0)
        if cursor and kept.seen == stamp and changed_at < cursor.read_at - _CLOCK_SLACK:
            yield look.batch(is_last=True)
            return
        with closing(opened(path, self.limits)) as database:
            form = format_of(database, self.formats)
            before = newest(database, form)
            if is_lost:
                _take_as_read(kept, heads(database, form, None), now)
                self._problems.append(
                    f"{path} is read from its end on: how far it had been read is not known."
                )
            look.forgotten = kept.forgotten
            is_whole = yield from self._read_sessions(database, form, look)
            if is_whole:
                kept.seen, kept.newest = stamp, before
        yield look.batch(is_last=is_whole)

    def _read_sessions(
        self, database: Reading, form: TableFormat, look: _Look
    ) -> Generator[Batch, None, bool]:
        """Yield what is new but for the last batch; return whether that is all there was."""
        left, failed = self.limits.look, None
        for head in _unread(database, form, look.kept):
            if len(look.kept.sessions) > 2 * _KEPT_BEHIND:
                _forget(look.kept, _KEPT_BEHIND)
            try:
                for size in self._read_session(database, form, look, head):
                    left -= size
                    if left <= 0:
                        self._problems.append(
                            f"{look.path} is very large: the rest of it is left for the next look."
                        )
                        return False
                    if look.size >= self.limits.chunk:
                        yield look.batch(is_last=False)
            except sqlite3.OperationalError:
                yield look.batch(is_last=False)
                raise
            except sqlite3.Error as error:  # its pages are damaged, not those of others
                failed = error
        _forget(look.kept, _KEPT)
        if failed:
            self._problems.append(f"{look.path} cannot be read as a whole: {failed}.")
        return failed is None

    def _read_session(self, database: Reading, form: TableFormat, look: _Look, head: Head) -> Iterator[int]:
        """Take in what is new of one session, and yield after each chunk how many bytes that were."""
        known = look.kept.sessions.setdefault(head.key, _Known(after=look.forgotten))
        if head.number < known.number:  # its rows were replaced
            known.number, known.after, known.memory = -1, known.ts, NOTHING
        state = "" if known.memory == NOTHING else bytes(known.memory).decode()
        known.touched = max(known.touched, head.touched)
        with database.timed():
            reader = form.reader(database, look.path, head.session, state)
        while known.number < head.number:
            with database.timed():
                rows = take(database, form, head, known.number, self.limits)
            size = look.take_in(known, reader, rows)
            if not rows:
                known.number = head.number
            known.memory = Raw(reader.state().encode()) or NOTHING
            yield size


def near_end_of_tables(
    path: str, seen: os.stat_result, formats: Sequence[TableFormat], *, sessions: int, rows: int, now: float
) -> tuple[Cursor, bool]:
    """Return a place before the last rows of the sessions written to last, and whether these are all there are.

    Raises sqlite3.Error.
    """
    with closing(opened(path, RowLimits())) as database:
        found = heads(database, format_of(database, formats), None)
    found.sort(key=lambda head: head.touched, reverse=True)
    kept = _Kept(forgotten=max((head.touched for head in found[sessions:]), default=-1.0))
    for head in found[:sessions]:
        kept.sessions[head.key] = _Known(number=max(head.number - rows, -1), touched=head.touched)
    is_all = len(found) <= sessions and all(head.number < rows for head in found)
    look = _Look(path=path, seen=seen, now=now, kept=kept, unreadable=0)
    return look.batch(is_last=False).cursor, is_all


def _cursor_of(path: str, seen: os.stat_result, cursors: Mapping[str, Cursor]) -> Cursor | None:
    """Return how far a database has been read, also one that was moved."""
    its_own = (
        cursor
        for other, cursor in cursors.items()
        if identity_of(cursor) == identity(seen) and (other == path or not Path(other).exists())
    )
    return max(its_own, key=lambda cursor: cursor.read_at, default=cursors.get(path))


def _stamp(path: str, seen: os.stat_result) -> tuple[tuple[int, ...], float]:
    """Return what changes with every commit, and when it did last."""
    try:
        beside = Path(f"{path}-wal").stat()
    except OSError:
        return (seen.st_ino, seen.st_size, seen.st_ctime_ns), seen.st_ctime
    # Not its change time: SQLite sets the file's owner when it is opened to be read by root.
    stamp = (seen.st_ino, seen.st_size, seen.st_ctime_ns, beside.st_size, beside.st_mtime_ns)
    return stamp, max(seen.st_ctime, beside.st_mtime)


def _refused(path: str, error: Exception) -> str:
    if getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT" or str(error) == "interrupted":
        return f"{path} takes too long to read: the rest of it is left for the next look."
    return f"{path} cannot be read: {error}."


def _kept_in(cursor: Cursor | None) -> _Kept | None:
    """Return what a cursor remembers, None if that is lost."""
    # Of a file that was empty or had lines there is nothing to remember.
    if cursor is None or cursor.head or not (cursor.state or cursor.offset):
        return _Kept()
    try:
        return _decode_kept(cursor.state)
    except (ValueError, RecursionError):
        return None


def _take_as_read(kept: _Kept, found: Sequence[Head], now: float) -> None:
    """Remember all that there is as told."""
    for head in found:
        ts = min(head.touched, now)
        kept.sessions[head.key] = _Known(number=head.number, ts=ts, touched=head.touched)
    _forget(kept, _KEPT)


def _unread(database: sqlite3.Connection, form: TableFormat, kept: _Kept) -> list[Head]:
    """Return the sessions of which there is more, those first that fell silent first."""
    unread = []
    for head in heads(database, form, kept.newest):
        known = kept.sessions.get(head.key)
        if head.touched > kept.forgotten if known is None else head.number != known.number:
            unread.append(head)
    return sorted(unread, key=lambda head: head.touched)


def _forget(kept: _Kept, most: int) -> None:
    """Forget the sessions that have been silent for longest if there are many."""
    times = {key: max(known.touched, known.ts) for key, known in kept.sessions.items()}
    for key in sorted(times, key=times.__getitem__, reverse=True)[most:]:
        kept.forgotten = max(kept.forgotten, times[key])
        del kept.sessions[key]
