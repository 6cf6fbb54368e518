"""Paths to values: `status`, `result.total`, `items[].id`, `items[0]`, `"quoted.key".x`."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

_STEP: Final = r"""(?xs)
    \[ (?P<index> [0-9]{0,9} ) \]
    | (?P<dot> \.? ) (?: " (?P<quoted> (?: [^"\\] | \\. )+ ) " | (?P<bare> [^."\[\]]+ ) )
    """
_ESCAPE: Final = r"(?s)\\(.)"


class PathError(ValueError):
    """A text that is no path; says where."""


class Absent:
    """What is found at a path that leads nowhere."""


ABSENT: Final = Absent()

Step = str | int | None
"""A key, an index, or every element."""
Path = tuple[Step, ...]


@lru_cache(maxsize=1024)
def parse_path(text: str) -> Path:
    """Return the steps of a path. Raises PathError."""
    steps: list[Step] = []
    at = 0
    while at < len(text) or not steps:
        step, at = _step(text, at)
        steps.append(step)
    return tuple(steps)


def _step(text: str, at: int) -> tuple[Step, int]:
    step = re.compile(_STEP).match(text, at)
    if step and step["index"] is not None:
        return (int(step["index"]) if step["index"] else None), step.end()
    # A dot between two steps, and none before the first.
    if step is None or bool(step["dot"]) != bool(at) or not (step["quoted"] or step["bare"].strip()):
        raise PathError(f"a key, [] or [number] was expected at character {at + 1}")
    return step["bare"] or re.sub(_ESCAPE, r"\1", step["quoted"]), step.end()


def has_each(path: Path) -> bool:
    """Whether it may lead to any number of values."""
    return None in path


def column(path: Path) -> str:
    """Return the name of a column, which may have dots in it: rows have nothing below their columns."""
    return ".".join(step for step in path if isinstance(step, str))


def values(root: object, path: Path) -> list[object]:
    """Return what lies at a path: ABSENT wherever it leads nowhere, nothing for every element of an empty array."""
    found = [root]
    # One step for all, not all steps for each: a list of a million is gone through at the speed of the interpreter's own loops.
    for step in path:
        match step:
            case None:
                found = [inner for value in found for inner in _elements(value)]
            case str():
                found = [value.get(step, ABSENT) if type(value) is dict else ABSENT for value in found]
            case _:
                found = [_element(value, step) for value in found]
    return found


def _elements(value: object) -> list[object]:
    return value if isinstance(value, list) else [ABSENT]


def _element(value: object, index: int) -> object:
    return value[index] if isinstance(value, list) and index < len(value) else ABSENT


def places(root: object, path: Path, where: str = "") -> Iterator[tuple[str, object]]:
    """Yield each of `values` with its own path. Slower: to name the one that is wrong."""
    if not path:
        yield where, root
        return
    step, rest = path[0], path[1:]
    match step:
        case None if isinstance(root, list):
            for index, inner in enumerate(root):
                yield from places(inner, rest, f"{where}[{index}]")
        case None:
            yield f"{where}[]", ABSENT
        case str():
            inner = root.get(step, ABSENT) if isinstance(root, dict) else ABSENT
            yield from places(inner, rest, f"{where}{'.' if where else ''}{_written(step)}")
        case _:
            yield from places(_element(root, step), rest, f"{where}[{step}]")


@lru_cache(maxsize=1024)
def _written(key: str) -> str:
    return f'"{key}"' if re.search(r'[."\[\]]', key) else key


def without(value: object, path: Path) -> object:
    """Return a value less what lies at a path; nothing is changed, and what lies elsewhere is shared."""
    step, rest = path[0], path[1:]
    if step is None and isinstance(value, list):
        return [without(inner, rest) for inner in value] if rest else []
    if isinstance(step, int) and isinstance(value, list) and step < len(value):
        return [*value[:step], *([without(value[step], rest)] if rest else []), *value[step + 1 :]]
    if isinstance(step, str) and isinstance(value, dict) and step in value:
        kept = {key: inner for key, inner in value.items() if key != step}
        return {**kept, step: without(value[step], rest)} if rest else kept
    return value
