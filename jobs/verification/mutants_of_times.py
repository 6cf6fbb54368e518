"""Outputs that are too old, dated ahead, or do not say when they were made."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Final

from jobs.verification.specimen import Bad, Specimen
from jobs.verification.spots import at, mapped

_AHEAD: Final = 61
"""Seconds: one more than an output's time may be ahead of the clock."""
_MILLISECONDS: Final = 100_000_000_000
"""Epoch numbers above this are milliseconds."""
_DATED: Final = (0, 253_402_300_800)
"""The years 1970 to 9999, in epoch seconds."""
_NO_TIME: Final = "yesterday"


def of_timestamp(good: Specimen) -> Iterator[Bad]:
    """Yield what does not tell a time at the timestamp, or a wrong one; of many one is changed, where that suffices."""
    text = good.spec.timestamp
    if text is None:
        return
    old, new = too_old(good.now, good.spec.max_age), too_new(good.now)
    yield Bad(f"{text} aged", redated(good, text, old))
    for _, last, others in good.places([text]):
        yield from good.changed(f"{text} ahead", last, _told_as(at(good.root, last), new))
        yield from good.without(f"{text} removed", last)
        for how, value in _no_times(good.now):
            yield from good.changed(f"{text} {how}", last, value)
        for where, spot in others:
            yield from good.changed(f"{text} no time{where}", spot, _NO_TIME)
    yield from good.emptied(f"{text} without any", text)


def too_old(now: float, max_age: float) -> int:
    """Return the last second that is too long ago."""
    return math.floor(now - max_age) - 1


def too_new(now: float) -> int:
    """Return the first second that is too far ahead."""
    return math.ceil(now) + _AHEAD


def redated(good: Specimen, text: str, moment: int) -> bytes:
    """Return it with all times at a path set to one."""
    return good.written(mapped(good.root, good.path(text), partial(_told_as, moment=moment)))


def _told_as(like: object, moment: int) -> object:
    """Return a time as another one is written: as ISO 8601 in UTC, or as seconds or milliseconds."""
    if not isinstance(like, str):
        return _epoch(float(f"{like}"), moment)
    if like.strip().lstrip("+-").replace(".", "", 1).isdecimal():
        return f"{_epoch(float(like), moment)}"
    return _iso(moment) if _DATED[0] <= moment < _DATED[1] else f"{moment}"


def _epoch(like: float, moment: int) -> int:
    return moment * 1000 if like > _MILLISECONDS < moment * 1000 else moment


def _iso(moment: int) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat()


def _no_times(now: float) -> Iterator[tuple[str, object]]:
    moment = _iso(math.floor(now))
    yield "nulled", None
    yield "blank", ""
    yield "no time", _NO_TIME
    yield "without its time of day", moment.partition("T")[0]
    yield "without its zone", moment.removesuffix("+00:00")
