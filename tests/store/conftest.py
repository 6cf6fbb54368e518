"""A database in a folder of its own."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from jobs.store.database import Database, Tables, open_database

Undone = Callable[[], AbstractAsyncContextManager[Tables]]

drawing = settings(
    max_examples=40,
    # Each example undoes what it did: the database may be shared.
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


class _Undo(Exception):  # noqa: N818 - no error: how a block is left
    pass


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Database]:
    async with open_database(tmp_path) as store:
        yield store


@pytest.fixture
def undone(store: Database) -> Undone:
    """A transaction that leaves nothing behind, so that many drawn values fit into one database."""

    @asynccontextmanager
    async def transaction() -> AsyncIterator[Tables]:
        try:
            async with store.transaction() as tables:
                yield tables
                raise _Undo  # noqa: TRY301 - that is how it is undone
        except _Undo:
            pass

    return transaction
