"""/agents, /agent ID, /kill ID with its confirmation."""

from collections.abc import Sequence
from typing import Final

from aiogram import Router
from aiogram.filters import Command, CommandObject
from aiogram.types import CallbackQuery, Message

from bot import confirming
from bot.callbacks import ConfirmButton, KillButton
from bot.confirming import Press
from bot.desk import LISTED, Desk
from bot.views import agent as view
from bot.views import stop
from bot.views.cleaning import one_line
from bot.views.screen import Screen
from bot.views.status import stale_button
from jobs.agent_stop import Order
from jobs.starters import starter_of, starters_of
from jobs.thrash.session import Session

_SHOWN: Final = 20
_COMPARED: Final = 500
_LONGEST_ID: Final = 18
"""Digits of an integer that SQLite takes."""


def build_router() -> Router:
    """Return the router of this area, new for every dispatcher."""
    router = Router(name="agents")
    router.message.register(agents, Command("agents"))
    router.message.register(agent, Command("agent"))
    router.message.register(kill, Command("kill"))
    router.callback_query.register(kill_pressed, KillButton.filter())
    router.callback_query.register(confirmed, ConfirmButton.filter())
    return router


async def agents(message: Message, desk: Desk) -> None:
    now = desk.clock.now()
    sessions = await desk.reading.sessions.newest(now - LISTED, _SHOWN)
    everyone = sum((await desk.reading.sessions.counts(now - LISTED)).values())
    stopped = await desk.agent_stop.stopped_among(sessions)
    starters = await starters_of(desk.reading.sessions, sessions)
    await desk.answer(message, view.agent_list(sessions, stopped, starters, everyone - len(sessions), now))


async def agent(message: Message, command: CommandObject, desk: Desk) -> None:
    found = await _one(desk, command)
    if isinstance(found, Session):
        found = await _shown(desk, found)
    await desk.answer(message, found)


async def _shown(desk: Desk, session: Session) -> Screen:
    is_stopped = bool(await desk.agent_stop.stopped_among([session]))
    can_stop = desk.outlook(session.source).can_stop
    return view.agent(
        session,
        desk.policy,
        desk.clock.now(),
        desk.zone,
        is_stopped=is_stopped,
        can_stop=can_stop,
        starter=await starter_of(desk.reading.sessions, session.id),
    )


async def kill(message: Message, command: CommandObject, desk: Desk) -> None:
    found = await _one(desk, command)
    if isinstance(found, Session):
        await _confirm(message, desk, found)
    else:
        await desk.answer(message, found)


async def kill_pressed(query: CallbackQuery, callback_data: KillButton, desk: Desk) -> None:
    session = await desk.reading.sessions.get(callback_data.session)
    if session is None:
        await desk.answer(query, stale_button())
    else:
        await _confirm(query, desk, session)


async def confirmed(query: CallbackQuery, callback_data: ConfirmButton, desk: Desk) -> None:
    if query.message is None:
        return
    press = Press(
        user_id=query.from_user.id, chat_id=query.message.chat.id, message_id=query.message.message_id
    )
    answer = await confirming.answer(desk, callback_data.nonce, press, is_yes=callback_data.is_yes)
    say = desk.answer if answer.is_aside else desk.replace
    await say(query, answer.screen, urgent=True)


async def _confirm(event: Message | CallbackQuery, desk: Desk, session: Session) -> None:
    if desk.outlook(session.source).can_stop:
        await confirming.ask(desk, event, session)
    else:
        await desk.answer(event, stop.ordered(Order.NO_KILLER))


async def _one(desk: Desk, command: CommandObject) -> Session | Screen:
    """Return the session that a command names, by id or by an unambiguous name, or what to say instead."""
    words = (command.args or "").strip()
    if not words:
        return view.which(command.command)
    found = await _named(desk, words)
    match found:
        case []:
            return view.not_found(words)
        case [session]:
            return session
        case _:
            return view.ambiguous(words, found, desk.clock.now())


async def _named(desk: Desk, words: str) -> Sequence[Session]:
    number = words.removeprefix("#")
    if number.isascii() and number.isdigit() and len(number) <= _LONGEST_ID:
        session = await desk.reading.sessions.get(int(number))
        if session:
            return [session]
    found = await desk.reading.sessions.find(words, _SHOWN)
    # A name that only looks the same, by invisible or foreign letters, must not be taken for this one.
    recent = await desk.reading.sessions.newest(desk.clock.now() - LISTED, _COMPARED)
    alike = [s for s in recent if one_line(s.agent) == one_line(words) and s not in found]
    return [*found, *alike][:_SHOWN]
