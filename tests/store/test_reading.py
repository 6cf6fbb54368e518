"""Questions see everything that was committed before they were asked."""

import asyncio

from jobs.store.database import Database

LOOKS = 4
"""Under way at any time."""


async def test_a_look_sees_what_was_committed_before(store: Database) -> None:
    """Other looks that have begun earlier, and are not over yet, hold nobody to what they see."""
    is_over = asyncio.Event()

    async def look() -> None:
        while not is_over.is_set():
            await store.reading.inbox.next(1)

    async with asyncio.TaskGroup() as looking:
        for _ in range(LOOKS):
            looking.create_task(look())
        for number in range(1, 201):
            async with store.transaction() as tables:
                await tables.inbox.add(1, {number: "{}"}, number)
            received = await store.reading.inbox.next(1)
            assert received is not None
            assert received.update_id == number
            async with store.transaction() as tables:
                await tables.inbox.mark_handled(received.id)
            assert await store.reading.inbox.next(1) is None
        is_over.set()
