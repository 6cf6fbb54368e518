"""Sizes and colours: what is legible when a phone shows it a third as wide, on a light chat and on a dark one."""

from typing import Final

WIDTH: Final = 1080
LEFT: Final = 60
RIGHT: Final = WIDTH - LEFT

# Blue and orange, which nobody sees alike; whatever they tell stands beside them in figures.
PAPER: Final = "#fbfaf7"
INK: Final = "#1f2430"
FAINT: Final = "#6b7280"
EMPTY: Final = "#dcdad3"
PASSED: Final = "#2f6fb2"
FAILED: Final = "#d9480f"

HUGE: Final = 104
LARGE: Final = 44
HEADING: Final = 38
NORMAL: Final = 34
SMALL: Final = 31

ELLIPSIS: Final = "…"
NO_RUNS: Final = "\u2013"


def figure(count: int) -> str:
    """Return a number with thin spaces between thousands."""
    return f"{count:,}".replace(",", "\u202f")
