"""What the database keeps of runs: reported, verified, how their workflows stand. Times are epoch seconds."""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

import msgspec

from jobs.verification.verdict import Judged, Outcome, Sighting

CLOCK_SLACK: Final = 60.0
"""Seconds by which a clock may be ahead, and is adjusted, without having been set back."""


class Trigger(StrEnum):
    """Who had a run verified."""

    COMMAND = "command"
    """`loopwarden verify`."""
    OUTPUT = "output"
    """The watcher saw the output change."""
    REPORT = "report"
    """A program, over HTTP."""
    SESSION = "session"
    """The end of an agent's work."""
    SLOT = "slot"
    """It was due."""
    CHAT = "chat"


class Ends(msgspec.Struct, frozen=True, kw_only=True):
    """The ends of agents' work that were heard of."""

    calls: dict[int, float] = {}
    """The newest call's time, by the id of the session."""


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """Where a person waits for a verdict: the message that asked for it."""

    chat: str
    """`<chat id>` or `<chat id>/<topic id>`."""
    message: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A run to be verified."""

    id: int = 0
    workflow: str
    by: Trigger
    at: float
    reported: str | None = None
    """The reporter's own id of the run."""
    run_id: int | None = None
    """The run to be judged again."""
    slot: float | None = None
    as_of: float | None = None
    """When the output came, if nobody watched then: its age is judged as of that time."""
    said: str | None = None
    answer: str | None = None
    """JSON of the message that a person waits in for the verdict: `Waiting`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One execution of a workflow."""

    id: int = 0
    workflow: str
    key: str
    """What tells it from the workflow's other runs: `slot:`, `due:`, `run:`, `end:`, `file:` or `none:` and which."""
    slot: float | None = None
    reported: str | None = None
    at: float
    """When it was first heard of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedVerdict:
    """A verdict as the history keeps it; the newest of a run counts."""

    id: int = 0
    run_id: int
    workflow: str
    by: Trigger
    outcome: Outcome
    says_failed: bool
    failed_check: str | None
    judged: Judged
    at: float
    took: float
    """Seconds."""
    as_of: float | None = None
    """When the output came, if its age was judged as of then and not as of `at`."""
    ran_at: float
    """When its run was first judged, or missed: the week that it is counted in is that of this time."""
    checks: str
    """Those that were asked for, in order, with a space between."""
    said_done: bool
    """Whether the run, by this verdict or one before, failed and had said that it was done."""
    failed_tries: int = 0
    """How often it had failed before it left something else."""
    is_newest: bool = True
    """Whether it is the one that counts for its run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowState:
    """How a workflow stands."""

    id: int = 0
    name: str
    since: float
    """When it was first watched."""
    seen: Sighting | None = None
    """The output that the watcher saw last."""
    judged_until: float
    """Slots up to this time have been judged; 0: nobody watches yet."""
    last_run: int | None = None
    """The newest run of which there is a verdict."""
    ends: Ends = field(default_factory=Ends)
    failures: int = 0
    """Runs in a row without a good output."""
    alerted_run: int | None = None
    """The run whose alert is open."""
    silenced_until: float | None = None

    def by_clock(self, looked_at: float, now: float) -> "WorkflowState":
        """Return how it stands by a clock that was set back since it was `looked_at`: what lay ahead counts as now."""
        if max(looked_at, self.since, self.judged_until) <= now + CLOCK_SLACK:
            return self
        return replace(self, since=now, judged_until=min(self.judged_until, now))
