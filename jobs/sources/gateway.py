"""The gateway's log: one call a line, `{"ts", "agentId", "tool", "args"}` and what else the gateway knows of it.

    {"ts": 1767225600.5, "agentId": "main", "sessionId": "s-1", "tool": "exec", "args": {"command": "ls"}, "pid": 812}

`sessionId`, `parentId`, `pid`, `is_error` and `tokens` are optional; `args_hash` may stand for `args`.
"""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Raw

from jobs.thrash.call import ToolCall

_LONGEST_NAME: Final = 200
"""Characters."""
_KEPT_OF_NAME: Final = 180
_MILLISECONDS: Final = 1e11
"""Epoch numbers above this are milliseconds."""
_YEAR_10000: Final = 253_402_300_800
_LARGEST_PID: Final = 2**31 - 1
_MOST_TOKENS: Final = 10**12
"""What a call can have used; sums of such fit an SQLite integer."""

_FIELDS: Final = {"agent": "agentId", "session": "sessionId", "parent": "parentId"}
_NO_ARGS: Final = Raw(b"null")

_Name = Annotated[str, Meta(min_length=1, max_length=_LONGEST_NAME)]
_Seconds = Annotated[float, Meta(ge=0, lt=_YEAR_10000 * 1000)]


class _Line(msgspec.Struct, rename=_FIELDS, gc=False):
    """A line as it should be, checked while it is decoded."""

    agent: _Name
    tool: _Name
    ts: _Seconds | datetime
    args: Raw = _NO_ARGS
    args_hash: _Name | None = None
    session: _Name | None = None
    parent: _Name | None = None
    pid: Annotated[int, Meta(ge=1, le=_LARGEST_PID)] | None = None
    is_error: bool | None = None
    tokens: Annotated[int, Meta(ge=0, le=_MOST_TOKENS)] | None = None


class _OddLine(msgspec.Struct, rename=_FIELDS):
    """A line whose fields may be anything."""

    agent: object = None
    tool: object = None
    ts: object = None
    args: Raw = _NO_ARGS
    args_hash: object = None
    session: object = None
    parent: object = None
    pid: object = None
    is_error: object = None
    tokens: object = None


_line = msgspec.json.Decoder(_Line)
_odd_line = msgspec.json.Decoder(_OddLine)


def parse(line: bytes) -> Sequence[ToolCall] | None:
    """Return the call of a line, or None if it is no JSON object or lacks agent, tool or time.

    Optional fields of another type or out of range are read as far as they make sense, else as not given.
    The inside of `args` is not looked at: a byte that is no text there must not hide a call.
    """
    try:
        return (_parse_line(line),)
    except msgspec.ValidationError:
        return _parse_odd(line)
    except (ValueError, RecursionError):
        return None


def _parse_line(line: bytes) -> ToolCall:
    read = _line.decode(line)
    return ToolCall(
        session=read.session or read.agent,
        agent=read.agent,
        ts=_epoch(read.ts),
        tool=read.tool,
        args=bytes(read.args),
        args_hash=read.args_hash if read.args == _NO_ARGS else None,
        parent=read.parent,
        pid=read.pid,
        is_error=read.is_error or False,
        tokens=read.tokens,
    )


def _parse_odd(line: bytes) -> Sequence[ToolCall] | None:
    try:
        return (_parse_odd_line(line),)
    except (ValueError, OverflowError, RecursionError):
        return None


def _parse_odd_line(line: bytes) -> ToolCall:
    read = _odd_line.decode(line)
    agent, tool = _name(read.agent), _name(read.tool)
    if agent is None or tool is None or not isinstance(read.tool, str):
        raise ValueError("agent or tool is not named")
    return ToolCall(
        session=_name(read.session) or agent,
        agent=agent,
        ts=_epoch(_time(read.ts)),
        tool=tool,
        args=bytes(read.args),
        args_hash=_name(read.args_hash) if read.args == _NO_ARGS else None,
        parent=_name(read.parent),
        pid=_whole(read.pid, 1, _LARGEST_PID),
        is_error=_is_true(read.is_error),
        tokens=_whole(read.tokens, 0, _MOST_TOKENS),
    )


def _epoch(time: float | datetime) -> float:
    """Return epoch seconds. Raises ValueError outside of 1970..9999."""
    if isinstance(time, datetime):
        seconds = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    else:
        seconds = time / 1000 if time > _MILLISECONDS else time
    if not 0 <= seconds < _YEAR_10000:
        raise ValueError("not a time")
    return seconds


def _time(value: object) -> float | datetime:
    match value:
        case bool():
            raise ValueError("not a time")
        case int() | float():
            return float(value)
        case str():
            return _time_in(value)
        case _:
            raise ValueError("not a time")


def _time_in(text: str) -> float | datetime:
    try:
        return float(text)
    except ValueError:
        return datetime.fromisoformat(text)


def _name(value: object) -> str | None:
    """Return a name that is short and still tells things apart, or None."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value:
        return None
    if len(value) <= _LONGEST_NAME:
        return value
    return f"{value[:_KEPT_OF_NAME]}#{hashlib.sha256(value.encode()).hexdigest()[:16]}"


def _whole(value: object, least: int, most: int) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = int(value)
    except (ValueError, OverflowError):
        return None
    is_exact = isinstance(value, str) or number == value
    return number if is_exact and least <= number <= most else None


def _is_true(value: object) -> bool:
    if isinstance(value, str):
        return value.lower() not in {"", "0", "false", "no"}
    return bool(value)
