"""What a replay tells."""

from enum import StrEnum

import msgspec


class EventKind(StrEnum):
    """What would have happened."""

    ALERT = "alert"
    KILL = "kill"


class Saved(msgspec.Struct, frozen=True, kw_only=True):
    """What a session did after it would have been stopped."""

    calls: int = 0
    seconds: float = 0
    """From the stop to its last call."""
    tokens: int | None = None
    """None if the log has none."""
    cost: float | None = None
    """Money, in units of the currency; None if no price is known."""
    currency: str | None = None
    unpriced: int = 0
    """Tokens that the money leaves out, as no price of theirs is known; 0 if there is no money at all."""


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An alert or a stop."""

    event: EventKind
    path: str
    session: str
    """The source's own id."""
    agent: str
    call: int
    """The newest call of the session that had been seen: counted from 0 among all calls of its file, in a database
    among those of the session."""
    ts: float
    """Epoch seconds of the look, on the log's clock."""
    kind: str
    tool: str
    score: int
    reason: str
    saved: Saved | None = None
    """Of a stop, once the log has been read to its end."""
