"""Outputs whose size, or number of items, is none that there may be."""

import math
import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final

from jobs.verification.path import has_each, parse_path
from jobs.verification.spec import CountSpec, Format
from jobs.verification.specimen import Bad, Specimen
from jobs.verification.spots import Spot, at, lengthened, put

LARGEST: Final = 8_000_000
"""Bytes of what is made larger."""


def of_size(good: Specimen) -> Iterator[Bad]:
    """Yield what is smaller or larger than it may be beside earlier outputs of the good one's size."""
    if good.spec.size is None:
        return
    size = len(good.data)
    few, many = _below(size, good.spec.size.within), _above(size, good.spec.size.within)
    if few > 0:
        yield Bad("shrunk", good.data[:few])
    if many <= LARGEST:
        yield Bad("grown", good.data.ljust(many))


def _below(number: int, within: float) -> int:
    """Return the largest number below a band around one."""
    return math.ceil(number * (1 - within)) - 1


def _above(number: int, within: float) -> int:
    return math.floor(number * (1 + within)) + 1


def of_count(good: Specimen) -> Iterator[Bad]:
    """Yield what has fewer or more items than it may have, also beside earlier outputs that had as many as the good one."""
    spec = good.spec.count
    if spec is None:
        return
    found = items(good, spec.of)
    if found is None:
        return
    few, many = _too_few(len(found), spec), _too_many(len(found), spec)
    if few is not None:
        # Of an output with nothing left in it another check would have to say so.
        yield from (Bad("items dropped", data) for data in _dropped(good, found, few) if _is_seen(data))
    if many is not None and found and len(good.data) * many / len(found) <= LARGEST:
        yield from (Bad("items added", data) for data in _added(good, spec.of, found[0], many - len(found)))
    if not spec.of and good.form in {Format.JSON, Format.YAML}:
        yield Bad("no array", good.written({}))


def _too_few(number: int, spec: CountSpec) -> int | None:
    limits = [] if spec.min is None else [spec.min - 1]
    if spec.within is not None:
        limits.append(_below(number, spec.within))
    return max((limit for limit in limits if limit >= 0), default=None)


def _too_many(number: int, spec: CountSpec) -> int | None:
    limits = [] if spec.max is None else [spec.max + 1]
    if spec.within is not None:
        limits.append(_above(number, spec.within))
    return min(limits, default=None)


def items(good: Specimen, of: str) -> list[Spot] | None:
    """Return what is counted, each by what would have to go, the last first; None if others would take its place."""
    if not good.form.has_fields:
        lines = good.data.removesuffix(b"\n").count(b"\n") + 1
        return [(line,) for line in reversed(range(lines))]
    if not of:
        return [(index,) for index in reversed(range(len(good.root)))]
    if isinstance(parse_path(of)[-1], int):
        return None
    if not has_each(parse_path(of)) and good.form is not Format.CSV:
        return [item for spot in good.spots(of) for item in _within(at(good.root, spot), spot)]
    # Of csv and of `items[].id` the whole element.
    last = max(at for at, step in enumerate(good.path(of)) if step is None)
    return [spot[: last + 1] for spot in good.spots(of)]


def _within(value: object, spot: Spot) -> list[Spot]:
    match value:
        case list():
            return [(*spot, index) for index in reversed(range(len(value)))]
        case dict():
            return [(*spot, key) for key in reversed(value)]
        case _:
            return [spot]


def _dropped(good: Specimen, found: list[Spot], left: int) -> Iterator[bytes]:
    if not good.form.has_fields:
        yield b"\n".join([*good.data.split(b"\n")[:left], b""])
        return
    root = good.root
    for place, some in groupby(found[: len(found) - left], lambda spot: spot[:-1]):
        root = put(root, place, _less(at(root, place), {spot[-1] for spot in some}))
    yield good.written(root)


def _less(holder: Any, gone: set[str | int]) -> object:
    if isinstance(holder, dict):
        return {key: value for key, value in holder.items() if key not in gone}
    return [value for index, value in enumerate(holder) if index not in gone]


def _is_seen(data: bytes) -> bool:
    return re.search(rb"[!-~]", data) is not None


def _added(good: Specimen, of: str, last: Spot, more: int) -> Iterator[bytes]:
    if not good.form.has_fields:
        yield good.data.removesuffix(b"\n") + b"\nmore" * more
        return
    place, holder = last[:-1], at(good.root, last[:-1])
    if isinstance(holder, list):
        yield good.written(put(good.root, place, holder + [at(holder, last[-1:])] * more))
    elif len(last) > len(good.path(of)):
        yield good.written(put(good.root, place, lengthened(holder, len(holder) + more)))
