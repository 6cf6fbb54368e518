"""Table `report`: runs to be verified; a row is gone once its verdict is there."""

from collections.abc import Collection, Sequence
from dataclasses import replace

import msgspec

from jobs.store.rows import Connection, fetch, insert
from jobs.verification.history import Report


class SqlReports:
    """One row per report."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def add(self, report: Report) -> Report:
        """Insert a report and return it with its id."""
        return replace(report, id=await insert(self._connection, "report", report))

    async def waiting(self, workflow: str | None = None) -> Sequence[Report]:
        """Return the reports of a workflow, or all of them, oldest first."""
        return await self._where("?1 IS NULL OR workflow = ?1 ORDER BY id", workflow)

    async def next_of(self, workflows: Collection[str]) -> Report | None:
        """Return the oldest report of these workflows, but what a person waits for before all others."""
        condition = "workflow IN (SELECT value FROM json_each(?)) ORDER BY answer IS NULL, id LIMIT 1"
        return next(iter(await self._where(condition, _json(workflows))), None)

    async def stray(self, workflows: Collection[str], before: float) -> Report | None:
        """Return a report of any other workflow: one that a person waits for, or that came before a time."""
        condition = """workflow NOT IN (SELECT value FROM json_each(?))
            AND (answer IS NOT NULL OR at < ?) ORDER BY id LIMIT 1"""
        return next(iter(await self._where(condition, _json(workflows), before)), None)

    async def waits(self, report_id: int) -> bool:
        """Return whether a report is not yet dealt with."""
        return bool(await self._where("id = ?", report_id))

    async def count(self) -> int:
        """Return how many reports wait."""
        [(number,)] = await self._connection.execute_fetchall("SELECT count(*) FROM report")
        return int(number)

    async def remove(self, report_id: int) -> None:
        """Delete a report."""
        await self._connection.execute("DELETE FROM report WHERE id = ?", (report_id,))

    async def _where(self, condition: str, *values: object) -> list[Report]:
        sql = f"SELECT * FROM report WHERE {condition}"  # noqa: S608 - written out above
        return await fetch(self._connection, Report, sql, values)


def _json(names: Collection[str]) -> str:
    return msgspec.json.encode(list(names)).decode()
