"""`loopwarden hook PROGRAM`: what an agent's own post-tool hook calls. Its input becomes a line of a gateway log.

An agent must not notice it: whatever happens, it says nothing and exits with 0. It is started for every call, so it
imports next to nothing.
"""

import errno
import fcntl
import json
import os
import select
import stat
from collections.abc import Sequence
from contextlib import suppress
from math import isfinite
from time import monotonic, sleep
from typing import Any, Final

from bot.clock import SystemClock
from bot.data_dir import data_dir
from jobs.sources.hook_events import PROGRAMS, Line, json_of

FOLDER: Final = "hook"
"""In the data directory; a file for each program."""

_LONGEST_INPUT: Final = 16 << 20
"""Bytes. More is read, lest its writer fail, and given up."""
_MOST_READ: Final = 256 << 20
_PIECE: Final = 1 << 16
_PATIENCE: Final = 5
"""Seconds in which all of it has to come: its writer waits for the hook, and may forget to close its end."""
_LONGEST_NUMBER: Final = 300
"""Digits."""
_LARGEST_FILE: Final = 64 << 20
_TRIES: Final = 400
_PAUSE: Final = 0.005
"""Seconds between two tries to have the file for oneself."""


def hook(arguments: Sequence[str]) -> int:
    """Read what a program's hook is given, and keep it if it tells of a call that is over. Returns 0."""
    with suppress(BaseException):
        (program,) = arguments
        _keep(program)
    return 0


def _keep(program: str) -> None:
    call = PROGRAMS[program](_event(_input()), os.environ)
    folder = data_dir()
    # A relative one would lie in whatever folder the agent works in: `loopwarden check` warns of it.
    if call is None or not os.path.isabs(folder):
        return
    for path in (folder, f"{folder}/{FOLDER}"):
        with suppress(FileExistsError):
            os.makedirs(path, mode=0o700)
    _append(f"{folder}/{FOLDER}/{program}.jsonl", _written({"ts": SystemClock().now(), **call}))


# ── what it is given ──────────────────────────────────────────────────────────────────────────────


def _input() -> bytes:
    """Return what comes from the standard input until it ends, or for so long. Raises ValueError if it is too long."""
    parts, size, until = list[bytes](), 0, monotonic() + _PATIENCE
    while size <= _MOST_READ and select.select([0], [], [], max(until - monotonic(), 0))[0]:
        part = os.read(0, _PIECE)
        if not part:
            break
        size += len(part)
        if size <= _LONGEST_INPUT:
            parts.append(part)
    if size > _LONGEST_INPUT:
        raise ValueError("too long")
    return b"".join(parts)


def _event(given: bytes) -> Any:
    """Return the object that was given. A number that JSON has not, or that is beyond all measure, stays a text."""
    return json.loads(given.decode(errors="replace"), parse_float=_float, parse_int=_int, parse_constant=str)


def _float(text: str) -> float | str:
    return number if isfinite(number := float(text)) else text


def _int(text: str) -> int | str:
    return int(text) if len(text) <= _LONGEST_NUMBER else text


def _written(line: Line) -> bytes:
    return (json_of({key: value for key, value in line.items() if value is not None}) + "\n").encode()


# ── the file ──────────────────────────────────────────────────────────────────────────────────────


def _append(path: str, line: bytes) -> None:
    """Add a line in one write; a line that does not fit is taken out again."""
    file = _opened(path)
    try:
        is_alone = _lock(file)
        if is_alone and _has_been_moved(path, file):
            os.close(file)
            file = _opened(path)
            is_alone = _lock(file)
        end = os.lseek(file, 0, os.SEEK_END)
        if is_alone and end and os.pread(file, 1, end - 1) != b"\n":
            line = b"\n" + line  # somebody was killed in the midst of it
        if os.write(file, line) < len(line) and is_alone:
            os.ftruncate(file, end)
    finally:
        os.close(file)


def _opened(path: str) -> int:
    # Should a link lie there, it may lead to any file of this user; a pipe or a terminal neither waits nor is taken.
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
    file = os.open(path, flags, 0o600)
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        os.close(file)
        raise OSError(errno.EINVAL, "not a regular file of its user's own")
    return file


def _lock(file: int) -> bool:
    """Have the file for oneself; not for ever: a hook that was suspended must not keep the others waiting."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sleep(_PAUSE)
        except OSError:
            break
        else:
            return True
    return False


def _has_been_moved(path: str, file: int) -> bool:
    """Move a file away that is large; whether this or another hook has done so."""
    own = os.fstat(file)
    with suppress(FileNotFoundError):
        if not os.path.samestat(own, os.lstat(path)):
            return True
        if own.st_size < _LARGEST_FILE:
            return False
        os.replace(path, f"{path}.1")
    return True
