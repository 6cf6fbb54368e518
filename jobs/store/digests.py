"""Table `digest`: what the chat was told of every week."""

from dataclasses import replace

from jobs.ports import Told
from jobs.store.rows import Connection, fetch, insert


class SqlDigests:
    """One row per digest; a week has at most one."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def get(self, digest_id: int) -> Told | None:
        """Return one digest."""
        return next(
            iter(await fetch(self._connection, Told, "SELECT * FROM digest WHERE id = ?", (digest_id,))), None
        )

    async def newest_week(self) -> Told | None:
        """Return the digest of the latest week that has one."""
        sql = "SELECT * FROM digest WHERE week IS NOT NULL ORDER BY until DESC LIMIT 1"
        return next(iter(await fetch(self._connection, Told, sql)), None)

    async def add(self, told: Told) -> Told:
        """Insert a digest and return it with its id."""
        return replace(told, id=await insert(self._connection, "digest", told))
