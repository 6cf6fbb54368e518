"""Local mode: a terminal, or a test, in Telegram's place. The dispatcher and the handlers are the real ones."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any, Final, cast

from aiogram import Bot
from aiogram.client.session.base import BaseSession
from aiogram.exceptions import TelegramBadRequest
from aiogram.methods import (
    AnswerCallbackQuery,
    DeleteWebhook,
    EditMessageText,
    GetMe,
    SendMessage,
    SendPhoto,
    SetMyCommands,
    TelegramMethod,
)
from aiogram.methods.base import TelegramType
from aiogram.types import (
    BufferedInputFile,
    CallbackQuery,
    Chat,
    InlineKeyboardMarkup,
    Message,
    MessageEntity,
    ReplyParameters,
    Update,
    User,
)

from bot.clock import SystemClock
from bot.polling import GetRawUpdates
from jobs.ports import Clock

PERSON: Final = User(id=1, is_bot=False, first_name="You")
_BOT: Final = User(id=42, is_bot=True, first_name="Loopwarden", username="loopwarden_bot")


@dataclass(slots=True, kw_only=True)
class Shown:
    """A message of the bot as the chat shows it now."""

    id: int
    chat: int
    at: datetime
    text: str
    entities: list[MessageEntity] = field(default_factory=list)
    buttons: dict[str, str] = field(default_factory=dict)
    """Data by label."""
    reply_to: int | None = None
    edits: int = 0
    picture: bytes | None = None
    """PNG; the text is the line below it."""


class ConsoleSession(BaseSession):
    """An aiogram session that answers the bot's calls itself, and a person's keyboard."""

    def __init__(
        self, on_shown: Callable[[Shown], None] = lambda _: None, clock: Clock | None = None
    ) -> None:
        super().__init__()
        self._clock = clock or SystemClock()
        self.messages: dict[int, Shown] = {}
        self._on_shown = on_shown
        self._updates: asyncio.Queue[Update] = asyncio.Queue()
        self._update_ids, self._message_ids = count(1), count(1)
        self._changed = asyncio.Event()

    # ── the person's side ─────────────────────────────────────────────────────────────────────────

    def type(self, text: str, *, person: User = PERSON, chat: int | None = None) -> None:
        """Write a message to the bot, by default in the private chat."""
        message = Message(
            message_id=next(self._message_ids),
            date=self._now(),
            chat=_chat(person.id if chat is None else chat),
            from_user=person,
            text=text,
        )
        self.deliver(Update(update_id=next(self._update_ids), message=message))

    def press(self, shown: Shown, label: str, *, person: User = PERSON) -> None:
        """Press a button under a message. Raises KeyError if there is none of that name."""
        query = CallbackQuery(
            id=str(next(self._update_ids)),
            from_user=person,
            chat_instance="console",
            message=self._message(shown),
            data=shown.buttons[label],
        )
        self.deliver(Update(update_id=next(self._update_ids), callback_query=query))

    def deliver(self, update: Update) -> None:
        """Hand the bot an update."""
        self._updates.put_nowait(update)

    @property
    def has_updates(self) -> bool:
        """Whether the bot has something to fetch."""
        return not self._updates.empty()

    async def wait_for(self, is_it: Callable[[Shown], bool], *, seconds: float = 10) -> Shown:
        """Return the newest message that is it, as soon as there is one. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while True:
                changed = self._changed
                for shown in reversed(list(self.messages.values())):
                    if is_it(shown):
                        return shown
                await changed.wait()

    # ── the bot's side ────────────────────────────────────────────────────────────────────────────

    async def make_request(
        self,
        bot: Bot,  # noqa: ARG002 - aiogram's seam
        method: TelegramMethod[TelegramType],
        timeout: int | None = None,  # noqa: ARG002, ASYNC109
    ) -> TelegramType:
        """Answer one call of the Bot API."""
        return cast(TelegramType, await self._answer(method))

    async def close(self) -> None:
        """Nothing is open."""

    def stream_content(self, *_: Any, **__: Any) -> AsyncGenerator[bytes, None]:
        """Files are not part of the console."""
        raise NotImplementedError

    async def _answer(self, method: TelegramMethod[Any]) -> object:
        match method:
            case GetRawUpdates():
                updates = await self._poll(method.timeout)
                return [
                    json.loads(update.model_dump_json(by_alias=True, exclude_none=True)) for update in updates
                ]
            case SendMessage():
                return self._send(method, method.text)
            case SendPhoto(photo=BufferedInputFile(data=data)):
                return self._send(method, method.caption or "", data)
            case EditMessageText():
                return self._edit(method)
            case GetMe():
                return _BOT
            case AnswerCallbackQuery() | DeleteWebhook() | SetMyCommands():
                return True
            case _:
                raise TelegramBadRequest(method=method, message="the console does not know this method")

    async def _poll(self, seconds: float) -> list[Update]:
        try:
            async with asyncio.timeout(seconds):
                return [await self._updates.get()]
        except TimeoutError:
            return []

    def _send(self, method: SendMessage | SendPhoto, text: str, picture: bytes | None = None) -> Message:
        reply = method.reply_parameters
        shown = Shown(
            id=next(self._message_ids),
            chat=int(method.chat_id),
            at=self._now(),
            text=text,
            reply_to=reply.message_id if isinstance(reply, ReplyParameters) else None,
            picture=picture,
        )
        self.messages[shown.id] = shown
        entities = method.entities if isinstance(method, SendMessage) else method.caption_entities
        return self._show(shown, entities, method.reply_markup)

    def _edit(self, method: EditMessageText) -> Message:
        shown = self.messages.get(method.message_id or 0)
        if shown is None:
            raise TelegramBadRequest(method=method, message="Bad Request: message to edit not found")
        if (shown.text, shown.buttons) == (method.text, _buttons(method.reply_markup)):
            raise TelegramBadRequest(method=method, message="Bad Request: message is not modified")
        shown.text = method.text or ""
        shown.edits += 1
        return self._show(shown, method.entities, method.reply_markup)

    def _show(self, shown: Shown, entities: list[MessageEntity] | None, markup: object) -> Message:
        shown.entities = list(entities or [])
        shown.buttons = _buttons(markup)
        self._on_shown(shown)
        # Whoever waits looks again; the next ones wait for the next change.
        self._changed.set()
        self._changed = asyncio.Event()
        return self._message(shown)

    def _message(self, shown: Shown) -> Message:
        chat = _chat(shown.chat)
        return Message(message_id=shown.id, date=shown.at, chat=chat, from_user=_BOT, text=shown.text)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now(), UTC)


def _chat(chat_id: int) -> Chat:
    return Chat(id=chat_id, type="private" if chat_id > 0 else "supergroup")


def _buttons(markup: object) -> dict[str, str]:
    if not isinstance(markup, InlineKeyboardMarkup):
        return {}
    return {button.text: button.callback_data or "" for row in markup.inline_keyboard for button in row}
