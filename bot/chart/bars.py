"""What became of each check: a bar of parts, all bars as wide as one another, and the numbers above it."""

from collections import defaultdict
from collections.abc import Sequence
from os.path import commonprefix
from typing import Final

from bot.chart.canvas import Canvas
from bot.chart.paper import (
    ELLIPSIS,
    EMPTY,
    FAILED,
    FAINT,
    HEADING,
    INK,
    LEFT,
    NORMAL,
    PASSED,
    RIGHT,
    SMALL,
    figure,
)
from bot.chart.picture import Bar

_FIRST: Final = 58
"""Pixels below the heading."""
_STEP: Final = 82
_THICKNESS: Final = 20
_BELOW: Final = 14
_COLUMN: Final = 150
"""Of numbers; wider if they are."""
_GAP: Final = 28
_LEAST: Final = 8
"""Pixels: one failure in thousands is still to be seen."""


def height(bars: Sequence[Bar]) -> int:
    """Return how high they are, with the heading."""
    return _FIRST + len(bars) * _STEP if bars else 0


def draw(canvas: Canvas, top: float, bars: Sequence[Bar]) -> None:
    """Draw the bars below their heading; nothing if there are none."""
    if not bars:
        return
    numbers = [figure(bar.passed) for bar in bars]
    failed_at = RIGHT - max(_COLUMN, *(canvas.width_of(number, NORMAL) + _GAP for number in numbers))
    names = _names(canvas, bars, failed_at)
    canvas.text(LEFT, top, "Checks", HEADING, INK, bold=True)
    canvas.text(failed_at, top, "failed", SMALL, FAILED, side="right", bold=True)
    canvas.text(RIGHT, top, "passed", SMALL, PASSED, side="right", bold=True)
    for number, (bar, name) in enumerate(zip(bars, names, strict=True)):
        _draw_one(canvas, top + _FIRST + number * _STEP, bar, name, failed_at)


def _draw_one(canvas: Canvas, base: float, bar: Bar, name: str, failed_at: float) -> None:
    is_bad = bar.failed > 0
    canvas.text(RIGHT, base, figure(bar.passed), NORMAL, PASSED, side="right")
    colour = FAILED if is_bad else FAINT
    canvas.text(failed_at, base, figure(bar.failed), NORMAL, colour, side="right", bold=is_bad)
    canvas.text(LEFT, base, name, NORMAL, FAINT)
    x: float = LEFT + (canvas.width_of(name, NORMAL) + _GAP / 2 if name else 0)
    canvas.text(x, base, bar.check, NORMAL, INK)
    x = LEFT
    for width, colour in zip(_widths(bar), (FAILED, PASSED, EMPTY), strict=True):
        canvas.bar(x, base + _BELOW, width, _THICKNESS, colour)
        x += width


def _widths(bar: Bar) -> list[float]:
    counts = (bar.failed, bar.passed, bar.not_reached)
    least = [_LEAST if count else 0 for count in counts]
    rest = RIGHT - LEFT - sum(least)
    return [each + rest * count / max(1, sum(counts)) for each, count in zip(least, counts, strict=True)]


def _names(canvas: Canvas, bars: Sequence[Bar], failed_at: float) -> list[str]:
    """Return the names of the workflows as there is room for them; those of two never read alike."""
    rooms = [_room(canvas, bar, failed_at) for bar in bars]
    least = [_cut(canvas, bar.workflow, min(rooms)) for bar in bars]
    meant: dict[str, dict[int, str]] = defaultdict(dict)
    for bar, name in zip(bars, least, strict=True):
        meant[name][bar.place] = bar.workflow
    full = (_told_apart(bar, [*meant[name].values()]) for bar, name in zip(bars, least, strict=True))
    return [_cut(canvas, name, room) for name, room in zip(full, rooms, strict=True)]


def _told_apart(bar: Bar, alike: Sequence[str]) -> str:
    """Return a name; of several that would read alike its place in the text, and what only this one ends in."""
    if len(alike) == 1:
        return bar.workflow
    end = bar.workflow[len(commonprefix(alike)) :]  # noqa: RUF071 - letters are meant
    return f"{bar.place}. {ELLIPSIS}{end}" if end else f"{bar.place}. {bar.workflow}"


def _room(canvas: Canvas, bar: Bar, failed_at: float) -> float:
    failed = canvas.width_of(figure(bar.failed), NORMAL, bold=bar.failed > 0)
    return failed_at - max(_COLUMN, failed + _GAP) - LEFT - _GAP - canvas.width_of(bar.check, NORMAL)


def _cut(canvas: Canvas, name: str, width: float) -> str:
    """Leave out of the middle what does not fit: names of one kind begin alike."""
    shown, kept = name, len(name)
    while canvas.width_of(shown, NORMAL) > width and kept > 1:
        kept -= 1
        shown = f"{name[: kept - kept // 2]}{ELLIPSIS}{name[len(name) - kept // 2 :]}"
    return shown
