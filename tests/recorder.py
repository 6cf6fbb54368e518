"""A process that records failing verdicts, and may die of it.

usage: recorder.py command|bot|watch DATA_DIR OUTPUT NUMBER [CRASH]

As `command` it records NUMBER verdicts as a quick command does; as `bot` it deals with the reports that wait, and makes
NUMBER of them first. OUTPUT is the file that they are about, rewritten for each. As `watch` it looks once, NUMBER days
after the first day, for runs that are due every night and never come. CRASH is JSON: where it is to die. It prints a
line when it begins.
"""

import asyncio
import json
import os
import sys
from datetime import UTC
from pathlib import Path

import msgspec

from jobs.artifacts.copying import FileCopier
from jobs.artifacts.find import FoundOutputs
from jobs.killers.living import LivingProcesses
from jobs.ports import Judge
from jobs.recording import open_case, record
from jobs.run_verification import RunVerification
from jobs.run_watch import RunWatch
from jobs.store.blocking import BlockingStore, open_blocking
from jobs.store.database import Database, open_database
from jobs.verification.history import Report, Trigger
from jobs.verification.spec import Names, WorkflowSpec
from jobs.verification.verdict import Artifact, Judged, Past
from tests.crashing import Crash, arm
from tests.fakes import NOON, FixedWatch, HandClock
from tests.verdicts import failing


class FailingJudge(Judge):
    """Finds every output stale."""

    def judge(
        self,
        spec: WorkflowSpec,
        names: Names,
        now: float,  # noqa: ARG002 - it is always too late
        past: Past,  # noqa: ARG002
        *,
        path: str | None = None,  # noqa: ARG002
        said: str = "",  # noqa: ARG002
    ) -> Judged:
        found = FoundOutputs().newest(spec, names)
        assert found
        artifact = Artifact(
            path=found.path,
            device=found.device,
            inode=found.inode,
            mtime_ns=found.mtime_ns,
            size=found.size,
            sha256=f"{found.mtime_ns:064x}",
        )
        return Judged(verdict=failing().verdict, artifact=artifact)


def record_as_command(store: BlockingStore, spec: WorkflowSpec, number: int) -> None:
    report = Report(workflow=spec.name, by=Trigger.COMMAND, at=NOON + number)
    output = FoundOutputs().newest(spec, Names(date="2027-01-15"))
    case = store.read(open_case(store.tables, spec, report, output, now=report.at, zone=UTC))
    judged = FailingJudge().judge(spec, case.names, report.at, case.past)
    store.write(record(store.tables, case, judged, now=report.at, took=0.1))


def as_command(folder: str, spec: WorkflowSpec, times: int) -> None:
    with open_blocking(folder) as store:
        for number in range(times):
            write(spec, number)
            record_as_command(store, spec, number)


async def as_bot(folder: str, spec: WorkflowSpec, times: int) -> None:
    async with open_database(Path(folder)) as store:
        verification = RunVerification(
            store=store,
            watch=FixedWatch(specs=[spec]),
            outputs=FoundOutputs(),
            judge=FailingJudge(),
            copier=FileCopier(),
            clock=HandClock(),
            zone=UTC,
        )
        for number in range(times):
            write(spec, number)
            await report(store, spec, number)
            await verification()
        while await verification() is not None:
            pass


async def as_watch(folder: str, spec: WorkflowSpec, days: int) -> None:
    nightly = msgspec.structs.replace(spec, expect="0 2 * * *")
    async with open_database(Path(folder)) as store:
        watch = RunWatch(
            store=store,
            watch=FixedWatch(specs=[nightly]),
            outputs=FoundOutputs(),
            processes=LivingProcesses(),
            clock=HandClock(NOON + days * 86_400),
            zone=UTC,
        )
        await watch()


async def report(store: Database, spec: WorkflowSpec, number: int) -> None:
    async with store.transaction() as tables:
        await tables.reports.add(Report(workflow=spec.name, by=Trigger.OUTPUT, at=NOON + number))


def write(spec: WorkflowSpec, number: int) -> None:
    """Write the output once more, at another time."""
    path = Path(spec.output)
    path.write_text(f"{number}")
    os.utime(path, ns=(0, path.stat().st_mtime_ns + number))


def main(role: str, folder: str, output: str, times: str, crash: str | None = None) -> None:
    spec = WorkflowSpec(name="nightly", output=output)
    if crash:
        armed: Crash = json.loads(crash)
        arm(armed)
    sys.stdout.write("recording\n")
    sys.stdout.flush()
    match role:
        case "command":
            as_command(folder, spec, int(times))
        case "bot":
            asyncio.run(as_bot(folder, spec, int(times)))
        case _:
            asyncio.run(as_watch(folder, spec, int(times)))


if __name__ == "__main__":
    main(*sys.argv[1:])
