"""Several runs of the delivery beside each other, and a clock that goes on while they work."""

import asyncio
from dataclasses import dataclass

import pytest

from jobs.alert.outgoing import Outgoing
from jobs.alert_delivery import AlertDelivery
from jobs.ports import ChatState, Clock
from jobs.store.database import Database
from tests.fakes import NOON, HandClock, ScriptedNotifier

HOME = 1
TICK = 0.001


@dataclass(slots=True)
class TickingClock(Clock):
    """Goes on whenever it is read."""

    time: float

    def now(self) -> float:
        self.time += TICK
        return self.time


def delivery(store: Database, clock: Clock, chat: ScriptedNotifier | None = None) -> AlertDelivery:
    return AlertDelivery(store=store, notifier=chat or ScriptedNotifier(), clock=clock, home=f"{HOME}")


async def test_a_chat_that_was_held_while_a_run_waited_for_its_turn_is_left_alone(store: Database) -> None:
    """The run that waited began before; that is no reason to think that the clock was set back."""
    clock, chat = HandClock(), ScriptedNotifier()
    deliver = delivery(store, clock, chat)
    async with store.transaction() as tables:
        await tables.outbox.put(Outgoing(kind="notice", body=b"{}"), clock.now())
    async with store.transaction() as tables:
        waiting = asyncio.ensure_future(deliver.send_next())
        for _ in range(3):
            # Each is answered after a question of the run: then it waits for its turn to write.
            await asyncio.sleep(0)
            assert await store.reading.outbox.due(clock.now(), f"{HOME}")
        clock.go_on(0.1)
        await tables.chats.save(ChatState(id=HOME, held_at=clock.now(), free_at=clock.now() + 1))
    assert not await waiting
    assert chat.sent == []


@pytest.mark.parametrize("readings", range(6))
async def test_a_chat_that_becomes_free_while_a_run_looks_is_not_forgotten(
    store: Database, readings: int
) -> None:
    """It is due, or the run says when it will be: after however many readings of the clock that is."""
    async with store.transaction() as tables:
        await tables.outbox.put(Outgoing(kind="notice", body=b"{}"), NOON)
        await tables.chats.save(ChatState(id=HOME, held_at=NOON, free_at=NOON + 1))
    clock = TickingClock(NOON + 1 - TICK * (readings + 0.5))
    assert await delivery(store, clock)() is not None
