"""The connection to the Bot API: whatever comes back, what leaves here are aiogram's own errors."""

from typing import Final

from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import ClientDecodeError, TelegramAPIError, TelegramNetworkError
from aiogram.methods import TelegramMethod
from aiogram.methods.base import TelegramType

from bot.settings import TelegramSettings

_REQUEST_TIMEOUT: Final = 15
"""Seconds."""


class TelegramSession(AiohttpSession):
    """aiogram's, which lets through what it meets in an answer that something in between has made up."""

    async def make_request(
        self,
        bot: Bot,
        method: TelegramMethod[TelegramType],
        timeout: int | None = None,  # noqa: ASYNC109 - aiogram's seam
    ) -> TelegramType:
        """Answer one call of the Bot API; raise `TelegramAPIError` or `ClientDecodeError`, and nothing else."""
        try:
            result = await super().make_request(bot, method, timeout)
        except (TelegramAPIError, ClientDecodeError):
            raise
        except Exception as error:
            message = f"an answer that is not Telegram's ({type(error).__name__})"
            raise TelegramNetworkError(method=method, message=message) from error
        if result is None:
            raise ClientDecodeError("a success without a result", ValueError(), {"ok": True})
        return result


def session_for(settings: TelegramSettings) -> TelegramSession:
    """Return the connection to the configured Bot API server."""
    server = TelegramAPIServer.from_base(str(settings.telegram_api).rstrip("/"))
    return TelegramSession(api=server, timeout=_REQUEST_TIMEOUT)
