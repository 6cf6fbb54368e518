"""Table `presence`: when the bot last looked."""

from jobs.store.rows import Connection


class SqlPresence:
    """One row."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def last(self) -> float | None:
        """Return when the bot last looked; None if it never has."""
        rows = await self._connection.execute_fetchall("SELECT at FROM presence")
        return next((float(row[0]) for row in rows), None)

    async def note(self, now: float) -> None:
        """Note a look."""
        await self._connection.execute("INSERT OR REPLACE INTO presence (id, at) VALUES (1, ?)", (now,))
