"""/start, /help, /status."""

from aiogram import Router
from aiogram.filters import Command, CommandStart
from aiogram.types import Message

from bot.desk import LISTED, Desk
from bot.differing import find_differing
from bot.views import status as view
from bot.views.status import SourceStatus, Status
from jobs.thrash.incident import IncidentStatus

_SCAN = "thrash_scan"
_DAY = 86_400
_WORTH_TELLING = 60
"""Seconds; the pace of a group may make a message wait so long."""


def build_router() -> Router:
    """Return the router of this area, new for every dispatcher."""
    router = Router(name="overview")
    router.message.register(start, CommandStart())
    router.message.register(help_, Command("help"))
    router.message.register(status, Command("status"))
    return router


async def start(message: Message, desk: Desk) -> None:
    await desk.answer(message, view.start())


async def help_(message: Message, desk: Desk) -> None:
    await desk.answer(message, view.help_text())


async def status(message: Message, desk: Desk) -> None:
    now = desk.clock.now()
    await desk.answer(message, view.status(await _status(desk, now), now, desk.zone))


async def _status(desk: Desk, now: float) -> Status:
    runs = dict(desk.timetable.runs)
    outbox = await desk.reading.outbox.counts(now - _DAY)
    unclosed = await desk.reading.incidents.unclosed()
    unstopped = {IncidentStatus.STOP_FAILED, IncidentStatus.STILL_RUNNING}
    return Status(
        started_at=desk.started_at,
        scan=runs.pop(_SCAN),
        other_jobs=runs,
        sources=await _sources(desk, now),
        watchlist_error=desk.watch.error,
        differing=await find_differing(desk.reading),
        open_incidents=sum(not found.is_being_stopped for found in unclosed.values()),
        unstopped=sum(found.status in unstopped for found in unclosed.values()),
        waiting=outbox.waiting,
        parked=outbox.parked,
        lost_chats={chat.id: chat.lost_at for chat in await desk.reading.chats.lost() if chat.lost_at},
        refused=desk.refusals.count,
        held_chats={
            chat.id: chat.free_at
            for chat in await desk.reading.chats.held(now)
            if chat.free_at - now > _WORTH_TELLING
        },
        set_aside=await desk.reading.inbox.count_set_aside(now - _DAY),
        not_polling=desk.trouble.words,
    )


async def _sources(desk: Desk, now: float) -> list[SourceStatus]:
    sessions = await desk.reading.sessions.counts(now - LISTED)
    found = []
    for name, watched in desk.watch.sources().items():
        cursors = await desk.reading.cursors.of_source(name)
        found.append(
            SourceStatus(
                name=name,
                files=len(cursors),
                sessions=sessions.get(name, 0),
                unreadable={path: cursor.unreadable for path, cursor in cursors.items() if cursor.unreadable},
                stops="no killer, observed"
                if watched.killer is None
                else f"on detection {watched.on_detection}",
                missing_killer=watched.missing_killer,
                problems=[*_being_read(desk, name, now), *watched.source.problems()],
            )
        )
    return found


def _being_read(desk: Desk, source: str, now: float) -> list[str]:
    since = desk.scan.looking.get(source, now)
    return [view.being_read(now - since)] if now - since > desk.policy.every else []
