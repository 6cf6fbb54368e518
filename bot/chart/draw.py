"""A picture: how it was in one number, the line of the last weeks, the bars of the checks."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from bot.chart import bars, rates
from bot.chart.canvas import Canvas
from bot.chart.lettering import Lettering
from bot.chart.paper import FAINT, HUGE, INK, LARGE, LEFT, NORMAL, PAPER, RIGHT, SMALL, WIDTH
from bot.chart.picture import Bar, Picture

_RATES: Final = 350
"""Where the line begins, in pixels from the top."""
_BARS: Final = 760
_NOTE: Final = 44


def draw(picture: Picture) -> bytes:
    """Return a picture as PNG."""
    lettering = Lettering.of(bar.workflow for bar in picture.bars)
    shown = [_writable(bar, lettering) for bar in picture.bars]
    notes = list(_notes(picture.bars, shown))
    end = _BARS + bars.height(shown)
    canvas = Canvas(WIDTH, end + len(notes) * _NOTE, PAPER, lettering.fonts)
    _head(canvas, picture)
    rates.draw(canvas, _RATES, picture.rates)
    bars.draw(canvas, _BARS, shown)
    for number, note in enumerate(notes):
        canvas.text(LEFT, end + number * _NOTE, note, SMALL, FAINT)
    return canvas.png()


def _head(canvas: Canvas, picture: Picture) -> None:
    canvas.text(LEFT, 76, picture.title, LARGE, INK, bold=True)
    canvas.text(RIGHT, 76, picture.dates, SMALL, FAINT, side="right")
    canvas.text(LEFT - 4, 202, picture.headline, HUGE, INK, bold=True)
    size = NORMAL * min(1, (RIGHT - LEFT) / max(1, canvas.width_of(picture.summary, NORMAL)))
    canvas.text(LEFT, 262, picture.summary, size, INK)


def _writable(bar: Bar, lettering: Lettering) -> Bar:
    return bar if lettering.can_write(bar.workflow) else replace(bar, workflow=f"workflow {bar.place}")


def _notes(given: Sequence[Bar], shown: Sequence[Bar]) -> Iterator[str]:
    if any(bar.not_reached for bar in shown):
        yield "Grey: not reached, as an earlier check had failed"
    if list(given) != list(shown):
        yield "Numbered by place in the text: no font here has the letters"
