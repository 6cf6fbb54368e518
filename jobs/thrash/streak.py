"""How many looks in a row found a session thrashing: one look yields at most one step."""

from dataclasses import dataclass
from enum import StrEnum

import msgspec

from jobs.thrash.finding import Finding
from jobs.thrash.policy import ThrashPolicy


class Streak(msgspec.Struct, frozen=True):
    """Steps in a row, kept across restarts."""

    steps: int = 0
    newest_repeat: int = 0
    """Number of the newest repeating call that has counted; a step needs a newer one."""
    at: float = 0
    """Epoch seconds of the last step, on the bot's clock."""
    pid: int | None = None
    earlier_pids: tuple[int, ...] = ()
    """Of processes that this streak, or those it followed upon, had before; one that returns is no new one."""


class Ended(StrEnum):
    """Why a streak is over."""

    RECOVERED = "recovered"
    """New calls, and no detection."""
    QUIET = "quiet"
    """No step for too long."""
    RESTARTED = "restarted"
    """Another process writes this session now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one look at one session saw."""

    new_calls: int
    pid: int | None
    finding: Finding | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """What a look did to a streak."""

    streak: Streak
    is_step: bool = False
    ended: Ended | None = None
    """Why the streak is back at zero; a new one may have begun in the same look."""


def advance(streak: Streak, look: Look, policy: ThrashPolicy, now: float) -> Advance:
    """Return the streak after a look at `now` (epoch seconds)."""
    kept, ended = _carry_over(streak, look, policy, now)
    if look.finding is not None and look.finding.newest_repeat > kept.newest_repeat:
        step = Streak(kept.steps + 1, look.finding.newest_repeat, now, kept.pid, kept.earlier_pids)
        return Advance(streak=step, is_step=True, ended=ended)
    if look.new_calls and look.finding is None:
        reset = Streak(newest_repeat=kept.newest_repeat, pid=kept.pid)
        return Advance(streak=reset, ended=ended or Ended.RECOVERED)
    return Advance(streak=kept, ended=ended)


def _carry_over(streak: Streak, look: Look, policy: ThrashPolicy, now: float) -> tuple[Streak, Ended | None]:
    pid = look.pid if look.pid is not None else streak.pid
    if not streak.steps:
        return Streak(newest_repeat=streak.newest_repeat, pid=pid), None
    if now - streak.at > policy.expires:
        return Streak(newest_repeat=streak.newest_repeat, pid=pid), Ended.QUIET
    if pid == streak.pid or streak.pid is None:
        return msgspec.structs.replace(streak, pid=pid), None
    earlier = streak.earlier_pids
    known = earlier if streak.pid in earlier else (*earlier, streak.pid)
    # Two processes that take turns, or one that names itself anew at each look, must not escape by that.
    if pid in earlier or len(known) > policy.restarts:
        return msgspec.structs.replace(streak, pid=pid, earlier_pids=known), None
    return Streak(newest_repeat=streak.newest_repeat, pid=pid, earlier_pids=known), Ended.RESTARTED
