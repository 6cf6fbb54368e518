"""Verdicts of runs, where a test does not care how they came about."""

from jobs.verification.history import RecordedVerdict, Report, Run, Trigger
from jobs.verification.verdict import (
    Artifact,
    Check,
    CheckResult,
    Judged,
    Outcome,
    Passed,
    Sighting,
    Verdict,
)
from tests.fakes import NOON


def a_sighting(version: int = 1, *, mtime: float = NOON) -> Sighting:
    """A file; another `version` is what it was replaced by."""
    return Sighting(path="/out/report.json", device=1, inode=version, mtime_ns=int(mtime * 1e9), size=100)


def an_artifact(version: int = 1, *, mtime: float = NOON, size: int = 100) -> Artifact:
    seen = a_sighting(version, mtime=mtime)
    return Artifact(
        path=seen.path,
        device=seen.device,
        inode=seen.inode,
        mtime_ns=seen.mtime_ns,
        size=size,
        sha256=f"{version:064x}",
    )


def passing(
    version: int = 1,
    *,
    mtime: float = NOON,
    size: int = 100,
    content: str = "",
    count: int | None = None,
    says_failed: bool = False,
) -> Judged:
    result = CheckResult(check=Check.EXISTS, passed=Passed.PASS, reason="report.json, 100 bytes")
    verdict = Verdict(outcome=Outcome.PASS, results=(result,), says_failed=says_failed)
    artifact = an_artifact(version, mtime=mtime, size=size)
    return Judged(verdict=verdict, artifact=artifact, content=content, count=count)


def failing(version: int | None = 1, *, check: Check = Check.FRESH, mtime: float = NOON) -> Judged:
    """A failing verdict; `version` None: there was no output."""
    result = CheckResult(check=check, passed=Passed.FAIL, reason="3 h old, expected at most 30 min")
    artifact = None if version is None else an_artifact(version, mtime=mtime)
    return Judged(verdict=Verdict(outcome=Outcome.FAIL, results=(result,)), artifact=artifact)


MISSING = Judged(verdict=Verdict(outcome=Outcome.MISSING))


def a_report(by: Trigger = Trigger.REPORT, *, at: float = NOON, reported: str | None = None) -> Report:
    return Report(workflow="nightly", by=by, at=at, reported=reported)


def a_run(run_id: int = 1, *, reported: str | None = None, slot: float | None = None) -> Run:
    return Run(id=run_id, workflow="nightly", key=f"run:{run_id}", slot=slot, reported=reported, at=NOON)


def a_verdict(
    judged: Judged, run_id: int = 1, *, verdict_id: int = 1, at: float = NOON, workflow: str = "nightly"
) -> RecordedVerdict:
    failure = judged.verdict.failure
    return RecordedVerdict(
        id=verdict_id,
        run_id=run_id,
        workflow=workflow,
        by=Trigger.REPORT,
        outcome=judged.verdict.outcome,
        says_failed=judged.verdict.says_failed,
        failed_check=failure.check if failure else None,
        judged=judged,
        at=at,
        took=0.5,
        ran_at=NOON,
        checks=" ".join(result.check for result in judged.verdict.results),
        said_done=bool(failure and judged.verdict.said_done),
    )
