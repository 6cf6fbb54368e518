"""A database whose file fails the bot for a while."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiosqlite
import pytest

from jobs.store.database import Database


@asynccontextmanager
async def in_memory(store: Database) -> AsyncIterator[None]:
    """The file cannot be written within the block, by the bot."""
    await store._opened.writer.execute("PRAGMA query_only = ON")
    with pytest.raises(aiosqlite.OperationalError) as failure:
        async with store.transaction() as tables:
            await tables.presence.note(0)
    assert await store.endure(failure.value)
    yield
    assert await store.recover()
