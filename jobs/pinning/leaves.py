"""How two texts of JSON differ, value by value."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Final

_MOST: Final = 40
"""Values told one by one: of more than these nobody reads every line."""
_ABSENT: Final = object()

Leaf = tuple[str, str, str]
"""A path, what was there, and what is; empty: nothing."""


def leaves_that_differ(before: str, after: str) -> list[Leaf]:
    """Return the values that differ; none if one of the texts is no JSON, or if they are too many to be read."""
    try:
        found = _differing("", json.loads(before), json.loads(after))
        leaves = list(islice(found, _MOST + 1))
    except (ValueError, RecursionError):
        return []
    return leaves if len(leaves) <= _MOST else []


def _differing(path: str, before: object, after: object) -> Iterator[Leaf]:
    match before, after:
        case dict(), dict():
            for key in dict.fromkeys((*before, *after)):
                yield from _differing(f"{path}.{key}", before.get(key, _ABSENT), after.get(key, _ABSENT))
        case list(), list() if len(before) == len(after):
            for index, (one, other) in enumerate(zip(before, after, strict=True)):
                yield from _differing(f"{path}[{index}]", one, other)
        case _ if _written(before) != _written(after):
            yield path, _written(before), _written(after)


def _written(value: object) -> str:
    return "" if value is _ABSENT else json.dumps(value)
