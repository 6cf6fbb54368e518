"""What is old and over, in every table."""

from typing import Final

import aiosqlite

# The end of the newest week that was told; not by a clock that was ahead.
_TOLD: Final = """coalesce((SELECT max(until) FROM digest
    WHERE week IS NOT NULL AND at <= coalesce((SELECT at FROM presence), 9e999)), 9e999)"""

# Children before what they refer to.
_OLD: Final = (
    ("confirmation", "expires_at < ?1"),
    ("inbox", "received_at < ?1"),
    # A proposal that is open, or was rejected, is shown and decided in its message; a digest that was given up may still be sent.
    (
        "outbox",
        """created_at < ?1
        AND (state = 'sent' OR state = 'parked' AND coalesce(subject, '') NOT BETWEEN 'digest:' AND 'digest;')
        AND NOT EXISTS (SELECT 1 FROM proposal p
                        WHERE p.state IN ('open', 'rejected') AND outbox.subject = 'pin:' || p.kind || ':' || p.name)""",
    ),
    (
        "stop",
        f"""state = 'over' AND finished_at < ?1
        AND NOT EXISTS (SELECT 1 FROM stop s WHERE s.escalates = stop.id)
        AND NOT EXISTS (SELECT 1 FROM incident i WHERE i.id = stop.incident_id AND i.closed_at >= {_TOLD})""",  # noqa: S608 - a constant
    ),
    ("incident", "closed_at < ?1 AND NOT EXISTS (SELECT 1 FROM stop s WHERE s.incident_id = incident.id)"),
    # How a workflow stands is told by its newest run's verdicts, and an open alert by those of its run. And what is of a
    # week that was missed is counted first, that of the week before is counted again.
    (
        "verdict",
        f"""at < ?1 AND ran_at < {_TOLD} - 8 * 86400
        AND run_id NOT IN (SELECT last_run FROM workflow WHERE last_run IS NOT NULL)
        AND run_id NOT IN (SELECT alerted_run FROM workflow WHERE alerted_run IS NOT NULL)""",  # noqa: S608 - a constant
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
    # What stands, also where it was rejected, is told by the newest of each entry.
    (
        "proposal",
        """coalesce(decided_at, found_at) < ?1 AND state <> 'open'
        AND id NOT IN (SELECT max(id) FROM proposal GROUP BY kind, name)""",
    ),
    ("selftest", "at < ?1 AND id NOT IN (SELECT max(id) FROM selftest GROUP BY workflow)"),
    # Of a workflow that is gone; that of any other is the last good one, however old.
    (
        "good_output",
        """judged_as_of < ?1 AND workflow NOT IN (
            SELECT name FROM pin WHERE entry IS NOT NULL
            AND id IN (SELECT max(id) FROM pin WHERE kind = 'workflow' GROUP BY name))""",
    ),
    ("absence", f"until < ?1 AND until < {_TOLD}"),
    # What a week was told is what the next one is told by.
    ("digest", "at < ?1 AND week IS NULL"),
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
