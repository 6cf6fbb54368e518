"""How many of the runs passed, week by week: a line, and its number at each point."""

from collections.abc import Sequence
from typing import Final

from bot.chart.canvas import Canvas
from bot.chart.paper import EMPTY, FAINT, HEADING, INK, LEFT, NO_RUNS, PASSED, RIGHT, SMALL
from bot.chart.picture import Rate

_TOP: Final = 74
"""Of the line, in pixels below the heading, as all of these."""
_AXIS: Final = 280
_WEEKS: Final = 324
_HEIGHT: Final = 140
_FIRST: Final = LEFT + 100
"""Where the first week begins: beside the word."""
_ABOVE: Final = -24
_BELOW: Final = 48
_LEAST_RANGE: Final = 0.1
"""Less than that from top to bottom would make a slope of nothing."""

Point = tuple[float, float]


def draw(canvas: Canvas, top: float, rates: Sequence[Rate]) -> None:
    """Draw the line below its heading."""
    canvas.text(LEFT, top, "Runs that passed, % by week", HEADING, INK, bold=True)
    canvas.line([(LEFT, top + _AXIS), (RIGHT, top + _AXIS)], EMPTY, 2)
    canvas.text(LEFT, top + _WEEKS, "week", SMALL, FAINT)
    points = _points(top + _TOP, rates)
    for stretch in _stretches(points):
        canvas.line(stretch, PASSED, 5, dot=18)
    for number, (rate, point) in enumerate(zip(rates, points, strict=True)):
        x, is_newest = _centre(number, len(rates)), number == len(rates) - 1
        canvas.text(x, top + _WEEKS, rate.week, SMALL, FAINT, side="center")
        if point is None:
            canvas.text(x, top + _AXIS - 16, NO_RUNS, SMALL, FAINT, side="center")
        else:
            base = point[1] + (_BELOW if _is_valley(number, points) else _ABOVE)
            canvas.text(x, base, _percent(rate), SMALL, INK, bold=is_newest, side="center")


def _centre(number: int, of: int) -> float:
    return _FIRST + (RIGHT - _FIRST) * (number + 0.5) / of


def _points(top: float, rates: Sequence[Rate]) -> list[Point | None]:
    shares = [_share(rate) for rate in rates]
    low = min([1 - _LEAST_RANGE, *(share for share in shares if share is not None)])
    return [
        None if share is None else (_centre(number, len(shares)), top + _HEIGHT * (1 - share) / (1 - low))
        for number, share in enumerate(shares)
    ]


def _share(rate: Rate) -> float | None:
    runs = rate.passed + rate.failed
    return rate.passed / runs if runs else None


def _percent(rate: Rate) -> str:
    """Return whole percents, rounded down: 100 only if nothing failed."""
    return f"{100 * rate.passed // (rate.passed + rate.failed)}"


def _stretches(points: Sequence[Point | None]) -> list[list[Point]]:
    """Part the points where a week has no runs: a line across it would make some up."""
    found: list[list[Point]] = [[]]
    for point in points:
        if point is None:
            found.append([])
        else:
            found[-1].append(point)
    return [stretch for stretch in found if stretch]


def _is_valley(number: int, points: list[Point | None]) -> bool:
    """Whether the line goes only up from a point: then its number stands below, where no line is."""
    here, beside = points[number], points[max(0, number - 1) : number] + points[number + 1 : number + 2]
    heights = [point[1] for point in beside if point]
    return here is not None and bool(heights) and max(heights) <= here[1] > min(heights)
