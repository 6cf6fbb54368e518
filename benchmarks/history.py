"""How long a page of the history takes that 1,000,000 verdicts have been kept in.

- Milliseconds of a page of ten, whatever it is filtered by and wherever it begins, the slowest: wanted <= 300.
- The same of the newest verdict of each workflow, and of what a run is compared with.
"""

import asyncio
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Final

import msgspec

from benchmarks.guard import make_room
from benchmarks.rounds import report
from bot.clock import SystemClock
from jobs.store.database import open_database
from jobs.store.schema import FILE_NAME
from jobs.verification.history import WorkflowState
from jobs.verification.spec import MEGABYTE
from jobs.verification.verdict import Artifact, Check, CheckResult, Judged, Outcome, Passed, Verdict

_VERDICTS: Final = 1_000_000
_WORKFLOWS: Final = 50
_PAGE: Final = 10
_NOW: Final = SystemClock().now()
_CHECKS: Final = (Check.EXISTS, Check.PARSES, Check.FIELDS, Check.FRESH, Check.STATUS)

_RUNS_SQL: Final = """
    WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < :count)
    INSERT INTO run (workflow, key, at) SELECT 'workflow-' || (n % :workflows), 'run:' || n, :now + n - :count FROM number
"""
# One in ten fails and one in a thousand is missing; the last workflow has nothing but failures.
_VERDICTS_SQL: Final = """
    INSERT INTO verdict (run_id, workflow, by, outcome, says_failed, failed_check, judged, at, took)
    SELECT id, workflow, 'output',
        CASE WHEN id % 1000 = 7 THEN 'missing' WHEN id % 10 = 3 OR id % :workflows = 0 THEN 'fail' ELSE 'pass' END,
        0, NULL, :judged, at, 0.01
    FROM run
"""


def _judged() -> Judged:
    reason = "status, result.total, items[].id and timestamp hold values"
    results = tuple(CheckResult(check=check, passed=Passed.PASS, reason=reason) for check in _CHECKS)
    artifact = Artifact(
        path="/srv/agents/out/report-2026-11-30.json",
        device=64768,
        inode=1234567,
        mtime_ns=int(_NOW * 1e9),
        size=2048,
        sha256="0" * 64,
    )
    return Judged(verdict=Verdict(outcome=Outcome.PASS, results=results), artifact=artifact)


def _fill(file: Path) -> None:
    with sqlite3.connect(file) as database:
        values = {"count": _VERDICTS, "workflows": _WORKFLOWS, "now": _NOW}
        database.execute(_RUNS_SQL, values)
        database.execute(_VERDICTS_SQL, {**values, "judged": msgspec.json.encode(_judged()).decode()})
    database.close()


async def _slowest(questions: Sequence[Callable[[], Awaitable[object]]]) -> float:
    """Return the milliseconds of the slowest question, each asked once."""
    taken = []
    for ask in questions:
        start = perf_counter()
        await ask()
        taken.append(1000 * (perf_counter() - start))
    return max(taken)


async def _measure(folder: Path) -> None:
    async with open_database(folder) as store:
        async with store.transaction() as tables:
            for number in range(_WORKFLOWS):
                await tables.workflows.save(WorkflowState(name=f"workflow-{number}", since=0, judged_until=0))
        verdicts = store.reading.verdicts
        names = (None, "workflow-0", "workflow-7", "workflow-none")
        starts = (None, _VERDICTS // 2, 20)
        pages = [
            partial(verdicts.page, name, outcome, before, _PAGE)
            for name, outcome, before in product(names, (None, *Outcome), starts)
        ]
        past = [partial(verdicts.past_of, f"workflow-{n}", before_run=None) for n in range(_WORKFLOWS)]
        what = f"{_VERDICTS:,} verdicts: ms of"
        report(f"{what} a page, the slowest of {len(pages)}", await _slowest(pages), "<= 300")
        report(
            f"{what} the newest of each of {_WORKFLOWS} workflows",
            await _slowest([verdicts.latest_of_each]),
            "<= 300",
        )
        report(f"{what} what a run is compared with, the slowest", await _slowest(past), "<= 300")


async def _main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_room(folder, 3000 * MEGABYTE)
        async with open_database(folder):
            pass  # an empty one
        _fill(folder / FILE_NAME)
        await _measure(folder)


if __name__ == "__main__":
    asyncio.run(_main())
