"""One episode of trouble with one session."""

from dataclasses import dataclass
from enum import StrEnum

from jobs.thrash.streak import Ended


class IncidentStatus(StrEnum):
    """Where an incident stands."""

    OPEN = "open"
    ASKED = "asked"
    """The chat was asked whether to stop the agent."""
    STOPPING = "stopping"
    STOPPED = "stopped"
    STOP_FAILED = "stop_failed"
    STILL_RUNNING = "still_running"
    """It was stopped, and goes on all the same."""
    DRY_RUN = "dry_run"
    """It would have been stopped."""
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Numbers are totals since the first repeating call. Times are epoch seconds, `*_ts` on the log's clock."""

    id: int
    session_id: int
    agent: str
    source: str
    opened_at: float
    updated_at: float
    first_call: int
    first_ts: float
    tokens_before: int | None
    kind: str
    tool: str
    score: int
    steps: int
    calls: int
    newest_ts: float
    tokens: int | None
    status: IncidentStatus = IncidentStatus.OPEN
    ended: Ended | None = None
    asked_at: float | None = None
    snoozed_until: float | None = None
    closed_at: float | None = None
    cost_before: int | None = None
    cost: int | None = None
    """Money, as in `price`; None if none is known."""
    unpriced: int = 0
    """Tokens of the session that no price is known of: if there are any, the money may leave some out."""
    currency: str | None = None

    @property
    def reason(self) -> str:
        """The reason given to killers and tables, such as `thrash_loop:8`."""
        return f"{self.kind}:{self.score}"

    @property
    def is_undecided(self) -> bool:
        """Whether no stop has been tried yet."""
        return self.status in {IncidentStatus.OPEN, IncidentStatus.ASKED}

    @property
    def is_being_stopped(self) -> bool:
        """Whether a stop is under way, or has worked and is being looked at again."""
        return self.status in {IncidentStatus.STOPPING, IncidentStatus.STOPPED}
