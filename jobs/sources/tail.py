"""Reads what has come since the last look at one growing text file, and notices when it has become another."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import msgspec

from jobs.ports import Cursor

Identity = tuple[int, int]
"""Device and inode."""

_HEAD: Final = 1024
"""Bytes from the start of a file that go into its head fingerprint."""
_TAIL: Final = 256
"""Bytes before the offset that go into its tail fingerprint."""
_CLOCK_SLACK: Final = 2
"""Seconds by which a file system's times may lie behind the bot's clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """How much is held at a time, in bytes."""

    chunk: int = 1 << 20
    longest_line: int = 8 << 20
    """A line longer than this is skipped, its end not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of a file: at most a chunk of whole lines, or one line longer than that."""

    lines: bytes
    """Each ends in a newline. Empty if nothing came, or what came is part of a line that is too long."""
    cursor: Cursor
    """The place after them; whoever reads the lines knows the number of unreadable ones."""
    skipped: int = 0
    """Lines too long to read that begin here."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A cursor in the making: the bytes themselves instead of their fingerprints."""

    offset: int
    head: bytes
    tail: bytes
    in_long_line: bool

    def after(self, data: bytes, *, in_long_line: bool = False) -> "_Place":
        # From the bytes read, never from a second look at the file, which may have been rewritten meanwhile.
        head = self.head + data[: _HEAD - len(self.head)]
        tail = (self.tail + data[-_TAIL:])[-_TAIL:]
        return _Place(self.offset + len(data), head, tail, in_long_line)

    def cursor(self, seen: os.stat_result, now: float) -> Cursor:
        device, inode = identity(seen)
        return Cursor(
            device=device,
            inode=inode,
            offset=self.offset,
            head=_fingerprint(self.head),
            tail=_fingerprint(self.tail),
            in_long_line=self.in_long_line,
            read_at=now,
        )


_START: Final = _Place(0, b"", b"", in_long_line=False)


def identity(seen: os.stat_result) -> Identity:
    """Return what a file keeps when it is renamed; both fit an SQLite integer."""
    return seen.st_dev & (2**63 - 1), seen.st_ino & (2**63 - 1)


def is_of(cursor: Cursor | None, seen: os.stat_result) -> bool:
    """Whether `cursor` was taken from the file seen; what that holds may be something else by now."""
    return cursor is not None and (cursor.device, cursor.inode) == identity(seen)


def continues(path: str, seen: os.stat_result, cursor: Cursor) -> bool:
    """Whether the file seen at `path` begins with what was read up to `cursor`. Raises OSError."""
    if _is_unchanged(seen, cursor):
        return True
    with _opened(path) as file:
        return _place_of(cursor, file) is not None


def read_new(
    path: str, seen: os.stat_result, cursor: Cursor | None, now: float, limits: ReadLimits
) -> Iterator[Chunk]:
    """Yield what follows `cursor`, or all if the file does not begin with what was read; one chunk at least.

    `seen` is the file's own stat, a regular file's; if the path holds another file by now, nothing is yielded.
    What follows the last newline is left for later. Raises OSError.
    """
    if cursor is not None and _is_unchanged(seen, cursor):
        yield Chunk(lines=b"", cursor=msgspec.structs.replace(cursor, read_at=now))
        return
    with _opened(path) as file:
        opened = os.fstat(file)
        if identity(opened) != identity(seen):
            return
        place = (_place_of(cursor, file) if cursor is not None else None) or _START
        while True:
            lines, after = _step(file, place, limits)
            is_skip = after.in_long_line and not place.in_long_line
            yield Chunk(lines=lines, cursor=after.cursor(opened, now), skipped=int(is_skip))
            if after is place or after.offset >= opened.st_size:
                return
            place = after


@contextmanager
def _opened(path: str) -> Iterator[int]:
    # The path was a regular file's when it was looked at. Should it be a pipe or a terminal by now,
    # opening it neither waits for a writer nor takes the terminal.
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        yield file
    finally:
        os.close(file)


def _is_unchanged(seen: os.stat_result, cursor: Cursor) -> bool:
    # The time is there for a file rewritten to the very size it had.
    # It is the inode's change time, because a writer can set the modification time.
    return (
        is_of(cursor, seen)
        and seen.st_size == cursor.offset
        and seen.st_ctime < cursor.read_at - _CLOCK_SLACK
    )


def _place_of(cursor: Cursor, file: int) -> _Place | None:
    head = os.pread(file, min(_HEAD, cursor.offset), 0)
    tail_length = min(_TAIL, cursor.offset)
    tail = os.pread(file, tail_length, cursor.offset - tail_length)
    if (_fingerprint(head), _fingerprint(tail)) != (cursor.head, cursor.tail):
        return None
    return _Place(cursor.offset, head, tail, cursor.in_long_line)


def _step(file: int, place: _Place, limits: ReadLimits) -> tuple[bytes, _Place]:
    """Return the next lines and the place after them: the same one if there is nothing more to take."""
    data = os.pread(file, limits.chunk, place.offset)
    if place.in_long_line:
        return b"", _skip(data, place)
    end = data.rfind(b"\n") + 1
    if end:
        return data[:end], place.after(data[:end])
    if len(data) < limits.chunk:
        return b"", place
    return _take_long_line(file, data, place, limits)


def _skip(data: bytes, place: _Place) -> _Place:
    if not data:
        return place
    end = data.find(b"\n") + 1
    return place.after(data[:end] if end else data, in_long_line=not end)


def _take_long_line(file: int, beginning: bytes, place: _Place, limits: ReadLimits) -> tuple[bytes, _Place]:
    """Take a line that fills more than a chunk: whole, or its beginning if it is too long."""
    # The end is looked for before the line is read whole: one that has no end yet is never held.
    length = len(beginning)
    while length <= limits.longest_line:
        data = os.pread(file, min(limits.chunk, limits.longest_line + 1 - length), place.offset + length)
        if not data:
            return b"", place
        end = data.find(b"\n") + 1
        if end:
            line = os.pread(file, length + end, place.offset)
            return line, place.after(line)
        length += len(data)
    return b"", place.after(beginning, in_long_line=True)


def _fingerprint(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
