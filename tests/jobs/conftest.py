"""A world over a database of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobs.store.database import Database, open_database
from tests.jobs.world import World


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Database]:
    async with open_database(tmp_path) as store:
        yield store


@pytest.fixture
def world(store: Database) -> World:
    return World(store=store)
