"""Table `stop`: every order to stop a session, the intent before and the outcome after."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from jobs.ports import Stop, StopState
from jobs.store.rows import Connection, fetch, insert, update

# Of several stops of one incident the last, once it has held: that closes the incident.
_HELD: Final = """SELECT stop.* FROM stop JOIN incident ON incident.id = stop.incident_id
    WHERE stop.outcome = 'stopped' AND stop.state = 'over'
        AND incident.status = 'stopped' AND incident.closed_at >= ? AND incident.closed_at < ?
        AND stop.id = (SELECT max(id) FROM stop s WHERE s.incident_id = stop.incident_id)
    ORDER BY stop.finished_at, stop.id"""


class SqlStops:
    """One row per stop; a session has at most one that is only intended."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def get(self, stop_id: int) -> Stop | None:
        """Return one stop."""
        return next(
            iter(await fetch(self._connection, Stop, "SELECT * FROM stop WHERE id = ?", (stop_id,))), None
        )

    async def in_state(self, state: StopState) -> Sequence[Stop]:
        """Return the stops in a state, oldest first."""
        return await fetch(self._connection, Stop, "SELECT * FROM stop WHERE state = ? ORDER BY id", (state,))

    async def intended_of(self, session_id: int) -> Stop | None:
        """Return the stop of a session that is not carried out yet."""
        sql = "SELECT * FROM stop WHERE session_id = ? AND state = 'intended'"
        return next(iter(await fetch(self._connection, Stop, sql, (session_id,))), None)

    async def latest_of(self, session_ids: Sequence[int]) -> Sequence[Stop]:
        """Return the latest stop of each of these sessions that was ever stopped."""
        marks = ", ".join("?" * len(session_ids))
        sql = f"SELECT * FROM stop WHERE id IN (SELECT max(id) FROM stop WHERE session_id IN ({marks}) GROUP BY session_id)"  # noqa: S608 - marks only
        return await fetch(self._connection, Stop, sql, session_ids)

    async def held(self, since: float, until: float) -> Sequence[Stop]:
        """Return the stops that have put an incident to its end in a length of time, oldest first."""
        return await fetch(self._connection, Stop, _HELD, (since, until))

    async def of_session(self, session_id: int, limit: int) -> Sequence[Stop]:
        """Return the stops of a session, newest first."""
        sql = "SELECT * FROM stop WHERE session_id = ? ORDER BY id DESC LIMIT ?"
        return await fetch(self._connection, Stop, sql, (session_id, limit))

    async def add(self, stop: Stop) -> Stop:
        """Insert a stop and return it with its id."""
        return replace(stop, id=await insert(self._connection, "stop", stop))

    async def save(self, stop: Stop) -> None:
        """Overwrite a stop."""
        await update(self._connection, "stop", stop, stop.id)
