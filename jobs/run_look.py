"""One look at a workflow: what is known before, and what it finds of its output and of the ends of agents' work."""

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any, Final

from jobs.ports import Tables
from jobs.thrash.session import Session
from jobs.verification.arrival import Arrival, arrival_of
from jobs.verification.history import Ends, Report, Trigger, WorkflowState
from jobs.verification.slots import slot_of
from jobs.verification.spec import WorkflowSpec
from jobs.verification.verdict import Sighting

_SESSIONS: Final = 20
"""Of an agent, those that were heard of last."""

Lives = Callable[[int, float], Awaitable[bool]]
"""Whether the process that had a pid at a time still runs."""


@dataclass(slots=True, kw_only=True)
class Memory:
    """What is remembered of a workflow between two looks."""

    looked_at: float
    arrival: Arrival | None = None
    living: dict[int, int] = field(default_factory=dict)
    """The processes that were seen alive, by the id of their session."""
    gone_at: dict[int, float] = field(default_factory=dict)
    """When they were found gone."""


@dataclass(slots=True, kw_only=True)
class RunLook:
    """What one look knows, and then has found."""

    spec: WorkflowSpec
    state: WorkflowState
    memory: Memory
    output: Sighting | None
    began: float
    """When the bot took up its work."""
    now: float
    zone: tzinfo
    reports: list[Report] = field(default_factory=list)
    missing: list[float] = field(default_factory=list)
    """When those runs were due."""
    changes: dict[str, Any] = field(default_factory=dict)
    """Of the workflow's state."""

    def __post_init__(self) -> None:
        known = self.state
        self.state = known.by_clock(self.memory.looked_at, self.now)
        if self.state is not known:
            self.changes.update(since=self.state.since, judged_until=self.state.judged_until)

    # ── outputs ───────────────────────────────────────────────────────────────────────────────────

    def find_output(self) -> None:
        """Report an output that has changed and settled, or goes on changing for too long."""
        memory, output = self.memory, self.output
        if output is None or output == self.state.seen:
            memory.arrival = None
            return
        memory.arrival = arrival = arrival_of(
            memory.arrival,
            output,
            looked_at=memory.looked_at,
            is_late=memory.looked_at < self.began,
            settle=self.spec.settle,
            patience=self.spec.settle + self.spec.grace,
            now=self.now,
        )
        if arrival.is_settled:
            self.reports.append(self._report_of(arrival))
            self.changes["seen"] = output
            memory.arrival = None

    def _report_of(self, arrival: Arrival) -> Report:
        spec = self.spec
        return Report(
            workflow=spec.name,
            by=Trigger.OUTPUT,
            at=self.now,
            slot=slot_of(spec.expect, arrival.came_at, self.zone) if spec.expect else None,
            as_of=min(arrival.came_at + spec.settle, self.now) if arrival.is_late else None,
        )

    # ── the ends of agents' work ──────────────────────────────────────────────────────────────────

    async def find_ends(self, tables: Tables, lives: Lives) -> None:
        """Report the sessions that have ended since the last end that was heard of."""
        if self.spec.after is None:
            return
        source, _, name = self.spec.after.partition(":")
        heard = self.state.ends.calls
        sessions = await tables.sessions.named(source, name, self.state.since, _SESSIONS)
        looked_at = await tables.presence.last() or 0.0
        ended = [
            session
            for session in sessions
            if session.last_ts > heard.get(session.id, -math.inf)
            and await self._has_ended(session, looked_at, lives)
        ]
        if ended:
            self.reports += [self._end_of(session) for session in ended]
            known = {session.id: heard[session.id] for session in sessions if session.id in heard}
            calls = known | {session.id: session.last_ts for session in ended}
            self.changes["ends"] = Ends(calls=calls)

    async def _has_ended(self, session: Session, looked_at: float, lives: Lives) -> bool:
        """Whether it was quiet for long, or its process was seen alive, is gone, and its log was read once more since."""
        if looked_at - session.seen_at >= self.spec.settle:
            return True
        if session.pid is None:
            return False
        memory, since = self.memory, session.pid_since_ts or session.first_ts
        if await lives(session.pid, since):
            memory.living[session.id] = session.pid
            memory.gone_at.pop(session.id, None)
            return False
        # A pid that was never seen alive may be one of another machine's.
        if memory.living.get(session.id) != session.pid:
            return False
        return looked_at > memory.gone_at.setdefault(session.id, self.now)

    def _end_of(self, session: Session) -> Report:
        came_at = self.output.mtime_ns / 1e9 if self.output else self.now
        is_late = max(session.last_ts, came_at) < self.began
        return Report(
            workflow=self.spec.name,
            by=Trigger.SESSION,
            at=self.now,
            reported=session.session,
            as_of=min(came_at + self.spec.settle, self.now) if is_late else None,
        )
