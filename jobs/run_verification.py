"""A finished run -> the output -> checks -> verdict -> history and chat."""

import glob
import logging
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from typing import Final

import msgspec

from jobs.alert.run_news import Judgement, refusal_of, retold
from jobs.aside import Aside, OverdueError
from jobs.keeping import good_output, to_be_kept
from jobs.ports import Clock, Copier, Judge, Outputs, RunTables, Store, Watch
from jobs.recording import MISSING, Case, conclude, open_case, record, shown_in, standing, with_slot
from jobs.verification.history import Report, Run, Trigger, Waiting
from jobs.verification.identity import names_of
from jobs.verification.spec import WorkflowSpec
from jobs.verification.trial import GoodOutput
from jobs.verification.verdict import Check, CheckResult, Judged, Outcome, Passed, Sighting, Verdict

_log = logging.getLogger(__name__)

_KEPT: Final = 3600.0
"""Seconds for which the reports of a workflow that is not watched wait: it may only have been renamed for a moment."""
_PATIENCE: Final = 30.0
"""Seconds for the search for an output, which may lie on a file system that hangs."""
_LONGEST: Final = 600.0
"""Seconds for judging one, beside the time limit of the command: what is large waits for its turn and takes a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunVerification:
    """Gives every report its verdict: several at once, those of one workflow one after the other.

    1. The oldest report is taken of those whose workflow nobody is busy with; one that a person waits for goes first.
    2. The output is looked for, and what is known of its run is read. Reported again, it needs no other verdict.
    3. The output is judged, in a thread, while no transaction is open. What does not come back has failed.
    4. A good output is read once more, to be kept for the self-test.
    5. Verdict, run, alert and answer are committed, and with them the report is gone. A crash before repeats the judging.
    """

    store: Store
    watch: Watch
    outputs: Outputs
    judge: Judge
    copier: Copier
    clock: Clock
    zone: tzinfo
    patience: float = _PATIENCE
    longest: float = _LONGEST
    in_hand: set[str] = field(default_factory=set)
    """The workflows that a run is busy with."""
    aside: Aside = field(default_factory=Aside)

    async def __call__(self) -> float | None:
        """Deal with one report; return 0 if there was one, None if nothing waits."""
        reports, watched = self.store.reading.reports, self.watch.workflows().keys()
        if stray := await reports.stray(watched, self.clock.now() - _KEPT):
            await self._give_up(stray)
        elif report := await reports.next_of(watched - self.in_hand):
            # Runs overlap: another one may have taken it, or one of the same workflow, while this one looked.
            if report.workflow not in self.in_hand:
                await self._alone(report)
        else:
            return None
        return 0

    async def ask(self, workflow: str, waiting: Waiting) -> bool:
        """Have a workflow verified for a person who waits; return False if it is not watched."""
        if workflow not in self.watch.workflows():
            return False
        await self._put(Report(workflow=workflow, by=Trigger.CHAT, at=self.clock.now()), waiting)
        return True

    async def ask_again(self, run: Run, waiting: Waiting) -> bool:
        """Have a run verified again for a person who waits; return False if its workflow is not watched."""
        if run.workflow not in self.watch.workflows():
            return False
        report = Report(workflow=run.workflow, by=Trigger.CHAT, at=self.clock.now(), run_id=run.id)
        await self._put(report, waiting)
        return True

    async def silence(self, run: Run, seconds: float) -> None:
        """Tell of no further run of a workflow for so long; the alert of the run that it was said at is edited."""
        now = self.clock.now()
        async with self.store.transaction() as tables:
            state = replace(await standing(tables, run.workflow, now), silenced_until=now + seconds)
            await tables.workflows.save(state)
            if (told := await shown_in(tables, state, run.id)) is not None:
                resolved_by = await _resolved_by(tables, told)
                await tables.outbox.put(retold(state, told, alert=run.id, resolved_by=resolved_by), now)

    async def _put(self, report: Report, waiting: Waiting) -> None:
        report = replace(report, answer=msgspec.json.encode(waiting).decode())
        async with self.store.transaction() as tables:
            # Who presses twice wants one answer.
            if not any(
                replace(report, id=r.id, at=r.at) == r for r in await tables.reports.waiting(report.workflow)
            ):
                await tables.reports.add(report)

    async def _alone(self, report: Report) -> None:
        self.in_hand.add(report.workflow)
        try:
            # Or it has dealt with it already.
            if await self.store.reading.reports.waits(report.id):
                await self._deal_with(report)
        finally:
            self.in_hand.discard(report.workflow)

    async def _deal_with(self, report: Report) -> None:
        spec = self.watch.workflows().get(report.workflow)
        if spec is None:
            return
        report, path = await self._resumed(report)
        output, unjudged = await self._output(spec, report, path)
        reading, now = self.store.reading, self.clock.now()
        case = await open_case(reading, spec, report, output, now=now, zone=self.zone)
        if case.replaced_by:
            await self._give_up(report, replaced_by=case.replaced_by)
        elif unjudged:
            await self._record(case, unjudged, now)
        elif case.is_verified:
            async with self.store.transaction() as tables:
                await conclude(tables, report, case.run)
        else:
            await self._record(case, await self._judged(case, now, path), now)

    async def _give_up(self, report: Report, *, replaced_by: int | None = None) -> None:
        why = "is not watched any more" if replaced_by is None else f"has a later run, {replaced_by}"
        _log.warning("report %d: no verdict, as workflow %s %s", report.id, report.workflow, why)
        async with self.store.transaction() as tables:
            if not await tables.reports.waits(report.id):
                return
            await tables.reports.remove(report.id)
            if answer := refusal_of(report, replaced_by=replaced_by):
                await tables.outbox.put(answer, self.clock.now())

    async def _resumed(self, report: Report) -> tuple[Report, str | None]:
        """Return a report with what is known of the run that it is about, and the path of what that had left."""
        run = await self.store.reading.runs.get(report.run_id) if report.run_id else None
        newest = await self.store.reading.verdicts.newest_of(run.id) if run else None
        artifact = newest.judged.artifact if newest else None
        return with_slot(report, run) if run else report, artifact.path if artifact else None

    async def _output(
        self, spec: WorkflowSpec, report: Report, path: str | None
    ) -> tuple[Sighting | None, Judged | None]:
        """Return what lies there, and the verdict if that cannot be found out."""
        if path is not None:
            spec = msgspec.structs.replace(spec, output=glob.escape(path).replace("{", "[{]"))
        names = names_of(spec, report, self.zone)
        try:
            found = self.aside(
                f"a look for the output of {spec.name}",
                self.patience,
                lambda: self.outputs.newest(spec, names),
            )
            return await found, None
        except OverdueError as overdue:
            return None, _unjudged(f"{overdue}")

    async def _judged(self, case: Case, now: float, path: str | None) -> Judged:
        command = case.spec.command
        longest = self.longest + (command.timeout if command else 0)
        try:
            return await self.aside(
                f"the judging of {case.spec.name}", longest, lambda: _judged(self.judge, case, now, path)
            )
        except OverdueError as overdue:
            return _unjudged(f"{overdue}")

    async def _copied(self, case: Case, judged: Judged, began: float) -> GoodOutput | None:
        artifact = await to_be_kept(self.store.reading, case.spec.name, judged)
        if artifact is None:
            return None
        copying = self.aside(
            f"the copying of {case.spec.name}", self.patience, lambda: self.copier.copy(artifact)
        )
        with suppress(OverdueError):
            if (data := await copying) is not None:
                as_of = began if case.as_of is None else case.as_of
                return good_output(case.spec.name, case.names, artifact, data, judged_as_of=as_of)
        return None

    async def _record(self, case: Case, judged: Judged, began: float) -> None:
        now = self.clock.now()
        good = await self._copied(case, judged, began)
        async with self.store.transaction() as tables:
            verdict = await record(tables, case, judged, now=now, took=now - began, good=good)
        failed = f" ({verdict.failed_check})" if verdict.failed_check else ""
        _log.info("run %d of %s: %s%s", verdict.run_id, verdict.workflow, verdict.outcome, failed)


async def _resolved_by(tables: RunTables, told: Judgement) -> int | None:
    """Return the good run since a bad one, itself if a later verdict of it was good."""
    if not told.is_news:
        return told.run.id
    if told.is_good:
        return None
    good = await tables.verdicts.good_run(told.run.workflow, None)
    return good if good is not None and good > told.run.id else None


def _judged(judge: Judge, case: Case, now: float, path: str | None) -> Judged:
    if case.is_missing:
        return MISSING
    as_of = now if case.as_of is None else case.as_of
    try:
        return judge.judge(case.spec, case.names, as_of, case.past, path=path, said=case.report.said or "")
    except Exception as error:  # noqa: BLE001 - what cannot be judged has not delivered, and a person must hear of it
        _log.exception("report %d of %s cannot be judged", case.report.id, case.spec.name)
        return _unjudged(type(error).__name__)


def _unjudged(why: str) -> Judged:
    reason = f"the output cannot be judged: {why}"
    result = CheckResult(check=Check.EXISTS, passed=Passed.FAIL, reason=reason)
    return Judged(verdict=Verdict(outcome=Outcome.FAIL, results=(result,)))
