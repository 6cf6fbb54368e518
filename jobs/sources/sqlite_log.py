"""The calls in the SQLite databases that a pattern names, read while their programs write."""

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from jobs.opening import BESIDE, is_database
from jobs.pattern import find_files
from jobs.ports import Batch, Cursor
from jobs.sources.sqlite_process import ReaderLostError, TableReader
from jobs.sources.sqlite_talk import Beginning, Look, NearEnd, Problem, Told
from jobs.sources.table_format import RowLimits, TableFormat, name_of
from jobs.sources.tail import identity, identity_of

_CLOCK_SLACK: Final = 2
"""Seconds by which a file system's times may lie behind the bot's clock."""


@dataclass(slots=True, kw_only=True)
class Databases:
    """A `CallSource`: every database that matches, whether or not its program is writing.

    Nothing is written to it, but SQLite may create the files that it keeps beside one. What has changed is read by a
    process of its own, since a database can end the process that reads it; where nothing has, none is started.
    """

    name: str
    pattern: str
    """An absolute path with a shell's wildcards and `**`."""
    formats: Sequence[TableFormat]
    """A database is of the first whose table it has."""
    takes: Callable[[str], bool] | None = None
    """Whether a path that matches is a database; then others are somebody else's concern."""
    limits: RowLimits = field(default_factory=RowLimits)
    patience: float = 30
    """Seconds to wait for the next chunk of a database."""
    _problems: list[str] = field(default_factory=list, init=False)

    def read_new(self, cursors: Mapping[str, Cursor], now: float) -> Iterator[Batch]:
        """Yield what came since `cursors`, session by session, in batches of about a chunk."""
        self._problems.clear()
        with TableReader(self.patience) as reader:
            for path, seen in self._found(cursors).items():
                cursor, (stamp, changed_at) = _cursor_of(path, seen, cursors), _stamp(path, seen)
                if cursor and cursor.tail == stamp and changed_at < cursor.read_at - _CLOCK_SLACK:
                    unchanged = msgspec.structs.replace(cursor, read_at=now)
                    yield Batch(path=path, cursor=unchanged, calls=())
                else:
                    yield from self._read(reader, path, _begun(seen, cursor, stamp, now), cursor)

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

    def _read(self, reader: TableReader, path: str, begun: Cursor, before: Cursor | None) -> Iterator[Batch]:
        """Yield what is new in one database; `begun` is its cursor if that turns out to be all of it."""
        request = Look(
            path=path,
            formats=[name_of(form) for form in self.formats],
            state=_state_of(before),
            now=begun.read_at,
            limits=self.limits,
        )
        unreadable = begun.unreadable
        try:
            for reply in reader.ask(request):
                match reply:
                    case Problem():
                        self._problems.append(reply.text)
                    case Told():
                        unreadable += reply.unreadable
                        cursor = msgspec.structs.replace(
                            begun,
                            tail=begun.tail if reply.is_whole else "",
                            is_behind=not reply.is_whole,
                            unreadable=unreadable,
                            state=reply.state,
                        )
                        yield _batch(path, cursor, reply)
        except ReaderLostError as lost:
            self._problems.append(f"{path} cannot be read: {lost}.")


def near_end_of_tables(
    path: str,
    seen: os.stat_result,
    formats: Sequence[TableFormat],
    reader: TableReader,
    *,
    sessions: int,
    rows: int,
    now: float,
) -> tuple[Cursor, bool]:
    """Return a place before the last rows of the sessions written to last, and whether these are all there are.

    Raises OSError.
    """
    names = [name_of(form) for form in formats]
    try:
        replies = list(reader.ask(NearEnd(path=path, formats=names, sessions=sessions, rows=rows)))
    except ReaderLostError as lost:
        raise OSError(f"{lost}") from lost
    match replies:
        case [Beginning(state=state, is_all=is_all)]:
            cursor = _begun(seen, None, "", now)
            return msgspec.structs.replace(cursor, is_behind=True, state=state), is_all
        case _:
            raise OSError(f"{path} is no database of a known format")


def _begun(seen: os.stat_result, before: Cursor | None, stamp: str, now: float) -> Cursor:
    device, inode = identity(seen)
    return Cursor(
        device=device,
        inode=inode,
        offset=seen.st_size,
        head="",
        tail=stamp,
        unreadable=before.unreadable if before else 0,
        read_at=now,
    )


def _batch(path: str, cursor: Cursor, told: Told) -> Batch:
    return Batch(
        path=path,
        cursor=cursor,
        calls=told.calls,
        answers=told.answers,
        usages=told.usages,
        size=told.size,
    )


def _state_of(cursor: Cursor | None) -> str | None:
    # Of a file that was empty or had lines there is nothing to remember.
    if cursor is None or cursor.head or not (cursor.state or cursor.offset):
        return None
    return cursor.state


def _cursor_of(path: str, seen: os.stat_result, cursors: Mapping[str, Cursor]) -> Cursor | None:
    """Return how far a database has been read, also one that was moved."""
    its_own = (
        cursor
        for other, cursor in cursors.items()
        if identity_of(cursor) == identity(seen) and (other == path or not Path(other).exists())
    )
    return max(its_own, key=lambda cursor: cursor.read_at, default=cursors.get(path))


def _stamp(path: str, seen: os.stat_result) -> tuple[str, float]:
    """Return what changes with every commit, and when it did last."""
    stamp: tuple[int, ...] = (seen.st_ino, seen.st_size, seen.st_ctime_ns)
    try:
        beside = Path(f"{path}-wal").stat()
    except OSError:
        return _joined(stamp), seen.st_ctime
    # Not its change time: SQLite sets the file's owner when it is opened to be read by root.
    return _joined((*stamp, beside.st_size, beside.st_mtime_ns)), max(seen.st_ctime, beside.st_mtime)


def _joined(stamp: tuple[int, ...]) -> str:
    return " ".join(map(str, stamp))
