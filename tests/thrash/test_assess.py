"""What a look leads to, by where the incident stands and what the policy allows."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.thrash.assess import Action, Assessment, Subject, assess, end, is_silent
from jobs.thrash.finding import Finding
from jobs.thrash.incident import Incident, IncidentStatus
from jobs.thrash.policy import OnDetection, ThrashPolicy
from jobs.thrash.streak import Ended, Look, Streak
from tests.drawn import incidents
from tests.fakes import NOON

POLICY = ThrashPolicy()
BEFORE_A_STEP = Streak(steps=2, newest_repeat=20, at=NOON - 60, pid=11)
FINDING = Finding(
    score=8,
    tool="exec",
    first_call=5,
    first_ts=NOON - 90,
    newest_repeat=30,
    newest_ts=NOON - 1,
    tokens_before=1000,
)
SUBJECT = Subject(
    session_id=7,
    source="gateway",
    agent="coder",
    streak=BEFORE_A_STEP,
    calls=30,
    newest_ts=NOON - 1,
    tokens=5000,
)
OPEN = Incident(
    id=3,
    session_id=7,
    agent="coder",
    source="gateway",
    opened_at=NOON - 120,
    updated_at=NOON - 60,
    first_call=4,
    first_ts=NOON - 100,
    tokens_before=900,
    kind="thrash_loop",
    tool="read",
    score=6,
    steps=2,
    calls=12,
    newest_ts=NOON - 60,
    tokens=2000,
)
STEP = Look(new_calls=9, pid=11, finding=FINDING)
OTHER_WORK = Look(new_calls=9, pid=11, finding=None)
NOTHING_NEW = Look(new_calls=0, pid=11, finding=None)

statuses = st.sampled_from([status for status in IncidentStatus if status is not IncidentStatus.RESOLVED])
tried = [status for status in IncidentStatus if status not in {IncidentStatus.OPEN, IncidentStatus.ASKED}]
policies = st.builds(ThrashPolicy, on_detection=st.sampled_from(OnDetection), kill_after=st.integers(1, 4))
moments = st.floats(NOON - 2000, NOON + 2000)


def after(steps: int, before: Incident | None, on_detection: OnDetection) -> Assessment:
    """What the step leads to that makes the streak so long."""
    subject = replace(SUBJECT, streak=Streak(steps=steps - 1, newest_repeat=20, at=NOON - 60, pid=11))
    return assess(subject, STEP, before, replace(POLICY, on_detection=on_detection), NOON)


# ── the table ─────────────────────────────────────────────────────────────────────────────────────

OBSERVE, ASK, STOP = OnDetection
ASKED = replace(OPEN, status=IncidentStatus.ASKED, asked_at=NOON - 299)
ASKED_LONG_AGO = replace(ASKED, asked_at=NOON - 300)


@pytest.mark.parametrize(
    ("before", "on_detection", "steps", "action", "status"),
    [
        pytest.param(None, STOP, 1, Action.ALERT, IncidentStatus.OPEN, id="first detection"),
        pytest.param(OPEN, STOP, 2, Action.ALERT, IncidentStatus.OPEN, id="second step"),
        pytest.param(OPEN, STOP, 3, Action.STOP, IncidentStatus.STOPPING, id="third step"),
        pytest.param(OPEN, STOP, 4, Action.STOP, IncidentStatus.STOPPING, id="stop allowed only now"),
        pytest.param(OPEN, OBSERVE, 3, Action.ALERT, IncidentStatus.OPEN, id="observed"),
        pytest.param(OPEN, OBSERVE, 30, Action.ALERT, IncidentStatus.OPEN, id="observed for long"),
        pytest.param(OPEN, ASK, 2, Action.ALERT, IncidentStatus.OPEN, id="not asked yet"),
        pytest.param(OPEN, ASK, 3, Action.ASK, IncidentStatus.ASKED, id="asked"),
        pytest.param(ASKED, ASK, 8, Action.ALERT, IncidentStatus.ASKED, id="grace"),
        pytest.param(ASKED_LONG_AGO, ASK, 8, Action.STOP, IncidentStatus.STOPPING, id="grace is over"),
        pytest.param(
            replace(ASKED_LONG_AGO, snoozed_until=NOON + 1),
            ASK,
            8,
            Action.ALERT,
            IncidentStatus.ASKED,
            id="grace longer by a snooze",
        ),
        pytest.param(
            replace(ASKED_LONG_AGO, snoozed_until=NOON),
            ASK,
            8,
            Action.STOP,
            IncidentStatus.STOPPING,
            id="snooze is over",
        ),
        pytest.param(
            replace(ASKED, snoozed_until=NOON - 200),
            ASK,
            8,
            Action.ALERT,
            IncidentStatus.ASKED,
            id="a snooze never makes the grace shorter",
        ),
        pytest.param(
            replace(OPEN, snoozed_until=NOON + 900),
            ASK,
            3,
            Action.ASK,
            IncidentStatus.ASKED,
            id="asked though snoozed",
        ),
        pytest.param(
            replace(OPEN, snoozed_until=NOON + 900),
            STOP,
            3,
            Action.STOP,
            IncidentStatus.STOPPING,
            id="stopped though snoozed",
        ),
        pytest.param(ASKED, STOP, 8, Action.STOP, IncidentStatus.STOPPING, id="asked, then told to stop"),
        *(
            pytest.param(replace(OPEN, status=status), STOP, 3, Action.ALERT, status, id=f"after {status}")
            for status in (IncidentStatus.STOP_FAILED, IncidentStatus.STILL_RUNNING, IncidentStatus.DRY_RUN)
        ),
    ],
)
def test_what_a_step_leads_to(
    before: Incident | None, on_detection: OnDetection, steps: int, action: Action, status: IncidentStatus
) -> None:
    result = after(steps, before, on_detection)
    assert result.action is action
    assert result.current is not None
    assert result.current.status is status
    assert (result.current.steps, result.ended) == (steps, None)


# ── laws ──────────────────────────────────────────────────────────────────────────────────────────


@given(incidents, st.sampled_from(tried), policies, st.integers(1, 9))
def test_a_stop_is_tried_once_an_incident(
    incident: Incident, status: IncidentStatus, policy: ThrashPolicy, steps: int
) -> None:
    subject = replace(SUBJECT, streak=replace_steps(steps))
    result = assess(subject, STEP, replace(incident, status=status), policy, NOON)
    assert result.action in {None, Action.ALERT}
    assert result.current is None or result.current.status is status


@given(statuses, st.none() | moments, moments, policies, st.integers(0, 5))
def test_a_snooze_prevents_no_stop_except_under_ask(
    status: IncidentStatus, asked_at: float | None, until: float, policy: ThrashPolicy, steps: int
) -> None:
    subject = replace(SUBJECT, streak=replace_steps(steps))
    loud = replace(OPEN, status=status, asked_at=asked_at)
    without = assess(subject, STEP, loud, policy, NOON).action
    snoozed = assess(subject, STEP, replace(loud, snoozed_until=until), policy, NOON).action
    if policy.on_detection is ASK and until > NOON and without is Action.STOP:
        assert snoozed is Action.ALERT
    else:
        assert snoozed is without


@given(st.none() | st.just(OPEN), policies, st.sampled_from([OTHER_WORK, NOTHING_NEW]), st.integers(0, 5))
def test_without_a_step_nothing_is_done(
    before: Incident | None, policy: ThrashPolicy, look: Look, steps: int
) -> None:
    result = assess(replace(SUBJECT, streak=replace_steps(steps)), look, before, policy, NOON)
    assert (result.current, result.action) == (None, None)


def replace_steps(steps: int) -> Streak:
    return Streak(steps=steps, newest_repeat=20, at=NOON - 60, pid=11)


# ── how an incident begins, grows and ends ────────────────────────────────────────────────────────


def test_a_first_step_opens_an_incident_with_the_numbers_of_its_finding() -> None:
    result = after(1, None, STOP)
    assert result.current == Incident(
        id=0,
        session_id=7,
        agent="coder",
        source="gateway",
        opened_at=NOON,
        updated_at=NOON,
        first_call=5,
        first_ts=NOON - 90,
        tokens_before=1000,
        kind="thrash_loop",
        tool="exec",
        score=8,
        steps=1,
        calls=26,
        newest_ts=NOON - 1,
        tokens=4000,
    )
    assert result.streak == Streak(steps=1, newest_repeat=30, at=NOON, pid=11)


def test_a_step_counts_from_where_the_incident_began() -> None:
    assert after(2, OPEN, OBSERVE).current == replace(
        OPEN, updated_at=NOON, tool="exec", score=8, steps=2, calls=27, newest_ts=NOON - 1, tokens=4100
    )


@pytest.mark.parametrize(
    ("tokens", "tokens_before", "expected"), [(None, None, None), (40, None, 40), (40, 40, 0), (40, 15, 25)]
)
def test_what_a_loop_has_cost_is_what_was_used_since_it_began(
    tokens: int | None, tokens_before: int | None, expected: int | None
) -> None:
    look = replace(STEP, finding=replace(FINDING, tokens_before=tokens_before))
    result = assess(replace(SUBJECT, tokens=tokens), look, None, POLICY, NOON)
    assert result.current is not None
    assert result.current.tokens == expected


@pytest.mark.parametrize(
    ("streak", "look", "ended"),
    [
        pytest.param(BEFORE_A_STEP, OTHER_WORK, Ended.RECOVERED, id="other work"),
        pytest.param(replace_steps(2), replace(OTHER_WORK, pid=12), Ended.RESTARTED, id="another process"),
        pytest.param(Streak(2, 20, NOON - 601, 11), NOTHING_NEW, Ended.QUIET, id="nothing for too long"),
    ],
)
def test_an_incident_ends_with_its_streak(streak: Streak, look: Look, ended: Ended) -> None:
    result = assess(replace(SUBJECT, streak=streak), look, replace(OPEN, snoozed_until=NOON), POLICY, NOON)
    assert result.ended == end(OPEN, ended, NOON)
    assert result.ended == replace(
        OPEN, status=IncidentStatus.RESOLVED, ended=ended, closed_at=NOON, updated_at=NOON
    )
    assert result.streak.steps == 0


def test_a_look_can_end_one_incident_and_open_the_next() -> None:
    """A step too late to go on with the old streak, or by another process."""
    subject = replace(SUBJECT, streak=Streak(2, 20, NOON - 601, 11))
    result = assess(subject, STEP, OPEN, POLICY, NOON)
    assert result.ended == end(OPEN, Ended.QUIET, NOON)
    assert result.current is not None
    assert (result.current.id, result.current.steps, result.action) == (0, 1, Action.ALERT)


@pytest.mark.parametrize("on_detection", [STOP, ASK])
def test_a_stop_takes_the_streak_with_it(on_detection: OnDetection) -> None:
    """What repeated has counted: whatever comes after has to earn three steps of its own."""
    result = after(3, ASKED_LONG_AGO, on_detection)
    assert result.action is Action.STOP
    assert result.streak == Streak(steps=0, newest_repeat=30, at=0, pid=11)


@pytest.mark.parametrize("status", [IncidentStatus.STOPPING, IncidentStatus.STOPPED])
@pytest.mark.parametrize(
    ("look", "newest", "pid"),
    [
        pytest.param(STEP, 30, 11, id="it goes on"),
        pytest.param(OTHER_WORK, 20, 11, id="it does something else"),
        pytest.param(replace(STEP, pid=12), 30, 12, id="another process goes on"),
        pytest.param(replace(STEP, pid=None), 30, 11, id="it names no process"),
    ],
)
def test_calls_during_a_stop_are_no_streak(status: IncidentStatus, look: Look, newest: int, pid: int) -> None:
    """Calls under way come in late, and whether the stop holds is judged elsewhere."""
    result = assess(SUBJECT, look, replace(OPEN, status=status), POLICY, NOON)
    assert result == Assessment(streak=Streak(steps=0, newest_repeat=newest, at=0, pid=pid))


@pytest.mark.parametrize(
    ("status", "idle", "silent"),
    [
        (IncidentStatus.OPEN, 600, False),
        (IncidentStatus.OPEN, 601, True),
        (IncidentStatus.ASKED, 601, True),
        (IncidentStatus.STOP_FAILED, 601, True),
        (IncidentStatus.STOPPING, 86_400, False),
        (IncidentStatus.STOPPED, 86_400, False),
    ],
)
def test_an_incident_to_which_nothing_is_added_falls_silent(
    status: IncidentStatus, idle: float, *, silent: bool
) -> None:
    """Not while it is being stopped: then its end is the stop's."""
    incident = replace(OPEN, status=status, updated_at=NOON - idle)
    assert is_silent(incident, POLICY, NOON) is silent


def test_the_reason_given_for_a_stop_names_the_score() -> None:
    assert OPEN.reason == "thrash_loop:6"
