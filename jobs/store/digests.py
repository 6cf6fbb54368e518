"""Table `digest`: what the chat was told of every week."""

from dataclasses import replace

from jobs.ports import Told
from jobs.store.rows import Connection, fetch, insert, update


class SqlDigests:
    """One row per digest; a week has at most one."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def get(self, digest_id: int) -> Told | None:
        """Return one digest."""
        return next(
            iter(await fetch(self._connection, Told, "SELECT * FROM digest WHERE id = ?", (digest_id,))), None
        )

    async def of_week(self, week: str) -> Told | None:
        """Return the digest of a week."""
        sql = "SELECT * FROM digest WHERE week = ?"
        return next(iter(await fetch(self._connection, Told, sql, (week,))), None)

    async def newest_week(self, now: float) -> Told | None:
        """Return the digest of the latest week that was over at `now`, and told by then."""
        # A clock that was ahead for a while must not keep the weeks from being told that it has skipped.
        sql = """SELECT * FROM digest WHERE week IS NOT NULL AND until <= ?1 AND at <= ?1
            ORDER BY until DESC LIMIT 1"""
        return next(iter(await fetch(self._connection, Told, sql, (now,))), None)

    async def begun_at(self) -> float | None:
        """Return when a bot first looked which weeks are to be told; None if none ever has."""
        sql = "SELECT min(at) FROM digest WHERE week IS NOT NULL"
        [(at,)] = await self._connection.execute_fetchall(sql)
        return None if at is None else float(at)

    async def add(self, told: Told) -> Told:
        """Insert a digest and return it with its id."""
        return replace(told, id=await insert(self._connection, "digest", told))

    async def save(self, told: Told) -> None:
        """Overwrite a digest."""
        await update(self._connection, "digest", told, told.id)
