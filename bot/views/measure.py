"""Times and amounts as people read them."""

from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400
_FAR: Final = 10**10
"""Epoch seconds beyond which a log's time is not worth a date."""


def span(seconds: float) -> str:
    """Return a length of time in its two largest units, such as `2 min 5 s`."""
    whole = max(0, round(seconds))
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return _two(whole, _MINUTE, "min", 1, "s")
    if whole < _DAY:
        return _two(whole, _HOUR, "h", _MINUTE, "min")
    return _two(whole, _DAY, "d", _HOUR, "h")


def moment(at: float, now: float, zone: ZoneInfo) -> str:
    """Return a time of day, with its date unless that is today."""
    if not 0 <= at < _FAR:
        return "?"
    there, here = datetime.fromtimestamp(at, zone), datetime.fromtimestamp(now, zone)
    return f"{there:%H:%M:%S}" if there.date() == here.date() else f"{there:%Y-%m-%d %H:%M}"


def amount(number: int) -> str:
    """Return a number with thin spaces between thousands."""
    return f"{number:,}".replace(",", "\u202f")


def plural(number: int, noun: str) -> str:
    """Return `1 call`, `2 calls`."""
    return f"{amount(number)} {noun}{'' if number == 1 else 's'}"


def _two(whole: int, large: int, large_name: str, small: int, small_name: str) -> str:
    rest = whole % large // small
    return f"{whole // large} {large_name}" + (f" {rest} {small_name}" if rest else "")
