"""Table `run`: every run of every workflow."""

from collections.abc import Sequence
from dataclasses import replace

from jobs.store.rows import Connection, fetch, insert
from jobs.verification.history import Run


class SqlRuns:
    """One row per run; its key is unique among those of its workflow."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def get(self, run_id: int) -> Run | None:
        """Return one run."""
        sql = "SELECT * FROM run WHERE id = ?"
        return next(iter(await fetch(self._connection, Run, sql, (run_id,))), None)

    async def find(self, workflow: str, key: str) -> Run | None:
        """Return the run of a workflow that this key tells from the others."""
        sql = "SELECT * FROM run WHERE workflow = ? AND key = ?"
        return next(iter(await fetch(self._connection, Run, sql, (workflow, key))), None)

    async def put(self, run: Run) -> Run:
        """Return the run with this workflow and key, which is inserted if it is new."""
        if known := await self.find(run.workflow, run.key):
            return known
        return replace(run, id=await insert(self._connection, "run", run))

    async def told(self, workflow: str, after: int, before: int, limit: int) -> Sequence[int]:
        """Return which runs between two have a message of their own, newest first."""
        sql = """SELECT id FROM run WHERE workflow = ? AND id > ? AND id < ? AND EXISTS (
                     SELECT 1 FROM outbox WHERE subject = 'run:' || run.id AND mode <> 'reply' AND state <> 'parked')
                 ORDER BY id DESC LIMIT ?"""
        found = await self._connection.execute_fetchall(sql, (workflow, after, before, limit))
        return [run_id for (run_id,) in found]

    async def claim(self, run_id: int, reported: str) -> None:
        """Note the id by which a run's reporter knows it."""
        await self._connection.execute("UPDATE run SET reported = ? WHERE id = ?", (reported, run_id))
