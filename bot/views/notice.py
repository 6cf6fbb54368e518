"""What the jobs have to say -> messages."""

from typing import assert_never
from zoneinfo import ZoneInfo

from aiogram.utils.formatting import Bold, Code, Text

from bot.views import incident, stop
from bot.views.screen import Screen, lines, screen
from bot.views.text import clean
from jobs.alert.notice import (
    AnyNotice,
    AskNotice,
    IncidentNotice,
    JobFailedNotice,
    StillRunningNotice,
    StopNotice,
    WatchlistNotice,
)


def render(notice: AnyNotice, now: float, zone: ZoneInfo) -> Screen:
    """Render a notice as it is read at `now` (epoch seconds)."""
    match notice:
        case IncidentNotice():
            return incident.alert(notice, now, zone)
        case AskNotice():
            return incident.question(notice, now, zone)
        case StopNotice():
            return stop.report(notice)
        case StillRunningNotice():
            return stop.still_running(notice, now, zone)
        case WatchlistNotice():
            return _watchlist(notice)
        case JobFailedNotice():
            return _job_failed(notice)
        case _:
            assert_never(notice)


def _watchlist(notice: WatchlistNotice) -> Screen:
    if notice.error is None:
        return screen(Text("📋 The changed watch list is in force."))
    return screen(
        lines(
            Bold("⚠️ The watch list is wrong; the last good one stays in force"),
            Code(clean(notice.error, 600)),
        )
    )


def _job_failed(notice: JobFailedNotice) -> Screen:
    return screen(
        lines(
            Bold(f"⚠️ The job {notice.job} failed"),
            Code(clean(notice.error, 600)),
            "It is tried again at its next beat; /status says whether it works.",
        )
    )
