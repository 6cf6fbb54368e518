"""What became of runs and checks: counted in table `verdict`, kept in `run_figure` and `check_figure`."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from jobs.digest.digest import WeekRate
from jobs.digest.figures import CheckFigures, Figures, RunFigures, in_order
from jobs.store.rows import Connection
from jobs.verification.verdict import Check, Outcome

# Only of what the index `verdict_figures` holds, and in its order: no row is looked at.
_COUNTED: Final = """SELECT workflow, outcome, failed_check, checks, says_failed, said_done, failed_tries, count(*)
    FROM verdict INDEXED BY verdict_figures WHERE is_newest AND ran_at >= ? AND ran_at < ?
    GROUP BY workflow, outcome, failed_check, checks, says_failed, said_done, failed_tries"""
_FIRST: Final = "SELECT min(ran_at) FROM verdict INDEXED BY verdict_figures WHERE is_newest"
_RATES: Final = (
    "SELECT week, sum(passed) AS passed, sum(failed) AS failed FROM run_figure GROUP BY week ORDER BY week"
)
_RUNS: Final = "workflow, passed, failed, missing, says_failed, said_done, failed_tries"
_CHECKS: Final = 'workflow, check_name AS "check", passed, failed, not_reached'
_KEEP_RUNS: Final = "INSERT OR REPLACE INTO run_figure VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_KEEP_CHECKS: Final = "INSERT OR REPLACE INTO check_figure VALUES (?, ?, ?, ?, ?, ?)"
_Line = TypeVar("_Line", RunFigures, CheckFigures)
_FIELDS: Final = {Outcome.PASS: "passed", Outcome.FAIL: "failed", Outcome.MISSING: "missing"}


class SqlCounts:
    """Figures of any length of time, as far back as verdicts are kept, and of weeks that are over."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def between(self, since: float, until: float) -> Figures:
        """Count the runs that were first judged in a length of time, each by the verdict that counts for it."""
        return _counted(await self._connection.execute_fetchall(_COUNTED, (since, until)))

    async def first_at(self) -> float | None:
        """Return when the first of the runs was judged whose verdicts are still there."""
        [(at,)] = await self._connection.execute_fetchall(_FIRST)
        return None if at is None else float(at)

    async def rates(self) -> Sequence[WeekRate]:
        """Return the rate of every week that figures are kept of, oldest first."""
        return [
            msgspec.convert(dict(row), WeekRate) for row in await self._connection.execute_fetchall(_RATES)
        ]

    async def kept(self, first: str, last: str) -> Mapping[str, Figures]:
        """Return the figures that are kept of the weeks from `first` to `last`, by week."""
        return await self._kept("week BETWEEN ? AND ?", first, last)

    async def history(self, workflow: str, first: str, last: str) -> Mapping[str, Figures]:
        """Return those of one workflow."""
        return await self._kept("workflow = ? AND week BETWEEN ? AND ?", workflow, first, last)

    async def keep(self, week: str, figures: Figures) -> None:
        """Keep the figures of a week that is over."""
        for sql, lines in ((_KEEP_RUNS, figures.runs), (_KEEP_CHECKS, figures.checks)):
            values = (msgspec.structs.astuple(line) for line in lines)
            await self._connection.executemany(sql, [(name, week, *rest) for name, *rest in values])

    async def _kept(self, condition: str, *values: str) -> Mapping[str, Figures]:
        found: dict[str, tuple[list[RunFigures], list[CheckFigures]]] = defaultdict(lambda: ([], []))
        runs = f"SELECT week, {_RUNS} FROM run_figure WHERE {condition}"  # noqa: S608 - constants
        for row in await self._connection.execute_fetchall(runs, values):
            found[row["week"]][0].append(_line(row, RunFigures))
        checks = f"SELECT week, {_CHECKS} FROM check_figure WHERE {condition}"  # noqa: S608 - constants
        for row in await self._connection.execute_fetchall(checks, values):
            found[row["week"]][1].append(_line(row, CheckFigures))
        return {week: in_order(*lines) for week, lines in found.items()}


def _line(row: Any, kind: type[_Line]) -> _Line:
    return msgspec.convert(dict(row), kind)


def _counted(rows: Iterable[Any]) -> Figures:
    runs: dict[str, Counter[str]] = defaultdict(Counter)
    checks: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for workflow, outcome, failed_check, asked, says_failed, said_done, failed_tries, count in rows:
        run = runs[workflow]
        run[_FIELDS[outcome]] += count
        run["says_failed"] += count * says_failed
        run["said_done"] += count * said_done
        run["failed_tries"] += count * failed_tries
        state = "passed"
        for check in asked.split():
            has_failed = check == failed_check
            checks[workflow, check]["failed" if has_failed else state] += count
            state = "not_reached" if has_failed else state
    return in_order(
        [RunFigures(workflow=workflow, **run) for workflow, run in runs.items()],
        [
            CheckFigures(workflow=name, check=Check(check), **states)
            for (name, check), states in checks.items()
        ],
    )
