"""How the files beside a log are named that were it, or are copies of it: `log.jsonl.1`, `log-2026-01-01.jsonl`."""

import os
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

_SEPARATORS: Final = frozenset("-._")
"""What stands between a log's name and what its copy's name has more."""


def stem(path: str) -> str:
    """Return a path without the suffix of its name."""
    dot = path.rfind(".")
    return path[:dot] if dot > path.rfind("/") + 1 else path


def stems(path: str) -> Iterator[str]:
    """Return what may be the stem of the log of which `path` is a copy."""
    return (path[:end] for end in range(path.rfind("/") + 2, len(path)) if path[end] in _SEPARATORS)


def is_copy_name(other: str, path: str) -> bool:
    """Whether `other` is named as a copy of `path` would be."""
    beginning = stem(path)
    return other != path and other.startswith(beginning) and other[len(beginning) :][:1] in _SEPARATORS


def sorted_names(folder: str) -> list[str]:
    """Return the names in a folder; none if it cannot be listed."""
    try:
        with os.scandir(folder or "/") as entries:
            return sorted(entry.name for entry in entries)
    except OSError:
        return []


def starting_with(beginning: str, names: Sequence[str]) -> Iterator[str]:
    """Return those of the sorted `names` that begin so."""
    for index in range(bisect_left(names, beginning), len(names)):
        if not names[index].startswith(beginning):
            return
        yield names[index]
