"""What the sections of a digest are made of."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from aiogram.utils.formatting import Bold, Text

from bot.views.digest_pages import Line
from bot.views.measure import amount
from bot.views.text import name

MOST: Final = 100
"""Of anything in a list: nobody reads more, and to show foreign text safely takes time."""
_NAMES_IN_A_LINE: Final = 8

_Item = TypeVar("_Item")


def section(title: str, items: Sequence[_Item], told: Callable[[_Item], Text]) -> Iterator[Line]:
    """Yield a heading and a line for each item; nothing if there are none."""
    if items:
        yield heading(title)
        yield from each_of(items, told)


def each_of(items: Sequence[_Item], told: Callable[[_Item], Text]) -> Iterator[Line]:
    """Yield a line for each item, of very many for the first."""
    yield from (Line(content=told(item)) for item in items[:MOST])
    if len(items) > MOST:
        yield Line(content=Text(_more(items)))


def heading(title: str, *, is_alone: bool = False) -> Line:
    return Line(content=Text(Bold(title)), is_heading=not is_alone, is_apart=True)


def listed(names: Sequence[str], before: str = "") -> Iterator[Text]:
    """Yield names, some in a line, of very many the first."""
    for place, line in enumerate(in_lines(names[:MOST])):
        yield Text("" if place else before, joined(line))
    if len(names) > MOST:
        yield Text(_more(names))


def in_lines(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the names that share a line."""
    for start in range(0, len(names), _NAMES_IN_A_LINE):
        yield names[start : start + _NAMES_IN_A_LINE]


def joined(names: Sequence[str]) -> Text:
    parts: list[Text | str] = []
    for each in names:
        parts += [", ", name(each)] if parts else [name(each)]
    return Text(*parts)


def _more(items: Sequence[object]) -> str:
    return f"… and {amount(len(items) - MOST)} more"
