"""Tables `good_output` and `selftest`: what the verifier is tried on, and how it did."""

from collections.abc import Mapping
from dataclasses import replace

from jobs.store.rows import Connection, fetch, insert
from jobs.verification.trial import GoodOutput, SelfTest


class SqlGoodOutputs:
    """One row per workflow."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def of(self, workflow: str) -> GoodOutput | None:
        """Return the last good output of a workflow."""
        sql = "SELECT * FROM good_output WHERE workflow = ?"
        return next(iter(await fetch(self._connection, GoodOutput, sql, (workflow,))), None)

    async def sha256_of(self, workflow: str) -> str | None:
        """Return what tells the last good output of a workflow from others, without reading it."""
        sql = "SELECT sha256 FROM good_output WHERE workflow = ?"
        rows = await self._connection.execute_fetchall(sql, (workflow,))
        return next((f"{sha256}" for (sha256,) in rows), None)

    async def keep(self, output: GoodOutput) -> None:
        """Put it in the place of the workflow's last one."""
        await self._connection.execute("DELETE FROM good_output WHERE workflow = ?", (output.workflow,))
        await insert(self._connection, "good_output", output)


class SqlSelfTests:
    """One row per self-test of a workflow."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def add(self, test: SelfTest) -> SelfTest:
        """Insert a self-test and return it with its id."""
        return replace(test, id=await insert(self._connection, "selftest", test))

    async def latest(self) -> Mapping[str, SelfTest]:
        """Return the newest of every workflow, by its name."""
        sql = "SELECT * FROM selftest WHERE id IN (SELECT max(id) FROM selftest GROUP BY workflow)"
        return {test.workflow: test for test in await fetch(self._connection, SelfTest, sql)}
