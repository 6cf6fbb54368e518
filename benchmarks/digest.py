"""How long the digest of a week with 1,000,000 verdicts takes, after two years with 500 workflows.

- Seconds from the question to the composed value: wanted <= 3.
- The same over reading all of these verdicts once, to count how many have passed: wanted <= 8.
- Seconds until a digest is in the outbox, with its self-tests done: wanted <= 4.
"""

import asyncio
import sqlite3
import tempfile
from datetime import UTC
from pathlib import Path
from time import perf_counter
from typing import Final

import msgspec

from benchmarks.guard import make_room
from benchmarks.rounds import fastest, report
from jobs.digest.figures import CheckFigures, Figures, RunFigures
from jobs.digest.week import shifted, slot
from jobs.digesting import Digesting
from jobs.ports import Clock, Told
from jobs.store.database import Database, open_database
from jobs.store.schema import FILE_NAME
from jobs.verification.spec import MEGABYTE
from jobs.verification.verdict import Artifact, Check, CheckResult, Judged, Outcome, Passed, Verdict
from jobs.weekly_digest import WeeklyDigest

_VERDICTS: Final = 1_000_000
_WORKFLOWS: Final = 500
_EARLIER: Final = 104
"""Weeks."""
_ROUNDS: Final = 3
_WEEK: Final = "2026-W48"
_UNTIL: Final = slot(_WEEK, UTC)
_SINCE: Final = slot(shifted(_WEEK, -1), UTC)
_CHECKS: Final = (Check.EXISTS, Check.PARSES, Check.FIELDS, Check.FRESH, Check.STATUS)

_RUNS_SQL: Final = """
    WITH RECURSIVE number (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n < :count - 1)
    INSERT INTO run (workflow, key, at)
    SELECT 'workflow-' || (n % :workflows), 'run:' || n, :since + (:until - :since) * n / :count FROM number
"""
# One in ten fails, by a check that differs; one in a thousand is missing.
_VERDICTS_SQL: Final = """
    INSERT INTO verdict (run_id, workflow, by, outcome, says_failed, failed_check, judged, at, took, ran_at, checks, said_done)
    SELECT id, workflow, 'output',
        CASE WHEN id % 1000 = 7 THEN 'missing' WHEN id % 10 = 3 THEN 'fail' ELSE 'pass' END,
        0,
        CASE WHEN id % 10 = 3 AND id % 1000 <> 7 THEN CASE WHEN id % 20 = 3 THEN 'fresh' ELSE 'status' END END,
        :judged, at, 0.01, at,
        CASE WHEN id % 1000 = 7 THEN '' ELSE :checks END,
        id % 20 = 3
    FROM run
"""
_PLAIN_SQL: Final = "SELECT sum(outcome = 'pass') FROM verdict NOT INDEXED WHERE is_newest"


class _Sunday(Clock):
    """A minute after the week was over."""

    def now(self) -> float:
        return _UNTIL + 60


def _judged() -> Judged:
    reason = "status, result.total, items[].id and timestamp hold values"
    results = tuple(CheckResult(check=check, passed=Passed.PASS, reason=reason) for check in _CHECKS)
    artifact = Artifact(
        path="/srv/agents/out/report-2026-11-30.json",
        device=64768,
        inode=1234567,
        mtime_ns=int(_UNTIL * 1e9),
        size=2048,
        sha256="0" * 64,
    )
    return Judged(verdict=Verdict(outcome=Outcome.PASS, results=results), artifact=artifact)


def _fill(file: Path) -> None:
    with sqlite3.connect(file) as database:
        values = {"count": _VERDICTS, "workflows": _WORKFLOWS, "since": _SINCE, "until": _UNTIL}
        database.execute(_RUNS_SQL, values)
        judged = msgspec.json.encode(_judged()).decode()
        database.execute(_VERDICTS_SQL, {"judged": judged, "checks": " ".join(_CHECKS)})
    database.close()


def _earlier() -> Figures:
    names = [f"workflow-{number}" for number in range(_WORKFLOWS)]
    return Figures(
        runs=tuple(RunFigures(workflow=name, passed=1800, failed=200) for name in names),
        checks=tuple(
            CheckFigures(workflow=name, check=check, passed=1900, failed=100)
            for name in names
            for check in _CHECKS
        ),
    )


async def _tell_earlier(store: Database) -> None:
    figures = _earlier()
    async with store.transaction() as tables:
        for number in range(1, _EARLIER + 1):
            week = shifted(_WEEK, -number)
            await tables.counts.keep(week, figures)
            await tables.digests.add(Told(week=week, until=slot(week, UTC), body=None, at=slot(week, UTC)))


async def _no_selftest(_: float) -> None:
    """It has a benchmark of its own."""


async def _measure(store: Database) -> None:
    async def composed() -> float:
        start = perf_counter()
        digesting = Digesting(tables=store.reading, zone=UTC, every=60)
        _, digest = await digesting.of_week(_WEEK, _UNTIL + 60)
        assert sum(run.passed + run.failed + run.missing for run in digest.figures.runs) == _VERDICTS  # noqa: S101
        return perf_counter() - start

    async def plain() -> float:
        start = perf_counter()
        await store.reading.connection.execute_fetchall(_PLAIN_SQL)
        return perf_counter() - start

    ours, theirs = await fastest(_ROUNDS, composed, plain)
    report(f"{_VERDICTS:,} verdicts: s of a digest", ours, "<= 3")
    report(f"{_VERDICTS:,} verdicts: a digest over reading them once", ours / theirs, "<= 8")
    job = WeeklyDigest(store=store, clock=_Sunday(), zone=UTC, every=60, selftest=_no_selftest)
    start = perf_counter()
    await job()
    report(f"{_VERDICTS:,} verdicts: s until a digest is in the outbox", perf_counter() - start, "<= 4")


async def _main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_room(folder, 3000 * MEGABYTE)
        async with open_database(folder):
            pass  # an empty one
        _fill(folder / FILE_NAME)
        async with open_database(folder) as store:
            await _tell_earlier(store)
            await _measure(store)


if __name__ == "__main__":
    asyncio.run(_main())
