"""Table `outbox`: messages to be sent, and those that were."""

from collections.abc import Sequence
from dataclasses import dataclass

import aiosqlite

from jobs.alert.outgoing import Mode, Outgoing
from jobs.ports import Queued
from jobs.store.rows import fetch

# The message that a later one edits or answers: its own, or the newest that its subject was sent as.
_TARGET = """coalesce(o.target_message, (
    SELECT s.message FROM outbox s
    WHERE s.subject = o.subject AND s.id < o.id AND s.mode <> 'reply' AND s.state = 'sent'
    ORDER BY s.id DESC LIMIT 1))"""

# A message waits for the earlier ones of its chat, also for one that was put off.
_DUE = f"""
SELECT o.id, o.kind, o.body, o.subject, o.mode, o.chat, o.silent, {_TARGET} AS target_message,
       o.attempts, o.created_at
FROM outbox o
WHERE o.state = 'queued' AND o.not_before <= ?1 AND NOT EXISTS (
    SELECT 1 FROM outbox e
    WHERE e.state IN ('queued', 'sending') AND e.id < o.id AND e.chat IS o.chat AND e.not_before > ?1)
ORDER BY o.id LIMIT ?2"""  # noqa: S608 - a constant


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxCounts:
    """How many messages wait, and how many were given up."""

    waiting: int
    parked: int


class SqlOutbox:
    """One row per message."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    async def put(self, outgoing: Outgoing, now: float) -> int:
        """Queue a message and return its id. An edit takes the place of one that still waits for the same subject."""
        if outgoing.mode is Mode.EDIT and (waiting := await self._waiting(outgoing.subject)):
            sql = "UPDATE outbox SET kind = ?, body = ? WHERE id = ?"
            await self._connection.execute(sql, (outgoing.kind, outgoing.body.decode(), waiting))
            return waiting
        sql = """
            INSERT INTO outbox (kind, body, subject, mode, chat, silent, target_message, created_at,
                                state, not_before, attempts)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'queued', 0, 0)"""
        row = (
            *(outgoing.kind, outgoing.body.decode(), outgoing.subject, outgoing.mode, outgoing.chat),
            *(outgoing.silent, outgoing.target_message, now),
        )
        async with self._connection.execute(sql, row) as cursor:
            return cursor.lastrowid or 0

    async def due(self, now: float, limit: int) -> Sequence[Queued]:
        """Return the messages that may be sent now, oldest first."""
        return await fetch(self._connection, Queued, _DUE, (now, limit))

    async def lease(self, outgoing_id: int) -> None:
        """Mark a message as being sent: edits no longer take its place."""
        await self._set(outgoing_id, "state = 'sending'")

    async def release_all(self) -> None:
        """Queue again what was being sent when the bot stopped: repeated rather than lost."""
        await self._connection.execute("UPDATE outbox SET state = 'queued' WHERE state = 'sending'")

    async def mark_sent(self, outgoing_id: int, message: int, now: float) -> None:
        """Note a success and the chat's id of the message."""
        await self._set(outgoing_id, "state = 'sent', error = NULL, message = ?, sent_at = ?", message, now)

    async def put_off(self, outgoing_id: int, error: str, until: float) -> None:
        """Queue a message again, for later."""
        change = "state = 'queued', attempts = attempts + 1, error = ?, not_before = ?"
        await self._set(outgoing_id, change, error, until)

    async def park(self, outgoing_id: int, error: str) -> None:
        """Give a message up."""
        await self._set(outgoing_id, "state = 'parked', attempts = attempts + 1, error = ?", error)

    async def message_of(self, outgoing_id: int) -> int | None:
        """Return the chat's id of a message that was sent."""
        sql = "SELECT message FROM outbox WHERE id = ? AND state = 'sent'"
        rows = await self._connection.execute_fetchall(sql, (outgoing_id,))
        return next((message for (message,) in rows), None)

    async def counts(self) -> OutboxCounts:
        """Count what waits and what was given up."""
        sql = """
            SELECT (SELECT count(*) FROM outbox WHERE state IN ('queued', 'sending')) AS waiting,
                   (SELECT count(*) FROM outbox WHERE state = 'parked') AS parked"""
        return (await fetch(self._connection, OutboxCounts, sql))[0]

    async def _waiting(self, subject: str | None) -> int | None:
        sql = """SELECT id FROM outbox WHERE subject = ? AND state = 'queued' AND mode IN ('send', 'edit')
                 ORDER BY id DESC LIMIT 1"""
        rows = await self._connection.execute_fetchall(sql, (subject,))
        return next((row_id for (row_id,) in rows), None)

    async def _set(self, outgoing_id: int, change: str, *values: object) -> None:
        sql = f"UPDATE outbox SET {change} WHERE id = ?"  # noqa: S608 - written out above
        await self._connection.execute(sql, (*values, outgoing_id))
