"""What is known of a chat: where it is, and when it may be written to."""

from dataclasses import replace

import pytest

from jobs.alert.pace import Pace
from jobs.ports import ChatState
from jobs.store.database import Database
from tests.fakes import NOON

GROUP = ChatState(id=-100, pace=Pace(sent=(NOON - 1, NOON)), held_at=NOON, free_at=NOON + 1)


async def test_of_a_new_chat_nothing_is_known_and_it_may_be_written_to(store: Database) -> None:
    assert await store.reading.chats.get(-100) == ChatState(id=-100)
    assert ChatState(id=-100).free_at == 0


async def test_what_is_known_of_one_chat_says_nothing_of_another(store: Database) -> None:
    async with store.transaction() as tables:
        await tables.chats.save(GROUP)
        await tables.chats.save(replace(GROUP, id=100, lost_at=NOON))
        await tables.chats.save(replace(GROUP, free_at=NOON + 37))
    assert await store.reading.chats.get(-100) == replace(GROUP, free_at=NOON + 37)
    assert await store.reading.chats.get(100) == replace(GROUP, id=100, lost_at=NOON)


async def test_the_chats_that_take_no_messages_are_known(store: Database) -> None:
    assert await store.reading.chats.lost() == []
    lost = replace(GROUP, lost_at=NOON)
    async with store.transaction() as tables:
        await tables.chats.save(lost)
        await tables.chats.save(replace(GROUP, id=100))
    assert await store.reading.chats.lost() == [lost]


async def test_the_chats_that_may_not_be_written_to_yet_are_known(store: Database) -> None:
    """Not those that seem to be only because the clock was set back."""
    held = replace(GROUP, free_at=NOON + 37)
    async with store.transaction() as tables:
        await tables.chats.save(held)
        await tables.chats.save(replace(GROUP, id=100, free_at=NOON))
    assert await store.reading.chats.held(NOON) == [held]
    assert await store.reading.chats.held(NOON + 36.9) == [held]
    assert await store.reading.chats.held(NOON + 37) == []
    assert await store.reading.chats.held(NOON - 1) == []


@pytest.mark.parametrize("address", ["-100", "-100/17", "100", "100/17"])
async def test_a_chat_that_has_not_moved_is_where_it_was(store: Database, address: str) -> None:
    assert await store.reading.chats.current(address) == address
    async with store.transaction() as tables:
        await tables.chats.save(GROUP)
    assert await store.reading.chats.current(address) == address


@pytest.mark.parametrize("address", ["-100", "-100/17"])
async def test_a_chat_that_has_moved_is_somewhere_else(store: Database, address: str) -> None:
    """Its topics stay behind."""
    async with store.transaction() as tables:
        await tables.chats.save(replace(GROUP, moved_to=-1000200))
    assert await store.reading.chats.current(address) == "-1000200"
    assert await store.reading.chats.current("-1000200/17") == "-1000200/17"


async def test_a_chat_that_has_moved_twice_is_where_it_went_last(store: Database) -> None:
    """And two that are said to have become each other are no circle without end."""
    async with store.transaction() as tables:
        await tables.chats.save(ChatState(id=-1, moved_to=-2))
        await tables.chats.save(ChatState(id=-2, moved_to=-3))
        await tables.chats.save(ChatState(id=-8, moved_to=-9))
        await tables.chats.save(ChatState(id=-9, moved_to=-8))
    assert await store.reading.chats.current("-1/17") == "-3"
    assert await store.reading.chats.current("-8") in {"-8", "-9"}
