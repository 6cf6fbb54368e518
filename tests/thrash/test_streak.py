"""The streak law, against a model that knows nothing but the sentences of the law."""

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from jobs.thrash.finding import Finding
from jobs.thrash.policy import ThrashPolicy
from jobs.thrash.streak import Advance, Ended, Look, Streak, advance
from tests.fakes import NOON

POLICY = ThrashPolicy()


def finding(newest_repeat: int) -> Finding:
    return Finding(
        score=6,
        tool="exec",
        first_call=1,
        first_ts=NOON,
        newest_repeat=newest_repeat,
        newest_ts=NOON,
        tokens_before=None,
    )


def look(newest_repeat: int | None, *, new_calls: int = 1, pid: int | None = None) -> Look:
    return Look(
        new_calls=new_calls, pid=pid, finding=None if newest_repeat is None else finding(newest_repeat)
    )


# ── the law ───────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Model:
    """Each step by its time; the list is cleared whenever the law says that counting starts again."""

    steps: list[float] = field(default_factory=list)
    newest_counted: int = 0
    pid: int | None = None
    earlier: set[int] = field(default_factory=set)
    """Processes that the streak has had before."""

    def takes_a_step(self, seen: Look, now: float) -> bool:
        if self.steps and now > self.steps[-1] + 600:
            self.steps.clear()
        if not self.steps:
            self.earlier.clear()
        elif self.pid is not None and seen.pid not in {None, self.pid}:
            is_new = seen.pid not in self.earlier
            self.earlier.add(self.pid)
            if is_new and len(self.earlier) <= 3:
                self.steps.clear()
        self.pid = seen.pid or self.pid
        if seen.finding and seen.finding.newest_repeat > self.newest_counted:
            self.steps.append(now)
            self.newest_counted = seen.finding.newest_repeat
            return True
        if seen.new_calls and not seen.finding:
            self.steps.clear()
        return False


class StreakLaw(RuleBasedStateMachine):
    """Looks of every kind, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOON
        self.model = Model()
        self.streak = Streak()
        self.newest_repeat = 0

    @rule(seconds=st.sampled_from([1, 60, 299, 300, 301, 599, 600, 601, 86_400]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(newer=st.integers(1, 3), calls=st.integers(1, 5))
    def a_newer_call_repeats(self, newer: int, calls: int) -> None:
        self.newest_repeat += newer
        self.look(look(self.newest_repeat, new_calls=calls))

    @rule(calls=st.integers(0, 5))
    def only_calls_that_were_seen_repeat(self, calls: int) -> None:
        self.look(look(self.newest_repeat or 1, new_calls=calls))

    @rule()
    def new_calls_and_nothing_is_found(self) -> None:
        self.look(look(None))

    @rule()
    def no_new_call(self) -> None:
        self.look(look(None, new_calls=0))

    @rule(pid=st.integers(11, 17), repeats=st.booleans())
    def a_process_is_named(self, pid: int, *, repeats: bool) -> None:
        self.newest_repeat += repeats
        self.look(look(self.newest_repeat if repeats else None, pid=pid))

    def look(self, seen: Look) -> None:
        before = self.streak
        result = advance(before, seen, POLICY, self.now)
        assert result.is_step == self.model.takes_a_step(seen, self.now)
        assert result.streak.steps <= before.steps + 1
        # A streak that is not what it was, one step longer or the same, has been said to be over.
        grown = before.steps + result.is_step
        assert (result.ended is not None) >= (result.streak.steps != grown)
        self.streak = result.streak

    @invariant()
    def it_is_as_long_as_the_law_says(self) -> None:
        assert self.streak.steps == len(self.model.steps)
        assert self.streak.newest_repeat == self.model.newest_counted
        assert self.streak.pid == self.model.pid


StreakLaw.TestCase.settings = settings(max_examples=100, stateful_step_count=25)
TestStreakLaw = StreakLaw.TestCase


# ── examples ──────────────────────────────────────────────────────────────────────────────────────

TWO_STEPS = Streak(steps=2, newest_repeat=20, at=NOON, pid=11)


@pytest.mark.parametrize(
    ("seen", "after", "expected"),
    [
        pytest.param(look(21), 60, Advance(streak=Streak(3, 21, NOON + 60, 11), is_step=True), id="a step"),
        pytest.param(look(20), 60, Advance(streak=TWO_STEPS), id="what repeats has counted already"),
        pytest.param(look(None, new_calls=0), 60, Advance(streak=TWO_STEPS), id="no new call"),
        pytest.param(
            look(None),
            60,
            Advance(streak=Streak(0, 20, 0, 11), ended=Ended.RECOVERED),
            id="it does something else",
        ),
        pytest.param(
            look(21), 600, Advance(streak=Streak(3, 21, NOON + 600, 11), is_step=True), id="just in time"
        ),
        pytest.param(
            look(21),
            600.5,
            Advance(streak=Streak(1, 21, NOON + 600.5, 11), is_step=True, ended=Ended.QUIET),
            id="too late, and a new one begins",
        ),
        pytest.param(
            look(None, new_calls=0),
            601,
            Advance(streak=Streak(0, 20, 0, 11), ended=Ended.QUIET),
            id="quiet for too long",
        ),
        pytest.param(
            look(21, pid=12),
            60,
            Advance(streak=Streak(1, 21, NOON + 60, 12, (11,)), is_step=True, ended=Ended.RESTARTED),
            id="another process, and it is no better",
        ),
        pytest.param(
            look(None, pid=12),
            60,
            Advance(streak=Streak(0, 20, 0, 12), ended=Ended.RESTARTED),
            id="another process",
        ),
    ],
)
def test_what_a_look_does_to_a_streak_of_two(seen: Look, after: float, expected: Advance) -> None:
    assert advance(TWO_STEPS, seen, POLICY, NOON + after) == expected


@pytest.mark.parametrize(
    ("pids", "steps"),
    [
        pytest.param([1, 1, 1], 3, id="one process"),
        pytest.param([1, 2, 2, 2], 3, id="restarted once: it counts anew"),
        pytest.param([1, 2, 1, 2, 1], 4, id="two that take turns count as one"),
        pytest.param([1, 2, 3, 4, 5, 6], 3, id="a new one at each look: three times it counts anew"),
    ],
)
def test_no_change_of_processes_escapes(pids: list[int], steps: int) -> None:
    """One step a look, each a minute after the one before."""
    streak = Streak()
    for n, pid in enumerate(pids, start=1):
        streak = advance(streak, look(n, pid=pid), POLICY, NOON + 60 * n).streak
    assert streak.steps == steps


def test_nothing_ends_where_nothing_was() -> None:
    """A process that is named for the first time, or another one after no step, restarts no streak."""
    assert advance(Streak(), look(None, new_calls=0, pid=11), POLICY, NOON).ended is None
    assert advance(Streak(pid=11), look(None, new_calls=0, pid=12), POLICY, NOON).ended is None
