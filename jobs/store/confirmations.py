"""Table `confirmation`: destructive buttons, each valid once."""

import aiosqlite

from jobs.ports import Confirmation
from jobs.store.rows import fetch, insert


class SqlConfirmations:
    """One row per button shown."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    async def add(self, confirmation: Confirmation) -> None:
        """Insert a confirmation."""
        await insert(self._connection, "confirmation", confirmation)

    async def get(self, nonce: str) -> Confirmation | None:
        """Return a confirmation by its nonce."""
        sql = "SELECT * FROM confirmation WHERE nonce = ?"
        return next(iter(await fetch(self._connection, Confirmation, sql, (nonce,))), None)

    async def mark_used(self, nonce: str, now: float) -> None:
        """Use a confirmation up."""
        await self._connection.execute("UPDATE confirmation SET used_at = ? WHERE nonce = ?", (now, nonce))
