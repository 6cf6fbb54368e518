"""What is known of a session grows by its calls and by what is told beside them."""

from dataclasses import replace

from jobs.thrash.assess import assess
from jobs.thrash.beside import Beside, Used
from jobs.thrash.call import ToolCall
from jobs.thrash.finding import Finding
from jobs.thrash.heard import Heard
from jobs.thrash.policy import ThrashPolicy
from jobs.thrash.session import Session, count_in, subject_of, take_in, without_calls
from jobs.thrash.streak import Look
from tests.fakes import NOON, call

POLICY = ThrashPolicy()


def heard(*calls: ToolCall) -> Heard:
    found = Heard(calls[0], POLICY.remembered)
    found.add(calls)
    return found


def circles(at: float, calls: int = 10) -> Heard:
    return heard(*(call(at + n, tokens=100) for n in range(calls)))


def look(known: Session | None, calls: Heard, cost: int | None) -> tuple[Session, Finding | None]:
    session, finding = take_in(known, "gateway", calls, POLICY, NOON)
    return count_in(session, 0, Beside(Used(cost=cost)), "EUR"), finding


def test_money_is_unknown_until_some_is_told() -> None:
    session, _ = look(None, circles(NOON), None)
    assert (session.memory.cost, session.currency) == (None, None)
    session, _ = look(session, circles(NOON + 10), 7)
    session, _ = look(session, circles(NOON + 20), None)
    session, _ = look(session, circles(NOON + 30), 5)
    assert (session.memory.cost, session.currency) == (12, "EUR")


def test_an_incident_costs_what_came_from_its_first_call_on() -> None:
    """What is counted in after the calls of a look was not used before any of them."""
    work = heard(*(call(NOON + n, f"{n}" * 20) for n in range(10)))
    session, _ = look(None, work, 1000)
    session, finding = look(session, circles(NOON + 600, 3), 30)
    assert finding is None
    session, finding = look(session, circles(NOON + 603, 7), 4)
    assert finding is not None
    assert (finding.first_call, finding.cost_before) == (12, 1000)
    seen = Look(new_calls=7, pid=None, finding=finding)
    opened = assess(subject_of(session), seen, None, POLICY, NOON).current
    assert opened is not None
    assert (opened.cost_before, opened.cost, opened.currency) == (1000, 34, "EUR")


def test_calls_that_are_only_counted_leave_the_money_alone() -> None:
    session, _ = look(None, circles(NOON), 9)
    session, _ = look(session, circles(NOON + 60, 1000), None)
    assert session.memory.cost == 9
    assert session.memory.calls == 1010


def test_an_incident_without_money_has_none() -> None:
    session, finding = look(None, circles(NOON), None)
    opened = assess(
        subject_of(session), Look(new_calls=10, pid=None, finding=finding), None, POLICY, NOON
    ).current
    assert opened is not None
    assert (opened.cost_before, opened.cost, opened.currency) == (None, None, None)


def test_money_told_for_the_first_time_during_an_incident_is_all_of_it() -> None:
    session, finding = look(None, circles(NOON), 6)
    opened = assess(
        subject_of(session), Look(new_calls=10, pid=None, finding=finding), None, POLICY, NOON
    ).current
    assert opened is not None
    assert (opened.cost_before, opened.cost) == (None, 6)


def test_an_incident_knows_whether_its_money_may_leave_some_out() -> None:
    """Once tokens of its session had no price."""
    session, finding = look(None, circles(NOON), 6)
    session = count_in(session, 0, Beside(Used(unpriced=30)))
    session = count_in(session, 0, Beside(Used(cost=4, unpriced=20)), "EUR")
    opened = assess(
        subject_of(session), Look(new_calls=10, pid=None, finding=finding), None, POLICY, NOON
    ).current
    assert opened is not None
    assert (opened.cost, opened.unpriced, opened.currency) == (10, 50, "EUR")


def test_what_a_model_used_before_the_first_call_is_the_sessions() -> None:
    """It is nobody's conversation to speak of until a call names agent, parent and time."""
    silent = count_in(without_calls("gateway", "s-1", NOON - 50), 1, Beside(Used(30, 7)), "USD")
    assert (silent.agent, silent.seen_at) == ("s-1", 0)
    first = call(NOON, agent="coder", tokens=12)
    session, _ = take_in(replace(silent, id=4), "gateway", heard(first), POLICY, NOON + 1)
    assert (session.id, session.agent, session.first_ts, session.seen_at) == (4, "coder", NOON, NOON + 1)
    assert (session.errors, session.memory.tokens, session.memory.cost) == (1, 42, 7)
