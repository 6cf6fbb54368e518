"""Times and amounts as people read them."""

import math
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from jobs.thrash.price import UNIT

_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400
_TEENS: Final = range(11, 14)
_SIGNS: Final = {"USD": "$", "EUR": "€", "GBP": "£"}
_FEW: Final = 0.1
"""Money below which cents say too little."""
_MOST_PLACES: Final = 4
_SMALLEST: Final = UNIT // 10**_MOST_PLACES
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


def ordinal(number: int) -> str:
    """Return `1st`, `2nd`, `11th`."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{amount(number)}{'th' if number % 100 in _TEENS else ending}"


def money(billionths: int, currency: str | None, *, is_part: bool = False) -> str:
    """Return a sum in cents, a small one in its first two digits: `$0.42`, `$0.0042`, `3.20 CHF`.

    Where it `is_part` of one that is not known: `at least $0.42`.
    """
    sign = _SIGNS.get(currency or "USD", "")
    code = "" if sign else f"\u00a0{currency}"
    if 0 < billionths < _SMALLEST:
        return f"more than {sign}0{code}" if is_part else f"under {sign}{_SMALLEST / UNIT:.4f}{code}"
    if is_part:
        return f"at least {money(billionths, currency)}"
    value = billionths / UNIT
    # 0.0042 has its first digit other than 0 at the third place after the point.
    places = 2 if not billionths or value >= _FEW else 1 - math.floor(math.log10(value))
    return f"{sign}{value:,.{min(places, _MOST_PLACES)}f}{code}".replace(",", "\u202f")


def _two(whole: int, large: int, large_name: str, small: int, small_name: str) -> str:
    rest = whole % large // small
    return f"{whole // large} {large_name}" + (f" {rest} {small_name}" if rest else "")
