"""Times measured side by side: the machine is shared, so only a ratio taken in one run means anything."""

from collections.abc import Awaitable, Callable
from typing import Final

Side = Callable[[], Awaitable[float]]
"""Does the work once and returns the seconds that counts."""

_WIDTH: Final = 76


async def fastest(rounds: int, *sides: Side) -> list[float]:
    """Return the shortest time of each side; they take turns, so that a slow moment slows all of them."""
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for side, taken in zip(sides, times, strict=True):
            taken.append(await side())
    return [min(taken) for taken in times]


def report(what: str, value: float, wanted: str) -> None:
    """Print one figure and what it should be."""
    print(f"{what:{_WIDTH}} {value:8.2f}   wanted {wanted}", flush=True)
