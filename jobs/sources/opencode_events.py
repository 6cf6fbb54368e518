"""What an event of opencode's tells: that a message, or a part of one, is now like this.

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
calls, these bear no tokens.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw

from jobs.sources.fields import MOST_TOKENS, NOTHING, Tokens, digest, first_time, short, state_of
from jobs.sources.lenient import decode
from jobs.sources.once import MOST_OPEN, is_new, key
from jobs.thrash.call import Answer, Entry, ToolCall, Usage

_HAS_INPUT: Final = frozenset({"running", "completed", "error"})
_ENDED: Final = frozenset({"completed", "error"})
_CLOSED: Final = 8
"""So many calls with an answer are remembered of a session, should their parts be written once more."""
_SESSION: Final = "ses_"
_SESSION_ID: Final = re.compile(r"ses_[0-9A-Za-z]{12,}")
"""A sub-agent's, in the answer of the call that started it."""


class _Time(msgspec.Struct, gc=False):
    start: float | None = None
    end: float | None = None
    compacted: float | None = None
    """When an answer was taken out of what the model sees."""


_NO_TIMES: Final = _Time()


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
    id: str = ""
    """The part's, where it does not bear it itself; likewise the model."""
    number: int | None = None
    """Of the part's last change, where only that is kept."""
    model: str | None = None
    part: _Part | None = None
    info: _Message | None = None


class _State(msgspec.Struct, omit_defaults=True):
    """What a session's later events refer to: the model that answers, and parts that may be written anew."""

    model: str | None = None
    open: dict[str, None] = {}
    closed: dict[str, None] = {}
    read: int = -1
    """Where parts alone are kept: the number of the last change that was read,"""
    goal: int = -1
    """that of the newest one when one began to read what is read now,"""
    before: int = -1
    """and that of the newest one the time before."""


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

    def begin(self, newest: int) -> None:
        """Begin to read parts, or go on, where they alone are kept: up to the number of the newest change."""
        state = self._state
        if state.read >= state.goal:
            state.before, state.goal = state.goal, newest

    def read(self, line: bytes) -> Sequence[Entry] | None:
        """Return a call once it has its input, its answer once it has ended, and what each step has used."""
        event = decode(_event, line)
        if event is None:
            return None
        if event.number is not None:
            self._state.read = event.number
        if event.info is not None:
            if event.info.role == "assistant" and event.info.model:
                self._state.model = short(event.info.model)
            return ()
        part = event.part
        if part is None or not part.type:
            return None
        part.id = part.id or event.id
        if part.type == "tool":
            return self._call(part, event)
        if part.type == "step-finish" and part.tokens:
            return self._usage(part.tokens, part.cost, event)
        return ()

    def state(self) -> str:
        """The model, and the newest calls."""
        return msgspec.json.encode(self._state).decode()

    def _call(self, part: _Part, event: _Event) -> Sequence[Entry] | None:
        state, mark = part.state, key(part.id or part.call_id)
        if state is None or not part.tool or not mark:
            return None
        is_open, has_ended = mark in self._state.open, state.status in _ENDED
        # Most of what is written is what was told already, in other words.
        if (is_open and not has_ended) or state.status not in _HAS_INPUT or mark in self._state.closed:
            return ()
        times = state.time or _NO_TIMES
        started = first_time(times.start, event.time)
        if started is None:
            return None
        if times.compacted is not None and self._was_told(times, event.number):
            return ()
        told: list[Entry] = [] if is_open else [self._tool_call(part, state, started)]
        if not has_ended:
            is_new(mark, self._state.open, None, MOST_OPEN)
            return told
        self._state.open.pop(mark, None)
        is_new(mark, self._state.closed, None, _CLOSED)
        told.append(self._answer(part, state, first_time(times.end, event.time) or started))
        return told

    def _was_told(self, times: _Time, number: int | None) -> bool:
        """Whether a call was told before its answer was taken out of what the model sees."""
        if number is None:
            return True  # by an earlier event
        state = self._state
        read_before = state.goal if number > state.goal else state.before
        return times.end is not None and times.end * 1000 <= read_before

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
                model=short(event.model) if event.model else self._state.model,
                input=used.input,
                output=used.output + used.reasoning,
                cached=cache.read + cache.write,
                written=cache.write,
                cost=cost if cost is not None and 0 <= cost < MOST_TOKENS else None,
            ),
        )


def _text(state: _CallState) -> bytes:
    text = state.error if state.status == "error" else state.output
    if state.attachments:
        text = "\0".join([text, *(attachment.url for attachment in state.attachments)])
    # A single character is found several times as fast as more.
    if "_" in text and _SESSION in text:
        text = _SESSION_ID.sub("", text)
    return text.encode()
