"""Values of a specification in words: on one line each, from where two of them differ."""

import json
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Final

from jobs.verification.wording import duration, is_plain, number, one_line, quantity

LONGEST: Final = 200
"""Characters."""
_PIECE: Final = 160
_SHARED: Final = 40
"""Characters of a longer text that are shown before the first that differs."""
_LONGEST_ESCAPE: Final = len("\\U0001f600")

Show = Callable[[object], str]


def text(value: object) -> str:
    """Return a value as it is written; one that could be mistaken for none, or for another, in quotes."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return number(value)
        case str() if value and value == value.strip():
            return value
        case _:
            return _exact(value)


def time(value: object) -> str:
    """Return seconds as a length of time."""
    return duration(value) if isinstance(value, int | float) else ""


def size(value: object) -> str:
    """Return a number of bytes."""
    return quantity(value, "byte") if isinstance(value, int) else ""


def pieces(before: object, after: object, show: Show) -> Iterator[tuple[int, str, str]]:
    """Yield two values side by side in pieces that differ, each with the place in the text where it begins.

    Nothing of a long one is left out, or whoever plants something would write it there.
    """
    old, new = visible(show(before)), visible(show(after))
    if old == new:
        old, new = _exact(before), _exact(after)
    if max(len(old), len(new)) <= LONGEST:
        yield 0, old, new
        return
    same = sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(old, new, strict=False)))
    start = max(0, same - _SHARED)
    for at in range(start, max(len(old), len(new)), _PIECE):
        if old[at : at + _PIECE] != new[at : at + _PIECE]:
            yield at, _piece(old, at), _piece(new, at)


def visible(whole: str) -> str:
    """Return a text on one line; escaped if it could be another one than it looks like."""
    line = one_line(whole, _LONGEST_ESCAPE * len(whole))
    return line if is_plain(line) else ascii(line)


def _exact(value: object) -> str:
    return "" if value is None else json.dumps(value)


def _piece(whole: str, at: int) -> str:
    piece = whole[at : at + _PIECE]
    if not piece:
        return ""
    return f"{'…' if at else ''}{piece}{'…' if at + _PIECE < len(whole) else ''}"
