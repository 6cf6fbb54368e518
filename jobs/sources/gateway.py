"""The gateway's log: one call a line, `{"ts", "agentId", "tool", "args"}` and what else the gateway knows of it.

    {"ts": 1767225600.5, "agentId": "main", "sessionId": "s-1", "tool": "exec", "args": {"command": "ls"}, "pid": 812}

`sessionId`, `parentId`, `callId`, `pid`, `is_error` and `tokens` are optional; `args_hash` may stand for `args`.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Raw

from jobs.sources.fields import (
    LARGEST_PID,
    MOST_TOKENS,
    NOTHING,
    Name,
    Seconds,
    Tokens,
    epoch,
    is_true,
    name,
    paired,
    short,
    time,
    value,
    whole,
)
from jobs.sources.log_files import EachLine, LogFiles
from jobs.sources.log_format import LogFormat
from jobs.thrash.call import LoggedCall, ToolCall

_FIRST_YEAR: Final = 1970
_LAST_YEAR: Final = 9999
"""Of a date between them the zone does not matter."""

_FIELDS: Final = {
    "agent": "agentId",
    "session": "sessionId",
    "parent": "parentId",
    "call_id": "callId",
    "time": "ts",
    "raw_args": "args",
    "raw_hash": "args_hash",
}


class _Line(msgspec.Struct, rename=_FIELDS, kw_only=True, gc=False):
    """A call as most lines tell it, checked while it is decoded. What few calls are asked is worked out then."""

    # In the order in which a line has them they are found at the first try.
    time: Seconds | datetime
    agent: Name
    session: Name | None = None
    parent: Name | None = None
    tool: Name
    call_id: Name | None = None
    raw_args: Raw = NOTHING
    raw_hash: Name | None = None
    pid: Annotated[int, Meta(ge=1, le=LARGEST_PID)] | None = None
    is_error: bool | None = None
    tokens: Tokens | None = None

    @property
    def ts(self) -> float:
        return epoch(self.time)

    @property
    def args(self) -> bytes:
        return bytes(self.raw_args)

    @property
    def args_hash(self) -> str | None:
        return self.raw_hash if self.raw_args == NOTHING else None


class _OddLine(msgspec.Struct, rename=_FIELDS):
    """A line whose fields may be anything: decoded, one that is full of brackets takes 20 times its own memory."""

    agent: Raw = NOTHING
    tool: Raw = NOTHING
    time: Raw = NOTHING
    raw_args: Raw = NOTHING
    raw_hash: Raw = NOTHING
    session: Raw = NOTHING
    parent: Raw = NOTHING
    call_id: Raw = NOTHING
    pid: Raw = NOTHING
    is_error: Raw = NOTHING
    tokens: Raw = NOTHING


_decode: Final = msgspec.json.Decoder(_Line).decode
_odd_line = msgspec.json.Decoder(_OddLine)


def parse(line: bytes) -> Sequence[LoggedCall] | None:
    """Return the call of a line, or None if it is no JSON object or lacks agent, tool or time.

    Optional fields of another type or out of range are read as far as they make sense, else as not given.
    The inside of `args` is not looked at: a byte that is no text there must not hide a call.
    """
    try:
        call = _decode(line)
        if call.session is None:
            call.session = call.agent
        if call.is_error is None:
            call.is_error = False
        if isinstance(call.time, datetime) and not _FIRST_YEAR < call.time.year < _LAST_YEAR:
            epoch(call.time)
    except (ValueError, RecursionError):
        return _parse_odd(line)
    return (call,)  # type: ignore[return-value]  # a session has a name now, and an error is one or none


def _parse_odd(line: bytes) -> Sequence[LoggedCall] | None:
    try:
        return (_parse_odd_line(paired(line)),)
    except (ValueError, OverflowError, RecursionError):
        return None


def _parse_odd_line(line: bytes) -> ToolCall:
    read = _odd_line.decode(line)
    agent, tool = name(value(read.agent)), value(read.tool)
    if agent is None or not isinstance(tool, str) or not tool:
        raise ValueError("agent or tool is not named")
    return ToolCall(
        session=name(value(read.session)) or agent,
        agent=agent,
        ts=epoch(time(value(read.time))),
        tool=short(tool),
        args=bytes(read.raw_args),
        args_hash=name(value(read.raw_hash)) if read.raw_args == NOTHING else None,
        parent=name(value(read.parent)),
        call_id=name(value(read.call_id)),
        pid=whole(value(read.pid), 1, LARGEST_PID),
        is_error=is_true(read.is_error),
        tokens=whole(value(read.tokens), 0, MOST_TOKENS),
    )


FORMAT: Final = LogFormat(
    source=partial(LogFiles, format=EachLine(parse)),
    is_record=lambda record: record.keys() >= {"agentId", "tool", "ts"},
)
