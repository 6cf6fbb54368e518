"""OpenClaw's databases: a transcript's events, each a row, and what they say of how sessions are related.

Of a session `session_windows` has the key, `agent:<agent>:…`, and the key of the one that has started it. The agent is
in the key, else the folder's name. A key names one session after the other: a new one with each reset.
"""

import os.path
import sqlite3
from contextlib import closing
from typing import Final

from jobs.sources.openclaw_events import Transcript
from jobs.sources.openclaw_keys import agent_in, agent_of, of_agent
from jobs.sources.sqlite_rows import has_tables, opened
from jobs.sources.table_format import RowLimits


class Tables:
    """A `TableFormat`."""

    table = "transcript_events"
    others: tuple[str, ...] = ("session_windows", "session_nodes")
    heads = """
        WITH RECURSIVE session_of(id) AS (
            SELECT min(session_id) FROM transcript_events
            UNION ALL
            SELECT (SELECT min(e.session_id) FROM transcript_events e WHERE e.session_id > session_of.id)
            FROM session_of WHERE session_of.id IS NOT NULL
        ),
        head(id, seq) AS (
            SELECT session_of.id,
                (SELECT max(e.seq) FROM transcript_events e WHERE e.session_id = session_of.id)
            FROM session_of WHERE session_of.id IS NOT NULL
        )
        SELECT head.id, head.seq, e.created_at
        FROM head JOIN transcript_events e ON e.session_id = head.id AND e.seq = head.seq
    """
    heads_since = """
        SELECT session_id, max(seq), max(created_at) FROM transcript_events WHERE rowid > ? GROUP BY session_id
    """
    newest = "SELECT max(rowid) FROM transcript_events"
    row = "SELECT session_id, seq FROM transcript_events WHERE rowid = ?"
    rows = """
        SELECT seq, event_json, event_zstd FROM transcript_events
        WHERE session_id = ? AND seq > ? AND seq <= ? AND typeof(seq) = 'integer' ORDER BY seq
    """
    next_row = """
        SELECT min(seq) FROM transcript_events WHERE session_id = ? AND seq > ? AND typeof(seq) = 'integer'
    """

    def reader(self, database: sqlite3.Connection, path: str, session: str, state: str, /) -> Transcript:
        """Look up to which agent a session belongs and which one has started it."""
        key, parent = _origin(database, path, session)
        return Transcript(session=session, agent=agent_of(key) or agent_in(path), parent=parent, state=state)


_ORIGIN: Final = """
    SELECT session_key, coalesce(spawned_by, parent_session_key), created_at FROM session_windows
    WHERE session_id = ?
"""
_ORIGIN_OF_NODE: Final = (
    "SELECT coalesce(spawned_by, parent_session_key) FROM session_nodes WHERE session_key = ?"
)
_SESSION_THEN: Final = """
    SELECT session_id FROM session_windows WHERE session_key = ? AND created_at <= ?
    ORDER BY created_at DESC LIMIT 1
"""
_SESSION_NOW: Final = "SELECT current_session_id FROM session_nodes WHERE session_key = ?"


def _origin(database: sqlite3.Connection, path: str, session: str) -> tuple[str, str | None]:
    """Return a session's key and the id of the session that has started it."""
    key, starter, created_at = _row(database, _ORIGIN, session) or ("", "", 0)
    if key and not starter:
        (starter,) = _row(database, _ORIGIN_OF_NODE, key) or ("",)
    if not isinstance(key, str) or not isinstance(starter, str) or not starter or starter == key:
        return str(key or ""), None
    agent = agent_of(starter)
    if agent == agent_of(key):
        return key, _session_of(database, starter, created_at)
    return key, _session_elsewhere(path, agent, starter, created_at)


def _session_of(database: sqlite3.Connection, key: str, then: object) -> str | None:
    # The newest that was there when the other began: what its key names now may have been reset since.
    (found,) = _row(database, _SESSION_THEN, key, then) or _row(database, _SESSION_NOW, key) or (None,)
    return found if isinstance(found, str) else None


def _session_elsewhere(path: str, agent: str, key: str, then: object) -> str | None:
    """Look in another agent's database, which lies beside this one's."""
    other = of_agent(path, agent)
    if other is None or not os.path.isfile(other):
        return None
    try:
        with closing(opened(other, RowLimits())) as database:
            return _session_of(database, key, then) if has_tables(database, Tables()) else None
    except sqlite3.Error:
        return None


def _row(database: sqlite3.Connection, sql: str, *values: object) -> tuple[str | int | None, ...] | None:
    """Return the first row, its texts decoded; None also where a release has no such table or column."""
    try:
        row = database.execute(sql, values).fetchone()
    except sqlite3.OperationalError as error:
        if "no such" in str(error):
            return None
        raise
    return row and tuple(
        value.decode(errors="replace") if isinstance(value, bytes) else value for value in row
    )
