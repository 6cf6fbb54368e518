"""Which process a claim means, and whether it may be signalled: one guard after the other, each with its reason."""

import os
import re
from typing import Final

import psutil

from jobs.killers.claim import Claim, RefusedError
from jobs.program.wording import bounded

GRANULARITY: Final = 2.0
"""Seconds by which a start time may be off: the boot time it is counted from is a whole second."""


class ReusedError(RefusedError):
    """The process that was meant is gone, and another has its pid."""


def identify(claim: Claim, match: re.Pattern[str]) -> psutil.Process:
    """Return the process that `claim` means, which has passed every guard.

    Raises:
        RefusedError: a guard said no.
        psutil.NoSuchProcess: it has exited, or is a zombie.
        psutil.AccessDenied: it may not be looked at.
    """
    _check_pid(claim.pid)
    process = _find(claim.pid)
    _check_start(process, claim)
    _check_user(process)
    _check_command_line(process, match)
    return process


def is_own(process: psutil.Process) -> bool:
    """Return whether it runs as the bot's own user; to root, too, other users' processes are taboo."""
    uids = process.uids()
    return uids.real == uids.effective == os.getuid()


def is_living(process: psutil.Process) -> bool:
    """Return whether that very process still runs. A zombie does not, whether or not its parent ever reaps it."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def own_line() -> frozenset[int]:
    """Return the pids of the bot and its ancestors."""
    bot = psutil.Process()
    return frozenset({bot.pid, *(ancestor.pid for ancestor in bot.parents())})


def _check_pid(pid: int) -> None:
    if pid <= 1:
        raise RefusedError(f"pid {pid} is no agent's: expected one above 1")
    if pid == os.getpid():
        raise RefusedError(f"process {pid} is the bot itself")
    if pid in own_line():
        raise RefusedError(f"process {pid} is an ancestor of the bot")


def _find(pid: int) -> psutil.Process:
    if _is_out_of_reach(pid):
        raise RefusedError(
            f"process {pid} belongs to another user, expected user {os.getuid()}, or a security module forbids signals"
        )
    process = psutil.Process(pid)
    if not is_living(process):
        raise psutil.ZombieProcess(pid)
    # The kernel takes a thread's id for its process: the id of one of the bot's own threads would end the bot.
    if not psutil.pid_exists(pid) and process.is_running():
        raise RefusedError(f"{pid} is the id of a thread, expected a process")
    return process


def _is_out_of_reach(pid: int) -> bool:
    """Ask the kernel, as /proc may hide other users' processes (hidepid) and make them look as if they had exited."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return False


def _check_start(process: psutil.Process, claim: Claim) -> None:
    for ts, event in claim.born_before:
        late = process.create_time() - ts
        if late > GRANULARITY:
            raise ReusedError(f"pid reused: process {process.pid} started {late:.1f} s after {event}")


def _check_user(process: psutil.Process) -> None:
    if not is_own(process):
        uids = process.uids()
        found = f"{uids.real}" if uids.real == uids.effective else f"{uids.real}, acting as {uids.effective}"
        raise RefusedError(f"process {process.pid} belongs to user {found}, expected user {os.getuid()}")


def _check_command_line(process: psutil.Process, match: re.Pattern[str]) -> None:
    command_line = " ".join(process.cmdline())
    if match.search(command_line) is None:
        found, expected = bounded(command_line), bounded(match.pattern)
        raise RefusedError(f'process {process.pid} is "{found}", expected a match of "{expected}"')
