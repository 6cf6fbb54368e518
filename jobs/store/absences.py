"""Table `absence`: when nobody watched."""

from collections.abc import Sequence

from jobs.ports import Absence
from jobs.store.rows import Connection, fetch, insert


class SqlAbsences:
    """One row per length of time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def add(self, absence: Absence) -> None:
        """Insert an absence."""
        await insert(self._connection, "absence", absence)

    async def between(self, since: float, until: float) -> Sequence[Absence]:
        """Return those that touch a length of time, oldest first."""
        sql = "SELECT * FROM absence WHERE until > ? AND since < ? ORDER BY id"
        return await fetch(self._connection, Absence, sql, (since, until))
