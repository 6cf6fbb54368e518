"""Table `inbox`: what Telegram has delivered, each update once."""

from collections.abc import Mapping
from typing import Final

import aiosqlite

from jobs.ports import Received
from jobs.store.rows import fetch

_REDELIVERED: Final = 2 * 86_400
"""Seconds for which a handled update is remembered: Telegram may deliver it again for one day."""

_FORGOTTEN_AT_ONCE: Final = 1000


class SqlInbox:
    """One row per update."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    async def add(self, bot_id: int, bodies: Mapping[int, str], now: float) -> None:
        """Keep the updates of one poll, by update id; those that are known already are left as they are."""
        forget = """DELETE FROM inbox WHERE id IN (
                        SELECT id FROM inbox WHERE received_at < ? AND state = 'handled' LIMIT ?)"""
        await self._connection.execute(forget, (now - _REDELIVERED, _FORGOTTEN_AT_ONCE))
        sql = """INSERT OR IGNORE INTO inbox (bot_id, update_id, body, received_at, state)
                 VALUES (?, ?, ?, ?, 'waiting')"""
        rows = [(bot_id, update_id, body, now) for update_id, body in bodies.items()]
        await self._connection.executemany(sql, rows)

    async def next(self, bot_id: int) -> Received | None:
        """Return the oldest update that waits to be handled."""
        sql = """SELECT id, update_id, body, received_at FROM inbox
                 WHERE state = 'waiting' AND bot_id = ? ORDER BY id LIMIT 1"""
        return next(iter(await fetch(self._connection, Received, sql, (bot_id,))), None)

    async def mark_handled(self, received_id: int) -> None:
        """Note that an update was handled, and forget what was in it."""
        sql = "UPDATE inbox SET state = 'handled', body = '' WHERE id = ?"
        await self._connection.execute(sql, (received_id,))

    async def set_aside(self, received_id: int, error: str) -> None:
        """Keep an update that cannot be handled, for whoever wants to look at it."""
        sql = "UPDATE inbox SET state = 'set_aside', error = ? WHERE id = ?"
        await self._connection.execute(sql, (error, received_id))

    async def count_set_aside(self, since: float) -> int:
        """Count the updates that could not be handled, of those received since then."""
        sql = "SELECT count(*) FROM inbox WHERE state = 'set_aside' AND received_at >= ?"
        [(count,)] = await self._connection.execute_fetchall(sql, (since,))
        return int(count)
