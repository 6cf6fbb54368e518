"""opencode's database: every change of a session is a row of the table `event`; older releases have but `part`.

The agent is the last folder of the session's directory, a sub-agent what it was told to do in a few words, which is
its session's title.
"""

import re
import sqlite3
from typing import Final

from jobs.sources.opencode_events import Session

_SUFFIX: Final = re.compile(r" \(@[^()]* subagent\)$")
"""Of a sub-agent's title."""
_ORIGIN: Final = "SELECT parent_id, directory, title FROM session WHERE id = ?"


class Events:
    """A `TableFormat`."""

    table = "event"
    others: tuple[str, ...] = ("session",)
    heads = """
        WITH RECURSIVE session_of(id) AS (
            SELECT min(aggregate_id) FROM event
            UNION ALL
            SELECT (SELECT min(e.aggregate_id) FROM event e WHERE e.aggregate_id > session_of.id)
            FROM session_of WHERE session_of.id IS NOT NULL
        )
        SELECT session_of.id, (SELECT max(e.seq) FROM event e WHERE e.aggregate_id = session_of.id),
            (SELECT s.time_updated FROM session s WHERE s.id = session_of.id)
        FROM session_of WHERE session_of.id IS NOT NULL
    """
    heads_since = """
        SELECT e.aggregate_id, max(e.seq), (SELECT s.time_updated FROM session s WHERE s.id = e.aggregate_id)
        FROM event e WHERE e.rowid > ? GROUP BY e.aggregate_id
    """
    newest = "SELECT max(rowid) FROM event"
    row = "SELECT aggregate_id, seq FROM event WHERE rowid = ?"
    rows = """
        SELECT seq, data, NULL FROM event
        WHERE aggregate_id = ? AND seq > ? AND seq <= ? AND typeof(seq) = 'integer'
            AND (type LIKE 'message.part.updated.%' OR type LIKE 'message.updated.%')
        ORDER BY seq
    """
    next_row = """
        SELECT min(seq) FROM event
        WHERE aggregate_id = ? AND seq > ? AND typeof(seq) = 'integer'
            AND (type LIKE 'message.part.updated.%' OR type LIKE 'message.updated.%')
    """

    def reader(self, database: sqlite3.Connection, _path: str, session: str, state: str, /) -> Session:
        """Look up where a session works and which one has started it."""
        return _session(database, session, state)


class Parts:
    """A `TableFormat`: the parts themselves, each changed in place, where a release keeps no events.

    A part's number is the time of its last change and a piece of its rowid, as two may be changed in one millisecond.
    One changes, too, when its answer is taken out of what the model sees: that may be before or after it was read.
    """

    table = "part"
    others: tuple[str, ...] = ("session", "message")
    heads = """
        SELECT session_id, max(time_updated * 1000 + rowid % 1000), max(time_updated) FROM part
        WHERE typeof(time_updated) = 'integer' GROUP BY session_id
    """
    heads_since = """
        SELECT session_id, max(time_updated * 1000 + rowid % 1000), max(time_updated) FROM part
        WHERE rowid > ? AND typeof(time_updated) = 'integer' GROUP BY session_id
    """
    newest = "SELECT NULL"
    """What has changed may have any rowid."""
    row = "SELECT session_id, time_updated * 1000 + rowid % 1000 FROM part WHERE rowid = ?"
    rows = """
        SELECT time_updated * 1000 + rowid % 1000 AS number, json_object(
            'id', id, 'time', time_created, 'number', time_updated * 1000 + rowid % 1000,
            'part', iif(json_valid(data), json(data), NULL), 'model', (
                SELECT iif(json_valid(m.data), json_extract(m.data, '$.modelID'), NULL)
                FROM message m WHERE m.id = message_id
            )
        ), NULL
        FROM part
        WHERE session_id = ? AND number > ? AND number <= ? AND typeof(time_updated) = 'integer'
        ORDER BY number
    """
    next_row = """
        SELECT min(time_updated * 1000 + rowid % 1000) AS number FROM part
        WHERE session_id = ? AND time_updated * 1000 + rowid % 1000 > ? AND typeof(time_updated) = 'integer'
    """
    newest_in = """
        SELECT max(time_updated * 1000 + rowid % 1000) FROM part
        WHERE session_id = ? AND typeof(time_updated) = 'integer'
    """

    def reader(self, database: sqlite3.Connection, _path: str, session: str, state: str, /) -> Session:
        """Look up where a session works, which one has started it, and how far it has come."""
        reader = _session(database, session, state)
        match database.execute(self.newest_in, (session,)).fetchone():
            case (int(newest),):
                reader.begin(newest)
        return reader


def _session(database: sqlite3.Connection, session: str, state: str) -> Session:
    row = database.execute(_ORIGIN, (session,)).fetchone() or (None, None, None)
    parent, directory, title = (
        value.decode(errors="replace") if isinstance(value, bytes) else "" for value in row
    )
    agent = _SUFFIX.sub("", title) if parent else directory.rstrip("/").rpartition("/")[2]
    return Session(session=session, agent=agent, parent=parent or None, state=state)
