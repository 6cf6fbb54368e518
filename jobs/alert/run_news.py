"""Is a verdict worth telling, and how? And how does its workflow stand then?"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from jobs.alert.outgoing import NOTICE, Mode, Notice, Outgoing
from jobs.alert.run_notice import RunNotice, UnverifiedNotice, VerifiedNotice
from jobs.verification.history import RecordedVerdict, Report, Run, Waiting, WorkflowState
from jobs.verification.verdict import Outcome

_PAUSE: Final = 3600.0
"""Seconds after an alert in which further runs of its workflow edit it: of one that fails again and again, one an hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A run with a verdict of it."""

    run: Run
    verdict: RecordedVerdict

    @property
    def is_good(self) -> bool:
        """Whether the run left what it should: an honest report of a failure is that, too."""
        return self.verdict.outcome is Outcome.PASS

    @property
    def is_news(self) -> bool:
        """Whether a person should hear of it."""
        return not self.is_good or self.verdict.says_failed


def subject_of(run_id: int) -> str:
    """Return what the messages about a run are told by."""
    return f"run:{run_id}"


def state_after(state: WorkflowState, before: RecordedVerdict | None, new: Judgement) -> WorkflowState:
    """Return how a workflow stands after a verdict; `before` is the one that counted for the same run until now."""
    if is_past(state, new):
        # An earlier run that is judged again changes nothing of what came after it.
        return state
    was_good = before is None or before.outcome is Outcome.PASS
    failures = 0 if new.is_good else state.failures + was_good
    alerted_run = None if new.is_good else state.alerted_run
    return replace(state, last_run=new.run.id, failures=failures, alerted_run=alerted_run)


def is_past(state: WorkflowState, new: Judgement) -> bool:
    """Whether there is a verdict of a later run."""
    return new.run.id < (state.last_run or 0)


def opened(state: WorkflowState, new: Judgement) -> WorkflowState:
    """Return how a workflow stands once a run's alert is in the chat: the newest one is what later runs edit."""
    if new.is_good or new.run.id < (state.alerted_run or 0):
        return state
    return replace(state, alerted_run=new.run.id)


def news(
    state: WorkflowState,
    new: Judgement,
    now: float,
    *,
    before: Judgement | None = None,
    is_told: bool,
    alerted_at: float | None = None,
    good_since: int | None = None,
) -> Outgoing | None:
    """Return the alert of a run, or the edit of one; `state` is the one after the verdict.

    `before`: the verdict that counted for the run until now. `is_told`: it has a message of its own. `alerted_at`: when
    the message was told whose alert is open; for an hour it is the alert of the runs that follow, too.
    """
    if state.alerted_run is not None and state.alerted_run <= new.run.id and is_past(state, new):
        return None  # the open alert shows a later run
    if good_since is not None and not new.is_good:
        # What a later run has resolved stays so, whatever is found of the earlier one.
        return _message(alert_of(state, new, resolved_by=good_since), Mode.EDIT) if is_told else None
    is_other = before is not None and _is_other(before, new)
    if is_told and (not is_other or is_silenced(state, now)):
        resolved_by = None if new.is_news else new.run.id
        return _message(alert_of(state, new, resolved_by=resolved_by), Mode.EDIT)
    if not new.is_news or (is_silenced(state, now) and before is None):
        return None
    if not is_other and _goes_on(state, new, now, is_again=before is not None, alerted_at=alerted_at):
        return _message(alert_of(state, new, alert=state.alerted_run), Mode.EDIT)
    return None if is_silenced(state, now) else _message(alert_of(state, new), Mode.SEND)


def _is_other(before: Judgement, new: Judgement) -> bool:
    """Whether a run has turned bad in another way than before: an edit makes no sound."""
    is_another = not before.is_news or before.verdict.outcome is not new.verdict.outcome
    return new.is_news and is_another


def _goes_on(
    state: WorkflowState, new: Judgement, now: float, *, is_again: bool, alerted_at: float | None
) -> bool:
    """Whether what a run has to tell stands in the open alert of an earlier one."""
    if new.is_good or alerted_at is None or state.alerted_run is None or state.alerted_run > new.run.id:
        return False
    return is_again or 0 <= now - alerted_at < _PAUSE


def closing(before: WorkflowState, alerts: Mapping[int, Judgement], new: Judgement) -> Iterator[Outgoing]:
    """Yield the edits that a good run makes; `alerts`: what the open ones show, by the run each was told of.

    `before` is the state before its verdict.
    """
    for alert, shown in alerts.items():
        yield _message(alert_of(before, shown, alert=alert, resolved_by=new.run.id), Mode.EDIT)


def retold(state: WorkflowState, told: Judgement, *, alert: int, resolved_by: int | None) -> Outgoing:
    """Return the edit of an alert that says how its workflow stands now."""
    return _message(alert_of(state, told, alert=alert, resolved_by=resolved_by), Mode.EDIT)


def is_silenced(state: WorkflowState, now: float) -> bool:
    """Whether no further run of a workflow is told."""
    return state.silenced_until is not None and now < state.silenced_until


def alert_of(
    state: WorkflowState, told: Judgement, *, alert: int | None = None, resolved_by: int | None = None
) -> RunNotice:
    """Return what is said of a run, in the alert of an earlier one if `alert` names that."""
    run, verdict = told.run, told.verdict
    return RunNotice(
        run=run.id,
        alert=None if alert == run.id else alert,
        workflow=run.workflow,
        workflow_id=state.id,
        verdict=verdict.judged.verdict,
        path=_path(verdict),
        slot=run.slot,
        at=verdict.at,
        failures=state.failures,
        resolved_by=resolved_by,
        silenced_until=state.silenced_until,
    )


def answer_of(report: Report, state: WorkflowState, verdict: RecordedVerdict) -> Outgoing | None:
    """Return the answer to the person who has asked for a verdict; None if nobody has."""
    notice = VerifiedNotice(
        run=verdict.run_id,
        workflow=verdict.workflow,
        workflow_id=state.id,
        verdict=verdict.judged.verdict,
        path=_path(verdict),
        at=verdict.at,
        as_of=verdict.as_of,
    )
    return _answer(report, notice)


def refusal_of(report: Report, *, replaced_by: int | None = None) -> Outgoing | None:
    """Return the answer to the person who has asked for a verdict and gets none; None if nobody has."""
    run = None if replaced_by is None else report.run_id
    return _answer(report, UnverifiedNotice(workflow=report.workflow, run=run, replaced_by=replaced_by))


def _answer(report: Report, notice: Notice) -> Outgoing | None:
    if report.answer is None:
        return None
    waiting = msgspec.json.decode(report.answer, type=Waiting)
    body = msgspec.json.encode(notice)
    return Outgoing(
        kind=NOTICE, body=body, mode=Mode.REPLY, chat=waiting.chat, target_message=waiting.message
    )


def _message(notice: RunNotice, mode: Mode) -> Outgoing:
    return Outgoing(
        kind=NOTICE,
        body=msgspec.json.encode(notice),
        mode=mode,
        subject=subject_of(notice.alert or notice.run),
    )


def _path(verdict: RecordedVerdict) -> str | None:
    artifact = verdict.judged.artifact
    return artifact.path if artifact else None
