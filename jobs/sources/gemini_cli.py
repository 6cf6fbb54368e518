"""Gemini CLI's chats: `~/.gemini/tmp/<project>/chats/session-<minute>-<id>.jsonl`, one record a line.

    {"sessionId": "d1dd1c65-278a", "projectHash": "75...", "startTime": "2026-11-30T09:47:55.106Z", "kind": "main"}
    {"id": "m-1", "timestamp": "2026-11-30T09:48:01.389Z", "type": "gemini", "content": "", "model": "gemini-2.5-pro",
     "tokens": {"input": 1200, "output": 30, "cached": 0, "thoughts": 0, "tool": 0, "total": 1230},
     "toolCalls": [{"id": "read_file__fc-1", "name": "read_file", "args": {"file_path": "notes.md"}, "status": "success",
                    "timestamp": "2026-11-30T09:48:02.514Z", "result": [{"functionResponse":
                    {"id": "read_file__fc-1", "name": "read_file", "response": {"output": "later"}}}]}]}
    {"$set": {"messages": [...], "lastUpdated": "2026-11-30T09:48:05.301Z"}}

An answer of the model is written when it comes, so its tokens are told without a call, and again under the same id
when its calls have ended: a call comes together with its answer, under the time at which the model asked for it.
`$set` may rewrite the whole history, `$rewindTo` cuts it; what was called stays called. A resume repeats the first
record. Sub-agents lie in `chats/<id of the parent>/<id>.jsonl`; their log does not tell their type. Histories of
older releases, a single JSON document each, are not read.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from jobs.sources.fields import digest, epoch, paired, short, state_of
from jobs.sources.gemini_answers import result
from jobs.sources.gemini_odd import odd_record
from jobs.sources.gemini_records import Call, Message, Record, Used, decode_record
from jobs.sources.gemini_told import Told
from jobs.sources.lenient import SHORTEST_OVERFULL, is_overfull
from jobs.sources.log_files import LogFiles
from jobs.sources.log_format import Home, LogFormat
from jobs.thrash.call import Answer, Entry, ToolCall, Usage

_TOUCH: Final = b'{"$set":{"lastUpdated":"'
"""Every third line begins so, and tells nothing else."""
_LONGEST_TOUCH: Final = 60
_OVER: Final = frozenset({"success", "error", "cancelled"})
"""What a call's status is when it has ended."""


class _Memory(msgspec.Struct, omit_defaults=True):
    session: str | None = None
    told: Told = msgspec.field(default_factory=Told)


_memory: Final = msgspec.json.Decoder(_Memory)


class ChatReader:
    """Reads one chat. A call is told once, by its id, and the tokens of an answer once, by the message's.

    As many ids as are remembered are compared. Older messages come again only where the whole history is rewritten:
    there, what is unknown and older than the newest message was told before and has been forgotten.
    """

    def __init__(self, path: str, state: str, /) -> None:
        """Go on where `state` was given; begin anew if it is not one."""
        self._path = Path(path)
        self._agent, self._parent = _agent_and_parent(self._path)
        self._memory = state_of(_memory, state)
        self._told = self._memory.told
        self._last_id: str | None = None
        """Of the message whose tokens were told last: most come twice in a row."""

    def state(self) -> str:
        """Return the session and what was told of it last."""
        return msgspec.json.encode(self._memory).decode()

    def read(self, line: bytes, /) -> Sequence[Entry] | None:
        """Return the calls, answers and tokens that a record tells for the first time; None if it is malformed."""
        if line.startswith(_TOUCH) and len(line) < _LONGEST_TOUCH and line.endswith(b'"}}\n'):
            return ()
        if len(line) >= SHORTEST_OVERFULL and is_overfull(Record, line):
            return None
        try:
            return self._tell(decode_record(line))
        except (ValueError, RecursionError):
            pass
        try:
            return self._tell(odd_record(paired(line)))
        except (ValueError, RecursionError):
            return None

    def _tell(self, record: Record) -> Sequence[Entry]:
        if record.type == "gemini":
            return self._tell_message(record, _time_of(record))
        if record.update is not None:
            return [*self._tell_history(record.update.messages or ())]
        if record.session and record.type is None and self._memory.session is None:
            self._memory.session = short(record.session)
        return ()

    def _tell_history(self, messages: Sequence[Message]) -> Iterator[Entry]:
        told_until = self._told.until
        for message in messages:
            ts = _seconds(message.time)
            if message.type == "gemini" and message.id and ts is not None and ts >= told_until:
                yield from self._tell_message(message, ts)

    def _tell_message(self, message: Message, ts: float) -> Sequence[Entry]:
        if ts > self._told.newest:  # noqa: PLR1730 - `max` takes three times as long
            self._told.newest = ts
        used = self._new_tokens(message)
        told = self._tell_calls(message.calls, ts, _total(used) if used else None) if message.calls else []
        if used:
            told.append(self._usage(message, used, ts, has_call=ToolCall in map(type, told)))
        return told

    def _new_tokens(self, message: Message) -> Used | None:
        """Return what a message has used, for the first time."""
        if message.tokens is None or message.id is None or message.id == self._last_id:
            return None
        self._last_id = message.id
        return message.tokens if self._told.is_new_message(message.id) else None

    def _tell_calls(self, calls: Sequence[Call], ts: float, tokens: int | None) -> list[Entry]:
        """Return what is new of the calls of a message; the first that is new has the tokens."""
        told: list[Entry] = []
        for call in calls:
            if not call.id or not call.name:
                continue
            call_id = short(call.id)
            if self._told.is_new_call(call_id):
                told.append(self._call(call, call_id, ts, tokens))
                tokens = None
            if (call.result is not None or call.status in _OVER) and self._told.is_new_answer(call_id):
                told.append(self._answer(call, call_id, ts))
        return told

    def _call(self, call: Call, call_id: str, ts: float, tokens: int | None) -> ToolCall:
        return ToolCall(
            session=self._session,
            agent=self._agent,
            ts=ts,
            tool=short(call.name),
            call_id=call_id,
            args=bytes(call.args),
            parent=self._parent,
            tokens=tokens,
        )

    def _answer(self, call: Call, call_id: str, asked_at: float) -> Answer:
        text, has_failed = result(call)
        return Answer(
            session=self._session,
            call_id=call_id,
            ts=_seconds(call.time) or asked_at,
            is_error=has_failed,
            digest=digest(text),
        )

    def _usage(self, message: Message, used: Used, ts: float, *, has_call: bool) -> Usage:
        return Usage(
            session=self._session,
            ts=ts,
            model=short(message.model) if message.model else None,
            input=max(used.input - used.cached, 0) + used.tool,
            output=used.output + used.thoughts,
            cached=used.cached,
            has_call=has_call,
        )

    @property
    def _session(self) -> str:
        """What the first record has told; without one, the file's name, for good."""
        if self._memory.session is None:
            self._memory.session = short(_text(self._path.stem))
        return self._memory.session


def _agent_and_parent(path: Path) -> tuple[str, str | None]:
    """Return the project's name, for sub-agents with a mark, and the session that a sub-agent's folder is named for."""
    folder = path.parent
    if folder.name == "chats":
        return short(_text(folder.parent.name) or "gemini"), None
    if folder.parent.name == "chats":
        return short(f"{_text(folder.parent.parent.name)}/subagent"), short(_text(folder.name))
    return short(_text(folder.name) or "gemini"), None


def _text(name: str) -> str:
    """Return a file's name as a text that can be stored."""
    return name.encode(errors="replace").decode()


def _total(used: Used) -> int:
    return max(used.input, used.cached) + used.tool + used.output + used.thoughts


def _time_of(message: Message) -> float:
    """Raise ValueError for a message without a time or an id."""
    if message.time is None or not message.id:
        raise ValueError("a message has no time or no id")
    return epoch(message.time)


def _seconds(moment: datetime | None) -> float | None:
    try:
        return None if moment is None else epoch(moment)
    except (ValueError, OverflowError):
        return None


FORMAT: Final = LogFormat(
    source=partial(LogFiles, format=ChatReader),
    is_record=lambda record: record.keys() >= {"sessionId", "projectHash"},
    home=Home(folders=("~/.gemini",), patterns=("tmp/*/chats/**/*.jsonl",)),
    # The inner of two: the outer one ignores SIGTERM, and SIGKILL to it leaves the inner one going on.
    process=r"^(\S*/)?node (-\S+ )*--max-old-space-size=\d+ (-\S+ )*(\S*/)?gemini(-cli/\S+)?(?!\S)",
)
