"""Table `session`: every session seen, with what its detector remembers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import aiosqlite

from jobs.store.rows import fetch, insert, insert_all, update, update_all
from jobs.thrash.session import Session

_NAMES_PER_QUERY: Final = 500


class SqlSessions:
    """One row per (source, session)."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    async def of_source(self, source: str, names: Sequence[str]) -> Mapping[str, Session]:
        """Return those of `names` that are known, by name."""
        found: dict[str, Session] = {}
        for start in range(0, len(names), _NAMES_PER_QUERY):
            some = names[start : start + _NAMES_PER_QUERY]
            marks = ", ".join("?" * len(some))
            sql = f"SELECT * FROM session WHERE source = ? AND session IN ({marks})"  # noqa: S608 - marks only
            found |= {s.session: s for s in await fetch(self._connection, Session, sql, (source, *some))}
        return found

    async def get(self, session_id: int) -> Session | None:
        """Return one session by its short id."""
        sql = "SELECT * FROM session WHERE id = ?"
        return next(iter(await fetch(self._connection, Session, sql, (session_id,))), None)

    async def find(self, name: str, limit: int) -> Sequence[Session]:
        """Return the sessions with exactly this agent's or session's name that have made calls, newest first."""
        sql = """SELECT * FROM session WHERE (agent = ?1 OR session = ?1) AND seen_at > 0
                 ORDER BY seen_at DESC, id LIMIT ?2"""
        return await fetch(self._connection, Session, sql, (name, limit))

    async def named(self, source: str, name: str, since: float, limit: int) -> Sequence[Session]:
        """Return an agent's, or a session's, sessions of one source with calls read since then, newest first."""
        sql = """SELECT * FROM session WHERE seen_at >= ?1 AND source = ?2 AND (agent = ?3 OR session = ?3)
                 ORDER BY seen_at DESC, id LIMIT ?4"""
        return await fetch(self._connection, Session, sql, (since, source, name, limit))

    async def newest(self, since: float, limit: int) -> Sequence[Session]:
        """Return the sessions with calls read since then, newest first."""
        sql = "SELECT * FROM session WHERE seen_at >= ? ORDER BY seen_at DESC, last_ts DESC, id LIMIT ?"
        return await fetch(self._connection, Session, sql, (since, limit))

    async def sharing_process(self, session: Session, since: float) -> Sequence[int]:
        """Return the ids of the other sessions with calls read since then that the same process is said to run."""
        sql = "SELECT id FROM session WHERE pid = ? AND id != ? AND seen_at >= ? ORDER BY id"
        rows = await self._connection.execute_fetchall(sql, (session.pid, session.id, since))
        return [int(row[0]) for row in rows]

    async def counts(self, since: float) -> Mapping[str, int]:
        """Return how many sessions of each source had calls read since then."""
        sql = "SELECT source, count(*) FROM session WHERE seen_at >= ? GROUP BY source"
        rows = await self._connection.execute_fetchall(sql, (since,))
        return {str(row[0]): int(row[1]) for row in rows}

    async def save(self, session: Session) -> Session:
        """Insert a session whose id is 0, else overwrite it; return it with its id."""
        if session.id:
            await update(self._connection, "session", session, session.id)
            return session
        return replace(session, id=await insert(self._connection, "session", session))

    async def save_all(self, sessions: Sequence[Session]) -> None:
        """Insert those whose id is 0, overwrite the others."""
        await insert_all(self._connection, "session", [session for session in sessions if not session.id])
        known = {session.id: session for session in sessions if session.id}
        await update_all(self._connection, "session", known)
