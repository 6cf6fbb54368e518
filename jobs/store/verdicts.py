"""Table `verdict`: the history of all runs, a row for each time that one was judged."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from jobs.store.rows import Connection, fetch, insert
from jobs.verification.history import RecordedVerdict
from jobs.verification.verdict import Outcome, Past, Sighting

_NEWEST: Final = 1 << 62
"""Above every id."""
_LOOKED_THROUGH: Final = 40
"""Verdicts among which the last runs are: one that was judged again has several."""
_COMPARED: Final = 10
"""Runs from which a median is taken."""


class SqlVerdicts:
    """One row per verdict; the newest of a run counts."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def add(self, verdict: RecordedVerdict) -> RecordedVerdict:
        """Insert a verdict, which counts for its run from now on, and return it with its id."""
        sql = "UPDATE verdict SET is_newest = 0 WHERE run_id = ? AND is_newest"
        await self._connection.execute(sql, (verdict.run_id,))
        return replace(verdict, id=await insert(self._connection, "verdict", verdict))

    async def get(self, verdict_id: int) -> RecordedVerdict | None:
        """Return one verdict."""
        return next(iter(await self._where("id = ?", verdict_id)), None)

    async def newest_of(self, run_id: int) -> RecordedVerdict | None:
        """Return the verdict that counts for a run."""
        return next(iter(await self._where("run_id = ? ORDER BY id DESC LIMIT 1", run_id)), None)

    async def of_run(self, run_id: int) -> Sequence[RecordedVerdict]:
        """Return the verdicts of a run, newest first, of very many the newest."""
        return await self._where("run_id = ? ORDER BY id DESC LIMIT 100", run_id)

    async def page(
        self, workflow: str | None, outcome: Outcome | None, before: int | None, limit: int
    ) -> Sequence[RecordedVerdict]:
        """Return the verdicts of a workflow and an outcome, or of any, newest first, only those before an id."""
        below = _NEWEST if before is None else before
        return await self._chosen(workflow, outcome, "id < ? ORDER BY id DESC LIMIT ?", below, limit)

    async def page_after(
        self, workflow: str | None, outcome: Outcome | None, after: int, limit: int
    ) -> Sequence[RecordedVerdict]:
        """Return those that followed upon an id, newest first."""
        found = await self._chosen(workflow, outcome, "id > ? ORDER BY id LIMIT ?", after, limit)
        return found[::-1]

    async def latest_of_each(self) -> Mapping[str, RecordedVerdict]:
        """Return what counts for the newest run of every workflow that has one, by its name."""
        sql = "id IN (SELECT (SELECT max(id) FROM verdict v WHERE v.run_id = w.last_run) FROM workflow w)"
        return {verdict.workflow: verdict for verdict in await self._where(sql)}

    async def good_run(self, workflow: str, before: int | None) -> int | None:
        """Return the newest of the runs that last passed before an id, and are good by the verdict that counts."""
        sql = """SELECT max(run_id) FROM (
                     SELECT run_id FROM verdict WHERE workflow = ? AND outcome = ? AND id < ? ORDER BY id DESC LIMIT ?
                 ) passed
                 WHERE (SELECT outcome FROM verdict WHERE run_id = passed.run_id ORDER BY id DESC LIMIT 1) = ?"""
        below = _NEWEST if before is None else before
        values = (workflow, Outcome.PASS, below, _LOOKED_THROUGH, Outcome.PASS)
        [(run_id,)] = await self._connection.execute_fetchall(sql, values)
        return None if run_id is None else int(run_id)

    async def judging(self, workflow: str, output: Sighting) -> Sequence[RecordedVerdict]:
        """Return those of a workflow's last verdicts that are about an output as it was found, newest first."""
        last = await self.page(workflow, None, None, _LOOKED_THROUGH)
        return [v for v in last if v.judged.artifact and v.judged.artifact.sighting == output]

    async def past_of(self, workflow: str, *, before_run: int | None, but: Sighting | None = None) -> Past:
        """Return what a run is compared with: the runs before it, before a new one all, but none that left `but`."""
        before = await self._first_of(before_run) if before_run else None
        came = [
            verdict
            for outcome in (Outcome.PASS, Outcome.FAIL)
            for verdict in await self.page(workflow, outcome, before, _LOOKED_THROUGH)
            if verdict.judged.artifact and verdict.judged.artifact.sighting != but
        ]
        runs = _newest_of_each(came)
        # One that left nothing that could be compared must not hide the one before.
        last = next((verdict for verdict in runs if verdict.judged.content), None)
        good = [v.judged for v in runs if v.outcome is Outcome.PASS and not v.says_failed][:_COMPARED]
        return Past(
            last_content=last.judged.content if last else "",
            last_run=last.run_id if last else None,
            sizes=tuple(judged.artifact.size for judged in good if judged.artifact),
            counts=tuple(judged.count for judged in good if judged.count is not None),
        )

    async def _first_of(self, run_id: int) -> int | None:
        sql = "SELECT min(id) FROM verdict WHERE run_id = ?"
        [(first,)] = await self._connection.execute_fetchall(sql, (run_id,))
        return None if first is None else int(first)

    async def _chosen(
        self, workflow: str | None, outcome: Outcome | None, condition: str, *values: object
    ) -> list[RecordedVerdict]:
        asked = {"workflow = ?": workflow, "outcome = ?": outcome}
        given = {wanted: value for wanted, value in asked.items() if value is not None}
        return await self._where(" AND ".join((*given, condition)), *given.values(), *values)

    async def _where(self, condition: str, *values: object) -> list[RecordedVerdict]:
        sql = f"SELECT * FROM verdict WHERE {condition}"  # noqa: S608 - written out above
        return await fetch(self._connection, RecordedVerdict, sql, values)


def _newest_of_each(verdicts: Sequence[RecordedVerdict]) -> list[RecordedVerdict]:
    """Return the newest verdict of each run, the newest run's first."""
    newest: dict[int, RecordedVerdict] = {}
    for verdict in sorted(verdicts, key=lambda verdict: verdict.id):
        newest[verdict.run_id] = verdict
    return [newest[run_id] for run_id in sorted(newest, reverse=True)]
