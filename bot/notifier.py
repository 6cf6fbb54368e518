"""Notifier over the Bot API: rows of the outbox -> messages; Telegram's errors -> temporary or permanent."""

from dataclasses import dataclass
from typing import Final
from zoneinfo import ZoneInfo

import msgspec
from aiogram import Bot
from aiogram.exceptions import (
    ClientDecodeError,
    TelegramAPIError,
    TelegramBadRequest,
    TelegramForbiddenError,
    TelegramMigrateToChat,
    TelegramNotFound,
    TelegramRetryAfter,
)
from aiogram.types import LinkPreviewOptions, Message, ReplyParameters
from pydantic import ValidationError

from bot.settings import Chat, parse_chat
from bot.views.notice import render
from bot.views.screen import Screen
from jobs.alert.notice import AnyNotice
from jobs.alert.outgoing import Mode
from jobs.ports import Clock, NotifyError, Queued

_NO_PREVIEW: Final = LinkPreviewOptions(is_disabled=True)
_UNCHANGED: Final = "message is not modified"
_GONE: Final = ("message to edit not found", "message can't be edited", "MESSAGE_ID_INVALID")
_PERMANENT: Final = (TelegramBadRequest, TelegramForbiddenError, TelegramNotFound, TelegramMigrateToChat)
_decoder: Final = msgspec.json.Decoder(AnyNotice)


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramNotifier:
    """Sends one row of the outbox."""

    bot: Bot
    home: Chat
    clock: Clock
    zone: ZoneInfo

    async def send(self, message: Queued) -> int:
        """Send, edit or reply; return the message's id in its chat. Raises `NotifyError`."""
        shown = self._render(message)
        chat = _chat(message.chat) or self.home
        try:
            if message.mode is Mode.EDIT and message.target_message is not None:
                return await self._edit(shown, chat, message.target_message, message)
            return (await self._send(shown, chat, message)).message_id
        except (TelegramAPIError, ClientDecodeError) as error:
            raise _as_notify_error(error) from error

    def _render(self, message: Queued) -> Screen:
        if message.kind == "screen":
            return Screen.model_validate_json(message.body)
        return render(_decoder.decode(message.body), self.clock.now(), self.zone)

    async def _send(self, shown: Screen, chat: Chat, message: Queued) -> Message:
        target = message.target_message if message.mode is Mode.REPLY else None
        reply = (
            None if target is None else ReplyParameters(message_id=target, allow_sending_without_reply=True)
        )
        return await self.bot.send_message(
            chat.id,
            shown.text,
            message_thread_id=chat.topic,
            entities=shown.entities,
            reply_markup=shown.keyboard,
            reply_parameters=reply,
            disable_notification=bool(message.silent),
            link_preview_options=_NO_PREVIEW,
        )

    async def _edit(self, shown: Screen, chat: Chat, target: int, message: Queued) -> int:
        try:
            await self.bot.edit_message_text(
                shown.text,
                chat_id=chat.id,
                message_id=target,
                entities=shown.entities,
                reply_markup=shown.keyboard,
                link_preview_options=_NO_PREVIEW,
            )
        except TelegramBadRequest as error:
            if any(words in error.message for words in _GONE):
                return (await self._send(shown, chat, message)).message_id
            if _UNCHANGED not in error.message:
                raise
        return target


def _as_notify_error(error: TelegramAPIError | ClientDecodeError) -> NotifyError:
    if isinstance(error, ClientDecodeError):
        # What is not even JSON came from something in between. JSON of an unknown shape is Telegram's: trying again
        # could send the same message for ever.
        return NotifyError(error.message, permanent=isinstance(error.original, ValidationError))
    retry_after = float(error.retry_after) if isinstance(error, TelegramRetryAfter) else None
    return NotifyError(error.message, permanent=isinstance(error, _PERMANENT), retry_after=retry_after)


def _chat(text: str | None) -> Chat | None:
    chat = parse_chat(text)
    return chat if isinstance(chat, Chat) else None
