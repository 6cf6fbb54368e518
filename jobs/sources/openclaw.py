"""OpenClaw's transcripts: a database for each agent, since 2026.8 `agents/<agent>/agent/openclaw-agent.sqlite`.

Table `transcript_events` has an event a row, `event_json` or the same as a zstd frame. Before, a session was a file,
`agents/<agent>/sessions/<session>.jsonl`, with an event a line. A pattern may find both. An answer of the model with
a call in it, and the call's result:

    {"type": "message", "timestamp": "2026-11-30T08:40:35.249Z", "message": {"role": "assistant", "model": "m",
     "content": [{"type": "toolCall", "id": "call_17", "name": "exec", "arguments": {"command": "date"}}],
     "usage": {"input": 1200, "output": 30, "cacheRead": 0, "cacheWrite": 0, "cost": {"total": 0.004}},
     "timestamp": 1796028034256}}
    {"type": "message", "timestamp": "2026-11-30T08:40:38.174Z", "message": {"role": "toolResult",
     "toolCallId": "call_17", "content": [{"type": "text", "text": "pending"}], "isError": false,
     "details": {"status": "completed", "exitCode": 0}, "timestamp": 1796028038169}}

A command that fails has `isError: false`: its exit code tells. A call that was killed has no result. The agent is the
second part of the session's key, `agent:<agent>:…`, else the folder's name.
"""

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Raw

from jobs.ports import Batch, Cursor
from jobs.sources.fields import MOST_TOKENS, NOTHING, Seconds, Tokens, digest, first_time, short, state_of
from jobs.sources.lenient import decode
from jobs.sources.log_files import LogFiles
from jobs.sources.log_format import Home, LogFormat
from jobs.sources.openclaw_audit import Audit
from jobs.sources.sqlite_log import Databases
from jobs.sources.sqlite_rows import BESIDE, RowLimits, has_tables, is_database, opened
from jobs.thrash.call import Answer, Entry, ToolCall, Usage

_WRAPPER: Final = "tool_call"
"""The tool through which those are called that are not offered to the model directly."""
_NOTE: Final = "[System note: Tool-loop warning"
"""How a part begins that OpenClaw's own loop detection adds to a result, with a count in it."""
_RUN: Final = re.compile(r"\(session [^(),]{1,80}, pid \w{1,20}\)")
"""Names a command that goes on in the background, each time another way."""
_SPAWNED: Final = "childSessionKey"
"""In a result that tells of a new sub-agent; the ids in it are new each time."""
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_INJECTED: Final = frozenset({"gateway-injected", "delivery-mirror"})
"""Not models: OpenClaw writes such answers itself."""
_FAILED: Final = frozenset({"error", "blocked", "failed"})


class _Cost(msgspec.Struct, gc=False):
    total: float | None = None


class _Usage(msgspec.Struct, gc=False, rename="camel"):
    input: Tokens = 0
    output: Tokens = 0
    cache_read: Tokens = 0
    cache_write: Tokens = 0
    cost: _Cost | None = None


class _Part(msgspec.Struct, gc=False):
    """Of a message: a text, an image, a call."""

    type: str = ""
    text: str = ""
    id: str = ""
    name: str = ""
    arguments: Raw = NOTHING
    data: Raw = NOTHING


class _Details(msgspec.Struct, gc=False, rename="camel"):
    status: str = ""
    exit_code: int | None = None
    aggregated: str = ""


class _Message(msgspec.Struct, gc=False, rename="camel"):
    role: str = ""
    tool_call_id: str = ""
    content: list[_Part] | str = ""
    is_error: bool = False
    details: _Details | None = None
    model: str | None = None
    usage: _Usage | None = None
    timestamp: Seconds | datetime | None = None
    openclaw_abort: Raw = NOTHING


class _Event(msgspec.Struct, gc=False, rename="camel"):
    type: str = ""
    id: str = ""
    cwd: str = ""
    parent_session: str = ""
    timestamp: Seconds | datetime | None = None
    message: _Message | None = None


class _Wrapped(msgspec.Struct, gc=False):
    id: str
    args: Raw = Raw(b"{}")


class _State(msgspec.Struct, omit_defaults=True):
    """What the records say of their session."""

    session: str = ""
    agent: str = ""
    parent: str | None = None


_event: Final = msgspec.json.Decoder(_Event)
_wrapped: Final = msgspec.json.Decoder(_Wrapped)
_state: Final = msgspec.json.Decoder(_State)


class Transcript:
    """A `LineReader` of one session's events."""

    def __init__(self, *, session: str, agent: str, parent: str | None, state: str) -> None:
        """Begin with what is known from elsewhere; the records themselves may know better than `session`."""
        self._told = state_of(_state, state)
        self._session = short(self._told.session or session)
        self._agent = short(agent)
        self._parent = parent and short(parent)

    def read(self, line: bytes) -> Sequence[Entry] | None:
        """Return the calls and the usage of an answer of the model, or a call's result."""
        event = decode(_event, line)
        if event is None or not event.type:
            return None
        if event.type == "session":
            self._begin(event)
        if event.type != "message":
            return ()
        message = event.message
        ts = first_time(message.timestamp if message else None, event.timestamp)
        if message is None or not message.role or ts is None:
            return None
        match message.role:
            case "assistant":
                return self._answer_of_model(message, ts)
            case "toolResult":
                return self._result(message, ts)
            case _:
                return ()

    def state(self) -> str:
        """What the session's own record said."""
        return "" if self._told == _State() else msgspec.json.encode(self._told).decode()

    def _begin(self, event: _Event) -> None:
        parent = event.parent_session.rpartition("/")[2].removesuffix(".jsonl")
        folder = event.cwd.rstrip("/").rpartition("/")[2]
        self._told = _State(
            session="" if event.id == self._session else short(event.id),
            agent="" if self._agent else short(folder),
            parent=short(parent) or None,
        )
        self._session = self._told.session or self._session

    def _answer_of_model(self, message: _Message, ts: float) -> Sequence[Entry] | None:
        if message.model in _INJECTED or message.openclaw_abort != NOTHING:
            return ()
        parts = message.content if isinstance(message.content, list) else []
        named = [part for part in parts if part.type == "toolCall" and part.name]
        if not named and any(part.type == "toolCall" for part in parts):
            return None
        if message.usage is None:
            return [self._call(part, ts, None) for part in named]
        used = self._usage(message.usage, message.model, ts, has_call=bool(named))
        calls = (self._call(part, ts, None if index else used.tokens) for index, part in enumerate(named))
        return [*calls, used]

    def _call(self, part: _Part, ts: float, tokens: int | None) -> ToolCall:
        tool, args = part.name, bytes(part.arguments)
        if tool == _WRAPPER:
            try:
                wrapped = _wrapped.decode(args)
            except (ValueError, RecursionError):
                pass
            else:
                tool, args = wrapped.id or tool, bytes(wrapped.args)
        return ToolCall(
            session=self._session,
            agent=self._agent or self._told.agent or self._session,
            ts=ts,
            tool=short(tool),
            call_id=short(part.id) or None,
            args=args,
            parent=self._parent or self._told.parent,
            tokens=tokens,
        )

    def _usage(self, usage: _Usage, model: str | None, ts: float, *, has_call: bool) -> Usage:
        cost = usage.cost.total if usage.cost else None
        return Usage(
            session=self._session,
            ts=ts,
            model=short(model) if model else None,
            input=usage.input,
            output=usage.output,
            cached=usage.cache_read + usage.cache_write,
            written=usage.cache_write,
            cost=cost if cost is not None and 0 <= cost < MOST_TOKENS else None,
            has_call=has_call,
        )

    def _result(self, message: _Message, ts: float) -> Sequence[Entry] | None:
        if not message.tool_call_id:
            return None
        details = message.details or _Details()
        is_error = message.is_error or bool(details.exit_code) or details.status in _FAILED
        return (
            Answer(
                session=self._session,
                call_id=short(message.tool_call_id),
                ts=ts,
                is_error=is_error,
                digest=digest(_text(message) or details.aggregated.encode()),
            ),
        )


def _text(message: _Message) -> bytes:
    """Return a result without what OpenClaw has added to it and what is of this very call."""
    content = message.content
    if isinstance(content, str):
        return content.encode()
    texts = [part.text for part in content if not part.text.startswith(_NOTE)]
    data = [bytes(part.data) for part in content if part.data != NOTHING]
    text = _RUN.sub("", "\0".join(texts))
    if _SPAWNED in text:
        text = _UUID.sub("", text)
    return b"".join([text.encode(), *data])


class Tables:
    """A `TableFormat`."""

    table = "transcript_events"
    others: tuple[str, ...] = ("session_windows", "session_nodes")
    heads = """
        WITH RECURSIVE session_of(id) AS (
            SELECT min(session_id) FROM transcript_events
            UNION ALL
            SELECT (SELECT min(e.session_id) FROM transcript_events e WHERE e.session_id > session_of.id)
            FROM session_of WHERE session_of.id IS NOT NULL
        ),
        head(id, seq) AS (
            SELECT session_of.id,
                (SELECT max(e.seq) FROM transcript_events e WHERE e.session_id = session_of.id)
            FROM session_of WHERE session_of.id IS NOT NULL
        )
        SELECT head.id, head.seq, e.created_at
        FROM head JOIN transcript_events e ON e.session_id = head.id AND e.seq = head.seq
    """
    heads_since = """
        SELECT session_id, max(seq), max(created_at) FROM transcript_events WHERE rowid > ? GROUP BY session_id
    """
    newest = "SELECT max(rowid) FROM transcript_events"
    row = "SELECT session_id, seq FROM transcript_events WHERE rowid = ?"
    rows = """
        SELECT seq, event_json, event_zstd FROM transcript_events
        WHERE session_id = ? AND seq > ? AND seq <= ? AND typeof(seq) = 'integer' ORDER BY seq
    """
    next_row = """
        SELECT min(seq) FROM transcript_events WHERE session_id = ? AND seq > ? AND typeof(seq) = 'integer'
    """

    def reader(self, database: sqlite3.Connection, path: str, session: str, state: str, /) -> Transcript:
        """Look up to which agent a session belongs and which one has started it."""
        key, parent = _origin(database, path, session)
        return Transcript(session=session, agent=_agent_of(key) or _folder(path), parent=parent, state=state)


_ORIGIN: Final = """
    SELECT session_key, coalesce(spawned_by, parent_session_key), created_at FROM session_windows
    WHERE session_id = ?
"""
_ORIGIN_OF_NODE: Final = (
    "SELECT coalesce(spawned_by, parent_session_key) FROM session_nodes WHERE session_key = ?"
)
_SESSION_THEN: Final = """
    SELECT session_id FROM session_windows WHERE session_key = ? AND created_at <= ?
    ORDER BY created_at DESC LIMIT 1
"""
_SESSION_NOW: Final = "SELECT current_session_id FROM session_nodes WHERE session_key = ?"


def _origin(database: sqlite3.Connection, path: str, session: str) -> tuple[str, str | None]:
    """Return a session's key and the id of the session that has started it."""
    key, starter, created_at = _row(database, _ORIGIN, session) or ("", "", 0)
    if key and not starter:
        (starter,) = _row(database, _ORIGIN_OF_NODE, key) or ("",)
    if not isinstance(key, str) or not isinstance(starter, str) or not starter or starter == key:
        return str(key or ""), None
    agent = _agent_of(starter)
    if agent == _agent_of(key):
        return key, _session_of(database, starter, created_at)
    return key, _session_elsewhere(path, agent, starter, created_at)


def _session_of(database: sqlite3.Connection, key: str, then: object) -> str | None:
    # The newest that was there when the other began: what its key names now may have been reset since.
    (found,) = _row(database, _SESSION_THEN, key, then) or _row(database, _SESSION_NOW, key) or (None,)
    return found if isinstance(found, str) else None


def _session_elsewhere(path: str, agent: str, key: str, then: object) -> str | None:
    """Look in another agent's database: `agents/<agent>/agent/openclaw-agent.sqlite` beside this one's."""
    folder, name = Path(path).parent, Path(path).name
    other = folder.parent.parent / agent / folder.name / name
    if not agent or "/" in agent or agent.startswith(".") or not other.is_file():
        return None
    try:
        with closing(opened(str(other), RowLimits())) as database:
            return _session_of(database, key, then) if has_tables(database, Tables()) else None
    except sqlite3.Error:
        return None


def _row(database: sqlite3.Connection, sql: str, *values: object) -> tuple[str | int | None, ...] | None:
    """Return the first row, its texts decoded; None also where a release has no such table or column."""
    try:
        row = database.execute(sql, values).fetchone()
    except sqlite3.OperationalError as error:
        if "no such" in str(error):
            return None
        raise
    return row and tuple(
        value.decode(errors="replace") if isinstance(value, bytes) else value for value in row
    )


def _agent_of(key: object) -> str:
    parts = str(key).split(":")
    return parts[1] if len(parts) > 2 and parts[0] == "agent" else ""  # noqa: PLR2004 - `agent:<agent>:<rest>`


def _folder(path: str) -> str:
    """Return the agent that a path names: `…/agents/<agent>/…`."""
    parts = path.split("/")[:-1]
    return parts[len(parts) - parts[::-1].index("agents")] if "agents" in parts[:-1] else ""


def begin(path: str, state: str) -> Transcript:
    """Read a file of events: a `LineFormat`."""
    name = path.rpartition("/")[2]
    return Transcript(
        session=name.partition(".jsonl")[0] or name, agent=_folder(path), parent=None, state=state
    )


_TABLES: Final = (Tables(), Audit())


@dataclass(slots=True, kw_only=True)
class OpenClawLogs:
    """A `CallSource`: databases and files of lines, told apart by what they begin with."""

    name: str
    pattern: str
    takes: Callable[[str], bool] = lambda _path: True
    """Whether a path that matches is one of its logs; others are somebody else's concern."""
    _databases: Databases = field(init=False)
    _files: LogFiles = field(init=False)
    _kinds: dict[str, bool] = field(default_factory=dict, init=False)
    """By path whether it is a database, of those that are not empty."""

    def __post_init__(self) -> None:
        self._databases = Databases(
            name=self.name, pattern=self.pattern, formats=_TABLES, takes=self._is_database
        )
        self._files = LogFiles(
            name=self.name, pattern=self.pattern, format=begin, takes=self._is_file_of_lines
        )

    def read_new(self, cursors: Mapping[str, Cursor], now: float) -> Iterator[Batch]:
        """Yield what came since `cursors`."""
        self._kinds = {path: kind for path, kind in self._kinds.items() if path in cursors}
        of_lines = {path: cursor for path, cursor in cursors.items() if cursor.head}
        yield from self._files.read_new(of_lines, now)
        yield from self._databases.read_new(
            {path: cursor for path, cursor in cursors.items() if path not in of_lines}, now
        )

    def problems(self) -> Sequence[str]:
        """What the last `read_new` could not read, one sentence each."""
        # Both look through the same folders.
        return tuple(dict.fromkeys([*self._files.problems(), *self._databases.problems()]))

    def _is_file_of_lines(self, path: str) -> bool:
        return not path.endswith(BESIDE) and self.takes(path) and not self._is_database(path)

    def _is_database(self, path: str) -> bool:
        if not self.takes(path):
            return False
        known = self._kinds.get(path)
        if known is None:
            try:
                known = is_database(path)
                if known or Path(path).stat().st_size:
                    self._kinds[path] = known
            except OSError:
                return False  # whoever reads it as a file of lines will say so
        return known


FORMAT: Final = LogFormat(
    source=OpenClawLogs,
    is_record=lambda record: record.get("type") == "session" and record.keys() >= {"version", "id"},
    tables=_TABLES,
    home=Home(
        variable="OPENCLAW_STATE_DIR",
        folders=("~/.openclaw", "~/.clawdbot", "~/.moltbot"),
        # What lies under `agents` and `state`, but not in the agents' workspaces, which may be large.
        patterns=("[as][gt]*/**/openclaw*.sqlite", "agents/*/sessions/*.jsonl"),
    ),
)
