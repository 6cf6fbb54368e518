"""Every press is answered before anything else, so that the button stops spinning whatever follows."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from aiogram import BaseMiddleware
from aiogram.exceptions import TelegramAPIError
from aiogram.types import CallbackQuery, TelegramObject

_log = logging.getLogger(__name__)


class AnswerFirst(BaseMiddleware):
    """Answers a press; one that is too old to be answered is handled all the same."""

    async def __call__(
        self,
        handler: Callable[[TelegramObject, dict[str, Any]], Awaitable[Any]],
        event: TelegramObject,
        data: dict[str, Any],
    ) -> object:
        if isinstance(event, CallbackQuery):
            try:
                await event.answer()
            except TelegramAPIError as error:
                _log.info("a press could not be answered: %s", error.message)
        return await handler(event, data)
