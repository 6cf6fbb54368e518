"""Notifier over the Bot API: rows of the outbox -> messages; Telegram's errors -> temporary, permanent or moved chat.

What Telegram rejects for its form is sent once more as plain text; into a topic that is gone, to the chat itself; an
edit of a message that is gone, as a new one. A digest is two messages: a picture before the text.
"""

import logging
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final
from zoneinfo import ZoneInfo

import msgspec
from aiogram import Bot
from aiogram.exceptions import (
    ClientDecodeError,
    TelegramAPIError,
    TelegramBadRequest,
    TelegramEntityTooLarge,
    TelegramForbiddenError,
    TelegramMigrateToChat,
    TelegramRetryAfter,
)
from aiogram.types import InlineKeyboardMarkup, LinkPreviewOptions, ReplyParameters
from aiogram.utils.backoff import BackoffConfig

from bot.callbacks import PinButton
from bot.picturing import Picturing
from bot.redaction import mask
from bot.settings import Chat, parse_chat
from bot.views.cleaning import cut
from bot.views.notice import render
from bot.views.screen import Screen
from bot.waiting import Waits
from jobs.alert.digest_notice import DigestNotice
from jobs.alert.notice import AnyNotice
from jobs.alert.outgoing import Mode, Queued
from jobs.ports import Clock, NotifyError

_NO_PREVIEW: Final = LinkPreviewOptions(is_disabled=True)
_UNCHANGED: Final = "message is not modified"
_GONE: Final = ("message to edit not found", "message can't be edited", "MESSAGE_ID_INVALID")
_NO_TOPIC: Final = ("message thread not found", "TOPIC_DELETED", "TOPIC_CLOSED")
_NO_CHAT: Final = (
    *("chat not found", "PEER_ID_INVALID", "CHAT_WRITE_FORBIDDEN", "CHAT_RESTRICTED", "not enough rights"),
    *("group chat was deactivated", "have no rights to send"),
)
_IDS: Final = 2**63
"""More than any id that the database takes."""
_PLAIN_LIMIT: Final = 1000
"""UTF-16 units of a message that is sent again as plain text."""
_WAITS: Final = BackoffConfig(min_delay=1, max_delay=30, factor=2, jitter=0.1)
"""Between attempts at one chat while Telegram, or the way there, is out of order."""
_decoder: Final = msgspec.json.Decoder(AnyNotice)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramNotifier:
    """Sends one row of the outbox."""

    bot: Bot
    clock: Clock
    zone: ZoneInfo
    picturing: Picturing
    waits: dict[int, Waits] = field(default_factory=lambda: defaultdict(lambda: Waits(_WAITS)))
    """By chat."""

    async def send(self, message: Queued) -> int | None:
        """Send, edit or reply; return the message's id in its chat, None if it is not known. Raises `NotifyError`."""
        notice = None if message.kind == "screen" else _decoder.decode(message.body)
        shown = self._render(notice, message)
        try:
            if isinstance(notice, DigestNotice):
                await self.picturing.send(notice.body, message, _chat(message.chat))
            sent = await self._deliver(shown, message)
        except (TelegramAPIError, ClientDecodeError) as error:
            if isinstance(error, ClientDecodeError) and _is_success(error.data):
                # Sent, and told as no release known here tells it. Sent again, it would be sent for ever.
                _log.warning("message %d is sent; what Telegram says of it is not understood", message.id)
                return _message_id(error.data)
            raise self._notify_error(error, message) from error
        self.waits[message.chat_id].reset()
        self.picturing.sent.discard(message.id)
        return sent

    def _render(self, notice: AnyNotice | None, message: Queued) -> Screen:
        if notice is None:
            return Screen.model_validate_json(message.body)
        return render(notice, self.clock.now(), self.zone)

    async def _deliver(self, shown: Screen, message: Queued) -> int:
        try:
            return await self._write(shown, message)
        except TelegramBadRequest as error:
            plain = _plain(shown)
            if _says(error, _NO_CHAT) or (plain == shown and not shown.keyboard):
                raise
            _log.warning("message %d is tried as plain text: %s", message.id, error.message)
        try:
            return await self._write(plain, message)
        except TelegramBadRequest:
            if not plain.keyboard:
                raise
        return await self._write(Screen(text=plain.text, entities=[]), message)

    async def _write(self, shown: Screen, message: Queued) -> int:
        chat, target = _chat(message.chat), message.target_message
        if message.mode is Mode.EDIT and target is not None and await self._edit(shown, chat, target):
            return target
        answered = target if message.mode is Mode.REPLY else None
        silent = bool(message.silent)
        try:
            return await self._send(shown, chat, answered, silent=silent)
        except TelegramBadRequest as error:
            if chat.topic is None or not _says(error, _NO_TOPIC):
                raise
            _log.warning("topic %s is gone, message %d goes to the chat: %s", chat, message.id, error.message)
            return await self._send(shown, Chat(id=chat.id), answered, silent=silent)

    async def _send(self, shown: Screen, chat: Chat, answered: int | None, *, silent: bool) -> int:
        reply = answered and ReplyParameters(message_id=answered, allow_sending_without_reply=True)
        sent = await self.bot.send_message(
            chat.id,
            shown.text,
            message_thread_id=chat.topic,
            entities=shown.entities,
            reply_markup=shown.keyboard,
            reply_parameters=reply or None,
            disable_notification=silent,
            link_preview_options=_NO_PREVIEW,
        )
        return sent.message_id

    async def _edit(self, shown: Screen, chat: Chat, target: int) -> bool:
        """Edit a message; return whether it was there to be edited."""
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
            if _says(error, _GONE):
                return False
            if not _says(error, (_UNCHANGED,)):
                raise
        return True

    def _notify_error(self, error: TelegramAPIError | ClientDecodeError, message: Queued) -> NotifyError:
        match error:
            case TelegramMigrateToChat():
                return NotifyError(mask(error.message), moved_to=error.migrate_to_chat_id)
            case TelegramRetryAfter():
                return NotifyError(mask(error.message), retry_after=float(error.retry_after))
            case TelegramForbiddenError():
                return NotifyError(mask(error.message), is_chat_lost=True)
            case TelegramBadRequest() | TelegramEntityTooLarge():
                return NotifyError(mask(error.message), is_chat_lost=_says(error, _NO_CHAT))
            case _:
                return NotifyError(mask(error.message), retry_after=next(self.waits[message.chat_id]))


def _plain(shown: Screen) -> Screen:
    text = cut(shown.text, _PLAIN_LIMIT)
    # Nobody approves what they could not read.
    is_kept = text == shown.text or not _decides(shown.keyboard)
    return Screen(text=text, entities=[], keyboard=shown.keyboard if is_kept else None)


def _decides(keyboard: InlineKeyboardMarkup | None) -> bool:
    """Whether it is that of a proposal, on whichever page."""
    buttons = [button for row in keyboard.inline_keyboard for button in row] if keyboard else []
    return any((button.callback_data or "").startswith(f"{PinButton.__prefix__}:") for button in buttons)


def _is_success(data: object) -> bool:
    return isinstance(data, dict) and data.get("ok") is True


def _message_id(data: dict[str, object]) -> int | None:
    result = data.get("result")
    found = result.get("message_id") if isinstance(result, dict) else None
    return found if isinstance(found, int) and 0 < found < _IDS else None


def _says(error: TelegramAPIError, phrases: tuple[str, ...]) -> bool:
    return any(phrase in error.message for phrase in phrases)


def _chat(address: str) -> Chat:
    chat = parse_chat(address)
    if not isinstance(chat, Chat):
        raise TypeError(f"{address!r} is no chat")
    return chat
