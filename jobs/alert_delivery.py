"""Outbox -> notifier: one message at a time for each chat, as fast as the chat may be written to, until it is sent.

1. Lease the message that is due: from then on its chat waits for it. 2. Send it. 3. Mark it as sent; or put it back and
hold its chat; or follow the chat to where it has moved; or give it up, and tell the other chats. Several runs beside
each other serve several chats. A crash between two steps repeats a message and loses none.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

from jobs.alert.notice import UndeliveredNotice
from jobs.alert.outgoing import NOTICE, Outgoing, Queued, told
from jobs.alert.pace import TELEGRAM_PACE, PacePolicy
from jobs.ports import ChatState, Clock, Notifier, NotifyError, Store, Tables

_CIRCLE: Final = 60.0
"""Seconds until a chat is tried again that is said to have become itself."""
_STILL_NEWS: Final = 86_400
"""Seconds for which a message that was given up is sent after all, once its chat takes messages again."""
_INTERRUPTED: Final = "the bot was stopped while it was being sent"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertDelivery:
    """Sends what waits for a chat in its order, urgent messages first."""

    store: Store
    notifier: Notifier
    clock: Clock
    home: str
    """Where messages go that name no chat: `<chat id>` or `<chat id>/<topic id>`."""
    others: tuple[str, ...] = ()
    """The chats that hear of it when a chat takes no messages: the admins' own."""
    pace: PacePolicy = TELEGRAM_PACE

    async def __call__(self) -> float | None:
        """Send the message that is due; return the seconds until one may be, None if nothing waits."""
        # Before it looks: a chat that becomes free meanwhile would be neither due yet nor due later.
        began = self.clock.now()
        if await self.send_next():
            return 0
        next_at = await self.store.reading.outbox.next_at(began, await self._home(self.store.reading))
        return None if next_at is None else max(0, next_at - self.clock.now())

    async def send_next(self) -> bool:
        """Send the message that is due; return whether there was one."""
        message = await self._lease_next()
        if message is None:
            return False
        try:
            sent = await self.notifier.send(message)
        except NotifyError as error:
            await self._note(message, self._failure(message, error))
        except Exception as error:  # noqa: BLE001 - one message that breaks its rendering must not block the others
            _log.exception("message %d cannot be rendered", message.id)
            await self._note(message, self._failure(message, NotifyError(type(error).__name__)))
        else:
            await self._note(message, self._success(message, sent))
            _log.info("message %d sent (%s %s)", message.id, message.mode, message.subject or message.kind)
        return True

    async def recover(self) -> None:
        """Queue again what was being sent when the bot stopped, as if it had been. Called once, at start."""
        async with self.store.transaction() as tables:
            for message in await tables.outbox.leased(await self._home(tables)):
                await self._hold(tables, message, 0)
                await tables.outbox.put_back(message.id, _INTERRUPTED)

    async def follow(self, old: int, new: int) -> None:
        """Send to chat `new` from now on what is meant for `old`, which has become it."""
        _log.warning("chat %d is chat %d now", old, new)
        async with self.store.transaction() as tables:
            await tables.outbox.move(old, new, await self._home(tables))
            await tables.chats.save(replace(await tables.chats.get(old), moved_to=new))

    async def _home(self, tables: Tables) -> str:
        return await tables.chats.current(self.home)

    async def _lease_next(self) -> Queued | None:
        home = await self._home(self.store.reading)
        if await self.store.reading.outbox.due(self.clock.now(), home) is None:
            return None
        async with self.store.transaction() as tables:
            # Asked again: another run may have taken it, and an edit taken its place. At the time it is by now: to an
            # earlier one, a chat that was held while this run waited for its turn looks as if the clock was set back.
            message = await tables.outbox.due(self.clock.now(), home)
            if message:
                await tables.outbox.lease(message.id)
            return message

    async def _note(self, message: Queued, write: Callable[[Tables], Awaitable[None]]) -> None:
        """Write what became of a message, in memory if need be: unmarked it would keep its chat waiting for ever."""
        try:
            async with self.store.transaction() as tables:
                await write(tables)
        except Exception as error:
            if not await self.store.endure(error):
                raise
            _log.error("message %d is noted in memory: %s", message.id, self.store.trouble)
            async with self.store.transaction() as tables:
                await write(tables)

    def _success(self, message: Queued, sent: int | None) -> Callable[[Tables], Awaitable[None]]:
        async def write(tables: Tables) -> None:
            await tables.outbox.mark_sent(message.id, sent, self.clock.now())
            chat = await self._hold(tables, message, 0)
            if chat.lost_at is not None:
                await tables.chats.save(replace(chat, lost_at=None))
                since = self.clock.now() - _STILL_NEWS
                again = await tables.outbox.unpark(chat.id, since, await self._home(tables))
                _log.info("chat %d takes messages again; %d are sent after all", chat.id, again)

        return write

    def _failure(self, message: Queued, error: NotifyError) -> Callable[[Tables], Awaitable[None]]:
        async def write(tables: Tables) -> None:
            if error.moved_to is not None:
                await tables.outbox.put_back(message.id, str(error))
                await self._hold(
                    tables, message, 0 if await self._leads_on(tables, message, error) else _CIRCLE
                )
            elif error.retry_after is not None:
                level = logging.DEBUG if str(error) == message.error else logging.WARNING
                _log.log(
                    level, "message %d not sent, again in %.1f s: %s", message.id, error.retry_after, error
                )
                await tables.outbox.put_back(message.id, str(error))
                await self._hold(tables, message, error.retry_after)
            else:
                _log.error("message %d to chat %s given up: %s", message.id, message.chat, error)
                await tables.outbox.park(message.id, str(error))
                await self._tell_others(tables, message, await self._hold(tables, message, 0), error)

        return write

    async def _leads_on(self, tables: Tables, message: Queued, error: NotifyError) -> bool:
        """Follow a chat to where it has moved, unless that would lead back to it."""
        moved_to = f"{error.moved_to}"
        if await tables.chats.current(moved_to) == f"{message.chat_id}":
            return False
        await self.follow(message.chat_id, int(moved_to))
        return True

    async def _hold(self, tables: Tables, message: Queued, seconds: float) -> ChatState:
        """Let the chat of a message wait for its pace after an attempt, and at least so long."""
        now, before = self.clock.now(), await tables.chats.get(message.chat_id)
        pace = before.pace.after(now, self.pace)
        free_at = max(now + seconds, pace.free_at(self.pace, is_group=message.chat_id < 0))
        chat = replace(before, pace=pace, held_at=now, free_at=free_at)
        await tables.chats.save(chat)
        return chat

    async def _tell_others(
        self, tables: Tables, message: Queued, chat: ChatState, error: NotifyError
    ) -> None:
        """Tell every other chat: once that this one takes no messages, and then what is urgent in its place."""
        now, was_lost = self.clock.now(), chat.lost_at is not None
        if error.is_chat_lost and not was_lost:
            await tables.chats.save(replace(chat, lost_at=now))
        notice = UndeliveredNotice(chat=f"{chat.id}", error=str(error), is_chat_lost=error.is_chat_lost)
        for other in await self._others(tables, chat.id):
            if not was_lost:
                await tables.outbox.put(replace(told(notice), chat=other), now)
            if error.is_chat_lost and message.urgent and message.kind == NOTICE:
                copy = Outgoing(kind=NOTICE, body=message.body.encode(), chat=other, urgent=True)
                await tables.outbox.put(copy, now)

    async def _others(self, tables: Tables, chat_id: int) -> set[str]:
        """Return the chats, but for this one, that take messages."""
        lost = {chat_id, *(chat.id for chat in await tables.chats.lost())}
        everywhere = {await self._home(tables), *self.others}
        return {chat for chat in everywhere if int(chat.partition("/")[0]) not in lost}
