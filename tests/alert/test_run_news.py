"""What is told of runs, and how their workflow stands."""

from dataclasses import replace

import msgspec
import pytest

from jobs.alert.notice import AnyNotice
from jobs.alert.outgoing import Mode, Outgoing
from jobs.alert.run_news import (
    Judgement,
    alert_of,
    answer_of,
    closing,
    is_silenced,
    news,
    opened,
    refusal_of,
    retold,
    state_after,
)
from jobs.alert.run_notice import RunNotice, UnverifiedNotice, VerifiedNotice
from jobs.verification.history import Trigger, Waiting, WorkflowState
from jobs.verification.verdict import Judged, Outcome
from tests.fakes import NOON
from tests.verdicts import MISSING, a_report, a_run, a_verdict, failing, passing

FRESH = WorkflowState(id=3, name="nightly", since=0, judged_until=0)
FAILED = replace(FRESH, failures=2, last_run=5, alerted_run=5)


def judged(judgement: Judged, run_id: int) -> Judgement:
    return Judgement(run=a_run(run_id, slot=NOON - 60), verdict=a_verdict(judgement, run_id))


def notice_in(message: Outgoing | None) -> RunNotice:
    assert message
    notice = msgspec.json.decode(message.body, type=AnyNotice)
    assert isinstance(notice, RunNotice)
    return notice


# ── how the workflow stands ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("bad", [failing(), MISSING])
def test_each_run_without_a_good_output_counts_and_a_good_one_ends_the_row(bad: Judged) -> None:
    state = state_after(FRESH, None, judged(bad, 1))
    assert (state.failures, state.last_run) == (1, 1)
    state = state_after(state, None, judged(bad, 2))
    assert (state.failures, state.last_run) == (2, 2)
    state = state_after(state, None, judged(passing(), 3))
    assert (state.failures, state.last_run) == (0, 3)


def test_a_run_that_is_judged_again_counts_once() -> None:
    """A missing run that came late and failed, or a failure that was looked at again."""
    state = state_after(FAILED, a_verdict(MISSING, 5), judged(failing(), 5))
    assert state.failures == 2
    passed = replace(FRESH, last_run=5)
    assert state_after(passed, a_verdict(passing(), 5), judged(failing(), 5)).failures == 1


def test_an_earlier_run_that_is_judged_again_changes_nothing_of_what_came_since() -> None:
    assert state_after(FAILED, a_verdict(failing(), 4), judged(passing(), 4)) == FAILED
    assert state_after(FAILED, a_verdict(passing(), 4), judged(failing(), 4)) == FAILED


@pytest.mark.parametrize("run_id", [5, 6])
def test_a_good_run_closes_what_is_open(run_id: int) -> None:
    assert state_after(FAILED, None, judged(passing(), run_id)).alerted_run is None
    assert state_after(FAILED, None, judged(failing(), run_id)).alerted_run == 5


def test_the_newest_alert_is_the_one_that_goes_on() -> None:
    assert opened(FRESH, judged(failing(), 5)).alerted_run == 5
    assert opened(FAILED, judged(failing(), 6)).alerted_run == 6
    assert opened(FAILED, judged(failing(), 4)).alerted_run == 5


def test_an_honest_report_of_a_failure_opens_no_alert() -> None:
    assert opened(FRESH, judged(passing(says_failed=True), 5)) == FRESH


# ── what is told ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("bad", [failing(), failing(None), MISSING, passing(says_failed=True)])
def test_a_run_that_did_not_deliver_or_says_that_it_failed_is_one_message(bad: Judged) -> None:
    new = judged(bad, 5)
    message = news(FRESH, new, NOON, is_told=False)
    assert message
    assert (message.mode, message.subject) == (Mode.SEND, "run:5")
    assert notice_in(message) == RunNotice(
        run=5,
        workflow="nightly",
        workflow_id=3,
        verdict=bad.verdict,
        path=bad.artifact.path if bad.artifact else None,
        slot=NOON - 60,
        at=NOON,
        failures=0,
    )


def test_a_run_that_delivered_is_no_news() -> None:
    assert news(FRESH, judged(passing(), 5), NOON, is_told=False) is None


@pytest.mark.parametrize(
    ("new", "resolved_by"), [(failing(), None), (passing(says_failed=True), None), (passing(), 5)]
)
def test_another_verdict_of_a_run_edits_its_message(new: Judged, resolved_by: int | None) -> None:
    message = news(FRESH, judged(new, 5), NOON, is_told=True)
    assert message
    assert message.mode is Mode.EDIT
    assert notice_in(message).resolved_by == resolved_by


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (passing(), failing()),
        (passing(), passing(says_failed=True)),
        (MISSING, failing()),
        (MISSING, passing(says_failed=True)),
        (passing(says_failed=True), failing()),
    ],
)
def test_a_run_that_turns_bad_in_another_way_is_told_anew(before: Judged, after: Judged) -> None:
    """An edit makes no sound; while the workflow is silenced, that is what is wanted."""
    was, new = judged(before, 5), judged(after, 5)
    state = replace(FAILED, last_run=5)
    message = news(state, new, NOON, before=was, is_told=True, alerted_at=NOON)
    assert message
    assert (message.mode, message.subject) == (Mode.SEND, "run:5")
    silenced = replace(state, silenced_until=NOON + 1)
    message = news(silenced, new, NOON, before=was, is_told=True, alerted_at=NOON)
    assert message
    assert message.mode is Mode.EDIT


def test_what_a_later_run_has_resolved_stays_so() -> None:
    """Whatever is found of the earlier run when it is judged again."""
    state = replace(FRESH, last_run=6)
    again = judged(failing(), 5)
    message = news(state, again, NOON, before=again, is_told=True, good_since=6)
    assert message
    assert (message.mode, notice_in(message).resolved_by) == (Mode.EDIT, 6)
    assert news(state, again, NOON, before=judged(passing(), 5), is_told=False, good_since=6) is None


def test_while_it_is_silenced_a_workflows_runs_are_not_told() -> None:
    silenced = replace(FRESH, silenced_until=NOON + 1)
    assert news(silenced, judged(failing(), 5), NOON, is_told=False) is None
    assert news(silenced, judged(failing(), 5), NOON + 1, is_told=False)


def test_what_was_told_before_it_was_silenced_is_still_edited() -> None:
    """An edit makes no sound."""
    silenced = replace(FRESH, silenced_until=NOON + 1)
    message = news(silenced, judged(passing(), 5), NOON, is_told=True)
    assert notice_in(message).silenced_until == NOON + 1


# ── an alert that goes on ─────────────────────────────────────────────────────────────────────────

HOUR = 3600.0
GOES_ON = replace(FAILED, last_run=7, failures=3)
"""The alert of run 5 is open, and run 7 the last one."""


@pytest.mark.parametrize("bad", [failing(), MISSING])
def test_for_an_hour_the_alert_of_a_run_is_that_of_those_that_follow(bad: Judged) -> None:
    """It shows the newest."""
    message = news(GOES_ON, judged(bad, 7), NOON, is_told=False, alerted_at=NOON - HOUR + 1)
    assert message
    assert (message.mode, message.subject) == (Mode.EDIT, "run:5")
    notice = notice_in(message)
    assert (notice.run, notice.alert, notice.failures) == (7, 5, 3)


@pytest.mark.parametrize("alerted_at", [NOON - HOUR, NOON + 1, None])
def test_after_an_hour_a_further_run_is_an_alert_of_its_own(alerted_at: float | None) -> None:
    """So it is when the clock was set back since, and when the open one was given up."""
    message = news(GOES_ON, judged(failing(), 7), NOON, is_told=False, alerted_at=alerted_at)
    assert message
    assert (message.mode, message.subject) == (Mode.SEND, "run:7")


@pytest.mark.parametrize(("state", "run_id"), [(FRESH, 7), (replace(FAILED, alerted_run=8, last_run=8), 7)])
def test_no_alert_goes_on_for_a_run_before_it(state: WorkflowState, run_id: int) -> None:
    message = news(state, judged(failing(), run_id), NOON, is_told=False, alerted_at=NOON)
    assert message
    assert message.mode is Mode.SEND


def test_what_a_run_says_itself_is_another_kind_of_alert() -> None:
    honest = judged(passing(says_failed=True), 7)
    message = news(GOES_ON, honest, NOON, is_told=False, alerted_at=NOON)
    assert message
    assert message.mode is Mode.SEND


@pytest.mark.parametrize("silenced_until", [None, NOON + 1])
def test_another_verdict_of_the_run_that_an_alert_shows_edits_that(silenced_until: float | None) -> None:
    """However long ago it was told."""
    state = replace(GOES_ON, silenced_until=silenced_until)
    new = judged(failing(), 7)
    message = news(state, new, NOON, before=new, is_told=False, alerted_at=NOON - 2 * HOUR)
    assert message
    assert (message.mode, message.subject) == (Mode.EDIT, "run:5")


def test_silenced_no_run_is_told_again_that_was_not_told() -> None:
    state = replace(FRESH, last_run=7, silenced_until=NOON + 1)
    assert news(state, judged(failing(), 7), NOON, before=judged(failing(), 7), is_told=False) is None


@pytest.mark.parametrize(("run_id", "is_told"), [(5, True), (6, False)])
@pytest.mark.parametrize("new", [failing(), passing()])
def test_an_alert_that_shows_a_later_run_goes_on_doing_so(new: Judged, run_id: int, *, is_told: bool) -> None:
    again = judged(new, run_id)
    assert news(GOES_ON, again, NOON, before=again, is_told=is_told, alerted_at=NOON) is None


def test_a_good_run_edits_every_open_alert() -> None:
    """The messages keep saying what was wrong, and how often in a row."""
    alerts = {5: judged(failing(), 7), 2: judged(MISSING, 2)}
    messages = list(closing(GOES_ON, alerts, judged(passing(), 8)))
    assert [(message.mode, message.subject) for message in messages] == [
        (Mode.EDIT, "run:5"),
        (Mode.EDIT, "run:2"),
    ]
    notices = [notice_in(message) for message in messages]
    assert [(notice.run, notice.alert) for notice in notices] == [(7, 5), (2, None)]
    assert [(notice.resolved_by, notice.failures) for notice in notices] == [(8, 3), (8, 3)]
    assert notices[0].verdict.outcome is Outcome.FAIL


def test_silence_ends_by_itself() -> None:
    assert not is_silenced(FRESH, NOON)
    assert is_silenced(replace(FRESH, silenced_until=NOON + 1), NOON)
    assert not is_silenced(replace(FRESH, silenced_until=NOON), NOON)


def test_an_alert_can_be_told_again_as_it_stands() -> None:
    """It was silenced, for example; that it is resolved stays."""
    message = retold(FAILED, judged(failing(), 6), alert=5, resolved_by=7)
    assert (message.mode, message.subject) == (Mode.EDIT, "run:5")
    assert notice_in(message) == alert_of(FAILED, judged(failing(), 6), alert=5, resolved_by=7)


# ── the answer ────────────────────────────────────────────────────────────────────────────────────


def test_who_has_asked_is_answered_in_the_same_message_thread() -> None:
    waiting = msgspec.json.encode(Waiting(chat="-1001/7", message=42)).decode()
    report = replace(a_report(Trigger.CHAT), answer=waiting)
    verdict = replace(a_verdict(failing(), 5), as_of=NOON - 60)
    message = answer_of(report, FRESH, verdict)
    assert message
    assert (message.mode, message.chat, message.target_message) == (Mode.REPLY, "-1001/7", 42)
    assert message.subject is None
    assert msgspec.json.decode(message.body, type=AnyNotice) == VerifiedNotice(
        run=5,
        workflow="nightly",
        workflow_id=3,
        verdict=verdict.judged.verdict,
        path="/out/report.json",
        at=NOON,
        as_of=NOON - 60,
    )


def test_nobody_else_is_answered() -> None:
    assert answer_of(a_report(), FRESH, a_verdict(failing(), 5)) is None
    assert refusal_of(a_report()) is None


def test_who_gets_no_verdict_is_told_why() -> None:
    waiting = msgspec.json.encode(Waiting(chat="-1001/7", message=42)).decode()
    report = replace(a_report(Trigger.CHAT), answer=waiting, run_id=5)
    gone, replaced = refusal_of(report), refusal_of(report, replaced_by=6)
    assert gone
    assert (gone.mode, gone.chat, gone.target_message) == (Mode.REPLY, "-1001/7", 42)
    assert msgspec.json.decode(gone.body, type=AnyNotice) == UnverifiedNotice(workflow="nightly")
    told = UnverifiedNotice(workflow="nightly", run=5, replaced_by=6)
    assert replaced
    assert msgspec.json.decode(replaced.body, type=AnyNotice) == told
