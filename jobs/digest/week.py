"""A week goes from slot to slot: from Sunday 18:00 to the next one's. It has the name of the ISO week whose Sunday ends it.

Names, such as `2026-W48`, are in order as they are in time.
"""

from datetime import date, datetime, time, timedelta, tzinfo
from typing import Final

_SUNDAY: Final = 7
_HOUR: Final = time(18)


def slot(week: str, zone: tzinfo) -> float:
    """Return when a week ends, in epoch seconds."""
    return datetime.combine(_sunday(week), _HOUR, zone).timestamp()


def last_ended(at: float, zone: tzinfo) -> str:
    """Return the newest week that was over at a time."""
    week = shifted(_name(datetime.fromtimestamp(at, zone).date()), 1)
    while slot(week, zone) > at:
        week = shifted(week, -1)
    return week


def shifted(week: str, by: int) -> str:
    """Return the week that is so many later, or earlier."""
    return _name(_sunday(week) + timedelta(weeks=by))


def weeks_up_to(week: str, count: int) -> tuple[str, ...]:
    """Return so many weeks, this one last."""
    return tuple(shifted(week, n + 1 - count) for n in range(count))


def _sunday(week: str) -> date:
    year, _, number = week.partition("-W")
    return date.fromisocalendar(int(year), int(number), _SUNDAY)


def _name(day: date) -> str:
    year, number, _ = day.isocalendar()
    return f"{year}-W{number:02}"
