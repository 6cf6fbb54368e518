"""Inbox -> gate -> handler: one update at a time, in the order of arrival, each in the transaction that marks it.

Handlers only write to the database. So either all of what an update does has happened and it is marked, or nothing has
and it is handled after the next start: whenever the bot is killed, no update is lost and none is acted on twice.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from aiogram import BaseMiddleware, Bot, Dispatcher
from aiogram.exceptions import ClientDecodeError, TelegramAPIError
from aiogram.types import CallbackQuery, TelegramObject, Update
from pydantic import ValidationError

from bot.desk import Desk
from bot.gate import Gate, Verdict
from bot.settings import Chat
from bot.views.status import ignored, not_yours
from jobs.alert_delivery import AlertDelivery
from jobs.ports import Received
from jobs.store.database import Database

_ANSWER_PATIENCE: Final = 2
"""Seconds that Telegram has to take the answer to a press, while everything else waits."""
_ASIDES: Final = 5
"""Answers to presses in vain that may be under way; further ones are left out, so that strangers hold nobody up."""
_ATTEMPTS: Final = 3
"""At an update that fails for reasons that may pass."""
_INTRODUCED_SOON: Final = 1.0
"""Seconds."""
_WHY_LIMIT: Final = 500

_log = logging.getLogger(__name__)


class AllOrNothing(BaseMiddleware):
    """A handler that fails has done nothing; that is what is then said of it."""

    def __init__(self, store: Database) -> None:
        self._store = store

    async def __call__(
        self,
        handler: Callable[[TelegramObject, dict[str, Any]], Awaitable[Any]],
        event: TelegramObject,
        data: dict[str, Any],
    ) -> object:
        async with self._store.transaction():
            return await handler(event, data)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateHandling:
    """Handles what waits in the inbox."""

    bot: Bot
    dispatcher: Dispatcher
    desk: Desk
    delivery: AlertDelivery
    admins: frozenset[int]
    home: Chat
    introduced: asyncio.Event
    """Set once it is known who the bot is: a command may be addressed to it by name."""
    failures: Counter[int] = field(default_factory=Counter)
    """By row, of what could not be handled, and not even the person be told."""
    asides: set["asyncio.Future[None]"] = field(default_factory=set)

    async def __call__(self) -> float | None:
        """Handle the oldest update; look again at once if there was one, else when the database changes."""
        if not self.introduced.is_set():
            return _INTRODUCED_SOON
        return 0 if await self.handle_next() else None

    async def handle_next(self) -> bool:
        """Handle the oldest update that waits; return whether there was one."""
        received = await self.desk.reading.inbox.next(self.bot.id)
        if received is None or not self.introduced.is_set():
            return False
        try:
            await self._handle(received, Update.model_validate_json(received.body, context={"bot": self.bot}))
        except ValidationError as error:
            # Of what does not fit, not what it holds.
            found = (f"{'.'.join(map(str, detail['loc']))}: {detail['type']}" for detail in error.errors())
            await self._set_aside(received, "; ".join(found))
        except Exception as error:
            self.failures[received.id] += 1
            if self.failures[received.id] < _ATTEMPTS or await self.desk.store.endure(error):
                raise
            # Handled again it would fail again, and keep all that follow from being handled.
            _log.exception("update %d cannot be handled", received.update_id)
            await self._set_aside(received, type(error).__name__)
        self.failures.pop(received.id, None)
        return True

    async def _set_aside(self, received: Received, why: str) -> None:
        _log.error("update %d is set aside: %s", received.update_id, why[:_WHY_LIMIT])
        async with self.desk.store.transaction() as tables:
            await tables.inbox.set_aside(received.id, why[:_WHY_LIMIT])

    async def _handle(self, received: Received, update: Update) -> None:
        age = _age(received, update)
        match await self._judge(update, age):
            case Verdict.ADMITTED:
                # Before the transaction: nobody else can write while it is open.
                await self._answer(update.callback_query)
                await self._finish(received, partial(self.dispatcher.feed_update, self.bot, update))
            case Verdict.STALE if update.message:
                await self._finish(received, partial(self.desk.answer, update.message, ignored(age)))
            case Verdict.MOVED if update.message and update.message.migrate_to_chat_id:
                old, new = update.message.chat.id, update.message.migrate_to_chat_id
                await self._finish(received, partial(self.delivery.follow, old, new))
            case Verdict.PRESSED_IN_VAIN:
                await self._refuse(received, update, not_yours())
            case _:
                await self._refuse(received, update)

    async def _judge(self, update: Update, age: float) -> Verdict:
        me = await self.bot.me()
        home = await self.desk.reading.chats.current(f"{self.home.id}")
        gate = Gate(admins=self.admins, chat=int(home), username=me.username or "")
        return gate.judge(update, age)

    async def _refuse(self, received: Received, update: Update, answer: str | None = None) -> None:
        self.desk.refusals.note(update)
        await self._finish(received)
        if update.callback_query and len(self.asides) < _ASIDES:
            aside = asyncio.ensure_future(self._answer(update.callback_query, answer))
            self.asides.add(aside)
            aside.add_done_callback(self.asides.discard)

    async def _finish(self, received: Received, act: Callable[[], Awaitable[object]] | None = None) -> None:
        async with self.desk.store.transaction() as tables:
            if act:
                await act()
            await tables.inbox.mark_handled(received.id)

    async def _answer(self, query: CallbackQuery | None, text: str | None = None) -> None:
        """Answer a press before anything else, so that the button stops spinning whatever follows."""
        if query is None:
            return
        try:
            await self.bot.answer_callback_query(query.id, text, request_timeout=_ANSWER_PATIENCE)
        except (TelegramAPIError, ClientDecodeError) as error:
            # Most often it is too late. Nothing is gained by trying again, and the press counts all the same.
            _log.info("a press could not be answered: %s", error.message)


def _age(received: Received, update: Update) -> float:
    """Return how long before its arrival a message was sent, in seconds; 0 for a press, of which it is not known."""
    if update.message is None:
        return 0
    return received.received_at - update.message.date.timestamp()
