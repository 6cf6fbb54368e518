"""The tables that a digest is composed from, for a command without an event loop."""

from dataclasses import dataclass
from typing import Self

from jobs.store.absences import SqlAbsences
from jobs.store.counts import SqlCounts
from jobs.store.digests import SqlDigests
from jobs.store.incidents import SqlIncidents
from jobs.store.pins import SqlPins
from jobs.store.presence import SqlPresence
from jobs.store.rows import Connection
from jobs.store.selftests import SqlSelfTests
from jobs.store.stops import SqlStops


@dataclass(frozen=True, slots=True)
class DigestTables:
    """Those tables over one connection."""

    pins: SqlPins
    selftests: SqlSelfTests
    incidents: SqlIncidents
    stops: SqlStops
    presence: SqlPresence
    absences: SqlAbsences
    digests: SqlDigests
    counts: SqlCounts

    @classmethod
    def over(cls, connection: Connection) -> Self:
        """Bind them to one connection."""
        return cls(
            SqlPins(connection),
            SqlSelfTests(connection),
            SqlIncidents(connection),
            SqlStops(connection),
            SqlPresence(connection),
            SqlAbsences(connection),
            SqlDigests(connection),
            SqlCounts(connection),
        )
