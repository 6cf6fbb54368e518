"""When a run is due: the slots of a cron expression in a zone, and the next after an interval. Times are epoch seconds."""

from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from itertools import islice, takewhile
from typing import Final

from jobs.verification.spec import WorkflowSpec

_SET_BACK: Final = timedelta(hours=3)
"""More than a clock is set when summer time begins or ends: slots of the repeated hour are looked for on both sides."""


def slot_of(expect: str, at: float, zone: tzinfo) -> float | None:
    """Return the newest slot at or before a time."""
    return next(_backwards(expect, at, zone), None)


def slots_between(expect: str, after: float, until: float, zone: tzinfo, most: int) -> tuple[float, ...]:
    """Return the slots later than `after` and not later than `until`, oldest first, of very many the newest."""
    found = takewhile(lambda slot: slot > after, _backwards(expect, until, zone))
    return tuple(reversed(list(islice(found, most))))


def next_expected(spec: WorkflowSpec, last: float, now: float, zone: tzinfo) -> float | None:
    """Return when a workflow's next run is due; `last` is when the last one came, or it was first watched."""
    if spec.every is not None:
        return last + spec.every
    if spec.expect is None:
        return None
    start = _local(now, zone) - _SET_BACK
    coming = (moment.timestamp() for moment in _cron(spec.expect, start))
    return next((slot for slot in coming if slot > now), None)


def date_of(at: float, zone: tzinfo) -> str:
    """Return a time's date."""
    return _local(at, zone).date().isoformat()


def _backwards(expect: str, at: float, zone: tzinfo) -> Iterator[float]:
    start = _local(at, zone) + _SET_BACK
    passed = (moment.timestamp() for moment in _cron(expect, start, reverse=True))
    return (slot for slot in passed if slot <= at)


def _cron(expect: str, start: datetime, *, reverse: bool = False) -> Iterator[datetime]:
    from cronsim import CronSim  # noqa: PLC0415 - most runs have no slots, and a command must start quickly

    return CronSim(expect, start, reverse)


def _local(at: float, zone: tzinfo) -> datetime:
    return datetime.fromtimestamp(at, zone)
