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

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, Self, TypeVar

import msgspec
from msgspec import Raw

from jobs.sources.fields import (
    NOTHING,
    Tokens,
    digest,
    epoch,
    name,
    paired,
    short,
    state_of,
    time,
    value,
)
from jobs.sources.log_files import LogFiles
from jobs.sources.log_format import Home, LogFormat
from jobs.thrash.call import Answer, Entry, ToolCall, Usage

Item = TypeVar("Item")

_NO_PART: Final = Raw(b"")
_TOUCH: Final = b'{"$set":{"lastUpdated":"'
"""Every third line begins so, and tells nothing else."""
_LONGEST_TOUCH: Final = 60
_SHELL: Final = "run_shell_command"
_OVER: Final = frozenset({"success", "error", "cancelled"})
"""What a call's status is when it has ended."""
_REMEMBERED: Final = 500
"""Calls and answers of the model that were told, newest last."""
_KEY: Final = 6
"""Bytes of a hash by which one of them is remembered: a new one is taken for another once in 10**11 times."""
_UNTRUSTED: Final = "\n</untrusted_context>"
_PROCESS: Final = "\nProcess Group PGID: "
_BACKGROUND: Final = "\nBackground PIDs: "
_FAILURES: Final = ("\nSignal: ", "\nExit Code: ")
_MOVED: Final = "moved to background (PID: "
_SAVED: Final = "For full output see: "
_VARYING: Final = re.compile(rf"(?<={re.escape(_MOVED)})\d+|(?<={_SAVED}).+")
"""A process id, or the file that a long output was saved to."""


class _Response(msgspec.Struct, gc=False):
    output: str | None = None
    error: str | None = None


class _FunctionResponse(msgspec.Struct, gc=False):
    response: Raw = NOTHING
    parts: Raw = _NO_PART


class _Part(
    msgspec.Struct,
    rename={"answer": "functionResponse", "image": "inlineData", "file": "fileData"},
    gc=False,
):
    """A piece of a call's result; only one of its fields is given."""

    answer: _FunctionResponse | None = None
    text: Raw = _NO_PART
    image: Raw = _NO_PART
    file: Raw = _NO_PART


class _Call(msgspec.Struct, rename={"time": "timestamp"}, gc=False):
    id: str
    name: str
    args: Raw = NOTHING
    result: _Part | str | list[_Part | str] | None = None
    status: str | None = None
    time: datetime | None = None


class _Tokens(msgspec.Struct, gc=False):
    input: Tokens = 0
    """With those from the cache."""
    output: Tokens = 0
    cached: Tokens = 0
    thoughts: Tokens = 0
    tool: Tokens = 0
    """Of the prompt, for the descriptions of tools."""


class _Message(msgspec.Struct, rename={"time": "timestamp", "calls": "toolCalls"}, gc=False):
    id: str | None = None
    time: datetime | None = None
    type: str | None = None
    tokens: _Tokens | None = None
    model: str | None = None
    calls: list[_Call] | None = None


class _Update(msgspec.Struct, gc=False):
    messages: list[_Message] | None = None


class _Record(_Message, rename={"session": "sessionId", "update": "$set"}, gc=False):
    """Any of them: the first one, a message, an update."""

    session: str | None = None
    update: _Update | None = None


class _OddCall(msgspec.Struct, rename={"time": "timestamp"}):
    """A call whose fields may be anything."""

    id: Raw = NOTHING
    name: Raw = NOTHING
    args: Raw = NOTHING
    result: Raw = NOTHING
    status: Raw = NOTHING
    time: Raw = NOTHING


class _OddRecord(
    msgspec.Struct,
    rename={"time": "timestamp", "calls": "toolCalls", "session": "sessionId", "update": "$set"},
):
    """A record whose fields may be anything."""

    id: Raw = NOTHING
    time: Raw = NOTHING
    type: Raw = NOTHING
    tokens: Raw = NOTHING
    model: Raw = NOTHING
    calls: Raw = NOTHING
    session: Raw = NOTHING
    update: Raw = NOTHING


class _OddUpdate(msgspec.Struct):
    messages: Raw = NOTHING


class _State(msgspec.Struct, omit_defaults=True):
    session: str | None = None
    told: str = ""
    """Keys of calls and of the model's answers, one after the other."""
    waiting: str = ""
    """Those of calls that were told without their answer."""
    newest: float = 0
    """The time of the newest message."""
    has_forgotten: bool = False


_decode: Final = msgspec.json.Decoder(_Record).decode
_decode_response: Final = msgspec.json.Decoder(_Response).decode
_decode_call: Final = msgspec.json.Decoder(_Call).decode
_decode_odd: Final = msgspec.json.Decoder(_OddRecord).decode
_decode_odd_call: Final = msgspec.json.Decoder(_OddCall).decode
_decode_odd_update: Final = msgspec.json.Decoder(_OddUpdate).decode
_decode_tokens: Final = msgspec.json.Decoder(_Tokens).decode
_decode_list: Final = msgspec.json.Decoder(list[Raw]).decode
_known: Final = msgspec.json.Decoder(_State)


class ChatReader:
    """Reads one chat. A call is told once, by its id, and the tokens of an answer once, by the message's.

    As many ids as are remembered are compared. Older messages come again only where the whole history is rewritten:
    there, what is unknown and older than the newest message was told before and has been forgotten.
    """

    def __init__(self, path: Path, state: _State) -> None:
        self._path = path
        self._agent, self._parent = _agent_and_parent(path)
        self._session = state.session
        self._told = dict.fromkeys(_keys(state.told), False) | dict.fromkeys(_keys(state.waiting), True)
        self._newest = state.newest
        self._last_id: str | None = None
        """Of the message whose tokens were told last: most come twice in a row."""
        self._has_forgotten = state.has_forgotten

    @classmethod
    def begin(cls, path: str, state: str, /) -> Self:
        """Begin to read a file, or go on where `state` was given."""
        return cls(Path(path), state_of(_known, state))

    def state(self) -> str:
        """Return the session and what was told of it last."""
        known = _State(
            session=self._session,
            told="".join(self._told),
            waiting="".join(key for key, is_waiting in self._told.items() if is_waiting),
            newest=self._newest,
            has_forgotten=self._has_forgotten,
        )
        return msgspec.json.encode(known).decode()

    def read(self, line: bytes, /) -> Sequence[Entry] | None:
        """Return the calls, answers and tokens that a record tells for the first time; None if it is malformed."""
        if line.startswith(_TOUCH) and len(line) < _LONGEST_TOUCH and line.endswith(b'"}}\n'):
            return ()
        try:
            return self._tell(_decode(line))
        except (ValueError, RecursionError):
            pass
        try:
            return self._tell(_odd_record(paired(line)))
        except (ValueError, RecursionError):
            return None

    def _tell(self, record: _Record) -> Sequence[Entry]:
        if record.type == "gemini":
            return self._tell_message(record, _time_of(record))
        if record.update is not None:
            return [*self._tell_history(record.update.messages or ())]
        if record.session and record.type is None and self._session is None:
            self._session = short(record.session)
        return ()

    def _tell_history(self, messages: Sequence[_Message]) -> Iterator[Entry]:
        told_until = self._newest if self._has_forgotten else 0
        for message in messages:
            ts = _seconds(message.time)
            if message.type == "gemini" and message.id and ts is not None and ts >= told_until:
                yield from self._tell_message(message, ts)

    def _tell_message(self, message: _Message, ts: float) -> Sequence[Entry]:
        self._newest = max(self._newest, ts)
        used = message.tokens if self._has_new_tokens(message) else None
        if used is None and not message.calls:
            return ()
        if self._session is None:
            self._session = short(_text(self._path.stem))
        told: list[Entry] = []
        tokens = _total(used) if used else None
        for call in message.calls or ():
            if self._tell_call(call, ts, tokens, told):
                tokens = None  # the first call has them
        if used:
            told.append(self._usage(message, used, ts, has_call=tokens is None))
        return told

    def _has_new_tokens(self, message: _Message) -> bool:
        if message.tokens is None or message.id == self._last_id:
            return False
        self._last_id = message.id
        return self._is_new(_key(f"message {message.id}"))

    def _tell_call(self, call: _Call, ts: float, tokens: int | None, told: list[Entry]) -> bool:
        """Append what is new of a call; return whether it is told for the first time."""
        if not call.id or not call.name:
            return False
        key = _key(f"call {call.id}")
        if is_new := self._is_new(key):
            self._told[key] = True
            told.append(self._call(call, ts, tokens))
        if self._told[key] and (call.result is not None or call.status in _OVER):
            self._told[key] = False
            told.append(self._answer(call, ts))
        return is_new

    def _is_new(self, key: str) -> bool:
        """Whether it is told for the first time; from now on it is not."""
        if key in self._told:
            return False
        self._told[key] = False
        if len(self._told) > _REMEMBERED:
            del self._told[next(iter(self._told))]
            self._has_forgotten = True
        return True

    def _usage(self, message: _Message, used: _Tokens, ts: float, *, has_call: bool) -> Usage:
        return Usage(
            session=self._session or "",
            ts=ts,
            model=short(message.model) if message.model else None,
            input=max(used.input - used.cached, 0) + used.tool,
            output=used.output + used.thoughts,
            cached=used.cached,
            has_call=has_call,
        )

    def _call(self, call: _Call, ts: float, tokens: int | None) -> ToolCall:
        return ToolCall(
            session=self._session or "",
            agent=self._agent,
            ts=ts,
            tool=short(call.name),
            call_id=short(call.id),
            args=bytes(call.args),
            parent=self._parent,
            tokens=tokens,
        )

    def _answer(self, call: _Call, asked_at: float) -> Answer:
        text, is_failure = _result(call)
        return Answer(
            session=self._session or "",
            call_id=short(call.id),
            ts=_seconds(call.time) or asked_at,
            is_error=is_failure or call.status == "error",
            digest=digest(text),
        )


def _result(call: _Call) -> tuple[bytes, bool]:
    """Return what a call came to, without what varies, and whether it is that of a failed command."""
    texts, is_failure = [], False
    for part in call.result if isinstance(call.result, list) else (call.result,):
        if part is not None:
            text, has_failed = _piece(part, call.name)
            texts.append(text)
            is_failure |= has_failed
    return b"\0".join(texts), is_failure


def _piece(part: _Part | str, tool: str) -> tuple[bytes, bool]:
    if isinstance(part, str):
        return part.encode(), False
    if part.answer is None:
        return b"".join((part.text, part.image, part.file)), False
    try:
        told = _decode_response(part.answer.response)
    except (ValueError, RecursionError):
        told = _Response()
    text = told.output if told.output is not None else told.error
    if text is None:
        return b"".join((part.answer.response, part.answer.parts)), False
    text, is_failure = _without_end(text) if tool == _SHELL else (text, False)
    if _MOVED in text or _SAVED in text:
        text = _VARYING.sub("", text)
    return text.encode() + bytes(part.answer.parts), is_failure


def _without_end(text: str) -> tuple[str, bool]:
    """Cut the process ids that the program adds to a command's output; return whether it adds a failure, too.

    The call's status is `success` whenever the command could be started, whatever its exit code.
    """
    text = text.removesuffix(_UNTRUSTED)
    last = text.rfind("\n")
    for line in (_PROCESS, _BACKGROUND):
        if last >= 0 and text.startswith(line, last):
            text = text[:last]
            last = text.rfind("\n")
    return text, last >= 0 and text.startswith(_FAILURES, last)


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


def _key(what: str) -> str:
    return hashlib.blake2b(what.encode(), digest_size=_KEY).hexdigest()


def _keys(text: str) -> list[str]:
    keys = [text[start : start + 2 * _KEY] for start in range(0, len(text), 2 * _KEY)]
    return keys[-_REMEMBERED:]


def _total(used: _Tokens) -> int:
    return max(used.input, used.cached) + used.tool + used.output + used.thoughts


def _time_of(message: _Message) -> float:
    """Raise ValueError for a message without a time or an id."""
    if message.time is None or not message.id:
        raise ValueError("a message has no time or no id")
    return epoch(message.time)


def _seconds(moment: datetime | None) -> float | None:
    try:
        return None if moment is None else epoch(moment)
    except (ValueError, OverflowError):
        return None


# ── records whose fields are not what they should be ──────────────────────────────────────────────


def _odd_record(line: bytes | Raw) -> _Record:
    """Read a record as far as it makes sense. Raises ValueError if it is no JSON object."""
    odd = _decode_odd(line)
    return _Record(
        id=name(value(odd.id)),
        time=_moment(odd.time),
        type=name(value(odd.type)),
        tokens=_first(odd.tokens, _decode_tokens),
        model=name(value(odd.model)),
        calls=_items(odd.calls, _decode_call, _odd_call),
        session=name(value(odd.session)),
        update=_first(odd.update, _odd_update),
    )


def _odd_update(raw: Raw) -> _Update:
    return _Update(messages=_items(_decode_odd_update(raw).messages, _odd_record))


def _odd_call(raw: Raw) -> _Call:
    odd = _decode_odd_call(raw)
    return _Call(
        id=name(value(odd.id)) or "",
        name=name(value(odd.name)) or "",
        args=odd.args,
        result=None if odd.result == NOTHING else _Part(text=odd.result),
        status=name(value(odd.status)),
        time=_moment(odd.time),
    )


def _items(raw: Raw, *readers: Callable[[Raw], Item]) -> list[Item]:
    """Return those of a list that can be read; none of what is no list."""
    items = [_first(item, *readers) for item in _first(raw, _decode_list) or ()]
    return [item for item in items if item is not None]


def _first(raw: Raw, *readers: Callable[[Raw], Item]) -> Item | None:
    """Return what the first reader that takes it makes of it."""
    for read in readers:
        try:
            return read(raw)
        except ValueError:
            continue
    return None


def _moment(raw: Raw) -> datetime | None:
    try:
        given = time(value(raw))
        return given if isinstance(given, datetime) else datetime.fromtimestamp(epoch(given), UTC)
    except (ValueError, OverflowError):
        return None


FORMAT: Final = LogFormat(
    source=partial(LogFiles, format=ChatReader.begin),
    is_record=lambda record: record.keys() >= {"sessionId", "projectHash"},
    home=Home(folders=("~/.gemini",), patterns=("tmp/*/chats/**/*.jsonl",)),
    # The inner of two: the outer one ignores SIGTERM, and SIGKILL to it leaves the inner one going on.
    process=r"^(\S*/)?node (-\S+ )*--max-old-space-size=\d+ (-\S+ )*(\S*/)?gemini(-cli/\S+)?(?!\S)",
)
