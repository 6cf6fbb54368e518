"""Notices that a run is over, or did not come: outputs that changed, agents that fell silent, slots that passed."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from typing import Final, TypeVar

from jobs.aside import Aside
from jobs.ports import Clock, Outputs, Processes, RunTables, Store, Watch
from jobs.recording import MISSING, Case, last_run_at, record, standing
from jobs.run_look import Memory, RunLook
from jobs.verification.history import Report, Trigger, WorkflowState
from jobs.verification.identity import key_of, names_of, run_of, slot_for
from jobs.verification.slots import slots_between
from jobs.verification.spec import WorkflowSpec
from jobs.verification.verdict import Past, Sighting

_Result = TypeVar("_Result")

_MOST_SLOTS: Final = 24
"""Slots that passed while nobody watched; what lies further back is no news."""
_PATIENCE: Final = 30.0
"""Seconds for a look at the file system, or at a process, that may hang."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWatch:
    """One look at every workflow. What it finds is committed with the state that says that it was seen.

    1. A workflow that is watched for the first time is remembered as it is.
    2. An output that changed, and then stayed as it is for `settle`, is reported.
    3. A session whose process is gone, or which was quiet for `settle`, is the end of a run: reported once.
    4. A slot that passed its grace without a verdict is judged by an output that was written since; else the run is missing.

    Beats may overlap: a workflow whose last look is still under way is left out, and no other waits for it.
    """

    store: Store
    watch: Watch
    outputs: Outputs
    processes: Processes
    clock: Clock
    zone: tzinfo
    patience: float = _PATIENCE
    memory: dict[str, Memory] = field(default_factory=dict)
    """By workflow."""
    looking: set[str] = field(default_factory=set)
    """The workflows that are being looked at."""
    began: list[float] = field(default_factory=list)
    """When it was taken up."""
    aside: Aside = field(default_factory=Aside)

    async def __call__(self) -> None:
        """Look once. Every workflow is looked at, whatever befalls another; then the failures are raised."""
        await self.take_up()
        now, specs = self.clock.now(), self.watch.workflows()
        for name in self.memory.keys() - specs.keys():
            del self.memory[name]
        looks = (self._look_alone(spec, now) for spec in specs.values())
        results = await asyncio.gather(*looks, return_exceptions=True)
        if failures := [result for result in results if isinstance(result, Exception)]:
            raise ExceptionGroup("some workflows could not be looked at", failures)

    async def take_up(self) -> None:
        """Go on from when the bot last looked. Called at start, before anything else looks; later it does nothing."""
        if self.began:
            return
        now = self.clock.now()
        looked_at = await self.store.reading.presence.last() or 0.0
        known = await self.store.reading.workflows.all()
        self.began.append(now)
        self.memory.update({name: Memory(looked_at=looked_at) for name in known})

    async def _look_alone(self, spec: WorkflowSpec, now: float) -> None:
        if spec.name in self.looking:
            return
        self.looking.add(spec.name)
        try:
            await self._look(spec, await self.store.reading.workflows.get(spec.name), now)
        except Exception as error:
            error.add_note(f"workflow {spec.name}")
            raise
        finally:
            self.looking.discard(spec.name)

    async def _look(self, spec: WorkflowSpec, state: WorkflowState | None, now: float) -> None:
        output = await self._newest(spec, Report(workflow=spec.name, by=Trigger.OUTPUT, at=now))
        memory = self.memory.get(spec.name)
        if memory is None or state is None or not state.judged_until:
            await self._begin(spec, output, now)
            return
        look = RunLook(
            spec=spec,
            state=state,
            memory=memory,
            output=output,
            began=self.began[0],
            now=now,
            zone=self.zone,
        )
        look.find_output()
        await look.find_ends(self.store.reading, lambda pid, since: self._lives(spec, pid, since))
        await self._find_slots(look)
        await self._find_overdue(look)
        if look.changes:
            await self._commit(look)
        memory.looked_at = now

    async def _begin(self, spec: WorkflowSpec, output: Sighting | None, now: float) -> None:
        async with self.store.transaction() as tables:
            state = await standing(tables, spec.name, now)
            await tables.workflows.save(replace(state, since=now, seen=output, judged_until=now))
        self.memory[spec.name] = Memory(looked_at=now)

    async def _newest(self, spec: WorkflowSpec, report: Report) -> Sighting | None:
        names = names_of(spec, report, self.zone)
        return await self._aside(spec, lambda: self.outputs.newest(spec, names))

    async def _lives(self, spec: WorkflowSpec, pid: int, since: float) -> bool:
        return await self._aside(spec, lambda: self.processes.lives(pid, since))

    async def _aside(self, spec: WorkflowSpec, work: Callable[[], _Result]) -> _Result:
        return await self.aside(f"a look at {spec.name}", self.patience, work)

    # ── runs that were due ────────────────────────────────────────────────────────────────────────

    async def _find_slots(self, look: RunLook) -> None:
        spec, now = look.spec, look.now
        if spec.expect is None:
            return
        until = now - spec.grace
        passed = slots_between(spec.expect, look.state.judged_until, until, self.zone, _MOST_SLOTS)
        if not passed:
            return
        look.changes["judged_until"] = passed[-1]
        reported = {slot_for(spec, report, self.zone) for report in await self._reported(look)}
        for slot in passed:
            if slot not in reported and not await _has_verdict(self.store.reading, spec, slot):
                await self._judge_slot(slot, look)

    async def _judge_slot(self, slot: float, look: RunLook) -> None:
        report = self._due(slot, look)
        output = await self._newest(look.spec, report)
        if output is None or output.mtime_ns / 1e9 < slot:
            look.missing.append(slot)
        else:
            as_of = min(output.mtime_ns / 1e9 + look.spec.settle, look.now)
            look.reports.append(replace(report, as_of=as_of))

    async def _find_overdue(self, look: RunLook) -> None:
        spec, state = look.spec, look.state
        # What is being written, or has been reported, is a run that came.
        if spec.every is None or look.memory.arrival or await self._reported(look):
            return
        due = await last_run_at(self.store.reading, state, look.now) + spec.every
        if state.judged_until < due < look.now - spec.grace:
            look.missing.append(due)
            look.changes["judged_until"] = due

    async def _reported(self, look: RunLook) -> Sequence[Report]:
        return [*await self.store.reading.reports.waiting(look.spec.name), *look.reports]

    # ── what was found ────────────────────────────────────────────────────────────────────────────

    async def _commit(self, look: RunLook) -> None:
        async with self.store.transaction() as tables:
            for report in look.reports:
                await tables.reports.add(report)
            await self._put_in_order(tables, look)
            for due in look.missing:
                # Its verdict may have come from another process meanwhile.
                if not await _has_verdict(tables, look.spec, due):
                    await record(tables, self._missing(due, look), MISSING, now=look.now, took=0)
            state = await standing(tables, look.spec.name, look.now)
            await tables.workflows.save(replace(state, **look.changes))

    async def _put_in_order(self, tables: RunTables, look: RunLook) -> None:
        """Let runs be numbered as they were due: the missing ones have their verdicts before those that are judged."""
        due = [self._due(slot, look) for slot in look.missing]
        came = [report for report in look.reports if report.slot is not None]
        for report in sorted(due + came if due else [], key=lambda report: report.slot or 0):
            await tables.runs.put(run_of(look.spec, report, report.slot, None))

    def _due(self, slot: float, look: RunLook) -> Report:
        return Report(workflow=look.spec.name, by=Trigger.SLOT, at=look.now, slot=slot)

    def _missing(self, due: float, look: RunLook) -> Case:
        report = self._due(due, look)
        return Case(
            spec=look.spec,
            report=report,
            slot=due,
            names=names_of(look.spec, report, self.zone),
            run=None,
            past=Past(),
            as_of=None,
            is_verified=False,
        )


async def _has_verdict(tables: RunTables, spec: WorkflowSpec, due: float) -> bool:
    report = Report(workflow=spec.name, by=Trigger.SLOT, at=due, slot=due)
    run = await tables.runs.find(spec.name, key_of(report, due, None, has_slots=spec.expect is not None))
    return run is not None and await tables.verdicts.newest_of(run.id) is not None
