"""What a killer's `match` and `pid_file` mean among the processes that run now."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from bot.checking.finding import Finding, error, fine, foreign, warning
from jobs.killers.claim import RefusedError, claim_of
from jobs.killers.identity import identify, is_own, own_line
from jobs.ports import Target
from jobs.watchlist.killers import ProcessSpec

_NAMED: Final = 3
_TOO_MANY: Final = 20
_LINE_LIMIT: Final = 60
_NARROWER: Final = "make `match` narrower: an agent's command line and no other"
_UNLESS_NONE_RUNS: Final = "nothing to do while no agent runs; else correct"


@dataclass(slots=True)
class _Matches:
    """The processes whose command line has a `match`."""

    own: list[str] = field(default_factory=list)
    """This user's, with pid and command line; likewise the others'."""
    others: list[str] = field(default_factory=list)
    ancestors: list[str] = field(default_factory=list)
    """This very process and what has started it."""


def check_process(subject: str, spec: ProcessSpec, target: Target) -> Iterator[Finding]:
    """Try `match` on what runs now, and `pid_file` if there is one."""
    pattern = re.compile(spec.match)
    yield _check_matches(subject, _matches_of(pattern))
    if spec.pid_file is not None:
        yield _check_pid_file(subject, Path(spec.pid_file), pattern, target)


def _matches_of(pattern: re.Pattern[str]) -> _Matches:
    found, ancestors = _Matches(), own_line()
    for process in psutil.process_iter():
        # Gone meanwhile, or hidden as another user's.
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            line = " ".join(process.cmdline())
            if pattern.search(line):
                named = f"{process.pid} {foreign(line, _LINE_LIMIT)}"
                own = found.own if is_own(process) else found.others
                (found.ancestors if process.pid in ancestors else own).append(named)
    return found


def _check_matches(subject: str, found: _Matches) -> Finding:
    if found.ancestors:
        says = f"`match` means this program itself or what has started it: {_listed(found.ancestors)}"
        return warning(subject, says, _NARROWER)
    if not found.own and not found.others:
        return warning(subject, "`match` means no process that runs now", f"{_UNLESS_NONE_RUNS} `match`")
    count = len(found.own) + len(found.others)
    of_others = f", {len(found.others)} of others" if found.others else ""
    says = (
        f"`match` means {'1 process that runs' if count == 1 else f'{count} processes that run'} now "
        f"({len(found.own)} of this user{of_others}): {_listed([*found.own, *found.others])}"
    )
    if count > _TOO_MANY:
        return warning(subject, says, _NARROWER)
    if not found.own:
        return warning(
            subject, says, "run Loopwarden as the agents' user: it signals that user's processes only"
        )
    return fine(subject, says)


def _check_pid_file(subject: str, pid_file: Path, pattern: re.Pattern[str], target: Target) -> Finding:
    try:
        process = identify(claim_of(target, pid_file), pattern)
    except psutil.NoSuchProcess as gone:
        says = f"process {gone.pid}, which pid_file names, has exited"
    except psutil.AccessDenied as denied:
        says = f"process {denied.pid}, which pid_file names, may not be looked at"
    except RefusedError as refused:
        says = f"pid_file: {foreign(str(refused))}"
    else:
        return fine(subject, f"pid_file names process {process.pid}, which could be stopped")
    if _is_closed(pid_file):
        return error(subject, says, "let this user read it")
    return warning(subject, says, f"{_UNLESS_NONE_RUNS} `pid_file`")


def _is_closed(file: Path) -> bool:
    try:
        os.close(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as failure:
        return isinstance(failure, PermissionError)
    return False


def _listed(named: list[str]) -> str:
    more = f", and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return "; ".join(named[:_NAMED]) + more
