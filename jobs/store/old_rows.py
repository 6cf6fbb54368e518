"""What is old and over, in every table."""

from typing import Final

import aiosqlite

# Children before what they refer to.
_DELETES: Final = (
    "DELETE FROM confirmation WHERE expires_at < ?1",
    "DELETE FROM inbox WHERE received_at < ?1",
    "DELETE FROM outbox WHERE created_at < ?1 AND state IN ('sent', 'parked')",
    "DELETE FROM stop WHERE state = 'over' AND finished_at < ?1 AND NOT EXISTS (SELECT 1 FROM stop s WHERE s.escalates = stop.id)",
    "DELETE FROM incident WHERE closed_at < ?1 AND NOT EXISTS (SELECT 1 FROM stop s WHERE s.incident_id = incident.id)",
    # One without calls was not seen, but begun.
    """DELETE FROM session WHERE seen_at < ?1 AND (seen_at > 0 OR first_ts < ?1)
        AND NOT EXISTS (SELECT 1 FROM incident i WHERE i.session_id = session.id)
        AND NOT EXISTS (SELECT 1 FROM stop s WHERE s.session_id = session.id)
        AND NOT EXISTS (SELECT 1 FROM confirmation c WHERE c.session_id = session.id)""",
    # A file that is still there was looked at when the bot last looked at all, however long it was away since.
    """DELETE FROM cursor WHERE json_extract(position, '$.read_at') < ?1
        AND json_extract(position, '$.read_at') < (SELECT at - 86400 FROM presence)""",
)


async def delete_older_than(connection: aiosqlite.Connection, limit: float) -> int:
    """Delete what was over before `limit` (epoch seconds) and return how many rows that were."""
    deleted = 0
    for sql in _DELETES:
        async with connection.execute(sql, (limit,)) as cursor:
            deleted += cursor.rowcount
    return deleted
