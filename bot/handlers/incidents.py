"""/incidents and the buttons under an alert."""

from typing import Final

from aiogram import F, Router
from aiogram.filters import Command
from aiogram.types import CallbackQuery, Message

from bot import confirming
from bot.callbacks import IncidentButton, IncidentVerb
from bot.desk import Desk
from bot.views import incident as view
from bot.views.status import stale_button
from jobs.starters import starters_of
from jobs.thrash.session import Session

_SHOWN: Final = 10
_SNOOZES: Final = {IncidentVerb.SNOOZE_15: 15 * 60, IncidentVerb.SNOOZE_60: 60 * 60}


def build_router() -> Router:
    """Return the router of this area, new for every dispatcher."""
    router = Router(name="incidents")
    router.message.register(incidents, Command("incidents"))
    router.callback_query.register(details, IncidentButton.filter(F.verb == IncidentVerb.DETAILS))
    router.callback_query.register(kill, IncidentButton.filter(F.verb == IncidentVerb.KILL))
    router.callback_query.register(snooze, IncidentButton.filter(F.verb.in_(set(_SNOOZES))))
    return router


async def incidents(message: Message, desk: Desk) -> None:
    newest = await desk.reading.incidents.newest(_SHOWN)
    found = [await desk.reading.sessions.get(incident.session_id) for incident in newest]
    starters = await starters_of(desk.reading.sessions, [session for session in found if session])
    await desk.answer(message, view.incident_list(newest, starters, desk.clock.now(), desk.zone))


async def details(query: CallbackQuery, callback_data: IncidentButton, desk: Desk) -> None:
    incident = await desk.reading.incidents.get(callback_data.incident)
    session = await _session(desk, callback_data)
    if incident is None or session is None:
        await desk.answer(query, stale_button())
        return
    await desk.answer(query, view.details(incident, session, desk.policy, desk.clock.now(), desk.zone))


async def kill(query: CallbackQuery, callback_data: IncidentButton, desk: Desk) -> None:
    incident = await desk.reading.incidents.get(callback_data.incident)
    session = await _session(desk, callback_data)
    if incident is None or incident.closed_at is not None or session is None:
        await desk.answer(query, stale_button())
        return
    await confirming.ask(desk, query, session)


async def snooze(query: CallbackQuery, callback_data: IncidentButton, desk: Desk) -> None:
    # The alert itself is edited to say so.
    if await desk.scan.snooze(callback_data.incident, _SNOOZES[callback_data.verb]) is None:
        await desk.answer(query, stale_button())


async def _session(desk: Desk, button: IncidentButton) -> Session | None:
    incident = await desk.reading.incidents.get(button.incident)
    return None if incident is None else await desk.reading.sessions.get(incident.session_id)
