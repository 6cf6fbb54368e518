"""What is old and over, in every table."""

from typing import Final

import aiosqlite

# Children before what they refer to.
_OLD: Final = (
    ("confirmation", "expires_at < ?1"),
    ("inbox", "received_at < ?1"),
    ("outbox", "created_at < ?1 AND state IN ('sent', 'parked')"),
    (
        "stop",
        "state = 'over' AND finished_at < ?1 AND NOT EXISTS (SELECT 1 FROM stop s WHERE s.escalates = stop.id)",
    ),
    ("incident", "closed_at < ?1 AND NOT EXISTS (SELECT 1 FROM stop s WHERE s.incident_id = incident.id)"),
    # How a workflow stands is told by its newest run's verdicts, and an open alert by those of its run.
    (
        "verdict",
        """at < ?1
        AND run_id NOT IN (SELECT last_run FROM workflow WHERE last_run IS NOT NULL)
        AND run_id NOT IN (SELECT alerted_run FROM workflow WHERE alerted_run IS NOT NULL)""",
    ),
    (
        "run",
        """at < ?1
        AND NOT EXISTS (SELECT 1 FROM verdict v WHERE v.run_id = run.id)
        AND NOT EXISTS (SELECT 1 FROM report r WHERE r.run_id = run.id)""",
    ),
    # One without calls was not seen, but begun.
    (
        "session",
        """seen_at < ?1 AND (seen_at > 0 OR first_ts < ?1)
        AND NOT EXISTS (SELECT 1 FROM incident i WHERE i.session_id = session.id)
        AND NOT EXISTS (SELECT 1 FROM stop s WHERE s.session_id = session.id)
        AND NOT EXISTS (SELECT 1 FROM confirmation c WHERE c.session_id = session.id)""",
    ),
    # A file that is still there was looked at when the bot last looked at all, however long it was away since.
    (
        "cursor",
        """json_extract(position, '$.read_at') < ?1
        AND json_extract(position, '$.read_at') < (SELECT at - 86400 FROM presence)""",
    ),
)
_KEYS: Final = {"cursor": "source, path"}
"""Of tables whose rows have no number."""


async def delete_older_than(connection: aiosqlite.Connection, limit: float, most: int) -> int:
    """Delete what was over before `limit` (epoch seconds), of each table at most so many rows; return how many."""
    deleted = 0
    for table, is_old in _OLD:
        key = _KEYS.get(table, "rowid")
        sql = f"DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE {is_old} LIMIT ?2)"  # noqa: S608
        async with connection.execute(sql, (limit, most)) as cursor:
            deleted += cursor.rowcount
    return deleted
