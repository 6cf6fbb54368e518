"""Fields as logs write them: names of any length, times of any kind, numbers in texts, half characters."""

import hashlib
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta, Raw

State = TypeVar("State", bound=msgspec.Struct)

LONGEST_NAME: Final = 200
"""Characters."""
_KEPT_OF_NAME: Final = 180
_MILLISECONDS: Final = 1e11
"""Epoch numbers above this are milliseconds."""
YEAR_10000: Final = 253_402_300_800
LARGEST_PID: Final = 2**31 - 1
MOST_TOKENS: Final = 10**12
"""What a call can have used; sums of such fit an SQLite integer."""

NOTHING: Final = Raw(b"null")
"""A field that is not given."""
_EMPTY: Final = (Raw(b"[]"), Raw(b"{}"))

Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
Seconds = Annotated[float, Meta(ge=0, lt=YEAR_10000 * 1000)]
"""Or milliseconds."""
Tokens = Annotated[int, Meta(ge=0, le=MOST_TOKENS)]

_ESCAPE: Final = rb"""
    \\u[dD][89abAB][0-9a-fA-F]{2} \\u[dD][c-fC-F][0-9a-fA-F]{2}  # a surrogate pair
    | \\(u[dD][89a-fA-F][0-9a-fA-F]{2})                          # half of one
    | \\.                                                       # passed over: it may be a backslash's own
    """
_REPLACEMENT: Final = b"ufffd"

# Each begins with a text of its own: most answers have none of these, which is soon known.
_RUN_TIMES: Final = (
    # "Ran 1 test in 0.001s", "built in 512 ms", "BUILD FAILED in 2s"; not "next try in 30 s", which tells something
    (
        b" in ",
        rb"""\ in\ (?:
            \d+\.\d+ (?=\ ?(?:s\b|sec))
            | \d+ (?:\.\d+)? (?=\ ?ms\b)
            | (?: (?<=FAILED\ in\ ) | (?<=SUCCESSFUL\ in\ ) | (?<=\ packages\ in\ ) ) (?:\d+m\ )? \d+ (?=s\b)
        )""",
    ),
    (b"(", rb"\(\d+(?:\.\d+)?(?=\ ?m?s\))"),  # "reads a date (12ms)", "--- PASS: TestDates (0.00s)"
    (b"ime: ", rb"ime:\ +\d+(?:\.\d+)?(?=\ ?m?s\b)"),  # "Time:        1.234 s"
    (b"\t", rb"\t(?:\d+m)?\d+\.\d+(?=s$)"),  # "ok  	example.org/dates	0.012s", "real	0m0.012s"
)
_END: Final = 1 << 12
"""Bytes of a long answer, at its start and at its end, in which run times are looked for: they are told in summaries."""
_LENGTH: Final = 16
"""Characters of a hash."""


def paired(line: bytes) -> bytes:
    """Replace halves of surrogate pairs: JSON has them where a text was cut, but no decoder takes them."""
    whole = bytearray(line)
    for escape in re.finditer(_ESCAPE, line, re.VERBOSE | re.DOTALL):
        if escape[1]:
            whole[escape.start(1) : escape.end(1)] = _REPLACEMENT
    return bytes(whole)


def value(raw: Raw) -> object:
    """Return text, number, truth value or None; an object or array is None too. Raises ValueError for a text that is none."""
    return None if is_container(raw) else msgspec.json.decode(raw)


def is_container(raw: Raw) -> bool:
    """Whether it is an object or an array."""
    return bytes(memoryview(raw)[:1]) in {b"[", b"{"}


def epoch(time: float | datetime) -> float:
    """Return epoch seconds. Raises ValueError outside of 1970..9999."""
    if isinstance(time, datetime):
        seconds = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    else:
        seconds = time / 1000 if time > _MILLISECONDS else time
    if not 0 <= seconds < YEAR_10000:
        raise ValueError("not a time")
    return seconds


def first_time(*given: float | datetime | None) -> float | None:
    """Return the first of several times that is one, in epoch seconds."""
    for each in given:
        try:
            if each is not None:
                return epoch(each)
        except (ValueError, OverflowError):
            continue
    return None


def state_of(decoder: msgspec.json.Decoder[State], state: str) -> State:
    """Return what a reader kept of the lines before; if that cannot be read, what it begins with."""
    try:
        return decoder.decode(state)
    except (ValueError, RecursionError):
        return decoder.type()


def time(value: object) -> float | datetime:
    """Return what `epoch` takes, of a number or of a text that is one or an ISO time. Raises ValueError for others."""
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


def name(value: object) -> str | None:
    """Return a name that is short and still tells things apart, or None."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    return short(value) if isinstance(value, str) and value else None


def short(name: str) -> str:
    """Return a name as it is, or the beginning and a hash of a long one."""
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[:_KEPT_OF_NAME]}#{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def whole(value: object, least: int, most: int) -> int | None:
    """Return a whole number between two others, also of a text; else None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = int(value)
    except (ValueError, OverflowError):
        return None
    is_exact = isinstance(value, str) or number == value
    return number if is_exact and least <= number <= most else None


def is_true(raw: Raw) -> bool:
    """Whether a field says yes, in whatever way."""
    if is_container(raw):
        return raw not in _EMPTY
    given = value(raw)
    if isinstance(given, str):
        return given.lower() not in {"", "0", "false", "no"}
    return bool(given)


def digest(answer: bytes) -> str:
    """Return a hash of an answer's text. It is equal for answers that differ in nothing but how long tests ran."""
    # Most of the time that a long answer takes is spent here, and processors have instructions for this hash.
    if len(answer) <= 2 * _END:
        return hashlib.sha1(_timeless(answer), usedforsecurity=False).hexdigest()[:_LENGTH]
    digested = hashlib.sha1(_timeless(answer[:_END]), usedforsecurity=False)
    digested.update(memoryview(answer)[_END:-_END])
    digested.update(_timeless(answer[-_END:]))
    return digested.hexdigest()[:_LENGTH]


def _timeless(answer: bytes) -> bytes:
    for beginning, run_time in _RUN_TIMES:
        if answer.find(beginning) >= 0:  # `in` takes longer to begin
            answer = _taker_out(run_time)(b"", answer)
    return answer


@cache
def _taker_out(pattern: bytes) -> Callable[[bytes, bytes], bytes]:
    # Not before it is needed: a process that reads a database would take a tenth of its start for it.
    return re.compile(pattern, re.VERBOSE | re.MULTILINE).sub
