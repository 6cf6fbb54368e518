"""opencode's database, `~/.local/share/opencode/opencode.db`: the table `event` has every change of a session.

A call is a part of a message, and the part is written anew whenever it changes. A call that runs, and the end of
its answer of the model:

    {"part": {"id": "prt_1", "sessionID": "ses_1", "type": "tool", "tool": "bash", "callID": "call_1",
     "state": {"status": "running", "input": {"command": "date"}, "time": {"start": 1796031443821}}},
     "time": 1796031443828}
    {"part": {"id": "prt_2", "sessionID": "ses_1", "type": "step-finish", "cost": 0.00405,
     "tokens": {"input": 1200, "output": 30, "reasoning": 0, "cache": {"read": 0, "write": 0}}},
     "time": 1796031444366}

The first has its input only once its status is no longer `pending`, and its answer with the status `completed` or
`error`; a command that fails is `completed`, its `metadata.exit` tells. As the model's use is known only after its
calls, these bear no tokens. The agent is the last folder of the session's directory, a sub-agent what it was told
to do in a few words, which is its session's title.
"""

import re
import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec
from msgspec import Raw

from jobs.sources.fields import MOST_TOKENS, NOTHING, Tokens, digest, first_time, short, state_of
from jobs.sources.lenient import decode
from jobs.sources.log_format import Home, LogFormat
from jobs.sources.sqlite_log import Databases
from jobs.thrash.call import Answer, Entry, ToolCall, Usage

_HAS_INPUT: Final = frozenset({"running", "completed", "error"})
_ENDED: Final = frozenset({"completed", "error"})
_OPEN: Final = 32
"""So many calls without an answer are remembered of a session; of one that was killed it never comes."""
_CLOSED: Final = 8
"""And so many with one, should their parts be written once more."""
_END_OF_ID: Final = 12
"""Characters that tell the parts of a session apart."""
_SUFFIX: Final = re.compile(r" \(@[^()]* subagent\)$")
"""Of a sub-agent's title."""
_SESSION_ID: Final = re.compile(r"ses_[0-9A-Za-z]{12,}")
"""A sub-agent's, in the answer of the call that started it."""


class _Time(msgspec.Struct, gc=False):
    start: float | None = None
    end: float | None = None
    compacted: float | None = None
    """When an answer was taken out of what the model sees."""


class _Metadata(msgspec.Struct, gc=False):
    exit: int | None = None


class _Attachment(msgspec.Struct, gc=False):
    url: str = ""


class _CallState(msgspec.Struct, gc=False):
    status: str = ""
    input: Raw = NOTHING
    output: str = ""
    error: str = ""
    metadata: _Metadata | None = None
    time: _Time | None = None
    attachments: list[_Attachment] | None = None


class _Cache(msgspec.Struct, gc=False):
    read: Tokens = 0
    write: Tokens = 0


class _Used(msgspec.Struct, gc=False):
    input: Tokens = 0
    output: Tokens = 0
    reasoning: Tokens = 0
    cache: _Cache | None = None


class _Part(msgspec.Struct, gc=False):
    id: str = ""
    type: str = ""
    tool: str = ""
    call_id: str = msgspec.field(default="", name="callID")
    state: _CallState | None = None
    cost: float | None = None
    tokens: _Used | None = None


class _Message(msgspec.Struct, gc=False):
    role: str = ""
    model: str = msgspec.field(default="", name="modelID")


class _Event(msgspec.Struct, gc=False):
    time: float | None = None
    part: _Part | None = None
    info: _Message | None = None


class _State(msgspec.Struct, omit_defaults=True):
    """What a session's later events refer to: the model that answers, and parts that may be written anew."""

    model: str | None = None
    open: list[str] = []
    closed: list[str] = []


_event: Final = msgspec.json.Decoder(_Event)
_state: Final = msgspec.json.Decoder(_State)


class Session:
    """A `LineReader` of one session's events."""

    def __init__(self, *, session: str, agent: str, parent: str | None, state: str) -> None:
        """Begin with what the database says of the session."""
        self._session, self._agent, self._parent = (
            short(session),
            short(agent or session),
            parent and short(parent),
        )
        self._state = state_of(_state, state)

    def read(self, line: bytes) -> Sequence[Entry] | None:
        """Return a call once it has its input, its answer once it has ended, and what each step has used."""
        event = decode(_event, line)
        if event is None or (event.part is None and event.info is None):
            return None
        if event.info is not None:
            if event.info.role == "assistant" and event.info.model:
                self._state.model = short(event.info.model)
            return ()
        match event.part:
            case _Part(type="tool") as part:
                return self._call(part, event)
            case _Part(type="step-finish", tokens=_Used() as used, cost=cost):
                return self._usage(used, cost, event)
            case _Part(type=""):
                return None
            case _:
                return ()

    def state(self) -> str:
        """The model, and the newest calls."""
        return msgspec.json.encode(self._state).decode()

    def _call(self, part: _Part, event: _Event) -> Sequence[Entry] | None:
        state, times = part.state, (part.state and part.state.time) or _Time()
        started = first_time(times.start, event.time)
        if state is None or started is None or not part.tool or not (part.id or part.call_id):
            return None
        key = (part.id or part.call_id)[-_END_OF_ID:]
        if state.status not in _HAS_INPUT or key in self._state.closed or times.compacted is not None:
            return ()
        told: list[Entry] = []
        if key not in self._state.open:
            _remember(self._state.open, key, _OPEN)
            told.append(self._tool_call(part, state, started))
        if state.status in _ENDED:
            self._state.open.remove(key)
            _remember(self._state.closed, key, _CLOSED)
            told.append(self._answer(part, state, first_time(times.end, event.time) or started))
        return told

    def _tool_call(self, part: _Part, state: _CallState, ts: float) -> ToolCall:
        return ToolCall(
            session=self._session,
            agent=self._agent,
            ts=ts,
            tool=short(part.tool),
            call_id=short(part.call_id or part.id),
            args=bytes(state.input),
            parent=self._parent,
        )

    def _answer(self, part: _Part, state: _CallState, ts: float) -> Answer:
        has_failed = state.status == "error" or bool(state.metadata and state.metadata.exit)
        return Answer(
            session=self._session,
            call_id=short(part.call_id or part.id),
            ts=ts,
            is_error=has_failed,
            digest=digest(_text(state)),
        )

    def _usage(self, used: _Used, cost: float | None, event: _Event) -> Sequence[Entry] | None:
        ts, cache = first_time(event.time), used.cache or _Cache()
        if ts is None:
            return None
        return (
            Usage(
                session=self._session,
                ts=ts,
                model=self._state.model,
                input=used.input,
                output=used.output + used.reasoning,
                cached=cache.read + cache.write,
                written=cache.write,
                cost=cost if cost is not None and 0 <= cost < MOST_TOKENS else None,
            ),
        )


def _text(state: _CallState) -> bytes:
    text = state.error if state.status == "error" else state.output
    urls = [attachment.url for attachment in state.attachments or ()]
    return _SESSION_ID.sub("", "\0".join([text, *urls])).encode()


def _remember(keys: list[str], key: str, most: int) -> None:
    keys.append(key)
    del keys[:-most]


_ORIGIN: Final = "SELECT parent_id, directory, title FROM session WHERE id = ?"


class Events:
    """A `TableFormat`."""

    table = "event"
    others: tuple[str, ...] = ("session",)
    heads = """
        WITH RECURSIVE session_of(id) AS (
            SELECT min(aggregate_id) FROM event
            UNION ALL
            SELECT (SELECT min(e.aggregate_id) FROM event e WHERE e.aggregate_id > session_of.id)
            FROM session_of WHERE session_of.id IS NOT NULL
        )
        SELECT session_of.id, (SELECT max(e.seq) FROM event e WHERE e.aggregate_id = session_of.id),
            (SELECT s.time_updated FROM session s WHERE s.id = session_of.id)
        FROM session_of WHERE session_of.id IS NOT NULL
    """
    heads_since = """
        SELECT e.aggregate_id, max(e.seq), (SELECT s.time_updated FROM session s WHERE s.id = e.aggregate_id)
        FROM event e WHERE e.rowid > ? GROUP BY e.aggregate_id
    """
    newest = "SELECT max(rowid) FROM event"
    row = "SELECT aggregate_id, seq FROM event WHERE rowid = ?"
    rows = """
        SELECT seq, data, NULL FROM event
        WHERE aggregate_id = ? AND seq > ? AND seq <= ? AND typeof(seq) = 'integer'
            AND (type LIKE 'message.part.updated.%' OR type LIKE 'message.updated.%')
        ORDER BY seq
    """
    next_row = """
        SELECT min(seq) FROM event
        WHERE aggregate_id = ? AND seq > ? AND typeof(seq) = 'integer'
            AND (type LIKE 'message.part.updated.%' OR type LIKE 'message.updated.%')
    """

    def reader(self, database: sqlite3.Connection, _path: str, session: str, state: str, /) -> Session:
        """Look up where a session works and which one has started it."""
        row = database.execute(_ORIGIN, (session,)).fetchone() or (None, None, None)
        parent, directory, title = (
            value.decode(errors="replace") if isinstance(value, bytes) else "" for value in row
        )
        agent = _SUFFIX.sub("", title) if parent else directory.rstrip("/").rpartition("/")[2]
        return Session(session=session, agent=agent, parent=parent or None, state=state)


_TABLES: Final = (Events(),)

FORMAT: Final = LogFormat(
    source=partial(Databases, formats=_TABLES),
    tables=_TABLES,
    home=Home(
        variable="XDG_DATA_HOME",
        folders=("~/.local/share",),
        patterns=("opencode/opencode*.db",),
    ),
    # A server's process holds many sessions.
    process=r"^(\S*/)?\.?opencode(?! serve)(?! web)(?!\S)",
)
