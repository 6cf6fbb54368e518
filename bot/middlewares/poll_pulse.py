"""Every poll that Telegram answers is a sign of life."""

from aiogram import Bot
from aiogram.client.session.middlewares.base import BaseRequestMiddleware, NextRequestMiddlewareType
from aiogram.methods import GetUpdates, Response, TelegramMethod
from aiogram.methods.base import TelegramType

from bot.pulse import Pulse


class PollPulse(BaseRequestMiddleware):
    """Beats `poll` for each getUpdates that worked."""

    def __init__(self, pulse: Pulse) -> None:
        self._pulse = pulse

    async def __call__(
        self,
        make_request: NextRequestMiddlewareType[TelegramType],
        bot: Bot,
        method: TelegramMethod[TelegramType],
    ) -> Response[TelegramType]:
        response = await make_request(bot, method)
        if isinstance(method, GetUpdates):
            self._pulse.beat("poll")
        return response
