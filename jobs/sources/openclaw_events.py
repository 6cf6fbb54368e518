"""What an event of OpenClaw's transcripts tells, whether it is a row of a database or a line of a file.

An answer of the model with a call in it, and the call's result:

    {"type": "message", "timestamp": "2026-11-30T08:40:35.249Z", "message": {"role": "assistant", "model": "m",
     "content": [{"type": "toolCall", "id": "call_17", "name": "exec", "arguments": {"command": "date"}}],
     "usage": {"input": 1200, "output": 30, "cacheRead": 0, "cacheWrite": 0, "cost": {"total": 0.004}},
     "timestamp": 1796028034256}}
    {"type": "message", "timestamp": "2026-11-30T08:40:38.174Z", "message": {"role": "toolResult",
     "toolCallId": "call_17", "content": [{"type": "text", "text": "pending"}], "isError": false,
     "details": {"status": "completed", "exitCode": 0}, "timestamp": 1796028038169}}

A command that fails has `isError: false`: its exit code tells. A call that was killed has no result.
"""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

import msgspec

from jobs.sources.fields import MOST_TOKENS, NOTHING, Seconds, digest, first_time, paired, short, state_of
from jobs.sources.lenient import decode
from jobs.sources.openclaw_keys import is_key
from jobs.sources.openclaw_records import Details, Event, Message, Part, Used, Wrapped
from jobs.thrash.call import Answer, Entry, ToolCall, Usage

_WRAPPER: Final = "tool_call"
"""The tool through which those are called that are not offered to the model directly."""
_NOTE: Final = "[System note: Tool-loop warning"
"""How a part begins that OpenClaw's own loop detection adds to a result, with a count in it."""
_RUNS: Final = "(session "
_RUN: Final = re.compile(r"\(session [^(),]{1,80}, pid \w{1,20}\)")
"""Names a command that goes on in the background, each time another way."""
_SPAWNED: Final = "childSessionKey"
"""In a result that tells of a new sub-agent; the ids in it are new each time."""
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_INJECTED: Final = frozenset({"gateway-injected", "delivery-mirror"})
"""Not models: OpenClaw writes such answers itself."""
_FAILED: Final = frozenset({"error", "blocked", "failed"})


class _State(msgspec.Struct, omit_defaults=True):
    """What the records say of their session."""

    session: str = ""
    agent: str = ""
    parent: str | None = None


_event: Final = msgspec.json.Decoder(Event)
_time: Final = msgspec.json.Decoder(Seconds | datetime | None).decode
_wrapped: Final = msgspec.json.Decoder(Wrapped)
_decode_text: Final = msgspec.json.Decoder(str).decode
_state: Final = msgspec.json.Decoder(_State)


class Transcript:
    """A `LineReader` of one session's events."""

    def __init__(
        self,
        *,
        session: str,
        agent: str,
        parent: str | None,
        state: str,
        session_of: Callable[[str], str | None] = lambda _key: None,
    ) -> None:
        """Begin with what is known from elsewhere; the records themselves may know better than `session`.

        `session_of` says which session a key names.
        """
        self._session_of = session_of
        self._told = state_of(_state, state)
        self._session = short(self._told.session or session)
        self._agent = short(agent)
        self._parent = parent and short(parent)

    def read(self, line: bytes) -> Sequence[Entry] | None:
        """Return the calls and the usage of an answer of the model, or a call's result."""
        event = decode(_event, line)
        if event is None or not event.type:
            return None
        if event.type != "message":
            if event.type == "session":
                self._begin(event)
            return ()
        message = event.message
        if message is None or not message.role:
            return None
        ts = first_time(message.timestamp)
        if ts is None:
            ts = _time_of(event)
        if ts is None:
            return None
        if message.role == "assistant":
            return self._answer_of_model(message, ts)
        return self._result(message, ts) if message.role == "toolResult" else ()

    def state(self) -> str:
        """What the session's own record said."""
        return "" if self._told == _State() else msgspec.json.encode(self._told).decode()

    def _begin(self, event: Event) -> None:
        parent = event.parent_session.rpartition("/")[2].removesuffix(".jsonl")
        if is_key(parent):
            parent = self._session_of(parent) or ""
        folder = event.cwd.rstrip("/").rpartition("/")[2]
        self._told = _State(
            session="" if event.id == self._session else short(event.id),
            agent="" if self._agent else short(folder),
            parent=short(parent) or None,
        )
        self._session = self._told.session or self._session

    def _answer_of_model(self, message: Message, ts: float) -> Sequence[Entry] | None:
        if message.model in _INJECTED or message.openclaw_abort != NOTHING:
            return ()
        calls = _calls_in(message.content)
        if calls is None:
            return None
        usage = message.usage and self._usage(message.usage, message.model, ts, has_call=bool(calls))
        tokens = usage.tokens if usage else None
        told: list[Entry] = []
        for call in calls:
            told.append(self._call(call, ts, tokens))
            tokens = None
        if usage:
            told.append(usage)
        return told

    def _call(self, part: Part, ts: float, tokens: int | None) -> ToolCall:
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

    def _usage(self, usage: Used, model: str | None, ts: float, *, has_call: bool) -> Usage:
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

    def _result(self, message: Message, ts: float) -> Sequence[Entry] | None:
        if not message.tool_call_id:
            return None
        details = message.details or Details()
        is_error = message.is_error or bool(details.exit_code) or details.status in _FAILED
        return (
            Answer(
                session=self._session,
                call_id=short(message.tool_call_id),
                ts=ts,
                is_error=is_error,
                digest=digest(_text(message.content) or _aggregated(details)),
            ),
        )


def _time_of(event: Event) -> float | None:
    try:
        return first_time(_time(event.timestamp))
    except ValueError:
        return None


def _calls_in(content: list[Part] | str) -> Sequence[Part] | None:
    """Return the calls that have a name; None if there are only others."""
    if isinstance(content, str):
        return ()
    calls, is_nameless = [], False
    for part in content:
        if part.type == "toolCall":
            if part.name:
                calls.append(part)
            else:
                is_nameless = True
    return None if is_nameless and not calls else calls


def _text(content: list[Part] | str) -> bytes:
    """Return a result without what OpenClaw has added to it and what is of this very call."""
    if isinstance(content, str):
        return content.encode()
    texts, data = [], []
    for part in content:
        if not part.text.startswith(_NOTE):
            texts.append(part.text)
        if part.data != NOTHING:
            data.append(bytes(part.data))
    text = "\0".join(texts)
    # A single character is found several times as fast as more.
    if "(" in text and _RUNS in text:
        text = _RUN.sub("", text)
    if '"' in text and _SPAWNED in text:
        text = _UUID.sub("", text)
    return b"".join([text.encode(), *data]) if data else text.encode()


def _aggregated(details: Details) -> bytes:
    try:
        return _decode_text(paired(details.aggregated)).encode()
    except ValueError:
        return b""
