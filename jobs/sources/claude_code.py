"""Claude Code's logs: `~/.claude/projects/<folder>/<session>.jsonl`, one record a line; sub-agents have files of their own.

    {"type": "assistant", "sessionId": "d4ea", "timestamp": "2026-11-30T09:36:01.096Z", "isSidechain": false,
     "cwd": "/home/op/code/reports", "message": {"id": "msg_01", "model": "claude-sonnet-4-5", "stop_reason": "tool_use",
      "content": [{"type": "tool_use", "id": "toolu_01", "name": "Bash", "input": {"command": "ls"}}],
      "usage": {"input_tokens": 1200, "output_tokens": 30, "cache_read_input_tokens": 0}}}
    {"type": "user", "sessionId": "d4ea", "timestamp": "2026-11-30T09:36:01.707Z", "isSidechain": false,
     "message": {"content": [{"type": "tool_result", "tool_use_id": "toolu_01", "content": "a.csv", "is_error": false}]}}

A message of the model takes several lines, one for each part of it; each repeats the usage. Records of other types tell
nothing, some repeat what these tell. A sub-agent's file is `<session>/subagents/agent-<id>.jsonl`, with `.meta.json`
beside it; older releases put it beside the session's own. Its records bear its `agentId` and the `sessionId` of the root.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import PurePath
from typing import Final

import msgspec
from msgspec import Raw

from jobs.sources.claude_meta import caller, read_meta
from jobs.sources.fields import NOTHING, Seconds, Tokens, digest, epoch, paired, short, state_of
from jobs.sources.log_files import EachLine, LineReader, LogFiles
from jobs.sources.log_format import Home, LogFormat, Record
from jobs.thrash.call import Answer, Entry, ToolCall, Usage

_TELLING: Final = frozenset({"assistant", "user"})
"""Types of records."""
_REMEMBERED: Final = 64
"""Ids of each kind: what a log repeats, it repeats soon."""
_KEPT_OF_ID: Final = 16
"""Characters at its end."""
_JOURNAL: Final = "journal.jsonl"
"""Lies beside the logs of a workflow's agents."""
_SYNTHETIC: Final = "<synthetic>"
"""Named as the model of what the program itself has put in."""
_NO_NAME: Final = "claude-code"

_CANCELLED: Final = re.compile(
    rb"(<tool_use_error>)?(Sibling tool call errored|Cancelled: parallel tool call .{0,2000} errored)",
    re.DOTALL,
)
"""What is told of a call because another call of the same message has failed."""
_MAY_VARY: Final = (b"Async agent ", b"[Subagent ", b"Command ")
"""How an answer begins that bears ids and times of the program's own; or it ends in `</usage>`."""
_VARYING: Final = re.compile(
    rb"""
    agentId:\ \w+\ \([^\n]* | output_file:\ [^\n]* | <usage>[^<]*</usage>             # of sub-agents
    | background\ with\ ID:\ [\w-]+ | Output\ is\ being\ written\ to:\ [^\n]*    # of commands that go on
    """,
    re.VERBOSE,
)


# ── records ───────────────────────────────────────────────────────────────────────────────────────


class _Block(msgspec.Struct, gc=False):
    """A part of a message: `tool_use`, `tool_result`, or text and the like."""

    type: str
    id: str | None = None
    name: str | None = None
    input: Raw = NOTHING
    tool_use_id: str | None = None
    content: Raw = NOTHING
    is_error: bool | int | str | None = None


class _Message(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    content: str | list[_Block] | None = None
    stop_reason: str | None = None
    usage: Raw = NOTHING

    def blocks(self, kind: str) -> Sequence[_Block]:
        content = self.content if isinstance(self.content, list) else ()
        return [block for block in content if block.type == kind]


class _Record(msgspec.Struct, rename="camel", kw_only=True):
    # In the order in which a line has them they are found at the first try.
    is_sidechain: bool | None = None
    agent_id: str | None = None
    message: _Message | None = None
    attribution_agent: str | None = None
    type: str
    timestamp: Seconds | datetime | None = None
    cwd: str | None = None
    session_id: str | None = None


class _Used(msgspec.Struct):
    input_tokens: Tokens | None = None
    cache_creation_input_tokens: Tokens | None = None
    cache_read_input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None


class _Text(msgspec.Struct):
    text: str


class _Typed(msgspec.Struct):
    type: str


_decode: Final = msgspec.json.Decoder(_Record).decode
_decode_type: Final = msgspec.json.Decoder(_Typed).decode
_decode_used: Final = msgspec.json.Decoder(_Used).decode
_decode_answer: Final = msgspec.json.Decoder(str | list[_Text]).decode


# ── reading ───────────────────────────────────────────────────────────────────────────────────────


class _Memory(msgspec.Struct, omit_defaults=True):
    """What is known from the lines before."""

    ts: float | None = None
    folder: str = ""
    """The name of the one it began in; it may move on."""
    is_placed: bool = False
    """Whether it is known what lies beside a sub-agent's log; then these tell its name and whose it is."""
    task: str = ""
    parent: str = ""
    messages: list[str] = []
    """Ends of ids, here and below: one that is new needs no more to be told apart."""
    calls: list[str] = []
    answers: list[str] = []
    held: Usage | None = None
    """Of the last of `messages`: its call is still to come."""


_memory: Final = msgspec.json.Decoder(_Memory)


@dataclass(slots=True)
class ClaudeCodeLines:
    """Reads the log of one session or sub-agent."""

    path: str
    memory: _Memory
    has_looked_beside: bool = False

    def read(self, line: bytes, /) -> Sequence[Entry] | None:
        """Return the calls, answers and usage of a record; nothing if it is of another type."""
        try:
            record = _decode(line)
        except (ValueError, RecursionError):
            return self._read_odd(line)
        return self._told(record)

    def state(self) -> str:
        """Return the memory."""
        return msgspec.json.encode(self.memory).decode()

    def _read_odd(self, line: bytes) -> Sequence[Entry] | None:
        line = paired(line)
        try:
            return self._told(_decode(line))
        except (ValueError, RecursionError):
            return () if _is_of_other_type(line) else None

    def _told(self, record: _Record) -> Sequence[Entry] | None:
        if record.type not in _TELLING:
            return ()
        ts, message = self._ts(record), record.message
        if ts is None or message is None or message.content is None or not record.session_id:
            return None
        if not self.memory.folder and record.cwd:
            self.memory.folder = short(PurePath(record.cwd).name)
        is_agent = bool(record.agent_id) and record.is_sidechain is not False
        session = short(record.agent_id if is_agent and record.agent_id else record.session_id)
        if record.type == "user":
            return [*self._let_go(None), *self._answers(message, session, ts)]
        return self._said(record, message, session, ts)

    def _ts(self, record: _Record) -> float | None:
        """Return the time of a record; one that has none is of the time of the one before."""
        if record.timestamp is not None:
            try:
                self.memory.ts = epoch(record.timestamp)
            except (ValueError, OverflowError):
                return None
        return self.memory.ts

    def _said(self, record: _Record, message: _Message, session: str, ts: float) -> Sequence[Entry] | None:
        blocks = message.blocks("tool_use")
        if not all(block.name for block in blocks):
            return None
        told: list[Entry] = [*self._let_go(message.id)]
        blocks = [block for block in blocks if _is_new(block.id, self.memory.calls)]
        usage = self._usage(message, session, ts, has_call=bool(blocks))
        if usage is not None:
            told.append(usage)
        if blocks:
            told += self._calls(record, blocks, session, ts, usage.tokens if usage else None)
        return told

    def _calls(
        self, record: _Record, blocks: Sequence[_Block], session: str, ts: float, tokens: int | None
    ) -> Iterator[ToolCall]:
        agent, parent = self._origin(record, session)
        for block in blocks:
            yield ToolCall(
                session=session,
                agent=agent,
                parent=parent,
                ts=ts,
                tool=short(block.name or ""),
                call_id=short(block.id) if block.id else None,
                args=_text_only(bytes(block.input)),
                tokens=tokens,
            )
            tokens = None

    def _usage(self, message: _Message, session: str, ts: float, *, has_call: bool) -> Usage | None:
        """Return what a message has used, once; if a call is sure to follow, only with that."""
        memory = self.memory
        if message.usage == NOTHING or message.model == _SYNTHETIC:
            return None
        if memory.held is None and not _is_new(message.id, memory.messages):
            return None
        used = _used(message.usage)
        usage = Usage(
            session=session,
            ts=ts,
            model=short(message.model) if message.model else None,
            input=used.input_tokens or 0,
            output=used.output_tokens or 0,
            cached=(used.cache_creation_input_tokens or 0) + (used.cache_read_input_tokens or 0),
            written=used.cache_creation_input_tokens or 0,
            has_call=has_call,
        )
        is_held = bool(message.id) and not has_call and message.stop_reason == "tool_use"
        memory.held = usage if is_held else None
        return None if is_held else usage

    def _let_go(self, message: str | None) -> Iterator[Usage]:
        """Tell what was held for a call, unless it may still come in the message that is read now."""
        held, memory = self.memory.held, self.memory
        if held is not None and (message is None or message[-_KEPT_OF_ID:] != memory.messages[-1]):
            memory.held = None
            yield held

    def _answers(self, message: _Message, session: str, ts: float) -> Iterator[Answer]:
        for block in message.blocks("tool_result"):
            call = block.tool_use_id
            if not call or not _is_new(call, self.memory.answers):
                continue
            text = _text(block.content)
            yield Answer(
                session=session,
                call_id=short(call),
                ts=ts,
                is_error=bool(block.is_error) and _CANCELLED.match(text) is None,
                digest=digest(_without_ids(text)),
            )

    def _origin(self, record: _Record, session: str) -> tuple[str, str | None]:
        """Return the agent's name and its parent: of a session the folder, of a sub-agent its task."""
        memory, root = self.memory, short(record.session_id or "")
        if session == root:
            return memory.folder or _NO_NAME, None
        if not (memory.is_placed or self.has_looked_beside):
            self._find_place()
        parent = memory.parent if memory.parent not in {"", session} else root
        return memory.task or short(record.attribution_agent or "") or _NO_NAME, parent

    def _find_place(self) -> None:
        self.has_looked_beside = True
        meta = read_meta(self.path)
        if meta is None:
            return
        memory = self.memory
        memory.is_placed = True
        memory.task = short(meta.description or meta.agent_type or "")
        if meta.tool_use_id and (meta.spawn_depth or 0) > 1:
            memory.parent = short(caller(meta.tool_use_id, self.path) or "")


def reader(path: str, state: str) -> LineReader:
    """Begin to read a log of Claude Code, or go on."""
    if PurePath(path).name == _JOURNAL:
        return EachLine(lambda _line: ())
    memory = state_of(_memory, state)
    if memory.held and not memory.messages:
        memory.held = None
    return ClaudeCodeLines(path, memory)


def _is_new(given: str | None, known: list[str]) -> bool:
    """Whether an id is not among the last ones; it is remembered. None is always new."""
    if not given:
        return True
    end = given[-_KEPT_OF_ID:]
    if end in known:
        return False
    known.append(end)
    del known[:-_REMEMBERED]
    return True


def _is_of_other_type(line: bytes) -> bool:
    """Whether it is a record of a type that tells nothing, whatever it holds."""
    try:
        return _decode_type(line).type not in _TELLING
    except (ValueError, RecursionError):
        return False


def _used(usage: Raw) -> _Used:
    """Return what a message has used: nothing if that cannot be read, which must not hide a call."""
    try:
        return _decode_used(usage)
    except (ValueError, RecursionError):
        return _Used()


def _text_only(args: bytes) -> bytes:
    """Replace bytes that are no text."""
    try:
        args.decode()
    except UnicodeDecodeError:
        return args.decode(errors="replace").encode()
    return args


# ── answers ───────────────────────────────────────────────────────────────────────────────────────


def _text(content: Raw) -> bytes:
    """Return an answer's text; one that is not only text as it was written."""
    try:
        text = _decode_answer(content)
    except (ValueError, RecursionError):
        return bytes(content)
    return (text if isinstance(text, str) else "\n".join(part.text for part in text)).encode()


def _without_ids(text: bytes) -> bytes:
    """Take out what is different for every sub-agent and every command in the background."""
    if text.startswith(_MAY_VARY) or text.endswith(b"</usage>"):
        return _VARYING.sub(b"", text)
    return text


# ── which files are of this format ────────────────────────────────────────────────────────────────


_OWN_FIELD: Final = {
    "queue-operation": "operation",
    "summary": "leafUuid",
    "file-history-snapshot": "messageId",
}
"""By type: of records that may come before a session's first message."""


def is_record(record: Record) -> bool:
    """Whether a line is one of Claude Code's, also of a workflow's journal."""
    match record:
        case {"type": "user" | "assistant" | "system" | "attachment" | "progress", "sessionId": str()}:
            return not record.keys().isdisjoint(("message", "uuid"))
        case {"type": str(kind)} if kind in _OWN_FIELD:
            return _OWN_FIELD[kind] in record
        case _:
            return record.keys() >= {"key", "agentId"} and "tool" not in record


FORMAT: Final = LogFormat(
    source=partial(LogFiles, format=reader),
    is_record=is_record,
    home=Home(
        variable="CLAUDE_CONFIG_DIR",
        folders=("~/.claude",),
        patterns=("projects/**/*.jsonl",),
    ),
    process=r"^((\S*/)?node )?(\S*/)?claude(?!\S)",
)
