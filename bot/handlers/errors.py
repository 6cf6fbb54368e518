"""What nobody else handled: unknown words and buttons, and handlers that failed."""

import logging

from aiogram import Bot, Router
from aiogram.types import CallbackQuery, ErrorEvent, Message

from bot.desk import Desk
from bot.gate import command_for
from bot.views import status as view

_log = logging.getLogger(__name__)


def build_router() -> Router:
    """Return the router of this area, new for every dispatcher."""
    router = Router(name="errors")
    router.message.register(unknown)
    router.callback_query.register(unknown_button)
    router.error.register(failed)
    return router


async def unknown(message: Message, desk: Desk, bot: Bot) -> None:
    # In a group people talk to each other and to other bots; there only a command is meant for this one.
    if message.text and (message.chat.type == "private" or await _is_command_for(bot, message.text)):
        await desk.answer(message, view.unknown())


async def unknown_button(query: CallbackQuery, desk: Desk) -> None:
    await desk.answer(query, view.stale_button())


async def failed(event: ErrorEvent, desk: Desk) -> None:
    _log.error("a handler failed", exc_info=event.exception)
    source = event.update.message or event.update.callback_query
    if source is not None:
        await desk.answer(source, view.failed())


async def _is_command_for(bot: Bot, text: str) -> bool:
    return command_for((await bot.me()).username or "", text) is not None
