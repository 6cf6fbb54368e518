"""Reads what has come since the last look at one growing text file, and notices when it has become another."""

import errno
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Final

import msgspec

from jobs.opening import opened_to_read
from jobs.ports import Cursor

Identity = tuple[int, int]
"""Device and inode."""

_HEAD: Final = 1024
"""Bytes from the start of a file that go into its head fingerprint."""
_TAIL: Final = 256
"""Bytes before the offset that go into its tail fingerprint."""
_COPY_END: Final = 1 << 20
"""Bytes at the end of a copy in which its last line end is looked for."""
_COST_OF_LINE: Final = 100
"""In bytes: as long as a line takes that cannot be read, so many bytes of others take."""
_CLOCK_SLACK: Final = 2
"""Seconds by which a file system's times may lie behind the bot's clock."""
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
"""What some editors and shells begin a text with."""
_LARGEST: Final = 2**63 - 1
"""That an SQLite integer can be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """How much is held at a time, in bytes."""

    chunk: int = 1 << 18
    """What is made of it fits into a processor's cache: with more, reading takes half as long again."""
    longest_line: int = 8 << 20
    """A line longer than this is skipped, its end not counted."""
    look: int = 2 << 30
    """Of one file at one look, a line counted as `_COST_OF_LINE` more. It is for the sake of the other files:
    a hole of exabytes costs its writer nothing, and a gigabyte of brackets, one a line, takes minutes to parse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of a file: at most a chunk of whole lines, or one line longer than that."""

    lines: Sequence[bytes] = ()
    """Each ends in a newline. None if nothing came, or what came is part of a line that is too long."""
    size: int = 0
    """Bytes that the lines have together."""
    cursor: Cursor
    """The place after them; whoever reads the lines knows the number of unreadable ones."""
    is_last: bool
    """Whether all that was seen of the file has been read, but for a last line without its end."""
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

    def after_zeros(self, size: int) -> "_Place":
        head = self.head + bytes(min(size, _HEAD - len(self.head)))
        tail = (self.tail + bytes(min(size, _TAIL)))[-_TAIL:]
        return _Place(self.offset + size, head, tail, self.in_long_line)

    @property
    def is_before_first_line(self) -> bool:
        """Unless it lies in a long line: each line leaves its end in `tail`."""
        return not self.tail.strip(b"\0")

    def cursor(self, seen: os.stat_result, now: float, *, is_behind: bool = False) -> Cursor:
        device, inode = identity(seen)
        return Cursor(
            device=device,
            inode=inode,
            offset=self.offset,
            head=_fingerprint(self.head),
            tail=_fingerprint(self.tail),
            in_long_line=self.in_long_line,
            is_behind=is_behind,
            read_at=now,
        )


_START: Final = _Place(0, b"", b"", in_long_line=False)


def identity(seen: os.stat_result) -> Identity:
    """Return what a file keeps when it is renamed; both fit an SQLite integer."""
    return seen.st_dev & _LARGEST, seen.st_ino & _LARGEST


def identity_of(cursor: Cursor) -> Identity:
    """Return the identity of the file that `cursor` was taken from."""
    return cursor.device, cursor.inode


def is_of(cursor: Cursor | None, seen: os.stat_result) -> bool:
    """Whether `cursor` was taken from the file seen; what that holds may be something else by now."""
    return (
        cursor is not None
        and cursor.inode == seen.st_ino & _LARGEST
        and cursor.device == seen.st_dev & _LARGEST
    )


def is_unchanged(seen: os.stat_result, cursor: Cursor) -> bool:
    """Whether the file seen is for certain what it was when it was read to its end."""
    # The time is there for a file rewritten to the very size it had.
    # It is the inode's change time, because a writer can set the modification time.
    return (
        seen.st_size == cursor.offset
        and seen.st_ctime < cursor.read_at - _CLOCK_SLACK
        and is_of(cursor, seen)
    )


def continues(path: str, seen: os.stat_result, cursor: Cursor) -> bool:
    """Whether the file seen at `path` begins with what was read up to `cursor`. Raises OSError."""
    if seen.st_size < cursor.offset:
        return False
    with _opened(path, seen) as file:
        return _place_of(cursor, file) is not None


def last_line_end(
    path: str, seen: os.stat_result, longer: str, seen_longer: os.stat_result, now: float
) -> Cursor | None:
    """Return the place after the last whole line seen at `path` if `longer` begins with all of it. Raises OSError."""
    with _opened(path, seen) as file, _opened(longer, seen_longer) as other:
        if _place_at(seen.st_size, file) != _place_at(seen.st_size, other):
            return None
        start = max(seen.st_size - _COPY_END, 0)
        whole = os.pread(file, seen.st_size - start, start).rfind(b"\n") + 1
        offset = start + whole if whole or not start else seen.st_size
        return _place_at(offset, file, in_long_line=not whole and start > 0).cursor(seen, now)


def near_end(path: str, seen: os.stat_result, most: int, now: float) -> Cursor:
    """Return a place at most `most` bytes before the end seen; the line it lies in is passed over. Raises OSError."""
    offset = max(seen.st_size - most, 0)
    with _opened(path, seen) as file:
        return _place_at(offset, file, in_long_line=offset > 0).cursor(seen, now)


def read_new(
    path: str, seen: os.stat_result, cursor: Cursor | None, now: float, limits: ReadLimits
) -> Iterator[Chunk]:
    """Yield what the file held when it was seen from `cursor` on, or from its start if that is None; one chunk at least.

    `seen` is the file's own stat, a regular file's. If the file holds something else by now than what was read up to
    `cursor`, nothing is yielded. What follows the last newline is left for later.
    Raises OSError, FileNotFoundError also if the path holds another file by now.
    """
    if cursor is not None and is_unchanged(seen, cursor):
        yield Chunk(cursor=msgspec.structs.replace(cursor, read_at=now), is_last=True)
        return
    with _opened(path, seen) as file:
        place = _START if cursor is None else _place_of(cursor, file)
        if place is None:
            return
        # Not what has come since: if it is another log's copy, that was not among what was compared.
        end, left, is_done = seen.st_size, limits.look, False
        while not is_done:
            data, after = _step(file, place, end, limits)
            lines = BytesIO(data if place.offset else data.removeprefix(_BYTE_ORDER_MARK)).readlines()
            is_last = after is place or after.offset >= end
            left -= after.offset - place.offset + len(lines) * _COST_OF_LINE
            is_done = is_last or left <= 0
            is_skip = after.in_long_line and not place.in_long_line
            new = after.cursor(seen, now, is_behind=not is_last)
            yield Chunk(lines=lines, size=len(data), cursor=new, is_last=is_last, skipped=int(is_skip))
            place = after


@contextmanager
def _opened(path: str, seen: os.stat_result) -> Iterator[int]:
    file = opened_to_read(path)
    try:
        if identity(os.fstat(file)) != identity(seen):
            raise FileNotFoundError(errno.ENOENT, "it has been replaced", path)
        yield file
    finally:
        os.close(file)


def _place_of(cursor: Cursor, file: int) -> _Place | None:
    place = _place_at(cursor.offset, file, in_long_line=cursor.in_long_line)
    if (_fingerprint(place.head), _fingerprint(place.tail)) != (cursor.head, cursor.tail):
        return None
    return place


def _place_at(offset: int, file: int, *, in_long_line: bool = False) -> _Place:
    head = os.pread(file, min(_HEAD, offset), 0)
    tail_length = min(_TAIL, offset)
    tail = os.pread(file, tail_length, offset - tail_length)
    return _Place(offset, head, tail, in_long_line)


def _step(file: int, place: _Place, end: int, limits: ReadLimits) -> tuple[bytes, _Place]:
    """Return the next lines and the place after them: the same one if there is nothing more to take."""
    data = os.pread(file, min(limits.chunk, end - place.offset), place.offset)
    if place.in_long_line or place.is_before_first_line:
        # A writer that does not append goes on where it was after its log was truncated: zeros come first.
        zeros = len(data) - len(data.lstrip(b"\0"))
        if zeros and zeros == len(data):
            zeros = _end_of_hole(file, place.offset + zeros, end) - place.offset
        if zeros:
            return b"", place.after_zeros(zeros)
    if place.in_long_line:
        return b"", _skip(data, place)
    length = data.rfind(b"\n") + 1
    if length:
        lines = data[:length]
        return lines, place.after(lines)
    if len(data) < limits.chunk:
        return b"", place
    return _take_long_line(file, data, place, end, limits)


def _end_of_hole(file: int, offset: int, end: int) -> int:
    """Return where there is data again, at `offset` or after it: exabytes of hole are passed in a moment."""
    try:
        return min(os.lseek(file, offset, os.SEEK_DATA), end)
    except OSError as error:
        # Not every file system knows its holes.
        return end if error.errno == errno.ENXIO else offset


def _skip(data: bytes, place: _Place) -> _Place:
    if not data:
        return place
    length = data.find(b"\n") + 1
    return place.after(data[:length] if length else data, in_long_line=not length)


def _take_long_line(
    file: int, beginning: bytes, place: _Place, end: int, limits: ReadLimits
) -> tuple[bytes, _Place]:
    """Take a line that fills more than a chunk: whole, or its beginning if it is too long."""
    # The end is looked for before the line is read whole: one that has no end yet is never held.
    length = len(beginning)
    while length <= limits.longest_line:
        most = min(limits.chunk, limits.longest_line + 1 - length, end - place.offset - length)
        data = os.pread(file, most, place.offset + length)
        if not data:
            return b"", place
        line_end = data.find(b"\n") + 1
        if line_end:
            line = os.pread(file, length + line_end, place.offset)
            return line, place.after(line)
        length += len(data)
    return b"", place.after(beginning, in_long_line=True)


def _fingerprint(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
