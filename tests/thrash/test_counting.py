"""A call that a log and a hook tell counts once."""

import dataclasses

from msgspec.structs import replace

from jobs.thrash.heard import Heard
from jobs.thrash.hooked import since_log
from jobs.thrash.locality import LocalityState, SeenCall
from jobs.thrash.policy import ThrashPolicy
from jobs.thrash.session import Session, logged_until, run_by, take_in
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


def state(*ids: str, log_ts: float) -> LocalityState:
    """What is known after so many calls, one a second from noon on."""
    seen = (
        SeenCall(n + 1, NOON + n, "exec", "{}", False, False, None, None, id_) for n, id_ in enumerate(ids)
    )
    return LocalityState(calls=len(ids), recent=tuple(seen), log_ts=log_ts)


def test_all_that_a_hook_tells_counts_while_no_log_has_told_anything() -> None:
    told = heard(calls=1000)
    assert since_log(told, LocalityState()) is told
    assert since_log(told, state("", "", log_ts=0)) is told


def test_of_what_a_hook_tells_that_counts_which_is_newer_than_the_log() -> None:
    rest = since_log(heard(calls=10, is_error=True), state("", log_ts=NOON + 6))
    assert rest is not None
    assert ([call.ts for call in rest.newest], rest.errors) == ([NOON + 7, NOON + 8, NOON + 9], 3)
    assert since_log(heard(calls=10), state("", log_ts=NOON + 9)) is None


def test_a_call_that_the_log_told_when_it_began_is_known_by_its_id_when_it_is_over() -> None:
    calls = [replace(call(NOON + 600), call_id=call_id) for call_id in ("toolu_1", None, "toolu_3")]
    told = Heard(calls[0], POLICY.remembered)
    told.add(calls)
    rest = since_log(told, state("toolu_1", "", "toolu_2", log_ts=NOON))
    assert rest is not None
    assert [each.call_id for each in rest.newest] == [None, "toolu_3"]


def test_a_logs_clock_that_is_ahead_hides_nothing_for_long() -> None:
    assert logged_until(by_hook(), NOON * 2, NOON + 60).memory.log_ts == NOON + 60
    assert logged_until(logged_until(by_hook(), NOON, NOON), NOON - 5, NOON).memory.log_ts == NOON


def test_what_a_log_tells_takes_the_place_of_what_a_hook_has_told() -> None:
    """However often they take turns; a hook's calls are counted on from what the log has told."""
    session, _ = take_in(None, "agents", heard(calls=3), POLICY, NOON + 60)
    for _ in range(2):
        for hooked in (4, 5):
            told = heard(calls=hooked, start=NOON + 10, is_error=True)
            session, _ = take_in(session, "agents", told, POLICY, NOON + 60, is_hook=True)
        assert (session.memory.calls, session.errors) == (session.memory.recent[-1].number, 9)
        session, _ = take_in(session, "agents", heard(calls=1, start=NOON + 20), POLICY, NOON + 60)
    assert (session.memory.calls, session.errors, session.memory.logged) == (5, 0, None)
    assert [seen.number for seen in session.memory.recent] == [1, 2, 3, 4, 5]


def test_a_log_that_comes_late_tells_all_anew() -> None:
    """What only it tells is kept, and what a person knows the session by."""
    before = by_hook(calls=10, pid=812)
    assert (before.memory.calls, before.errors, before.memory.logged) == (10, 10, LocalityState())
    after, finding = take_in(before, "agents", heard(calls=12, start=NOON - 2), POLICY, NOON + 60)
    assert (after.memory.calls, after.errors, after.memory.logged) == (12, 0, None)
    assert (after.pid, after.pid_since_ts, after.first_ts) == (812, NOON, NOON - 2)
    assert finding is not None
    assert finding.first_call > 0


def test_what_a_streak_has_counted_is_no_news_when_the_log_tells_it() -> None:
    before = by_hook(calls=10)
    before = dataclasses.replace(before, streak=Streak(steps=1, newest_repeat=10, at=NOON))
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
