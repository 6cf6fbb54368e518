"""Times as outputs write them: ISO 8601 with a zone, or epoch seconds or milliseconds, as numbers or texts."""

import math
import re
from datetime import datetime
from typing import Final

from jobs.verification.wording import UnmetError, shown

_MILLISECONDS: Final = 1e11
"""Epoch numbers above this are milliseconds."""
_LARGEST: Final = 1e18
_NUMBER: Final = r"[+-]?[0-9]{1,30}(\.[0-9]{1,30})?"
_ISO: Final = r"""(?ax)
    (?P<date> \d{4} (?: -\d\d-\d\d | \d{4} ) )
    (?: [Tt\ ]
        (?P<minute> \d\d:?\d\d )
        (?: :? (?P<second> \d\d ) (?: [.,] (?P<fraction> \d{1,30} ) )? )?
        \ ?
        (?P<zone> [Zz] | [+-]\d\d (?: :?\d\d )? )?
    )?
    """
_EXPECTED: Final = "expected ISO 8601 with a zone, or epoch seconds or milliseconds"


def moment(value: object) -> float:
    """Return the epoch seconds of a value that is a time. Raises UnmetError."""
    match value:
        case bool():
            raise _no_time(value)
        case int() | float():
            return _epoch(value)
        case str():
            return _of_text(value.strip())
        case _:
            raise _no_time(value)


def _epoch(number: float) -> float:
    if not abs(number) < _LARGEST or math.isnan(number):
        raise _no_time(number)
    return number / 1000 if number > _MILLISECONDS else float(number)


def _of_text(text: str) -> float:
    if re.fullmatch(_NUMBER, text):
        return _epoch(float(text))
    parts = re.fullmatch(_ISO, text)
    if not parts:
        raise _no_time(text)
    if not parts["minute"]:
        raise UnmetError(f"{shown(text)} is a date without a time, {_EXPECTED}")
    if not parts["zone"]:
        raise _no_zone(text)
    try:
        return _of_parts(parts)
    except ValueError:
        raise _no_time(text) from None


def _of_parts(parts: re.Match[str]) -> float:
    is_leap = parts["second"] == "60"
    second = "59" if is_leap else parts["second"] or "00"
    whole = datetime.fromisoformat(
        f"{parts['date'].replace('-', '')}T{parts['minute'].replace(':', '')}{second}{parts['zone'].upper()}"
    )
    return whole.timestamp() + is_leap + float(f"0.{parts['fraction'] or 0}")


def _no_time(value: object) -> UnmetError:
    return UnmetError(f"{shown(value)} is no time, {_EXPECTED}")


def _no_zone(text: str) -> UnmetError:
    return UnmetError(f"{shown(text)} has no zone, {_EXPECTED}")
