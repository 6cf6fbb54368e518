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
A log is of the session or sub-agent that it is named for, whatever its records say: that of a resumed or forked session
may begin with those of another one, under that one's id. A fork's copies bear its own id, and the other one's as
`requestSessionId`: they are passed over, for the other one's log tells them. One that was given another name is of the
session of its first record.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from typing import Final

import msgspec

from jobs.sources.claude_answers import read_answer
from jobs.sources.claude_meta import is_agents, session_of
from jobs.sources.claude_origin import Origin
from jobs.sources.claude_records import TELLING, Block, Message, Record, decode_record, is_of_other_type
from jobs.sources.claude_tokens import TokenCount
from jobs.sources.fields import digest, epoch, paired, short, state_of
from jobs.sources.lenient import SHORTEST_OVERFULL, is_overfull
from jobs.sources.line_reader import LineReader
from jobs.sources.log_files import EachLine, LogFiles
from jobs.sources.log_format import Home, LogFormat
from jobs.sources.log_format import Record as AnyRecord
from jobs.sources.once import MOST_OPEN, is_new, key
from jobs.thrash.call import Answer, Entry, ToolCall, Usage

_REMEMBERED: Final = 64
"""Ids of calls and of answers."""
_JOURNAL: Final = "journal.jsonl"
"""Lies beside the logs of a workflow's agents."""


class _Memory(msgspec.Struct, omit_defaults=True):
    """What is known from the lines before."""

    ts: float | None = None
    origin: Origin = msgspec.field(default_factory=Origin)
    tokens: TokenCount = msgspec.field(default_factory=TokenCount)
    calls: dict[str, None] = {}
    """Ids, newest last."""
    answers: dict[str, None] = {}
    copied: dict[str, None] = {}
    """Ids of calls that are copies and have no answer yet."""


_memory: Final = msgspec.json.Decoder(_Memory)


@dataclass(slots=True)
class ClaudeCodeLines:
    """Reads the log of one session or sub-agent."""

    path: str
    memory: _Memory
    is_agents: bool
    """Whether it is a sub-agent's."""
    has_looked_beside: bool = False

    def read(self, line: bytes, /) -> Sequence[Entry] | None:
        """Return the calls, answers and usage of a record; nothing if it is of another type."""
        if len(line) >= SHORTEST_OVERFULL and is_overfull(Record, line):
            return None
        try:
            record = decode_record(line)
        except (ValueError, RecursionError):
            return self._read_odd(line)
        return self._told(record)

    def state(self) -> str:
        """Return the memory."""
        return msgspec.json.encode(self.memory).decode()

    def _read_odd(self, line: bytes) -> Sequence[Entry] | None:
        line = paired(line)
        try:
            return self._told(decode_record(line))
        except (ValueError, RecursionError):
            return () if is_of_other_type(line) else None

    def _told(self, record: Record) -> Sequence[Entry] | None:
        if record.type not in TELLING:
            return ()
        ts, message = self._ts(record), record.message
        if ts is None or message is None or message.content is None or not record.session_id:
            return None
        self.memory.origin.see(record)
        session = self.memory.origin.session
        if record.type == "user":
            return [*self.memory.tokens.let_go(None), *self._answers(message, session, ts)]
        return self._said(record, message, session, ts)

    def _ts(self, record: Record) -> float | None:
        """Return the time of a record; one that has none is of the time of the one before."""
        if record.timestamp is not None:
            try:
                self.memory.ts = epoch(record.timestamp)
            except (ValueError, OverflowError):
                return None
        return self.memory.ts

    def _said(self, record: Record, message: Message, session: str, ts: float) -> Sequence[Entry] | None:
        memory, blocks = self.memory, message.blocks("tool_use")
        if blocks and not all(block.name for block in blocks):
            return None
        held = memory.tokens.let_go(message.id)
        if record.is_copy:
            self._pass_over(blocks)
            return held
        blocks = [block for block in blocks if _is_new(block.id, memory.calls)]
        usage = memory.tokens.usage(message, session, ts, has_call=bool(blocks))
        told = [*held] if usage is None else [*held, usage]
        return [*told, *self._calls(record, blocks, ts, usage)] if blocks else told

    def _calls(
        self, record: Record, blocks: Sequence[Block], ts: float, usage: Usage | None
    ) -> Iterator[ToolCall]:
        agent, parent = self._agent_and_parent(record)
        tokens = usage.tokens if usage else None
        for block in blocks:
            yield ToolCall(
                session=self.memory.origin.session,
                agent=agent,
                parent=parent,
                ts=ts,
                tool=short(block.name or ""),
                call_id=short(block.id) if block.id else None,
                args=_text_only(bytes(block.input)),
                tokens=tokens,
            )
            tokens = None

    def _pass_over(self, blocks: Sequence[Block]) -> None:
        """Tell nothing of calls that are copies, nor of their answers, which do not tell that they are."""
        for block in blocks:
            if block.id:
                is_new(block.id, self.memory.copied, None, MOST_OPEN)

    def _agent_and_parent(self, record: Record) -> tuple[str, str | None]:
        origin = self.memory.origin
        if not self.is_agents:
            return origin.of_session(), None
        if not (origin.is_placed or self.has_looked_beside):
            self.has_looked_beside = True
            origin.find_place(self.path)
        return origin.of_agent(record)

    def _answers(self, message: Message, session: str, ts: float) -> Iterator[Answer]:
        for block in message.blocks("tool_result"):
            call = block.tool_use_id
            if call and _is_new(call, self.memory.answers) and not self._is_copied(call):
                is_error, text = read_answer(block)
                yield Answer(
                    session=session,
                    call_id=short(call),
                    ts=ts,
                    is_error=is_error,
                    digest=digest(text),
                )

    def _is_copied(self, call: str) -> bool:
        """Whether it is a copy that is answered now."""
        mark, copied = key(call), self.memory.copied
        if mark not in copied:
            return False
        del copied[mark]
        return True


def reader(path: str, state: str) -> LineReader:
    """Begin to read a log of Claude Code, or go on."""
    if PurePath(path).name == _JOURNAL:
        return EachLine(lambda _line: ())
    memory = state_of(_memory, state)
    memory.origin.session = memory.origin.session or session_of(path)
    return ClaudeCodeLines(path, memory, is_agents(path))


def _is_new(given: str | None, known: dict[str, None]) -> bool:
    """Whether it is told for the first time; what has no id always is."""
    return not given or is_new(given, known, None, _REMEMBERED)


def _text_only(args: bytes) -> bytes:
    """Replace bytes that are no text."""
    return args if args.isascii() else args.decode(errors="replace").encode()


_OWN_FIELD: Final = {
    "queue-operation": "operation",
    "summary": "leafUuid",
    "file-history-snapshot": "messageId",
}
"""By type: of records that may come before a session's first message."""


def is_record(record: AnyRecord) -> bool:
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
