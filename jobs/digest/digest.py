"""What the chat is told of a week, or of several, as one value: all that a text and a picture of it need.

Times are epoch seconds, money billionths as in `thrash.price`.
"""

from typing import Final

import msgspec

from jobs.digest.figures import Figures
from jobs.verification.drift import Alarm
from jobs.verification.trial import MadeOf, Trials

_HOUR: Final = 3600
_LATE: Final = _HOUR
"""After `until`."""
_SHORTEST: Final = 1.0
"""Seconds below which a rate says nothing of an hour."""


class WeekRate(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of all workflows in one week. Missing ones are in no rate."""

    week: str
    """Such as `2026-W48`."""
    passed: int = 0
    failed: int = 0


class Tested(msgspec.Struct, frozen=True, kw_only=True):
    """The newest self-test of a workflow."""

    workflow: str
    at: float
    made_of: MadeOf
    trials: Trials


class StoppedLoop(msgspec.Struct, frozen=True, kw_only=True):
    """A loop that was stopped, and stayed so; what it had come to by then."""

    at: float
    """When it was stopped."""
    agent: str
    source: str
    incident: int
    ordered_by: int | None
    """The Telegram user who had it stopped; None: the bot."""
    tool: str
    kind: str
    score: int
    calls: int
    span: float
    """Seconds from its first repeating call to its newest."""
    tokens: int | None
    cost: int | None
    currency: str | None
    is_cost_part: bool
    """Whether there are tokens that no price is known of."""

    @property
    def tokens_per_hour(self) -> int | None:
        """What it would have used in an hour at the rate it had; None if that is not known."""
        return self._per_hour(self.tokens)

    @property
    def cost_per_hour(self) -> int | None:
        """What it would have cost in an hour at the rate it had; None if that is not known."""
        return self._per_hour(self.cost)

    def _per_hour(self, amount: int | None) -> int | None:
        return None if amount is None or self.span < _SHORTEST else round(amount / self.span * _HOUR)


class PinChange(msgspec.Struct, frozen=True, kw_only=True):
    """A version of an entry of the watch list that came into force."""

    at: float
    kind: str
    """workflow, source, killer"""
    name: str
    how: str
    """Such as `approved`."""
    by: int | None
    """The Telegram user who has approved it."""
    before: str
    """The hash of what was in force until then; empty: nothing was."""
    after: str
    """Empty: it is not in force any more."""


class Away(msgspec.Struct, frozen=True, kw_only=True):
    """When nobody watched."""

    since: float
    until: float


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One of the three questions, answered for this week."""

    question: str
    answer: str
    """In whole sentences."""
    names: tuple[str, ...] = ()
    """What the answer speaks of, to be listed below it: workflows."""


class Digest(msgspec.Struct, frozen=True, kw_only=True):
    """All of it. Every tuple is in the order in which it is to be told; lists of what happened, oldest first."""

    week: str | None
    """Such as `2026-W48`; None: somebody has asked for it, in the middle of a week or for several."""
    since: float
    until: float
    weeks: int = 1
    """How many it is of, the one that goes on included."""
    is_told_again: bool = False
    """Whether the week was told before it was over, by a clock that was ahead."""
    is_watched: bool = True
    """Whether a bot was there from the beginning: only then its absences are known."""
    figures: Figures
    """Of this length of time, in order of workflow and then of check; a workflow without runs is not in it."""
    rates: tuple[WeekRate, ...]
    """Of each of the last 12 weeks, oldest first, as far back as any are known. The last one is the week of `until`, or
    what has passed of it. A week without runs has passed 0 and failed 0."""
    alarms: tuple[Alarm, ...] = ()
    """The least likely first."""
    selftests: tuple[Tested, ...] = ()
    """Of every workflow in force, in order of name."""
    untested: tuple[str, ...] = ()
    """The workflows in force that were not tested in the week of `until`, in order of name."""
    stops: tuple[StoppedLoop, ...] = ()
    pins: tuple[PinChange, ...] = ()
    absences: tuple[Away, ...] = ()
    """Only what lies between `since` and `until`."""
    answers: tuple[Answer, ...]

    def is_late(self, at: float) -> bool:
        """Whether it is told late at a time: one that was asked for never is."""
        return self.week is not None and at - self.until > _LATE
