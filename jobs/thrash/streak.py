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
        step = Streak(kept.steps + 1, look.finding.newest_repeat, now, kept.pid)
        return Advance(streak=step, is_step=True, ended=ended)
    if look.new_calls and look.finding is None:
        reset = Streak(newest_repeat=kept.newest_repeat, pid=kept.pid)
        return Advance(streak=reset, ended=ended or Ended.RECOVERED)
    return Advance(streak=kept, ended=ended)


def _carry_over(streak: Streak, look: Look, policy: ThrashPolicy, now: float) -> tuple[Streak, Ended | None]:
    pid = look.pid if look.pid is not None else streak.pid
    anew = Streak(newest_repeat=streak.newest_repeat, pid=pid)
    if streak.pid is not None and pid != streak.pid:
        return anew, Ended.RESTARTED if streak.steps else None
    if streak.steps and now - streak.at > policy.expires:
        return anew, Ended.QUIET
    return msgspec.structs.replace(streak, pid=pid), None
