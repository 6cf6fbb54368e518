"""getUpdates -> inbox: every update is a row before the next poll confirms it to Telegram.

A loop of our own: aiogram's confirms what a handler has not finished, stops at one update that it cannot decode, and
knows neither retry_after nor what to do about 401 and 409. The updates are taken as plain JSON, so that whoever reads
them later can set aside the one that makes no sense. No offset is stored: Telegram delivers again what was not
confirmed, and the inbox, which counts by bot and update id, takes nothing twice. So a new token never makes the bot deaf.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from aiogram import Bot
from aiogram.exceptions import (
    ClientDecodeError,
    TelegramAPIError,
    TelegramConflictError,
    TelegramNotFound,
    TelegramRetryAfter,
    TelegramUnauthorizedError,
)
from aiogram.methods import TelegramMethod
from aiogram.utils.backoff import BackoffConfig

from bot.pulse import Pulse
from bot.redaction import mask
from bot.waiting import Waits
from jobs.ports import Clock
from jobs.store.database import Database

_LONG_POLL: Final = 10
"""Seconds for which Telegram keeps a poll that finds nothing."""
_ANSWER_PATIENCE: Final = 30
"""Seconds for the answer, beyond that."""
_BATCH: Final = 100
_KINDS: Final = ["message", "callback_query"]
_OUTAGE: Final = BackoffConfig(min_delay=1, max_delay=30, factor=2, jitter=0.1)
_CONFLICT: Final = BackoffConfig(min_delay=5, max_delay=60, factor=2, jitter=0.1)
_OTHER_POLLER: Final = "another poller is running: each gets only some of the updates"
_SETTLED: Final = 90.0
"""Seconds without a conflict after which the other poller is taken to be gone; longer than any wait after one."""
_IDS: Final = 2**63
"""More than any id that the database takes."""
_LONGEST_WAIT: Final = 3600.0
"""Seconds, whatever Telegram asks for."""
_SLOWLY: Final = 300.0
"""Seconds between two attempts with a token that is not accepted."""

_log = logging.getLogger(__name__)


class GetRawUpdates(TelegramMethod[list[Any]]):
    """getUpdates, whose answer is left as it is."""

    __returning__ = list[Any]
    __api_method__ = "getUpdates"

    offset: int | None
    limit: int
    timeout: int
    allowed_updates: list[str]


@dataclass(slots=True)
class Trouble:
    """Why no updates come in; None while they do."""

    words: str | None = None


@dataclass(slots=True, kw_only=True)
class Polling:
    """Fetches updates until cancelled. Whatever Telegram does, the guard goes on and Telegram is tried again."""

    bot: Bot
    store: Database
    clock: Clock
    pulse: Pulse
    introduce: Callable[[], Awaitable[None]]
    """Run before the first poll, and after a webhook was found in the way."""
    introduced: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    """Set while it is known who the bot is, and that it may poll."""
    trouble: Trouble = field(default_factory=Trouble, init=False)
    _offset: int | None = field(default=None, init=False)
    _conflict_at: float = field(default=0, init=False)
    """When another poller was last noticed."""
    _outage: Waits = field(default_factory=lambda: Waits(_OUTAGE), init=False)
    _conflict: Waits = field(default_factory=lambda: Waits(_CONFLICT), init=False)

    async def __call__(self) -> None:
        """Poll for ever."""
        while True:
            wait = await self._attempt()
            await asyncio.sleep(wait)

    async def _attempt(self) -> float:
        """Poll once; return the seconds until the next poll."""
        try:
            if not self.introduced.is_set():
                await self.introduce()
                self.introduced.set()
            await self.poll(_LONG_POLL)
        except (TelegramAPIError, ClientDecodeError) as error:
            return self._wait_after(error)
        except Exception as error:  # noqa: BLE001 - whatever happens here, the guard goes on and fetching is tried again
            if await self.store.endure(error):
                _log.error("the database cannot be used, going on in memory: %s", self.store.trouble)
                return 0
            _log.exception("fetching updates failed; scans and stops go on")
            return next(self._outage)
        self._note_success()
        return 0

    async def poll(self, seconds: int) -> None:
        """Fetch what there is, or wait for it so long, and keep it."""
        call = GetRawUpdates(offset=self._offset, limit=_BATCH, timeout=seconds, allowed_updates=_KINDS)
        updates = await self.bot(call, request_timeout=seconds + _ANSWER_PATIENCE)
        bodies = {update["update_id"]: _body(update) for update in updates if _has_id(update)}
        if len(bodies) < len(updates):
            _log.error("%d updates have no id, and are left out", len(updates) - len(bodies))
        if bodies:
            async with self.store.transaction() as tables:
                await tables.inbox.add(self.bot.id, bodies, self.clock.now())
            self._offset = max(bodies) + 1
        elif updates:
            raise ClientDecodeError("updates without an id", ValueError(), updates)
        else:
            # All is confirmed; after a week without updates Telegram counts anew, perhaps from below.
            self._offset = None

    def _wait_after(self, error: TelegramAPIError | ClientDecodeError) -> float:
        match error:
            case TelegramRetryAfter():
                self._note_trouble(f"Telegram asks to wait for {error.retry_after} s")
                return min(error.retry_after, _LONGEST_WAIT)
            case TelegramConflictError() if "webhook" in error.message.lower():
                self.introduced.clear()
                self._note_trouble("a webhook is set, so nobody can poll; it is removed")
                return next(self._conflict)
            case TelegramConflictError():
                self._conflict_at = self.clock.now()
                self._note_trouble(_OTHER_POLLER, is_red=True)
                return next(self._conflict)
            case TelegramUnauthorizedError() | TelegramNotFound():
                self._note_trouble("Telegram does not accept LOOPWARDEN_TOKEN", is_red=True)
                return _SLOWLY
            case _:
                self._note_trouble(f"Telegram cannot be reached: {mask(error.message)}")
                return next(self._outage)

    def _note_trouble(self, words: str, *, is_red: bool = False) -> None:
        if is_red:
            self.pulse.fail("poll", words)
        if words != self.trouble.words:
            _log.log(logging.ERROR if is_red else logging.WARNING, "%s. Scans and stops go on", words)
        self.trouble.words = words

    def _note_success(self) -> None:
        if self.trouble.words == _OTHER_POLLER and 0 <= self.clock.now() - self._conflict_at < _SETTLED:
            # Two pollers cut each other off in turn, and every other poll works.
            return
        self.pulse.beat("poll")
        self._outage.reset()
        self._conflict.reset()
        if self.trouble.words is not None:
            _log.info("updates come in again")
            self.trouble.words = None


def _has_id(update: object) -> bool:
    return (
        isinstance(update, dict) and type(update.get("update_id")) is int and 0 <= update["update_id"] < _IDS
    )


def _body(update: dict[str, Any]) -> str:
    try:
        # In ASCII: what is no Unicode would not fit into the database.
        return json.dumps(update)
    except (ValueError, RecursionError):
        return ""
