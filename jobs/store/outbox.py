"""Table `outbox`: messages to be sent, and those that were."""

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.alert.outgoing import NOTICE, Mode, Outgoing, Queued
from jobs.store.rows import Connection, fetch

# The message that a later one edits or answers: its own, or the newest that its subject was sent as.
_TARGET = """coalesce(o.target_message, (
    SELECT s.message FROM outbox s
    WHERE s.subject = o.subject AND s.id < o.id AND s.mode <> 'reply' AND s.state = 'sent' AND s.message IS NOT NULL
    ORDER BY s.id DESC LIMIT 1))"""

_QUEUED = f"""o.id, o.kind, o.body, o.subject, o.mode, coalesce(o.chat, :home) AS chat, o.silent, o.urgent,
    {_TARGET} AS target_message, o.attempts, o.error, o.created_at"""

_CHAT_ID = "CAST(coalesce({row}.chat, :home) AS INTEGER)"
"""An address is a chat's id, and perhaps a slash and a topic's, which SQLite does not read."""

_PATIENCE = 5
"""Attempts after which other urgent messages overtake one."""

_CLOCK_SLACK = 1
"""Seconds by which a clock is adjusted without having been set back."""

_DIGEST = "subject BETWEEN 'digest:' AND 'digest;'"

_ALIVE = "state IN ('queued', 'sending')"
"""In the words of the index `outbox_waiting`: SQLite takes it for no others, and would read all that was ever sent."""

# What waits for a chat that nothing is being sent to: the lease on one message keeps the others of its chat back.
_WAITING = f"""
FROM outbox o LEFT JOIN chat c ON c.id = {_CHAT_ID.format(row="o")}
WHERE o.{_ALIVE} AND o.state = 'queued' AND {_CHAT_ID.format(row="o")} NOT IN (
    SELECT {_CHAT_ID.format(row="s")} FROM outbox s WHERE s.{_ALIVE} AND s.state = 'sending')"""  # noqa: S608 - constants

# Whose clock was set back since it was held is free.
_FREE = f"(c.id IS NULL OR c.free_at <= :now OR c.held_at > :now + {_CLOCK_SLACK})"

# What an urgent message edits or answers goes before it.
_URGENT = """max(o.urgent, coalesce((
    SELECT max(u.urgent) FROM outbox u
    WHERE u.subject = o.subject AND u.id > o.id AND u.state = 'queued'), 0))"""

# One urgent message that fails whatever is done must not keep the others from being read; its own answers wait with it.
_TRIED = f"""(o.attempts >= {_PATIENCE} OR EXISTS (
    SELECT 1 FROM outbox e
    WHERE e.subject = o.subject AND e.id < o.id AND e.attempts >= {_PATIENCE} AND e.state = 'queued'))"""  # noqa: S608

_DUE = f"""SELECT {_QUEUED} {_WAITING} AND {_FREE}
ORDER BY {_URGENT} DESC, {_URGENT} AND {_TRIED}, o.id LIMIT 1"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxCounts:
    """How many messages wait, and how many were given up."""

    waiting: int
    parked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """As which message of its chat something was sent, and when."""

    message: int
    at: float


class SqlOutbox:
    """One row per message. `home` is the chat of those that name none, as it is now."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def put(self, outgoing: Outgoing, now: float) -> int:
        """Queue a message and return its id. An edit takes the place of one that still waits for the same message."""
        if outgoing.mode is Mode.EDIT and (waiting := await self._waiting(outgoing)):
            sql = "UPDATE outbox SET kind = ?, body = ? WHERE id = ?"
            await self._connection.execute(sql, (outgoing.kind, outgoing.body.decode(), waiting))
            return waiting
        sql = """
            INSERT INTO outbox (kind, body, subject, mode, chat, silent, urgent, target_message, created_at,
                                state, attempts)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', 0)"""
        row = (
            *(outgoing.kind, outgoing.body.decode(), outgoing.subject, outgoing.mode, outgoing.chat),
            *(outgoing.silent, 2 if outgoing.urgent else outgoing.alarm, outgoing.target_message, now),
        )
        async with self._connection.execute(sql, row) as cursor:
            return cursor.lastrowid or 0

    async def due(self, now: float, home: str) -> Queued | None:
        """Return the message to be sent next: of the chats that may be written to, urgent ones first, then oldest."""
        return next(iter(await fetch(self._connection, Queued, _DUE, {"now": now, "home": home})), None)

    async def next_at(self, now: float, home: str) -> float | None:
        """Return when the next message will be due that is not yet; None if there is none."""
        sql = f"SELECT min(c.free_at) {_WAITING} AND NOT {_FREE}"
        [(at,)] = await self._connection.execute_fetchall(sql, {"now": now, "home": home})
        return None if at is None else float(at)

    async def lease(self, outgoing_id: int) -> None:
        """Mark a message as being sent: edits no longer take its place, and its chat waits for it."""
        await self._set(outgoing_id, "state = 'sending'")

    async def leased(self, home: str) -> Sequence[Queued]:
        """Return the messages that are being sent."""
        sql = f"SELECT {_QUEUED} FROM outbox o WHERE o.{_ALIVE} AND o.state = 'sending' ORDER BY o.id"  # noqa: S608 - constants
        return await fetch(self._connection, Queued, sql, {"home": home})

    async def mark_sent(self, outgoing_id: int, message: int | None, now: float) -> None:
        """Note a success and the chat's id of the message, None if it is not known."""
        await self._set(outgoing_id, "state = 'sent', error = NULL, message = ?, sent_at = ?", message, now)

    async def put_back(self, outgoing_id: int, error: str) -> None:
        """Queue a message again that was being sent."""
        await self._set(outgoing_id, "state = 'queued', attempts = attempts + 1, error = ?", error)

    async def park(self, outgoing_id: int, error: str) -> None:
        """Give a message up."""
        await self._set(outgoing_id, "state = 'parked', attempts = attempts + 1, error = ?", error)

    async def move(self, old: int, new: int, home: str) -> None:
        """Send to `new` what waits for chat `old`, and forget that chat's message ids: the new one has others."""
        values = {"old": old, "new": f"{new}", "home": home}
        of_old = f"{_CHAT_ID.format(row='outbox')} = :old"
        forget = f"UPDATE outbox SET message = NULL, target_message = NULL WHERE {of_old}"  # noqa: S608 - constants
        await self._connection.execute(forget, values)
        follow = f"""UPDATE outbox SET chat = :new
                     WHERE {of_old} AND chat IS NOT NULL AND state IN ('queued', 'sending')"""  # noqa: S608
        await self._connection.execute(follow, values)

    async def unpark(self, chat_id: int, since: float, home: str) -> int:
        """Queue the notices again that were given up for a chat since then, but what was said anew; return how many.

        Digests however old: a late one is better than none.
        """
        # What was said anew is sent, or waits: after it, the earlier word would be the last one.
        sql = f"""UPDATE outbox SET state = 'queued'
                  WHERE state = 'parked' AND kind = :kind AND (created_at >= :since OR {_DIGEST})
                      AND {_CHAT_ID.format(row="outbox")} = :chat
                      AND (mode = 'reply' OR NOT EXISTS (
                          SELECT 1 FROM outbox n
                          WHERE n.subject = outbox.subject AND n.id > outbox.id AND n.mode <> 'reply'
                              AND n.state <> 'parked'))"""  # noqa: S608
        async with self._connection.execute(
            sql, {"kind": NOTICE, "chat": chat_id, "since": since, "home": home}
        ) as cursor:
            return cursor.rowcount

    async def sent(self, outgoing_id: int) -> Sent | None:
        """Return as what and when a message was sent; None if it was not, or if its id in the chat is not known."""
        sql = "SELECT message, sent_at AS at FROM outbox WHERE id = ? AND state = 'sent' AND message IS NOT NULL"
        return next(iter(await fetch(self._connection, Sent, sql, (outgoing_id,))), None)

    async def told_at(self, subject: str) -> float | None:
        """Return since when there is a message about this that another one can edit, sent or still waiting."""
        sql = "SELECT min(created_at) FROM outbox WHERE subject = ? AND mode <> 'reply' AND state <> 'parked'"
        [(at,)] = await self._connection.execute_fetchall(sql, (subject,))
        return None if at is None else float(at)

    async def is_told(self, subject: str, since: float) -> bool:
        """Whether there is a message about this that was new after then, and was not given up."""
        sql = """SELECT 1 FROM outbox
                 WHERE subject = ? AND mode = 'send' AND state <> 'parked' AND created_at > ? LIMIT 1"""
        return bool(await self._connection.execute_fetchall(sql, (subject, since)))

    async def last_told(self, subject: str) -> str | None:
        """Return the newest notice about this, as JSON, sent or not."""
        sql = "SELECT body FROM outbox WHERE subject = ? AND kind = ? ORDER BY id DESC LIMIT 1"
        rows = await self._connection.execute_fetchall(sql, (subject, NOTICE))
        return next((body for (body,) in rows), None)

    async def counts(self, since: float) -> OutboxCounts:
        """Count what waits, and what was given up of the messages since then."""
        sql = """
            SELECT (SELECT count(*) FROM outbox WHERE state IN ('queued', 'sending')) AS waiting,
                   (SELECT count(*) FROM outbox WHERE state = 'parked' AND created_at >= ?) AS parked"""
        return (await fetch(self._connection, OutboxCounts, sql, (since,)))[0]

    async def _waiting(self, edit: Outgoing) -> int | None:
        sql = f"""SELECT id FROM outbox WHERE {_ALIVE} AND state = 'queued' AND (
                      subject = :subject AND mode IN ('send', 'edit')
                      OR chat = :chat AND target_message = :message AND mode = 'edit')
                  ORDER BY id DESC LIMIT 1"""  # noqa: S608 - a constant
        values = {"subject": edit.subject, "chat": edit.chat, "message": edit.target_message}
        rows = await self._connection.execute_fetchall(sql, values)
        return next((row_id for (row_id,) in rows), None)

    async def _set(self, outgoing_id: int, change: str, *values: object) -> None:
        sql = f"UPDATE outbox SET {change} WHERE id = ?"  # noqa: S608 - written out above
        await self._connection.execute(sql, (*values, outgoing_id))
