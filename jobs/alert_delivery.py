"""Outbox -> notifier: send what is due, put off what may work later, park what never will."""

import logging
from dataclasses import dataclass
from typing import Final

from jobs.ports import Clock, Notifier, NotifyError, Queued, Store

_AT_ONCE: Final = 20
_FIRST_WAIT: Final = 2.0
_LONGEST_WAIT: Final = 300.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertDelivery:
    """Sends the messages that are due, oldest first; each is marked only after it was sent."""

    store: Store
    notifier: Notifier
    clock: Clock

    async def __call__(self) -> None:
        """Send until a message fails or nothing is due."""
        # One at a time: what the next one edits or answers may be the message sent just before it.
        for _ in range(_AT_ONCE):
            message = await self._take_next()
            if message is None or not await self._deliver(message):
                return

    async def recover(self) -> None:
        """Queue again what was being sent when the bot stopped. Called once, at start."""
        async with self.store.transaction() as tables:
            await tables.outbox.release_all()

    async def _take_next(self) -> Queued | None:
        now = self.clock.now()
        if not await self.store.reading.outbox.due(now, 1):
            return None
        async with self.store.transaction() as tables:
            # Read again with its lease: until then an edit may take its place, and would be lost.
            for message in await tables.outbox.due(now, 1):
                await tables.outbox.lease(message.id)
                return message
        return None

    async def _deliver(self, message: Queued) -> bool:
        try:
            sent = await self.notifier.send(message)
        except NotifyError as error:
            await self._put_away(message, error)
            return False
        except Exception as error:  # noqa: BLE001 - one message that breaks its rendering must not block the others
            _log.exception("message %d cannot be rendered or sent", message.id)
            await self._put_away(message, NotifyError(type(error).__name__, permanent=True))
            return True
        async with self.store.transaction() as tables:
            await tables.outbox.mark_sent(message.id, sent, self.clock.now())
        _log.info("message %d sent (%s %s)", message.id, message.mode, message.subject or message.kind)
        return True

    async def _put_away(self, message: Queued, error: NotifyError) -> None:
        async with self.store.transaction() as tables:
            if error.permanent:
                _log.error("message %d given up: %s", message.id, error)
                await tables.outbox.park(message.id, str(error))
                return
            wait = error.retry_after or _wait_after(message.attempts)
            _log.warning("message %d not sent, again in %.0f s: %s", message.id, wait, error)
            await tables.outbox.put_off(message.id, str(error), self.clock.now() + wait)


def _wait_after(attempts: int) -> float:
    # After days of attempts a power of two would be too large for a float.
    return min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(attempts, 10))
