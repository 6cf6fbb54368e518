"""The gate: who may command the bot, from where, and how long ago. The same for commands and buttons."""

import logging
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Final

from aiogram.dispatcher.middlewares.user_context import UserContextMiddleware
from aiogram.types import CallbackQuery, Message, Update

from bot.commands import COMMANDS

_READ_LIMIT: Final = 600
_CHANGE_LIMIT: Final = 120
"""Seconds; what was sent earlier, the person may have forgotten, and things have changed since."""
_LIMITS: Final = {command.name: _CHANGE_LIMIT if command.changes else _READ_LIMIT for command in COMMANDS}

_log = logging.getLogger(__name__)


class Verdict(StrEnum):
    """What becomes of an update."""

    ADMITTED = "admitted"
    REFUSED = "refused"
    """Not a command of somebody who may give one: it gets silence."""
    PRESSED_IN_VAIN = "pressed in vain"
    """By somebody who sees the buttons in the configured chat, and may not use them."""
    STALE = "stale"
    """A command that has been under way for too long."""
    MOVED = "moved"
    """No command: Telegram says that the configured group has become another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Admins are known by their numeric id, in their private chat with the bot or in the configured one."""

    admins: frozenset[int]
    chat: int
    """The configured one, as it is now."""
    username: str
    """The bot's own."""

    def judge(self, update: Update, age_at_arrival: float) -> Verdict:
        """Judge an update; nothing but messages and presses of buttons is looked at. The age is in seconds."""
        if update.message and update.message.migrate_to_chat_id and update.message.chat.id == self.chat:
            return Verdict.MOVED
        if update.message:
            return self._judge_message(update.message, age_at_arrival)
        if update.callback_query and update.callback_query.message:
            return self._judge_press(update.callback_query, update.callback_query.message.chat.id)
        return Verdict.REFUSED

    def _judge_message(self, message: Message, age: float) -> Verdict:
        user = message.from_user
        if user is None or not _is_own_words(message) or not self._admits(user.id, message.chat.id):
            return Verdict.REFUSED
        # A picture's caption can be a command, too.
        limit = _LIMITS.get(command_for(self.username, message.text or message.caption or "") or "")
        return Verdict.STALE if limit is not None and age > limit else Verdict.ADMITTED

    def _judge_press(self, query: CallbackQuery, chat: int) -> Verdict:
        if self._admits(query.from_user.id, chat):
            return Verdict.ADMITTED
        return Verdict.PRESSED_IN_VAIN if chat == self.chat else Verdict.REFUSED

    def _admits(self, user: int, chat: int) -> bool:
        return user in self.admins and chat in {user, self.chat}


@dataclass(slots=True)
class Refusals:
    """What the gate has turned away since the start."""

    SENDERS_KEPT: ClassVar[int] = 1000

    count: int = 0
    senders: set[int] = field(default_factory=set)
    """Who was logged already."""

    def note(self, update: Update) -> None:
        """Count an update, and log every sender once."""
        self.count += 1
        context = UserContextMiddleware.resolve_event_context(update)
        sender = context.user_id or 0
        if sender not in self.senders and len(self.senders) < self.SENDERS_KEPT:
            self.senders.add(sender)
            _log.warning("refused an update of user %s in chat %s", sender, context.chat_id)


def command_for(username: str, text: str) -> str | None:
    """Return the name of the command that a text gives to the bot of this name; None if it gives it none."""
    command, *_ = text.split() or [""]
    name, _, addressee = command.partition("@")
    is_own = addressee.lower() in {"", username.lower()}
    return name.removeprefix("/") if name.startswith("/") and is_own else None


def _is_own_words(message: Message) -> bool:
    """Whether a person typed this here and now, and as themselves."""
    return not (
        message.sender_chat
        or message.forward_origin
        or message.is_automatic_forward
        or message.is_from_offline
        or message.via_bot
        or message.business_connection_id
        or message.edit_date
        or (message.from_user and message.from_user.is_bot)
    )
