"""The gateway's log: one call a line, `{"ts", "agentId", "tool", "args"}` and what else the gateway knows of it.

    {"ts": 1767225600.5, "agentId": "main", "sessionId": "s-1", "tool": "exec", "args": {"command": "ls"}, "pid": 812}

`sessionId`, `parentId`, `pid`, `is_error` and `tokens` are optional; `args_hash` may stand for `args`.
"""

import hashlib
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Raw

from jobs.thrash.call import LoggedCall, ToolCall

_LONGEST_NAME: Final = 200
"""Characters."""
_KEPT_OF_NAME: Final = 180
_MILLISECONDS: Final = 1e11
"""Epoch numbers above this are milliseconds."""
_YEAR_10000: Final = 253_402_300_800
_FIRST_YEAR: Final = 1970
_LAST_YEAR: Final = 9999
"""Of a date between them the zone does not matter."""
_LARGEST_PID: Final = 2**31 - 1
_MOST_TOKENS: Final = 10**12
"""What a call can have used; sums of such fit an SQLite integer."""

_ESCAPE: Final = re.compile(
    rb"""
    \\u[dD][89abAB][0-9a-fA-F]{2} \\u[dD][c-fC-F][0-9a-fA-F]{2}  # a surrogate pair
    | \\(u[dD][89a-fA-F][0-9a-fA-F]{2})                          # half of one
    | \\.                                                       # passed over: it may be a backslash's own
    """,
    re.VERBOSE | re.DOTALL,
)
_REPLACEMENT: Final = b"ufffd"

_FIELDS: Final = {
    "agent": "agentId",
    "session": "sessionId",
    "parent": "parentId",
    "time": "ts",
    "raw_args": "args",
    "raw_hash": "args_hash",
}
_NOTHING: Final = Raw(b"null")
_EMPTY: Final = (Raw(b"[]"), Raw(b"{}"))

_Name = Annotated[str, Meta(min_length=1, max_length=_LONGEST_NAME)]
_Seconds = Annotated[float, Meta(ge=0, lt=_YEAR_10000 * 1000)]


class _Line(msgspec.Struct, rename=_FIELDS, kw_only=True, gc=False):
    """A call as most lines tell it, checked while it is decoded. What few calls are asked is worked out then."""

    # In the order in which a line has them they are found at the first try.
    time: _Seconds | datetime
    agent: _Name
    session: _Name | None = None
    parent: _Name | None = None
    tool: _Name
    raw_args: Raw = _NOTHING
    raw_hash: _Name | None = None
    pid: Annotated[int, Meta(ge=1, le=_LARGEST_PID)] | None = None
    is_error: bool | None = None
    tokens: Annotated[int, Meta(ge=0, le=_MOST_TOKENS)] | None = None

    @property
    def ts(self) -> float:
        return _epoch(self.time)

    @property
    def args(self) -> bytes:
        return bytes(self.raw_args)

    @property
    def args_hash(self) -> str | None:
        return self.raw_hash if self.raw_args == _NOTHING else None


class _OddLine(msgspec.Struct, rename=_FIELDS):
    """A line whose fields may be anything: decoded, one that is full of brackets takes 20 times its own memory."""

    agent: Raw = _NOTHING
    tool: Raw = _NOTHING
    time: Raw = _NOTHING
    raw_args: Raw = _NOTHING
    raw_hash: Raw = _NOTHING
    session: Raw = _NOTHING
    parent: Raw = _NOTHING
    pid: Raw = _NOTHING
    is_error: Raw = _NOTHING
    tokens: Raw = _NOTHING


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
            _epoch(call.time)
    except (ValueError, RecursionError):
        return _parse_odd(line)
    return (call,)  # type: ignore[return-value]  # a session has a name now, and an error is one or none


def _parse_odd(line: bytes) -> Sequence[LoggedCall] | None:
    try:
        return (_parse_odd_line(_paired(line)),)
    except (ValueError, OverflowError, RecursionError):
        return None


def _paired(line: bytes) -> bytes:
    """Replace halves of surrogate pairs: JSON has them where a text was cut, but no decoder takes them."""
    paired = bytearray(line)
    for escape in _ESCAPE.finditer(line):
        if escape[1]:
            paired[escape.start(1) : escape.end(1)] = _REPLACEMENT
    return bytes(paired)


def _parse_odd_line(line: bytes) -> ToolCall:
    read = _odd_line.decode(line)
    agent, tool = _name(_value(read.agent)), _value(read.tool)
    if agent is None or not isinstance(tool, str) or not tool:
        raise ValueError("agent or tool is not named")
    return ToolCall(
        session=_name(_value(read.session)) or agent,
        agent=agent,
        ts=_epoch(_time(_value(read.time))),
        tool=_short(tool),
        args=bytes(read.raw_args),
        args_hash=_name(_value(read.raw_hash)) if read.raw_args == _NOTHING else None,
        parent=_name(_value(read.parent)),
        pid=_whole(_value(read.pid), 1, _LARGEST_PID),
        is_error=_is_true(read.is_error),
        tokens=_whole(_value(read.tokens), 0, _MOST_TOKENS),
    )


def _value(raw: Raw) -> object:
    """Return text, number, truth value or None; an object or array is None too."""
    return None if _is_container(raw) else msgspec.json.decode(raw)


def _is_container(raw: Raw) -> bool:
    return bytes(memoryview(raw)[:1]) in {b"[", b"{"}


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
    return _short(value) if isinstance(value, str) and value else None


def _short(name: str) -> str:
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[:_KEPT_OF_NAME]}#{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def _whole(value: object, least: int, most: int) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = int(value)
    except (ValueError, OverflowError):
        return None
    is_exact = isinstance(value, str) or number == value
    return number if is_exact and least <= number <= most else None


def _is_true(raw: Raw) -> bool:
    if _is_container(raw):
        return raw not in _EMPTY
    value = _value(raw)
    if isinstance(value, str):
        return value.lower() not in {"", "0", "false", "no"}
    return bool(value)
