"""Where a path leads in values that may be rewritten: a place is named by the keys and indices on its way."""

from collections.abc import Callable, Collection, Iterator
from itertools import count, islice
from typing import Any

from jobs.verification.path import Path, Step

Spot = tuple[str | int, ...]


def spots(root: Any, path: Path) -> Iterator[Spot]:
    """Yield where a path leads to a value, the last first: what looks at the first alone is found out."""
    if not path:
        yield ()
        return
    for key in reversed(tuple(_keys(root, path[0]))):
        for inner in spots(root[key], path[1:]):
            yield (key, *inner)


def _keys(value: Any, step: Step) -> Collection[str | int]:
    match value, step:
        case list(), None:
            return range(len(value))
        case list(), int():
            return (step,) if step < len(value) else ()
        case dict(), str():
            return (step,) if step in value else ()
        case _:
            return ()


def at(root: Any, spot: Spot) -> Any:
    for key in spot:
        root = root[key]
    return root


def put(root: Any, spot: Spot, value: object) -> Any:
    """Return values with another one at a spot; what lies elsewhere is shared."""
    if not spot:
        return value
    changed = root.copy()
    changed[spot[0]] = put(root[spot[0]], spot[1:], value)
    return changed


def taken(root: Any, spot: Spot) -> Any:
    """Return values less the one at a spot, which is not the root."""
    holder = at(root, spot[:-1]).copy()
    del holder[spot[-1]]
    return put(root, spot[:-1], holder)


def mapped(root: Any, path: Path, change: Callable[[Any], object]) -> Any:
    """Return values with all that lies at a path changed."""
    if not path:
        return change(root)
    keys = _keys(root, path[0])
    if not keys:
        return root
    changed = root.copy()
    for key in keys:
        changed[key] = mapped(root[key], path[1:], change)
    return changed


def named(spot: Spot) -> Spot | None:
    """Return the way to the last key on the way to a spot; None if it has none.

    Where an element is taken out of an array, the next one has its place; where a key is, nothing has.
    """
    last = max((at for at, key in enumerate(spot) if isinstance(key, str)), default=None)
    return None if last is None else spot[: last + 1]


def cut(value: Any, length: int) -> Any:
    """Return the beginning of a text, an array or a table."""
    return dict(islice(value.items(), length)) if isinstance(value, dict) else value[:length]


def lengthened(value: Any, length: int) -> Any:
    """Return a text, an array or a table made longer: an array by its last element again."""
    missing = length - len(value)
    if isinstance(value, dict):
        return value | dict.fromkeys(islice(unused(value), missing), "")
    return value + (value[-1:] or ["added"] if isinstance(value, list) else "x") * missing


def unused(table: Collection[str]) -> Iterator[str]:
    """Yield keys that a table does not have."""
    return (key for number in count() if (key := f"added{number or ''}") not in table)
