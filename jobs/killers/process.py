"""Stops a session by signalling its process and all that this process has started."""

import asyncio
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Final

import psutil

from jobs.killers.claim import RefusedError, claim_of
from jobs.killers.family import Family, family_of, send
from jobs.killers.identity import ReusedError, identify, is_living
from jobs.ports import Outcome, Stopped, Target

_POLL: Final = 0.05
"""Seconds between two looks at processes that should go."""
_KILLED: Final = 2.0
"""Seconds given to processes after SIGKILL."""
_NAMED: Final = 10
"""Processes named in one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessKiller:
    """SIGTERM, and SIGKILL to what is left after `grace` seconds; harder is SIGKILL at once.

    Only a process of the bot's own user is signalled, and only if its command line has a `match` and it is old
    enough to be the one that is meant.
    """

    match: re.Pattern[str]
    pid_file: Path | None = None
    """If set, the pid in it counts, and the log's does not."""
    grace: float = 10.0

    async def stop(self, target: Target, *, harder: bool) -> Stopped:
        try:
            process = identify(claim_of(target, self.pid_file), self.match)
            return await (_kill(process) if harder else _terminate(process, self.grace))
        except RefusedError as refused:
            return Stopped(outcome=Outcome.REFUSED, detail=str(refused))
        except psutil.NoSuchProcess as gone:
            return Stopped(outcome=Outcome.STOPPED, detail=f"process {gone.pid} has already exited")
        except psutil.AccessDenied as denied:
            return Stopped(outcome=Outcome.FAILED, detail=f"no permission to look at process {denied.pid}")
        except OSError as error:
            return Stopped(outcome=Outcome.FAILED, detail=f"processes cannot be looked at: {error.strerror}")

    async def is_alive(self, target: Target) -> bool | None:
        """Return None as well if a guard holds that cannot tell whether the process meant is gone."""
        try:
            identify(claim_of(target, self.pid_file), self.match)
        except (ReusedError, psutil.NoSuchProcess):
            return False
        except (RefusedError, psutil.AccessDenied, OSError):
            return None
        return True


async def _terminate(root: psutil.Process, grace: float) -> Stopped:
    began = asyncio.get_running_loop().time()
    family = family_of([root])
    send(SIGTERM, family.members)
    if await _left(root, family, grace):
        return await _kill(root, family)
    took = asyncio.get_running_loop().time() - began
    return _stopped(root, family, f"after SIGTERM, {took:.1f} s")


async def _kill(root: psutil.Process, before: Family | None = None) -> Stopped:
    """Kill `root`, the family seen `before`, and whoever has joined it since."""
    family = family_of([root, *before.members, *before.spared] if before else [root])
    # No await between the look and the signals: the less time, the fewer can be started unseen.
    denied = send(SIGKILL, family.members)
    family = before | family if before else family
    left = await _left(root, family, _KILLED)
    return _failed(left, denied) if left else _stopped(root, family, "after SIGKILL")


async def _left(root: psutil.Process, family: Family, within: float) -> Sequence[psutil.Process]:
    """Wait, at most `within` seconds, for all to go; return those that did not."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    left = [process for process in dict.fromkeys([root, *family.members]) if is_living(process)]
    while left and loop.time() < deadline:
        await asyncio.sleep(_POLL)
        left = [process for process in left if is_living(process)]
    return left


def _stopped(root: psutil.Process, family: Family, how: str) -> Stopped:
    count = len([process for process in family.members if process != root])
    children = {0: "", 1: ", and 1 child"}.get(count, f", and {count} children")
    spared = _listed(f"process {process.pid} ({what})" for process, what in family.spared.items())
    left_alone = f"; left alone: {spared}" if spared else ""
    return Stopped(
        outcome=Outcome.STOPPED, detail=f"process {root.pid} has exited{children}, {how}{left_alone}"
    )


def _failed(left: Iterable[psutil.Process], denied: Collection[psutil.Process]) -> Stopped:
    named = _listed(
        f"process {process.pid}{' (no permission to signal it)' if process in denied else ''}"
        for process in left
    )
    return Stopped(outcome=Outcome.FAILED, detail=f"still running after SIGKILL: {named}")


def _listed(names: Iterable[str]) -> str:
    first = list(names)
    more = f" and {len(first) - _NAMED} more" if len(first) > _NAMED else ""
    return ", ".join(first[:_NAMED]) + more
