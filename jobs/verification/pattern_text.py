"""Texts that a regular expression is found in, and such that it is not; `re` itself has the last word."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from random import Random
from typing import Final

_TRIES: Final = 50
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_STRANGERS: Final = ("?", "seven", "0", "A-1", "\u00e9", "~ ~", "-", "")
"""One of them is unlike almost every pattern."""
_SPOILED: Final[Mapping[str, Callable[[str], Iterable[str]]]] = {
    "unlike its pattern": lambda _: _STRANGERS,
    "in other case": lambda text: (text.swapcase(),),
    "with more before": lambda text: (each + text for each in _STRANGERS),
    "with more after": lambda text: (text + each for each in _STRANGERS),
    "with another line": lambda text: (f"{text}\n{each}" for each in _STRANGERS),
}
UNLIKE: Final = tuple(_SPOILED)
"""How a text that a pattern is found in may become one that it is not."""


def alike(pattern: str) -> Iterator[str]:
    """Yield some texts that a pattern is found in; none if it is too intricate to make one."""
    return filter(re.compile(pattern).search, _drawn(pattern))


def _drawn(pattern: str) -> Iterator[str]:
    from rstr import Rstr  # noqa: PLC0415 - only where it is needed: to start quickly

    drawing = Rstr(Random(pattern), printable=_LETTERS)  # noqa: S311 - no secret
    for _ in range(_TRIES):
        try:
            text = drawing.xeger(pattern)
            text.encode()
        except (LookupError, ValueError, TypeError, AttributeError, RecursionError):
            continue  # what it does not know it stumbles over
        yield text


def unlike(pattern: str, like: str, how: str) -> Iterator[str]:
    """Yield a text that is like another one but that a pattern is not found in, if there is one that is not far to seek."""
    return islice((text for text in _SPOILED[how](like) if not re.search(pattern, text)), 1)
