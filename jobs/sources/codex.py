r"""Codex CLI's rollouts: `~/.codex/sessions/Y/M/D/rollout-<time>-<thread>.jsonl`, one record a line; one file a thread.

    {"timestamp": "2026-11-30T09:37:44.784Z", "ordinal": 18, "type": "response_item", "payload":
     {"type": "function_call", "name": "exec_command", "arguments": "{\"cmd\": \"pwd\"}", "call_id": "call_1M"}}

`session_meta` at the head names the thread, its parent and its nickname; a copied history has one of its own.
`response_item` tells calls and outputs. In code mode a call is `custom_tool_call` `exec` whose `input` is a script;
each command that a script runs ends in an `event_msg` of its own, `item_completed`, under an id of its own.
`token_usage_record` follows the calls of the model's answer; older releases have `token_count` alone. An output does
not tell whether it failed: the `item_completed` before it does, in older releases `exec_command_end` and the like.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import PurePath, PureWindowsPath
from typing import Final
from zlib import crc32

import msgspec
from msgspec import Raw

from jobs.sources.fields import NOTHING, Tokens, digest, epoch, name, short
from jobs.sources.lenient import decode
from jobs.sources.log_files import LogFiles
from jobs.sources.log_format import Home, LogFormat
from jobs.thrash.call import Answer, Entry, ToolCall, Usage

_NO_NAME: Final = "codex"
_REMEMBERED: Final = 100
"""Ids of calls and of the model's answers that were told, newest last."""
_OPEN: Final = 50
"""Calls without an output, newest last."""
_KEPT_OF_SCRIPT: Final = 500
"""Bytes in which a command is looked for."""
_HELD: Final = 8
_LONGEST_HELD: Final = 1 << 13
"""Bytes of arguments. A longer call is told without its tokens."""
_FAILED: Final = frozenset({"failed", "declined"})
_UUID_LENGTH: Final = 36
_UUID_VERSION: Final = 14
"""Where a UUID tells its version; those of version 7 sort by time."""

_THREAD: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$")
_HEADER: Final = re.compile(
    rb"""
    (?=Chunk\ ID:|Script\ |Exit\ code:|Wall\ time|Process\ )
    (?:Chunk\ ID:.*\n)?
    (?:Script\ (?P<script>completed|failed|terminated|running)(?:\ with\ cell\ ID\ .*)?\n)?
    (?:Exit\ code:\ (?P<exit>-?\d+)\n)?
    (?:Wall\ time.*\n)?
    (?:Process\ (?:exited\ with\ code\ (?P<process>-?\d+)|running\ with\ session\ ID\ .*)\n)?
    (?:Original\ token\ count:.*\n)?
    (?:Total\ output\ lines:.*\n)?
    Output:\n
    """,
    re.VERBOSE,
)
_PATCH_HEADER: Final = re.compile(rb"Exit code: (?P<exit>-?\d+)\nWall time.*\nOutput:\n")
_QUOTES: Final = re.compile(r"""[\\"'`]+""")
_VARYING: Final = re.compile(rb'"(?:chunk_id":\s*"\w*"|wall_time_seconds":\s*[\d.e-]+)')
"""In the result of a command, where a script prints all of it."""


# ── records ───────────────────────────────────────────────────────────────────────────────────────


class _Item(msgspec.Struct, gc=False):
    """What has ended: a command, a change of files, a call of another agent."""

    id: str | None = None
    command: Raw = NOTHING
    status: str | None = None
    exit_code: int | None = None


class _Used(msgspec.Struct, gc=False):
    input_tokens: Tokens | None = None
    """With those from the cache."""
    cached_input_tokens: Tokens | None = None
    cache_write_input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None
    total_tokens: Tokens | None = None


class _Counted(msgspec.Struct):
    total_token_usage: _Used | None = None
    last_token_usage: _Used | None = None


class _Payload(msgspec.Struct):
    """The fields of all records that tell something."""

    type: str | None = None
    id: str | None = None
    # of calls and outputs
    name: str | None = None
    namespace: str | None = None
    input: Raw = NOTHING
    arguments: Raw = NOTHING
    action: Raw = NOTHING
    call_id: str | None = None
    output: Raw = NOTHING
    # of what has ended
    thread_id: str | None = None
    turn_id: str | None = None
    item: _Item | None = None
    command: Raw = NOTHING
    exit_code: int | None = None
    success: bool | None = None
    # of tokens
    response_id: str | None = None
    usage: _Used | None = None
    info: _Counted | None = None
    # of threads
    parent_thread_id: str | None = None
    forked_from_id: str | None = None
    cwd: str | None = None
    source: Raw = NOTHING
    agent_nickname: str | None = None
    agent_path: str | None = None
    model: str | None = None


class _Record(msgspec.Struct):
    timestamp: datetime | float | None = None
    type: str = ""
    payload: _Payload = msgspec.field(default_factory=_Payload)

    @property
    def ts(self) -> float:
        """Raises ValueError if the record tells no time."""
        if self.timestamp is None:
            raise ValueError("no time")
        return epoch(self.timestamp)


class _Spawn(msgspec.Struct):
    """How older releases tell what a sub-agent is."""

    parent_thread_id: str | None = None
    agent_path: str | None = None
    agent_nickname: str | None = None


class _Subagent(msgspec.Struct):
    thread_spawn: _Spawn


class _Source(msgspec.Struct):
    subagent: _Subagent


class _Part(msgspec.Struct):
    """Of an output: a text or an image."""

    text: str | None = None
    image_url: Raw = NOTHING


class _OldMetadata(msgspec.Struct):
    exit_code: int | None = None


class _OldOutput(msgspec.Struct):
    """A text that is JSON itself."""

    output: str
    metadata: _OldMetadata


_record: Final = msgspec.json.Decoder(_Record)
_source: Final = msgspec.json.Decoder(_Source)
_raw: Final = msgspec.json.Decoder(Raw)
_string: Final = msgspec.json.Decoder(str)
_strings: Final = msgspec.json.Decoder(list[str])
_output: Final = msgspec.json.Decoder(str | list[_Part])
_old_output: Final = msgspec.json.Decoder(_OldOutput)


# ── memory ────────────────────────────────────────────────────────────────────────────────────────


class _Open(msgspec.Struct):
    """A call without an output."""

    script: str | None
    """The beginning of its script, in code mode."""
    has_failed: bool = False


class _Memory(msgspec.Struct):
    session: str
    agent: str
    parent: str | None = None
    model: str | None = None
    is_named: bool = False
    """Whether the log itself has told what thread it is of."""
    is_copying: bool = False
    """Whether the records come from another thread's history."""
    has_records: bool = False
    """Whether the tokens of each answer are told right after its calls."""
    counted: _Used | None = None
    """The newest sum of tokens where they are not."""
    told: list[int] = []
    open: dict[str, _Open] = {}
    held: list[ToolCall] = []
    """Calls whose tokens the next record will tell."""


_memory: Final = msgspec.json.Decoder(_Memory)


class Rollout:
    """Reads one thread's log.

    A call is told with the next record, in which its tokens are; at once where the log is not known to tell them there.
    """

    def __init__(self, path: str, state: str, /) -> None:
        """Go on where `state` was given; begin anew if it is not one."""
        try:
            self._memory = _memory.decode(state)
        except (ValueError, RecursionError):
            stem = PurePath(path).stem
            thread = _THREAD.search(stem)
            self._memory = _Memory(session=thread[0] if thread else short(_printable(stem)), agent=_NO_NAME)

    def state(self) -> str:
        """Return what is remembered."""
        return msgspec.json.encode(self._memory).decode()

    def read(self, line: bytes, /) -> Sequence[Entry] | None:
        """Return what a record tells; nothing if its type is not known."""
        record = decode(_record, line)
        if record is None or not record.type:
            return None
        try:
            return self._tell(record)
        except (ValueError, OverflowError):
            return None

    def _tell(self, record: _Record) -> Sequence[Entry]:
        """Raises ValueError if a field is missing."""
        match record.type:
            case "response_item":
                return self._tell_item(record)
            case "event_msg":
                return self._tell_event(record)
            case "token_usage_record":
                return self._use(record)
            case "turn_context":
                return self._go_on(record)
            case "session_meta":
                return self._meet(record)
            case _:
                return self._released()

    def _tell_item(self, record: _Record) -> Sequence[Entry]:
        match record.payload.type:
            case "function_call" | "custom_tool_call" | "local_shell_call" | "web_search_call":
                return self._call(record)
            case "function_call_output" | "custom_tool_call_output":
                return self._answer(record)
            case _:
                return self._released()

    def _tell_event(self, record: _Record) -> Sequence[Entry]:
        match record.payload.type:
            case "token_count":
                return self._count(record)
            case "item_completed":
                return self._end(record)
            case "exec_command_end" | "patch_apply_end":
                return self._end_old(record)
            case "task_started":
                # A process that was killed has left calls for which nothing comes any more.
                self._memory.open.clear()
                return self._go_on(record)
            case _:
                return self._released()

    # ── threads ───────────────────────────────────────────────────────────────────────────────────

    def _meet(self, record: _Record) -> Sequence[Entry]:
        payload, memory = record.payload, self._memory
        thread = name(payload.id)
        if thread is None:
            raise ValueError("a thread without id")
        if memory.is_named:
            memory.is_copying = thread != memory.session
            return self._released()
        spawn = _spawn(payload)
        memory.session, memory.is_named = thread, True
        memory.parent = name(spawn.parent_thread_id)
        memory.agent = _agent(payload, spawn)
        memory.is_copying = payload.forked_from_id is not None
        return ()

    def _go_on(self, record: _Record) -> Sequence[Entry]:
        memory = self._memory
        memory.model = name(record.payload.model) or memory.model
        if _is_own(record.payload.turn_id, memory.session):
            memory.is_copying = False
        return self._released()

    # ── calls and outputs ─────────────────────────────────────────────────────────────────────────

    def _call(self, record: _Record) -> Sequence[Entry]:
        payload, memory = record.payload, self._memory
        tool, ts, call_id = _tool(payload), record.ts, name(payload.call_id)
        if memory.is_copying or (call_id and self._is_told(call_id)):
            return ()
        if call_id:
            memory.open[call_id] = _Open(_script(payload))
            if len(memory.open) > _OPEN:
                del memory.open[next(iter(memory.open))]
        call = ToolCall(
            session=memory.session,
            agent=memory.agent,
            parent=memory.parent,
            ts=ts,
            tool=tool,
            call_id=call_id,
            args=_args(payload),
        )
        if memory.has_records and len(memory.held) < _HELD and len(call.args) <= _LONGEST_HELD:
            memory.held.append(call)
            return ()
        return [*self._released(), call]

    def _answer(self, record: _Record) -> Sequence[Entry]:
        memory, ts, call_id = self._memory, record.ts, name(record.payload.call_id)
        if call_id is None:
            raise ValueError("an output without call")
        call = memory.open.pop(call_id, None)
        if call is None:
            return self._released()  # of a copied call, or a note to one that has its answer
        failed, text = _read_output(record.payload.output)
        answer = Answer(
            session=memory.session,
            call_id=call_id,
            ts=ts,
            is_error=call.has_failed or failed,
            digest=digest(text),
        )
        return [*self._released(), answer]

    def _end(self, record: _Record) -> Sequence[Entry]:
        if (item := record.payload.item) and (item.status in _FAILED or item.exit_code):
            self._fail(name(item.id), item.command)
        return self._released()

    def _end_old(self, record: _Record) -> Sequence[Entry]:
        payload = record.payload
        if payload.exit_code or payload.success is False:
            self._fail(name(payload.call_id), payload.command)
        return self._released()

    def _fail(self, ended: str | None, command: Raw) -> None:
        """Note the failure of a call, or of a command that a script runs.

        What fails after its call has got an output is left to the call that waits for it.
        """
        called = self._memory.open
        scripts = [call for call in called.values() if call.script is not None]
        if ended in called:
            called[ended].has_failed = True
        elif scripts:
            # Scripts run one after the other, but all that the model has asked for at once are open.
            sought = _in_script(command) if len(scripts) > 1 else ""
            named = (call for call in scripts if sought and sought in str(call.script))
            next(named, scripts[0]).has_failed = True

    def _is_told(self, told: str) -> bool:
        """Whether something was told before; it is from now on."""
        key, memory = crc32(told.encode()), self._memory.told
        if key in memory:
            return True
        memory.append(key)
        del memory[:-_REMEMBERED]
        return False

    # ── tokens ────────────────────────────────────────────────────────────────────────────────────

    def _use(self, record: _Record) -> Sequence[Entry]:
        payload, memory, ts = record.payload, self._memory, record.ts
        if payload.usage is None:
            raise ValueError("no tokens")
        memory.has_records = True
        is_copy = memory.is_copying or name(payload.thread_id) not in {None, memory.session}
        if is_copy or (payload.response_id and self._is_told(payload.response_id)):
            return self._released()
        usage = self._usage(payload.usage, ts)
        return [*self._released(usage.tokens), usage]

    def _count(self, record: _Record) -> Sequence[Entry]:
        memory, counted = self._memory, record.payload.info
        if memory.has_records or counted is None or counted.last_token_usage is None:
            return self._released()
        usage = self._usage(counted.last_token_usage, record.ts)
        # It is written again whenever the limits of use change.
        is_new = counted.total_token_usage is None or counted.total_token_usage != memory.counted
        memory.counted = counted.total_token_usage
        return [usage] if is_new and not memory.is_copying else ()

    def _usage(self, used: _Used, ts: float) -> Usage:
        given, output = used.input_tokens or 0, used.output_tokens or 0
        cached = min((used.cached_input_tokens or 0) + (used.cache_write_input_tokens or 0), given)
        return Usage(
            session=self._memory.session,
            ts=ts,
            model=self._memory.model,
            input=given - cached,
            output=output,
            cached=cached,
            written=min(used.cache_write_input_tokens or 0, cached),
            has_call=bool(self._memory.held),
        )

    def _released(self, tokens: int | None = None) -> Sequence[Entry]:
        """Return the calls that were held back, the first with the tokens of them all."""
        held = self._memory.held
        if not held:
            return ()
        self._memory.held = []
        return [msgspec.structs.replace(held[0], tokens=tokens), *held[1:]]


# ── what fields mean ──────────────────────────────────────────────────────────────────────────────


def _spawn(payload: _Payload) -> _Spawn:
    """Return what is known of a sub-agent; nothing of another thread."""
    try:
        old = _source.decode(payload.source).subagent.thread_spawn
    except (ValueError, RecursionError):
        old = _Spawn()
    return _Spawn(
        parent_thread_id=payload.parent_thread_id or old.parent_thread_id,
        agent_path=payload.agent_path or old.agent_path,
        agent_nickname=payload.agent_nickname or old.agent_nickname,
    )


def _agent(payload: _Payload, spawn: _Spawn) -> str:
    """Return a sub-agent's task or nickname; else the folder in which the thread works."""
    task, folder = (PureWindowsPath(path or "").name for path in (spawn.agent_path, payload.cwd))
    return name(task or spawn.agent_nickname or folder) or _NO_NAME


def _is_own(turn: str | None, session: str) -> bool:
    """Whether a turn is not older than the thread, as those of a copied history are."""
    has_times = turn and all(len(it) == _UUID_LENGTH and it[_UUID_VERSION] == "7" for it in (turn, session))
    return turn is None or not has_times or turn > session


def _tool(payload: _Payload) -> str:
    if not payload.name:
        if payload.type in {"local_shell_call", "web_search_call"}:
            return payload.type.removesuffix("_call")
        raise ValueError("a call without name")
    if payload.namespace and payload.namespace.startswith("mcp__"):
        return short(f"{payload.namespace}__{payload.name}")
    return short(payload.name)


def _script(payload: _Payload) -> str | None:
    """Return the beginning of the script that a call runs; "" if it waits for one that runs already."""
    match payload.type, payload.name:
        case "custom_tool_call", "exec":
            return _alike(bytes(payload.input)[:_KEPT_OF_SCRIPT])
        case "function_call", "wait":
            return ""
        case _:
            return None


def _in_script(command: Raw) -> str:
    """Return how a command is found in the script of a call; "" if that is not known."""
    try:
        return _alike(msgspec.json.encode(_strings.decode(command)[-1]))
    except (ValueError, IndexError):
        return ""


def _alike(quoted: bytes) -> str:
    """Make a text the same, however often and by which quotes it is quoted."""
    return _QUOTES.sub('"', quoted.decode(errors="replace"))


def _args(payload: _Payload) -> bytes:
    if payload.type == "function_call":
        return _inner_json(payload.arguments)
    return _sound(payload.action if payload.input == NOTHING else payload.input)


def _inner_json(raw: Raw) -> bytes:
    """Return the JSON that a string holds; if it holds none, the string."""
    try:
        text = _string.decode(raw).encode()
        return _sound(_raw.decode(text))
    except (ValueError, RecursionError):
        return _sound(raw)


def _sound(raw: Raw) -> bytes:
    """Return JSON without bytes that are no text: they are passed over while it is not decoded."""
    data = bytes(raw)
    return data if data.isascii() else data.decode(errors="replace").encode()


def _read_output(raw: Raw) -> tuple[bool, bytes]:
    """Return whether an output says that it is of a failure, and its text without what varies."""
    text = _text(raw)
    if text.startswith(b'{"output":'):
        return _read_old_output(text)
    header = _HEADER.match(text)
    if header is None:
        return False, text
    inner = None if header["process"] or header["exit"] else _PATCH_HEADER.match(text, header.end())
    body = text[(inner or header).end() :]
    if header["script"]:
        return header["script"] == b"failed", header["script"] + b"\n" + _VARYING.sub(b"", body)
    code = header["process"] or header["exit"] or (inner and inner["exit"]) or b""
    return code not in {b"", b"0"}, code + b"\n" + body


def _read_old_output(text: bytes) -> tuple[bool, bytes]:
    try:
        old = _old_output.decode(text)
    except (ValueError, RecursionError):
        return False, text
    return bool(old.metadata.exit_code), old.output.encode()


def _text(raw: Raw) -> bytes:
    try:
        parts = _output.decode(raw)
    except (ValueError, RecursionError):
        return bytes(raw)
    if isinstance(parts, str):
        return parts.encode()
    return b"".join(bytes(part.image_url) if part.text is None else part.text.encode() for part in parts)


def _printable(text: str) -> str:
    return text.encode(errors="replace").decode()


FORMAT: Final = LogFormat(
    source=partial(LogFiles, format=Rollout),
    is_record=lambda record: record.keys() >= {"timestamp", "type", "payload"},
    home=Home(variable="CODEX_HOME", folders=("~/.codex",), patterns=("sessions/**/*.jsonl",)),
    # A server's process holds many conversations.
    process=r"^((\S*/)?node )?(\S*/)?codex(?! app-server)(?! mcp-server)(?!\S)",
)
