"""How two texts of JSON differ, value by value."""

import json
from collections.abc import Iterator
from typing import Final

_ABSENT: Final = object()

Leaf = tuple[str, str, str]
"""A path, what was there, and what is; empty: nothing."""


def leaves_that_differ(before: str, after: str) -> list[Leaf]:
    """Return the values that differ; none if one of the texts is no JSON."""
    try:
        return list(_differing("", json.loads(before), json.loads(after)))
    except (ValueError, RecursionError):
        return []


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
