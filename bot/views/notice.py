"""What the jobs have to say -> messages."""

from typing import Final, assert_never
from zoneinfo import ZoneInfo

from aiogram.utils.formatting import Bold, Code, Text

from bot.views import digest, incident, pin, run, selftest, stop, workflow
from bot.views.cleaning import clean
from bot.views.measure import moment, span
from bot.views.screen import Screen, lines, screen
from jobs.alert.digest_notice import DigestNotice
from jobs.alert.notice import (
    AnyNotice,
    AskNotice,
    BackNotice,
    IncidentNotice,
    JobFailedNotice,
    PricesNotice,
    StillRunningNotice,
    StopNotice,
    StorageNotice,
    UndeliveredNotice,
    WatchlistNotice,
)
from jobs.alert.pin_notice import AlteredNotice, FirstUseNotice, LetGoNotice, ProposalNotice, ProposalsNotice
from jobs.alert.run_notice import RunNotice, UnverifiedNotice, VerifiedNotice
from jobs.alert.selftest_notice import SelftestNotice

_INCIDENTS_SHOWN: Final = 10


def render(notice: AnyNotice, now: float, zone: ZoneInfo) -> Screen:  # noqa: C901, PLR0911, PLR0912 - one for every notice
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
        case PricesNotice():
            return screen(Text("📋 The changed prices are in force."))
        case StorageNotice():
            return _storage(notice)
        case BackNotice():
            return _back(notice, now, zone)
        case JobFailedNotice():
            return _job_failed(notice)
        case UndeliveredNotice():
            return _undelivered(notice)
        case RunNotice():
            return run.alert(notice, now, zone)
        case UnverifiedNotice():
            return workflow.unverified(notice)
        case VerifiedNotice():
            return run.verified(notice, now, zone)
        case SelftestNotice():
            return selftest.survived(notice)
        case FirstUseNotice():
            return pin.first_use(notice)
        case LetGoNotice():
            return pin.let_go(notice)
        case ProposalNotice():
            return pin.proposal(notice, now, zone)
        case ProposalsNotice():
            return pin.proposals(notice)
        case AlteredNotice():
            return pin.altered(notice)
        case DigestNotice():
            return digest.page(notice.digest, notice.body, 1, zone, now)
        case _:
            assert_never(notice)


def _watchlist(notice: WatchlistNotice) -> Screen:
    if notice.error is None:
        return screen(Text("📋 The watch list can be used again."))
    return screen(
        lines(
            Bold("⚠️ The watch list cannot be used; what was pinned stays in force"),
            Code(clean(notice.error, 600)),
        )
    )


def _storage(notice: StorageNotice) -> Screen:
    aside = notice.set_aside
    if notice.trouble is not None:
        return screen(
            lines(
                Bold("⚠️ The database cannot be used"),
                Code(clean(notice.trouble, 300)),
                "Watching and stopping go on in memory; the file is tried again. History is lost if the bot stops before.",
            )
        )
    if aside is not None:
        return screen(
            lines(
                Bold("⚠️ The database was damaged, a new one was begun"),
                Text("The damaged one was kept as ", Code(clean(aside, 100)), "."),
            )
        )
    return screen(Text("✅ The database can be used again."))


def _back(notice: BackNotice, now: float, zone: ZoneInfo) -> Screen:
    away = span(notice.back_at - notice.since)
    shown = notice.incidents[:_INCIDENTS_SHOWN]
    more = len(notice.incidents) - len(shown)
    return screen(
        lines(
            Bold(f"👋 Back after {away}"),
            f"Nobody watched since {moment(notice.since, now, zone)}. Incidents open then: {len(notice.incidents)}",
            *(incident.row(found, now, zone) for found in shown),
            f"… and {more} more" if more else None,
        )
    )


def _job_failed(notice: JobFailedNotice) -> Screen:
    return screen(
        lines(
            Bold(f"⚠️ The job {notice.job} fails again and again"),
            Code(clean(notice.error, 600)),
            "It is tried again and again; /status says whether it works.",
        )
    )


def _undelivered(notice: UndeliveredNotice) -> Screen:
    chat = Code(clean(notice.chat, 40))
    if not notice.is_chat_lost:
        told = Text(Bold("⚠️ A message was given up"), ", for chat ", chat)
        return screen(lines(told, Code(clean(notice.error, 300)), "/status counts what was given up."))
    return screen(
        lines(
            Text(Bold("⚠️ I can no longer write to chat "), chat),
            Code(clean(notice.error, 300)),
            "New loops and what is about a stop come here until I can again; the rest of the last day follows there then.",
        )
    )
