"""The numbers of the thrash rule, each with its default."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

LONGEST_BEAT: Final = 300
"""Seconds."""


class OnDetection(StrEnum):
    """What a detection may lead to."""

    OBSERVE = "observe"
    ASK = "ask"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrashPolicy:
    """When a session counts as thrashing and what follows. Times are in seconds."""

    every: float = 60
    """The beat of the scan."""
    window: float = 60
    """A call repeats an earlier one only if that is at most this old."""
    last: int = 10
    """How many of the newest calls are scored."""
    distance: int = 3
    """Edits (Levenshtein) up to which the arguments of two calls count as the same."""
    threshold: int = 6
    """The score from which a look is a detection."""
    least_calls: int = 6
    """A session with fewer calls than this is not judged."""
    kill_after: int = 3
    """Steps in a row after which the agent is stopped."""
    on_detection: OnDetection = OnDetection.STOP
    expires: float = 600
    """A streak without a step for this long is over; calls older than this, read late, are history."""
    restarts: int = 3
    """How often in a row a new process makes a streak begin again."""
    ask_grace: float = 300
    """Under `ask`: how long the chat has to answer before a loop that goes on is stopped."""
    settle: float = 5
    """After a stop: how long calls under way may still come in."""
    remembered: int = 200
    """Calls kept of one session, however many fall into the window."""
    longest_args: int = 4096
    """Characters of arguments compared by distance; longer ones repeat only when equal."""
