"""Durations and sizes as people write them: `30m`, `256MB`, or a number of seconds or bytes."""

import re
from collections.abc import Mapping
from typing import Final

from jobs.watchlist.entries import type_of
from jobs.watchlist.error import WatchlistError

DAY: Final = 86_400
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": DAY}
_BYTES: Final = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_QUANTITY: Final = re.compile(r"(\d{1,12}(?:\.\d{1,6})?) ?([A-Za-z]+)", re.ASCII)


def seconds(value: object, place: str, least: int, most: int) -> float:
    """Return a duration of at least `least` seconds and at most `most`."""
    number = _number(value, _SECONDS)
    if number is None:
        given = "" if isinstance(value, str) else f", got {type_of(value)}"
        raise WatchlistError(
            f'{place}: expected seconds, or a text such as "90s", "30m", "2h" or "1d"{given}'
        )
    # Written so that not-a-number fails, too.
    if not least <= number <= most:
        raise WatchlistError(f"{place}: must be from {least} to {most:,} seconds")
    return number


def size(value: object, place: str, most: int) -> int:
    """Return a number of bytes, at least 1 and at most `most`."""
    number = _number(value, _BYTES)
    if number is None:
        given = "" if isinstance(value, str) else f", got {type_of(value)}"
        raise WatchlistError(f'{place}: expected bytes, or a text such as "64KB", "256MB" or "1GiB"{given}')
    if not 1 <= number <= most:
        raise WatchlistError(f"{place}: must be from 1 to {most:,} bytes")
    return int(number)


def _number(value: object, units: Mapping[str, int]) -> float | None:
    if isinstance(value, str):
        found = _QUANTITY.fullmatch(value.strip())
        unit = units.get(found[2].lower()) if found else None
        return None if found is None or unit is None else float(found[1]) * unit
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
