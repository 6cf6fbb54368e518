"""A call that a log and a hook tell counts once."""

from dataclasses import replace

import pytest

from jobs.thrash.heard import Heard
from jobs.thrash.locality import LocalityState
from jobs.thrash.policy import ThrashPolicy
from jobs.thrash.session import Counting, Session, counting, run_by, take_in
from jobs.thrash.streak import Streak
from tests.fakes import NOON, call

POLICY = ThrashPolicy()


def heard(*, calls: int = 10, start: float = NOON, pid: int | None = None, is_error: bool = False) -> Heard:
    told = [call(start + n, pid=pid, is_error=is_error) for n in range(calls)]
    found = Heard(told[0], POLICY.remembered)
    found.add(told)
    return found


def by_hook(**told: int) -> Session:
    session, _ = take_in(None, "agents", heard(is_error=True, **told), POLICY, NOON + 60, is_hook=True)
    return session


@pytest.mark.parametrize(
    ("calls", "is_hooked", "is_hook", "expected"),
    [
        (0, False, False, Counting.ADD),
        (0, False, True, Counting.ADD),
        (3, False, False, Counting.ADD),
        (3, False, True, Counting.NONE),
        (3, True, True, Counting.ADD),
        (3, True, False, Counting.ANEW),
    ],
)
def test_a_log_tells_all_and_a_hook_what_no_log_has_told(
    calls: int, is_hooked: bool, is_hook: bool, expected: Counting
) -> None:
    assert counting(LocalityState(calls=calls, is_hooked=is_hooked), is_hook=is_hook) is expected


def test_a_log_that_comes_late_tells_all_anew() -> None:
    """What only it tells is kept, and what a person knows the session by."""
    before = by_hook(calls=10, pid=812)
    assert (before.memory.calls, before.errors, before.memory.is_hooked) == (10, 10, True)
    after, finding = take_in(before, "agents", heard(calls=12, start=NOON - 2), POLICY, NOON + 60)
    assert (after.memory.calls, after.errors, after.memory.is_hooked) == (12, 0, False)
    assert (after.pid, after.pid_since_ts, after.first_ts) == (812, NOON, NOON - 2)
    assert finding is not None
    assert finding.first_call > 0


def test_what_a_streak_has_counted_is_no_news_when_the_log_tells_it() -> None:
    before = by_hook(calls=10)
    before = replace(before, streak=Streak(steps=1, newest_repeat=10, at=NOON))
    same, finding = take_in(before, "agents", heard(calls=10), POLICY, NOON + 60)
    assert finding is not None
    assert finding.newest_repeat == same.streak.newest_repeat
    more, finding = take_in(before, "agents", heard(calls=11), POLICY, NOON + 60)
    assert finding is not None
    assert finding.newest_repeat == more.streak.newest_repeat + 1


def test_a_process_that_is_told_later_is_since_then() -> None:
    session = run_by(by_hook(calls=3), [(11, NOON + 5), (12, NOON + 9), (12, NOON + 10)], NOON + 60)
    assert (session.pid, session.pid_since_ts) == (12, NOON + 9)
    session = run_by(session, [(13, NOON + 900)], NOON + 60)
    assert (session.pid, session.pid_since_ts) == (13, NOON + 60)
