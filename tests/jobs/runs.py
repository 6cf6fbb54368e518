"""A folder that outputs are written to, and what the bot makes of them. No beat, no clock of the machine.

Files and database are real; whether an output is good stands in its first word.
"""

import hashlib
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

import msgspec

from jobs.alert.notice import AnyNotice
from jobs.alert.outgoing import Mode
from jobs.artifacts.copying import FileCopier
from jobs.artifacts.find import FoundOutputs
from jobs.ports import Judge, Processes
from jobs.run_verification import RunVerification
from jobs.run_watch import RunWatch
from jobs.store.database import Database
from jobs.verification.history import RecordedVerdict, Report, Run, Trigger, WorkflowState
from jobs.verification.spec import Names, WorkflowSpec
from jobs.verification.verdict import (
    Artifact,
    Check,
    CheckResult,
    Judged,
    Outcome,
    Passed,
    Past,
    Verdict,
)
from tests.fakes import HOME, FixedWatch, HandClock

BEAT = 5.0
SETTLE = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the judge was asked."""

    workflow: str
    names: Names
    now: float
    past: Past
    path: str | None
    said: str


@dataclass(slots=True, kw_only=True)
class FirstWordJudge(Judge):
    """Takes an output for what its first word says: `good`, `failed` (and says so itself), or else bad."""

    asked: list[Asked] = field(default_factory=list)
    begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    """Released when a judging begins."""
    may_end: threading.Event = field(default_factory=threading.Event)
    """Cleared, it keeps judgings waiting."""
    slow: set[str] = field(default_factory=set)
    """The workflows whose judgings wait; the others never do."""
    breaks: Exception | None = None

    def judge(
        self,
        spec: WorkflowSpec,
        names: Names,
        now: float,
        past: Past,
        *,
        path: str | None = None,
        said: str = "",
    ) -> Judged:
        self.asked.append(Asked(workflow=spec.name, names=names, now=now, past=past, path=path, said=said))
        self.begun.release()
        if spec.name in self.slow:
            assert self.may_end.wait(timeout=60)
        if self.breaks:
            raise self.breaks
        found = FoundOutputs().newest(spec, names)
        read_at = path or (found.path if found else None)
        return _judged(Path(read_at)) if read_at else _verdict(Check.EXISTS, None)


def _judged(path: Path) -> Judged:
    content, seen = path.read_bytes(), path.stat()
    artifact = Artifact(
        path=str(path),
        device=seen.st_dev,
        inode=seen.st_ino,
        mtime_ns=seen.st_mtime_ns,
        size=seen.st_size,
        ctime_ns=seen.st_ctime_ns,
        sha256=hashlib.sha256(content).hexdigest(),
    )
    match content.decode().partition(" ")[0]:
        case "good":
            return _verdict(None, artifact)
        case "failed":
            return _verdict(None, artifact, says_failed=True)
        case _:
            return _verdict(Check.FRESH, artifact)


def _verdict(failed: Check | None, artifact: Artifact | None, *, says_failed: bool = False) -> Judged:
    passed = Passed.FAIL if failed else Passed.PASS
    result = CheckResult(check=failed or Check.EXISTS, passed=passed, reason="as it says itself")
    outcome = Outcome.FAIL if failed else Outcome.PASS
    verdict = Verdict(outcome=outcome, results=(result,), says_failed=says_failed)
    return Judged(verdict=verdict, artifact=artifact, content=artifact.sha256 if artifact else "")


@dataclass(slots=True)
class HandProcesses(Processes):
    """Processes that live until they are told to end."""

    living: set[int] = field(default_factory=set)

    def lives(self, pid: int, since: float) -> bool:  # noqa: ARG002 - no pid is used twice
        return pid in self.living


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A message as it was queued."""

    notice: AnyNotice
    mode: Mode
    subject: str | None


@dataclass(kw_only=True)
class Runs:
    """One workflow, `nightly`, whose output is `report.txt`; 02:00 is when most stories begin."""

    store: Database
    folder: Path
    clock: HandClock = field(default_factory=lambda: HandClock(at("2027-01-15T02:00")))
    watch: FixedWatch = field(default_factory=FixedWatch)
    judge: FirstWordJudge = field(default_factory=FirstWordJudge)
    processes: HandProcesses = field(default_factory=HandProcesses)
    zone: tzinfo = UTC
    run_watch: RunWatch = field(init=False)
    verification: RunVerification = field(init=False)

    def __post_init__(self) -> None:
        if not self.watch.specs:
            self.specify()
        outputs = FoundOutputs()
        self.run_watch = RunWatch(
            store=self.store,
            watch=self.watch,
            outputs=outputs,
            processes=self.processes,
            clock=self.clock,
            zone=self.zone,
        )
        self.verification = RunVerification(
            store=self.store,
            watch=self.watch,
            outputs=outputs,
            judge=self.judge,
            copier=FileCopier(),
            clock=self.clock,
            zone=self.zone,
        )

    def specify(self, **fields: Any) -> None:
        """Put the only workflow into the watch list, with these fields."""
        self.watch.specs = [self.spec(**fields)]

    def spec(self, name: str = "nightly", output: str = "report.txt", **fields: Any) -> WorkflowSpec:
        return WorkflowSpec(name=name, output=str(self.folder / output), **({"settle": SETTLE} | fields))

    def restarted(self) -> "Runs":
        """The same world after the bot was started anew."""
        return replace(self)

    # ── what runs do ──────────────────────────────────────────────────────────────────────────────

    def write(self, text: str, name: str = "report.txt") -> Path:
        """Write an output in place, now."""
        path = self.folder / name
        path.write_text(text)
        return self.touch(path)

    def put(self, text: str, name: str = "report.txt") -> Path:
        """Write an output beside its place, and move it there."""
        return self.write(text, f"{name}.new").rename(self.folder / name)

    def touch(self, path: Path) -> Path:
        os.utime(path, (self.clock.now(), self.clock.now()))
        return path

    async def report(self, by: Trigger = Trigger.REPORT, workflow: str = "nightly", **fields: Any) -> Report:
        async with self.store.transaction() as tables:
            return await tables.reports.add(Report(workflow=workflow, by=by, at=self.clock.now(), **fields))

    # ── what the bot does ─────────────────────────────────────────────────────────────────────────

    async def look(self, times: int = 1) -> None:
        """Let beats come, and all that they find be verified."""
        for _ in range(times):
            await self.run_watch()
            async with self.store.transaction() as tables:
                await tables.presence.note(self.clock.now())
            await self.verify()
            self.clock.go_on(BEAT)

    async def look_until(self, moment: float) -> None:
        while self.clock.now() <= moment:
            await self.look()

    async def verify(self) -> None:
        while await self.verification() is not None:
            pass

    async def hear(self) -> list[Told]:
        """The messages queued since the last time, all of which are sent."""
        heard = []
        while message := await self.store.reading.outbox.due(self.clock.now(), HOME):
            async with self.store.transaction() as tables:
                await tables.outbox.mark_sent(message.id, message.id, self.clock.now())
            notice: AnyNotice = msgspec.json.decode(message.body, type=AnyNotice)
            heard.append(Told(notice=notice, mode=message.mode, subject=message.subject))
        return heard

    # ── what the database says ────────────────────────────────────────────────────────────────────

    async def verdicts(self) -> Sequence[RecordedVerdict]:
        """Oldest first."""
        return (await self.store.reading.verdicts.page(None, None, None, 100))[::-1]

    async def verdict(self) -> RecordedVerdict:
        """The only one."""
        [verdict] = await self.verdicts()
        return verdict

    async def outcomes(self) -> list[str]:
        return [str(verdict.outcome) for verdict in await self.verdicts()]

    async def run_of(self, verdict: RecordedVerdict) -> Run:
        run = await self.store.reading.runs.get(verdict.run_id)
        assert run
        return run

    async def keys(self) -> list[str]:
        """Of the run of each verdict."""
        return [(await self.run_of(verdict)).key for verdict in await self.verdicts()]

    async def state(self, name: str = "nightly") -> WorkflowState:
        state = await self.store.reading.workflows.get(name)
        assert state
        return state

    async def waiting(self) -> Sequence[Report]:
        return await self.store.reading.reports.waiting()


def at(text: str, zone: tzinfo = UTC) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


def slot(text: str, zone: tzinfo = UTC) -> str:
    """The key of the run that was due then."""
    return f"slot:{at(text, zone):.0f}"
