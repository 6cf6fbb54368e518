"""What became of runs and checks: counted in table `verdict`, kept in `run_figure` and `check_figure`."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from jobs.digest.figures import CheckFigures, Figures, RunFigures
from jobs.store.rows import Connection
from jobs.verification.verdict import Outcome

# Only of what the index `verdict_figures` holds, and in its order: no row is looked at.
_COUNTED: Final = """SELECT workflow, outcome, failed_check, checks, says_failed, said_done, count(*)
    FROM verdict INDEXED BY verdict_figures WHERE is_newest AND ran_at >= ? AND ran_at < ?
    GROUP BY workflow, outcome, failed_check, checks, says_failed, said_done"""
_KEEP_RUNS: Final = "INSERT OR REPLACE INTO run_figure VALUES (?, ?, ?, ?, ?, ?, ?)"
_KEEP_CHECKS: Final = "INSERT OR REPLACE INTO check_figure VALUES (?, ?, ?, ?, ?, ?)"


class SqlCounts:
    """Figures of any length of time, as far back as verdicts are kept, and of weeks that are over."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def between(self, since: float, until: float) -> Figures:
        """Count the runs that were first heard of in a length of time, each by the verdict that counts for it."""
        return _counted(await self._connection.execute_fetchall(_COUNTED, (since, until)))

    async def kept(self, weeks: Sequence[str]) -> Mapping[str, Figures]:
        """Return the figures that are kept of these weeks, by week; of one without any there is no entry."""
        marks = ", ".join("?" * len(weeks))
        runs = await self._rows(f"run_figure WHERE week IN ({marks}) ORDER BY workflow", weeks)
        checks = await self._rows(f"check_figure WHERE week IN ({marks}) ORDER BY workflow", weeks)
        return {
            week: Figures(
                runs=tuple(
                    RunFigures(**dict(zip(RunFigures.__struct_fields__, r, strict=True))) for r in runs[week]
                ),
                checks=tuple(
                    CheckFigures(**dict(zip(CheckFigures.__struct_fields__, c, strict=True)))
                    for c in checks[week]
                ),
            )
            for week in runs.keys() | checks.keys()
        }

    async def keep(self, week: str, figures: Figures) -> None:
        """Keep the figures of a week that is over."""
        runs = [(week, *_values(each)) for each in figures.runs]
        await self._connection.executemany(_KEEP_RUNS, runs)
        checks = [(week, *_values(each)) for each in figures.checks]
        await self._connection.executemany(_KEEP_CHECKS, checks)

    async def _rows(self, table: str, weeks: Sequence[str]) -> dict[str, list[tuple[Any, ...]]]:
        """Return the rows of a table by week, without the week."""
        found: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        for row in await self._connection.execute_fetchall(f"SELECT * FROM {table}", weeks):  # noqa: S608 - constants
            week, *values = row
            found[week].append(tuple(values))
        return found


def _values(figures: RunFigures | CheckFigures) -> tuple[object, ...]:
    return tuple(getattr(figures, name) for name in figures.__struct_fields__)


def _counted(rows: Iterable[Any]) -> Figures:
    runs: dict[str, Counter[str]] = defaultdict(Counter)
    checks: dict[tuple[str, str], Counter[str]] = {}
    for workflow, outcome, failed_check, asked, says_failed, said_done, count in rows:
        run = runs[workflow]
        run[_FIELDS[outcome]] += count
        run["says_failed"] += count * says_failed
        run["said_done"] += count * said_done
        state = "passed"
        for check in asked.split():
            has_failed = check == failed_check
            checks.setdefault((workflow, check), Counter())["failed" if has_failed else state] += count
            state = "not_reached" if has_failed else state
    return Figures(
        runs=tuple(RunFigures(workflow=workflow, **run) for workflow, run in sorted(runs.items())),
        checks=tuple(
            CheckFigures(
                workflow=workflow,
                check=check,
                **{name: states[name] for name in ("passed", "failed", "not_reached")},
            )
            for (workflow, check), states in checks.items()
        ),
    )


_FIELDS: Final = {Outcome.PASS: "passed", Outcome.FAIL: "failed", Outcome.MISSING: "missing"}
