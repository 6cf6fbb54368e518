"""OpenClaw's audit, `state/openclaw.sqlite`: every call of every run, but neither its arguments nor its result.

It is read for the runs that leave no transcript, which OpenClaw starts itself when another has ended: their session's
key holds `:internal-session-effects:`. A row of its table `audit_events`, as JSON and shortened:

    {"sequence": 148, "occurred_at": 1796028118651, "action": "tool.action.started", "status": "started",
     "agent_id": "main", "session_id": "2e57b087-…", "run_id": "skill-workshop-review:40d98577-…",
     "tool_call_id": "sha256:5b80…", "tool_name": "exec"}

The session is the run, its parent the session whose id some of the rows bear. As nothing is known of a call but its
tool, no two are ever alike.
"""

import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec

from jobs.sources.fields import Seconds, digest, epoch, short, state_of
from jobs.sources.lenient import decode
from jobs.thrash.call import Answer, Entry, ToolCall

_OWN: Final = "internal-session-effects"
"""How ids of sessions begin that no transcript has."""
_NO_ERROR: Final = frozenset({"succeeded", "cancelled"})


class _Event(msgspec.Struct, gc=False):
    action: str = ""
    status: str = ""
    time: Seconds | None = None
    agent: str | None = None
    session: str | None = None
    call: str | None = None
    tool: str | None = None


class _State(msgspec.Struct, omit_defaults=True):
    parent: str | None = None


_event: Final = msgspec.json.Decoder(_Event)
_state: Final = msgspec.json.Decoder(_State)


class Run:
    """A `LineReader` of one run's events."""

    def __init__(self, run: str, state: str) -> None:
        """Begin, or go on where `state` was given."""
        self._run = short(run)
        self._state = state_of(_state, state)

    def read(self, line: bytes) -> Sequence[Entry] | None:
        """Return a call that was started, or what became of one."""
        event = decode(_event, line)
        if event is None or event.time is None or not event.tool or not event.call:
            return None
        try:
            ts = epoch(event.time)
        except ValueError:
            return None
        if event.session and not event.session.startswith(_OWN):
            self._state.parent = short(event.session)
        match event.action:
            case "tool.action.started":
                return (self._call(event.tool, event.call, event.agent, ts),)
            case "tool.action.finished":
                return (self._answer(event.call, event.status, ts),)
            case _:
                return ()

    def state(self) -> str:
        """The parent."""
        return msgspec.json.encode(self._state).decode()

    def _call(self, tool: str, call: str, agent: str | None, ts: float) -> ToolCall:
        return ToolCall(
            session=self._run,
            agent=short(agent or self._run),
            ts=ts,
            tool=short(tool),
            call_id=short(call),
            args_hash=short(call),
            parent=self._state.parent,
        )

    def _answer(self, call: str, status: str, ts: float) -> Answer:
        return Answer(
            session=self._run,
            call_id=short(call),
            ts=ts,
            is_error=status not in _NO_ERROR,
            digest=digest(call.encode()),
        )


class Audit:
    """A `TableFormat`."""

    table = "audit_events"
    others: tuple[str, ...] = ()
    heads = """
        SELECT run_id, max(sequence), max(occurred_at) FROM audit_events
        WHERE kind = 'tool_action' AND session_key LIKE '%:internal-session-effects:%' AND run_id IS NOT NULL
        GROUP BY run_id
    """
    heads_since = """
        SELECT run_id, max(sequence), max(occurred_at) FROM audit_events
        WHERE sequence > ? AND kind = 'tool_action' AND session_key LIKE '%:internal-session-effects:%'
            AND run_id IS NOT NULL
        GROUP BY run_id
    """
    newest = "SELECT max(sequence) FROM audit_events"
    row = "SELECT coalesce(run_id, ''), sequence FROM audit_events WHERE sequence = ?"
    rows = """
        SELECT sequence, json_object(
            'action', action, 'status', status, 'time', occurred_at, 'agent', agent_id, 'session', session_id,
            'call', tool_call_id, 'tool', tool_name
        ), NULL
        FROM audit_events
        WHERE run_id = ? AND sequence > ? AND sequence <= ? AND typeof(sequence) = 'integer'
            AND kind = 'tool_action'
        ORDER BY sequence
    """
    next_row = """
        SELECT min(sequence) FROM audit_events
        WHERE run_id = ? AND sequence > ? AND typeof(sequence) = 'integer' AND kind = 'tool_action'
    """

    def reader(self, _database: sqlite3.Connection, _path: str, session: str, state: str, /) -> Run:
        """Begin to read a run."""
        return Run(session, state)
