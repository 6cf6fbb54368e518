"""Reads an output once, whole and as it is at one moment, whatever lies at its path."""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from jobs.opening import OwnDatabaseError, kind_of, opened_to_read
from jobs.verification.verdict import Artifact
from jobs.verification.wording import one_line

_TRIES: Final = 3
"""How often to read again what is replaced meanwhile: one that is written beside and renamed is always whole."""
_LONGEST_PATH: Final = 150
"""Characters of a path in a sentence."""
_FINISHED: Final = "expected a finished file"


class _UnreadableError(Exception):
    """There is nothing to be checked; the message is a sentence. `artifact` if a file was found."""

    def __init__(self, problem: str, artifact: Artifact | None = None) -> None:
        super().__init__(problem)
        self.artifact = artifact


class _ReplacedError(Exception):
    """Another file lies at the path by now."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes of a file, as they were all the time while they were read; or why there are none."""

    path: str
    artifact: Artifact | None = None
    problem: str | None = None
    data: bytes = b""


def take_snapshot(path: str, most: int) -> Snapshot:
    """Read the file at `path`, of at most so many bytes."""
    try:
        return _latest(path, most)
    except _UnreadableError as unreadable:
        return Snapshot(path=path, artifact=unreadable.artifact, problem=f"{_shown(path)} {unreadable}")
    except OSError as error:
        return Snapshot(path=path, problem=f"{_shown(path)} {_refusal(path, error)}")
    except ValueError:
        return Snapshot(
            path=path, problem=f"{_shown(path)} cannot be the path of a file, expected a regular file"
        )


def _latest(path: str, most: int) -> Snapshot:
    for _ in range(_TRIES):
        try:
            return _read(path, most)
        except _ReplacedError:
            continue
    raise _UnreadableError(
        f"is still being written: it was replaced {_TRIES} times while it was read, {_FINISHED}"
    )


def _read(path: str, most: int) -> Snapshot:
    # Looked at first: to open a pipe or a device may already do something to it.
    _check_kind(os.stat(path))
    with _opened(path) as descriptor:
        before = os.fstat(descriptor)
        _check_kind(before)
        _check_size(path, before, most)
        data = _content(descriptor, before.st_size)
        after = os.fstat(descriptor)
    if (after.st_size, after.st_mtime_ns, len(data)) != (before.st_size, before.st_mtime_ns, before.st_size):
        raise _UnreadableError(_growth(before, after), _artifact(path, after))
    _check_still_there(path, before)
    sha256 = hashlib.sha256(data, usedforsecurity=False).hexdigest()
    return Snapshot(path=path, artifact=_artifact(path, before, sha256), data=data)


@contextmanager
def _opened(path: str) -> Iterator[int]:
    descriptor = opened_to_read(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _content(descriptor: int, size: int) -> bytes:
    # One byte more than there should be, so that growth shows; in one piece, so that it lies in memory once.
    pieces, missing = [], size + 1
    while missing and (piece := os.read(descriptor, missing)):
        pieces.append(piece)
        missing -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _artifact(path: str, seen: os.stat_result, sha256: str = "") -> Artifact:
    return Artifact(
        path=os.fsencode(path).decode(errors="replace"),
        device=seen.st_dev,
        inode=seen.st_ino,
        mtime_ns=seen.st_mtime_ns,
        size=seen.st_size,
        sha256=sha256,
        ctime_ns=seen.st_ctime_ns,
    )


def _shown(path: str) -> str:
    # Of a long one its end, which tells more.
    return one_line(path if len(path) <= _LONGEST_PATH else f"…{path[-_LONGEST_PATH:]}")


# ── what keeps it from being read ─────────────────────────────────────────────────────────────────


def _check_kind(seen: os.stat_result) -> None:
    if not stat.S_ISREG(seen.st_mode):
        raise _UnreadableError(f"is a {kind_of(seen.st_mode)}, expected a regular file")


def _check_size(path: str, seen: os.stat_result, most: int) -> None:
    if seen.st_size == 0:
        raise _UnreadableError("is empty, expected some content", _artifact(path, seen))
    if seen.st_size > most:
        found = f"has {seen.st_size:,} bytes, expected at most {most:,} (max_size)"
        raise _UnreadableError(found, _artifact(path, seen))


def _growth(before: os.stat_result, after: os.stat_result) -> str:
    if after.st_size == before.st_size:
        return f"is still being written: it changed while it was read, {_FINISHED}"
    return f"is still being written: it had {before.st_size:,} bytes, then {after.st_size:,}, {_FINISHED}"


def _check_still_there(path: str, read: os.stat_result) -> None:
    try:
        now = os.stat(path)
    except FileNotFoundError:
        raise _UnreadableError(
            "vanished while it was read, expected it to stay", _artifact(path, read)
        ) from None
    if (now.st_dev, now.st_ino) != (read.st_dev, read.st_ino):
        raise _ReplacedError
    if now.st_ctime_ns != read.st_ctime_ns:
        raise _UnreadableError(_growth(read, now), _artifact(path, now))


def _refusal(path: str, error: OSError) -> str:
    if isinstance(error, OwnDatabaseError):
        return "is the bot's own database, expected an output"
    match error.errno:
        case errno.ENOENT if os.path.islink(path):
            return "is a link to a file that does not exist, expected a regular file"
        case errno.ENOENT | errno.ENOTDIR:
            return "does not exist, expected a regular file"
        case errno.ELOOP:
            return "is a link that leads in a circle, expected a regular file"
        case errno.EACCES | errno.EPERM:
            return "may not be read by this user, expected a file that may"
        case _:
            return f"cannot be read, expected a regular file: {error.strerror}"
