"""What is said about the process of a session: a log's word, or a pid file's. Neither is believed."""

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jobs.opening import opened_to_read
from jobs.ports import Target
from jobs.program.wording import bounded

_LARGEST_PID_FILE: Final = 64
"""Bytes; one number and a line end are a dozen."""
_PID: Final = re.compile(rb"\s*(-?[0-9]{1,19})\s*")


class RefusedError(Exception):
    """A guard said no; the message is a sentence that names what was found and what was expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A pid, and by when its process must have been started: (epoch seconds, what happened then)."""

    pid: int
    born_before: tuple[tuple[float, str], ...]


def claim_of(target: Target, pid_file: Path | None) -> Claim:
    """Return what is claimed for `target`; a pid file, if there should be one, is the only word that counts.

    Raises:
        RefusedError: no pid is known.
    """
    if pid_file is not None:
        pid, written = _read(pid_file)
        bounds = (written, "its pid file was written"), (target.last_ts, "the session's newest call")
        return Claim(pid=pid, born_before=bounds)
    if target.pid is None:
        raise RefusedError("no pid known: the log names none, and the killer has no pid_file")
    if target.pid_since_ts is None:
        return Claim(pid=target.pid, born_before=((target.last_ts, "the session's newest call"),))
    return Claim(pid=target.pid, born_before=((target.pid_since_ts, "the first call that named it"),))


def _read(pid_file: Path) -> tuple[int, float]:
    """Return the pid and the time (epoch seconds) the file was written."""
    name = bounded(str(pid_file))
    try:
        descriptor = opened_to_read(str(pid_file))
    except OSError as error:
        raise RefusedError(f"no pid known: {name} cannot be read ({error.strerror})") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise RefusedError(f"no pid known: {name} is not a regular file")
        found = _PID.fullmatch(os.read(descriptor, _LARGEST_PID_FILE + 1))
    finally:
        os.close(descriptor)
    if found is None:
        raise RefusedError(f"no pid known: {name} does not hold one number")
    return int(found[1]), status.st_mtime
