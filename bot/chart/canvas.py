"""A surface to draw on in pixels from its top left corner, as a phone shows it: text, bars, lines."""

from collections.abc import Sequence
from io import BytesIO
from typing import Any, Final, Literal

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.transforms import IdentityTransform

Side = Literal["left", "center", "right"]

_DPI: Final = 100
_POINTS: Final = 72 / _DPI
"""Points of type in a pixel."""


class Canvas:
    """Everything is placed by pixels, and none of it is outside of the canvas by itself."""

    def __init__(self, width: int, height: int, colour: str, fonts: Sequence[str]) -> None:
        self._figure = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI, facecolor=colour)
        self._agg: Any = FigureCanvasAgg(self._figure)  # its methods have no annotations
        self._height = height
        self._fonts = list(fonts)

    def text(
        self,
        x: float,
        base: float,
        text: str,
        size: float,
        colour: str,
        *,
        bold: bool = False,
        side: Side = "left",
    ) -> None:
        """Write a text on its base line; no letter of it is a command."""
        self._figure.text(
            x,
            self._height - base,
            text,
            color=colour,
            fontproperties=self._font(size, bold=bold),
            horizontalalignment=side,
            verticalalignment="baseline",
            transform=IdentityTransform(),
            parse_math=False,
        )

    def width_of(self, text: str, size: float, *, bold: bool = False) -> float:
        """Return how wide a text will be."""
        renderer = self._agg.get_renderer()
        return float(renderer.get_text_width_height_descent(text, self._font(size, bold=bold), False)[0])

    def bar(self, x: float, top: float, width: float, height: float, colour: str) -> None:
        """Fill a rectangle."""
        corner = (x, self._height - top - height)
        self._add(Rectangle(corner, width, height, facecolor=colour, linewidth=0))

    def line(
        self, points: Sequence[tuple[float, float]], colour: str, width: float, *, dot: float = 0
    ) -> None:
        """Draw from point to point, with a dot on each."""
        xs, ys = [x for x, _ in points], [self._height - y for _, y in points]
        line = Line2D(xs, ys, color=colour, linewidth=width * _POINTS, solid_capstyle="round")
        if dot:
            line.set(marker="o", markersize=dot * _POINTS, markeredgewidth=0)
        self._add(line)

    def png(self) -> bytes:
        """Return what was drawn."""
        written = BytesIO()
        self._agg.print_png(written)
        return written.getvalue()

    def _font(self, size: float, *, bold: bool) -> FontProperties:
        return FontProperties(family=self._fonts, size=size * _POINTS, weight="bold" if bold else "normal")

    def _add(self, artist: Any) -> None:
        artist.set_transform(IdentityTransform())
        self._figure.add_artist(artist)
