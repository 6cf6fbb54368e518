"""The picture before the text of a digest. It is left out rather than that it keeps the text from being sent."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final
from zoneinfo import ZoneInfo

from aiogram import Bot
from aiogram.exceptions import (
    TelegramAPIError,
    TelegramBadRequest,
    TelegramEntityTooLarge,
    TelegramForbiddenError,
    TelegramMigrateToChat,
    TelegramNetworkError,
    TelegramRetryAfter,
    TelegramServerError,
)
from aiogram.types import BufferedInputFile, ReplyParameters

from bot.chart.picture import Picture
from bot.redaction import mask
from bot.settings import Chat
from bot.views.digest import caption
from bot.views.digest_picture import picture
from jobs.alert.outgoing import Mode, Queued
from jobs.aside import Aside
from jobs.digest.digest import Digest

_PATIENCE: Final = 90.0
"""Seconds: longer than drawing may take, but not for ever, as on a data directory that hangs."""
_UPLOAD: Final = 30
"""Seconds: it is larger than a text."""
_TEXT_WAITS: Final = (TelegramRetryAfter, TelegramMigrateToChat, TelegramForbiddenError)
"""What Telegram would say to the text, too."""
_MAY_PASS: Final = (TelegramServerError, TelegramNetworkError)
_ATTEMPTS: Final = 3
"""At the message, after which its text does not wait for the picture any more."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Picturing:
    """Has pictures drawn, and sends them."""

    bot: Bot
    draw: Callable[[Picture], bytes]
    """Blocks; what it raises is why there is no picture."""
    zone: ZoneInfo
    gap: float = 0
    """Seconds between a picture and its text, which are two messages to Telegram."""
    sent: set[int] = field(default_factory=set)
    """Rows of the outbox whose text has not been sent yet: a text that is tried again has its picture already."""
    aside: Aside = field(default_factory=Aside)

    async def send(self, digest: Digest, message: Queued, chat: Chat) -> None:
        """Send the picture of a digest. Raises `TelegramAPIError` if both have to wait."""
        if message.id in self.sent:
            return
        try:
            png = await self.aside(
                f"picture {message.id}", _PATIENCE, partial(self.draw, picture(digest, self.zone))
            )
            await self._send(png, digest, message, chat)
        except Exception as error:
            if _is_waited_for(error, message):
                raise
            why = error.message if isinstance(error, TelegramAPIError) else f"{error}" or type(error).__name__
            _log.warning("message %d is sent without its picture: %s", message.id, mask(why))
            return
        self.sent.add(message.id)
        await asyncio.sleep(self.gap)

    async def _send(self, png: bytes, digest: Digest, message: Queued, chat: Chat) -> None:
        try:
            await self._post(png, digest, message, chat)
        except TelegramBadRequest:
            if chat.topic is None:
                raise
            # The topic may be gone: its text goes to the chat then, too.
            await self._post(png, digest, message, Chat(id=chat.id))

    async def _post(self, png: bytes, digest: Digest, message: Queued, chat: Chat) -> None:
        answered = message.target_message if message.mode is Mode.REPLY else None
        reply = answered and ReplyParameters(message_id=answered, allow_sending_without_reply=True)
        await self.bot.send_photo(
            chat.id,
            BufferedInputFile(png, "digest.png"),
            message_thread_id=chat.topic,
            caption=caption(digest, self.zone),
            reply_parameters=reply or None,
            disable_notification=bool(message.silent),
            request_timeout=_UPLOAD,
        )


def _is_waited_for(error: Exception, message: Queued) -> bool:
    if isinstance(error, _MAY_PASS) and not isinstance(error, TelegramEntityTooLarge):
        return message.attempts + 1 < _ATTEMPTS
    return isinstance(error, _TEXT_WAITS)
