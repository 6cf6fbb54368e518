"""The gate: who may command the bot, and from where. The same for commands and buttons; strangers get silence."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiogram import BaseMiddleware
from aiogram.types import CallbackQuery, Message, TelegramObject, Update
from aiogram.types.update import UpdateTypeLookupError

from bot.desk import Refusals

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Whom the bot obeys: admins by numeric id, in their private chat with it or in the configured one."""

    admins: frozenset[int]
    chat: int

    def admits(self, update: Update) -> bool:
        """Whether an update may reach a handler."""
        try:
            event = update.event
        except UpdateTypeLookupError:
            return False
        match event:
            case Message() as message if _is_own_words(message) and message.from_user:
                return self._admits(message.from_user.id, message.chat.id)
            case CallbackQuery(message=None):
                return False
            case CallbackQuery() as query if query.message is not None:
                return self._admits(query.from_user.id, query.message.chat.id)
            case _:
                return False

    def _admits(self, user: int, chat: int) -> bool:
        return user in self.admins and chat in {user, self.chat}


def _is_own_words(message: Message) -> bool:
    """Whether a person typed this here and now, and as themselves."""
    return not (
        message.sender_chat
        or message.forward_origin
        or message.is_automatic_forward
        or message.via_bot
        or message.business_connection_id
        or (message.from_user and message.from_user.is_bot)
    )


class AccessMiddleware(BaseMiddleware):
    """Drops what the gate does not admit; counts it, and logs every sender once."""

    def __init__(self, gate: Gate, refusals: Refusals) -> None:
        self._gate = gate
        self._refusals = refusals

    async def __call__(
        self,
        handler: Callable[[TelegramObject, dict[str, Any]], Awaitable[Any]],
        event: TelegramObject,
        data: dict[str, Any],
    ) -> object:
        if isinstance(event, Update) and self._gate.admits(event):
            return await handler(event, data)
        self._note(data)
        return None

    def _note(self, data: dict[str, Any]) -> None:
        self._refusals.count += 1
        context = data.get("event_context")
        sender = getattr(context, "user_id", None) or 0
        if sender not in self._refusals.senders and len(self._refusals.senders) < self._refusals.SENDERS_KEPT:
            self._refusals.senders.add(sender)
            _log.warning("refused an update of user %s in chat %s", sender, getattr(context, "chat_id", None))
