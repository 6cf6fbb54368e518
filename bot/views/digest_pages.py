"""A long text as pages, each within one message: broken between lines, and no heading alone at the end of one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aiogram.utils.formatting import Text

from bot.views.cleaning import units
from bot.views.screen import lines
from bot.views.text import MESSAGE_LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a text, shorter than a page also with the headings before it."""

    content: Text
    is_heading: bool = False
    """Whether it stays with the line that follows."""
    is_apart: bool = False
    """Whether an empty line is before it, unless it is the first of its page."""


def paged(written: Sequence[Line], limit: int = MESSAGE_LIMIT) -> list[Text]:
    """Return the pages of a text."""
    pages: list[list[Text | str]] = []
    room = 0
    for piece in _pieces(written):
        parts: list[Text | str] = [line.content for line in piece]
        apart: list[Text | str] = [""] if piece[0].is_apart and room else []
        if _size(apart + parts) > room:
            pages.append([])
            # Each line is counted with its end, which the last one of a page has not.
            apart, room = [], limit + 1
        pages[-1] += apart + parts
        room -= _size(apart + parts)
    return [lines(*page) for page in pages]


def _pieces(written: Sequence[Line]) -> Iterator[list[Line]]:
    """Yield what must not be parted: a line with the headings before it."""
    piece: list[Line] = []
    for line in written:
        piece.append(line)
        if not line.is_heading:
            yield piece
            piece = []
    if piece:
        yield piece


def _size(parts: Sequence[Text | str]) -> int:
    return sum(1 + units(part if isinstance(part, str) else part.render()[0]) for part in parts)
