"""Table `incident`: every episode of trouble; a session has at most one that is not closed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from jobs.store.rows import Connection, fetch, insert, update
from jobs.thrash.incident import Incident


class SqlIncidents:
    """One row per incident."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def unclosed(self) -> Mapping[int, Incident]:
        """Return the incidents that are not closed, by session id."""
        sql = "SELECT * FROM incident WHERE closed_at IS NULL"
        return {incident.session_id: incident for incident in await fetch(self._connection, Incident, sql)}

    async def unclosed_of(self, session_id: int) -> Incident | None:
        """Return the incident of a session that is not closed."""
        sql = "SELECT * FROM incident WHERE session_id = ? AND closed_at IS NULL"
        return next(iter(await fetch(self._connection, Incident, sql, (session_id,))), None)

    async def get(self, incident_id: int) -> Incident | None:
        """Return one incident."""
        sql = "SELECT * FROM incident WHERE id = ?"
        return next(iter(await fetch(self._connection, Incident, sql, (incident_id,))), None)

    async def newest(self, limit: int) -> Sequence[Incident]:
        """Return the newest incidents, newest first."""
        return await fetch(
            self._connection, Incident, "SELECT * FROM incident ORDER BY id DESC LIMIT ?", (limit,)
        )

    async def add(self, incident: Incident) -> Incident:
        """Insert an incident and return it with its id."""
        return replace(incident, id=await insert(self._connection, "incident", incident))

    async def save(self, incident: Incident) -> None:
        """Overwrite an incident."""
        await update(self._connection, "incident", incident, incident.id)
