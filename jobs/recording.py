"""From a report to a verdict in the history: which run is it, what is known of it, what becomes of its verdict.

`record` is the one place that writes run, verdict, how the workflow stands, alert and answer: in the transaction of its
caller, so that all of it is there or nothing. The bot calls it, and the command in a process of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import TYPE_CHECKING, Final

from jobs.alert.outgoing import Mode
from jobs.alert.run_news import Judgement, answer_of, closing, is_past, news, opened, state_after, subject_of
from jobs.verification.history import CLOCK_SLACK, RecordedVerdict, Report, Run, Trigger, WorkflowState
from jobs.verification.identity import (
    is_about,
    is_failed_try,
    is_missing,
    is_verified,
    names_of,
    run_of,
    slot_for,
)
from jobs.verification.spec import Names, WorkflowSpec
from jobs.verification.trial import GoodOutput
from jobs.verification.verdict import Artifact, Judged, Outcome, Past, Sighting, Verdict

if TYPE_CHECKING:
    from jobs.ports import RunTables, Verdicts

_WAITED: Final = 60.0
"""Seconds; what had to wait longer for its verdict is judged as of when it was reported."""
_LAST: Final = 40
"""Verdicts among which an output is looked for."""
_MOST_ALERTS: Final = 10
"""Those that are edited when their workflow delivers again, the newest."""
_NO_PAST: Final = Past()
MISSING: Final = Judged(verdict=Verdict(outcome=Outcome.MISSING))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A report with all that is known of its run before the output is judged."""

    spec: WorkflowSpec
    report: Report
    slot: float | None
    names: Names
    run: Run | None
    """None if nothing was heard of it before."""
    past: Past
    as_of: float | None
    """None is now."""
    is_verified: bool
    """Whether there is a verdict about this very output, and nobody wants another one."""
    is_missing: bool = False
    """Whether the run was missing, and still is."""
    replaced_by: int | None = None
    """The later run whose output now lies in the place of this one's, which cannot be judged again."""


async def open_case(
    tables: "RunTables",
    spec: WorkflowSpec,
    report: Report,
    output: Sighting | None,
    *,
    now: float,
    zone: tzinfo,
) -> Case:
    """Say what is known before an output that lies there is judged. Only reads."""
    slot = slot_for(spec, report, zone)
    run = await _known_run(tables, spec, report, slot, output)
    newest = await tables.verdicts.newest_of(run.id) if run else None
    alike = await _alike(tables.verdicts, run, output)
    return Case(
        spec=spec,
        report=report,
        slot=slot,
        names=names_of(spec, report, zone),
        run=run,
        past=await _past(tables, spec, report, run, output),
        as_of=_as_of(report, alike, output, now),
        is_verified=is_verified(report, newest, output),
        is_missing=is_missing(report, slot, newest, output),
        replaced_by=await _replaced_by(tables.verdicts, report, run, output) if not alike else None,
    )


async def record(
    tables: "RunTables",
    case: Case,
    judged: Judged,
    *,
    now: float,
    took: float,
    good: GoodOutput | None = None,
) -> RecordedVerdict:
    """Write a verdict and all that follows from it; return it, or the one that made it needless meanwhile.

    `good`: a copy of the output, to be kept.
    """
    report, spec = case.report, case.spec
    output = await _as_known(tables.verdicts, spec.name, judged.artifact)
    run = await _known_run(tables, spec, report, case.slot, output)
    if run is None:
        run = await tables.runs.put(run_of(spec, report, case.slot, judged.artifact))
    newest = await tables.verdicts.newest_of(run.id)
    await conclude(tables, report, run)
    if newest and is_verified(report, newest, output):
        return newest
    verdict = _verdict(case, run, judged, now=now, took=took)
    if newest:
        verdict = replace(
            verdict,
            ran_at=newest.ran_at,
            said_done=verdict.said_done or newest.said_done,
            failed_tries=newest.failed_tries + is_failed_try(report, newest, output, verdict.outcome),
        )
    verdict = await tables.verdicts.add(verdict)
    await _tell(tables, report, newest, Judgement(run=run, verdict=verdict), now)
    if good is not None:
        await tables.good_outputs.keep(replace(good, run_id=run.id))
    return verdict


async def _as_known(verdicts: "Verdicts", workflow: str, read: Artifact | None) -> Sighting | None:
    """Return an output as it was read; as the history knows it, if only its owner or rights have changed since."""
    if read is None:
        return None
    last = [verdict.judged.artifact for verdict in await verdicts.page(workflow, None, None, _LAST)]
    return next((known for known in last if known and known.key == read.key), read).sighting


async def conclude(tables: "RunTables", report: Report, run: Run | None) -> None:
    """Note that a report is dealt with, and by which id the reporter knows its run."""
    await tables.reports.remove(report.id)
    if run and run.reported is None and report.reported is not None:
        await tables.runs.claim(run.id, report.reported)


async def _known_run(
    tables: "RunTables", spec: WorkflowSpec, report: Report, slot: float | None, output: Sighting | None
) -> Run | None:
    if report.run_id is not None:
        return await tables.runs.get(report.run_id)
    by_key = await tables.runs.find(spec.name, run_of(spec, report, slot, None).key)
    if by_key or slot is not None or output is None:
        return by_key
    for verdict in await tables.verdicts.judging(spec.name, output):
        run = await tables.runs.get(verdict.run_id)
        if run and is_about(report, run, verdict, spec):
            return run
    return None


async def _past(
    tables: "RunTables", spec: WorkflowSpec, report: Report, run: Run | None, output: Sighting | None
) -> Past:
    if not (spec.unchanged or spec.size or spec.count):
        return _NO_PAST
    # While nobody watched, one output may have to do for several slots: it is no copy of itself.
    but = output if report.by is Trigger.SLOT else None
    return await tables.verdicts.past_of(spec.name, before_run=run.id if run else None, but=but)


async def _alike(verdicts: "Verdicts", run: Run | None, output: Sighting | None) -> Sequence[RecordedVerdict]:
    """Return a run's verdicts about the output as it lies there now, newest first."""
    if run is None or output is None:
        return ()
    return [
        v for v in await verdicts.of_run(run.id) if v.judged.artifact and v.judged.artifact.sighting == output
    ]


async def _replaced_by(
    verdicts: "Verdicts", report: Report, run: Run | None, output: Sighting | None
) -> int | None:
    if report.run_id is None or run is None or output is None:
        return None
    later = [v.run_id for v in await verdicts.judging(run.workflow, output) if v.run_id > run.id]
    return max(later, default=None)


def _as_of(
    report: Report, alike: Sequence[RecordedVerdict], output: Sighting | None, now: float
) -> float | None:
    if report.as_of is not None or output is None:
        return report.as_of
    if report.by is Trigger.CHAT and alike:
        # The same output is judged by the same time: only then does the verdict tell whether it has changed.
        return alike[-1].at if alike[-1].as_of is None else alike[-1].as_of
    is_late = now - report.at > _WAITED and output.mtime_ns <= report.at * 1e9
    return report.at if is_late else None


def _verdict(case: Case, run: Run, judged: Judged, *, now: float, took: float) -> RecordedVerdict:
    failure = judged.verdict.failure
    return RecordedVerdict(
        run_id=run.id,
        workflow=run.workflow,
        by=case.report.by,
        outcome=judged.verdict.outcome,
        says_failed=judged.verdict.says_failed,
        failed_check=failure.check if failure else None,
        judged=judged,
        at=now,
        took=took,
        as_of=case.as_of,
        # Not when it was first heard of: that may be in a week whose runs were counted before it was judged.
        ran_at=now,
        checks=" ".join(result.check for result in judged.verdict.results),
        said_done=bool(failure and judged.verdict.said_done),
    )


async def _tell(
    tables: "RunTables", report: Report, before: RecordedVerdict | None, new: Judgement, now: float
) -> None:
    state = await standing(tables, new.run.workflow, now)
    after = state_after(state, before, new)
    message = news(
        after,
        new,
        now,
        before=Judgement(run=new.run, verdict=before) if before else None,
        is_told=await _told_at(tables, new.run.id) is not None,
        good_since=await _good_since(tables, state, new),
        alerted_at=await _told_at(tables, state.alerted_run),
    )
    if message:
        await tables.outbox.put(message, now)
        after = opened(after, new) if message.mode is Mode.SEND else after
    for edit in closing(state, await _open_alerts(tables, state, new), new):
        await tables.outbox.put(edit, now)
    if answer := answer_of(report, after, new.verdict):
        await tables.outbox.put(answer, now)
    await tables.workflows.save(after)


async def _good_since(tables: "RunTables", state: WorkflowState, new: Judgement) -> int | None:
    good = await tables.verdicts.good_run(new.run.workflow, None) if is_past(state, new) else None
    return good if good is not None and good > new.run.id else None


async def _told_at(tables: "RunTables", run_id: int | None) -> float | None:
    return None if run_id is None else await tables.outbox.told_at(subject_of(run_id))


async def standing(tables: "RunTables", name: str, now: float) -> WorkflowState:
    """Return how a workflow stands; one that is new here has not been watched."""
    known = await tables.workflows.get(name)
    return known or await tables.workflows.save(WorkflowState(name=name, since=now, judged_until=0))


async def last_run_at(tables: "RunTables", state: WorkflowState, now: float) -> float:
    """Return when the last run of a workflow came; of one without any, since when it is watched."""
    came = [
        verdict.run_id
        for outcome in (Outcome.PASS, Outcome.FAIL)
        for verdict in await tables.verdicts.page(state.name, outcome, None, 1)
    ]
    runs = [await tables.runs.get(run_id) for run_id in came]
    # One that is ahead came before the clock was set back: since then the workflow is watched anew.
    return max([state.since, *(run.at for run in runs if run and run.at <= now + CLOCK_SLACK)])


async def _open_alerts(tables: "RunTables", state: WorkflowState, new: Judgement) -> Mapping[int, Judgement]:
    """Return what the alerts show that a run closes, by the run each was told of; `state` is the one before its verdict."""
    if state.alerted_run is None or not new.is_good or is_past(state, new):
        return {}
    good = await tables.verdicts.good_run(new.run.workflow, new.verdict.id)
    after = 0 if good is None else min(state.alerted_run - 1, good)
    told = await tables.runs.told(new.run.workflow, after, new.run.id, _MOST_ALERTS)
    shown = {run_id: await shown_in(tables, state, run_id) for run_id in told}
    return {run_id: judgement for run_id, judgement in shown.items() if judgement}


async def shown_in(tables: "RunTables", state: WorkflowState, run_id: int) -> Judgement | None:
    """Return what the alert of a run shows: the open one, the last run; any other, its own."""
    shown = state.last_run if run_id == state.alerted_run and state.last_run else run_id
    run, verdict = await tables.runs.get(shown), await tables.verdicts.newest_of(shown)
    return Judgement(run=run, verdict=verdict) if run and verdict else None


def with_slot(report: Report, run: Run) -> Report:
    """Return the report of a run that is known, with what is known of it."""
    return replace(report, slot=run.slot, reported=run.reported)
