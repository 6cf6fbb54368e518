"""A good output as values, and what becomes of it when one of them changes."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple, TypeVar

import msgspec

from jobs.verification.parsing import parse
from jobs.verification.path import Path, column, parse_path
from jobs.verification.rewriting import can_hold, rewritten
from jobs.verification.rows import Rows
from jobs.verification.spec import Format, WorkflowSpec
from jobs.verification.spots import Spot, at, mapped, named, put, spots, taken

_Item = TypeVar("_Item")


class Bad(NamedTuple):
    """A good output made bad."""

    name: str
    """How."""
    data: bytes


class Place(NamedTuple):
    """Where a path of the specification leads to."""

    text: str
    """The path."""
    last: Spot
    """Of many values the last: what looks at the first alone is found out."""
    others: tuple[tuple[str, Spot], ...]
    """The first and one in the middle, and words for where that is: what looks at the last alone is found out."""


class Specimen(msgspec.Struct, frozen=True, kw_only=True):
    """A good output that is to be made bad."""

    data: bytes
    spec: WorkflowSpec
    now: float
    """As of when it is good, epoch seconds."""
    root: Any
    """Its values; the records of jsonl, the rows of csv as tables, in a list; None if it has none."""
    header: tuple[str, ...] = ()
    """Of csv."""

    @property
    def form(self) -> Format:
        return self.spec.format

    def path(self, text: str) -> Path:
        """Return a path of the specification as it leads from the root."""
        path = parse_path(text)
        if self.form is Format.CSV:
            path = (column(path),)
        return (None, *path) if self.form.has_records else path

    def spots(self, text: str) -> Iterator[Spot]:
        """Yield where a path of the specification leads to a value, the last first."""
        return spots(self.root, self.path(text))

    def places(self, texts: Iterable[str]) -> Iterator[Place]:
        """Yield those of some paths that lead anywhere: to what is not empty, if there is any."""
        for text in dict.fromkeys(texts):
            spots = list(self.spots(text))
            if found := [spot for spot in spots if at(self.root, spot) != ""] or spots:
                yield Place(text, found[0], tuple(others(found)))

    def written(self, root: Any) -> bytes:
        return rewritten(root, self.form, self.header)

    def changed(self, name: str, spot: Spot, value: object) -> Iterator[Bad]:
        """Yield it with another value at a spot, if the format can say that."""
        if can_hold(self.form, value):
            yield Bad(name, self.written(put(self.root, spot, value)))

    def without(self, name: str, spot: Spot) -> Iterator[Bad]:
        """Yield it without the key that leads to a spot, if there is one; from csv a column is taken as a whole."""
        place = named(spot)
        if place is None:
            return
        is_column = self.form is Format.CSV
        root = [taken(row, place[1:]) for row in self.root] if is_column else taken(self.root, place)
        # Of an output with nothing left in it another check would have to say so.
        if (data := self.written(root)).strip():
            yield Bad(name, data)

    def emptied(self, name: str, text: str) -> Iterator[Bad]:
        """Yield it with nothing left of what a path leads to any number of, if it does."""
        path = self.path(text)
        records = 1 if self.form.has_records else 0
        each = next((at for at, step in enumerate(path) if step is None and at >= records), None)
        if each is not None:
            yield Bad(name, self.written(mapped(self.root, path[:each], lambda _: [])))


def specimen(data: bytes, spec: WorkflowSpec, now: float) -> Specimen:
    """Return a good output as values."""
    root = parse(data, spec.format).root if spec.format.has_fields else None
    if isinstance(root, Rows):
        return Specimen(data=data, spec=spec, now=now, root=list(root.tables()), header=tuple(root.columns))
    return Specimen(data=data, spec=spec, now=now, root=root)


def others(found: Sequence[_Item]) -> Iterator[tuple[str, _Item]]:
    """Yield the first and one in the middle of what is found, the last first, as far as there are more than that."""
    wheres = {len(found) // 2: " in the middle", len(found) - 1: " in the first"}
    return ((where, found[index]) for index, where in wheres.items() if index)


def in_turn(places: Sequence[_Item], ways: Sequence[Callable[[_Item], Iterable[Bad]]]) -> Iterator[Bad]:
    """Yield one that is bad in each of the ways before the second of any: however few are taken, none is left out.

    Each way begins at another place, so that these have their turn as well.
    """
    starts = (len(places) * number // len(ways) for number in range(len(ways)))
    turns = deque(
        chain.from_iterable(map(way, (*places[start:], *places[:start])))
        for way, start in zip(ways, starts, strict=True)
    )
    while turns:
        way = turns.popleft()
        for bad in islice(way, 1):
            yield bad
            turns.append(way)
