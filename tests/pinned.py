"""A watch list that a bot knows already, where a test is not about that."""

import time
from pathlib import Path

from bot.watching import WatchlistFile
from jobs.pinning.kind import How
from jobs.pinning.pin import pin_of
from jobs.store.database import open_database
from jobs.thrash.policy import OnDetection


async def pinned(folder: Path) -> None:
    """Have what the watch list in `folder` says approved, and told, while no bot runs."""
    entries = WatchlistFile(folder / "loopwarden.toml", OnDetection.STOP).written()
    assert entries
    now = time.time()  # noqa: TID251 - as the bot would
    async with open_database(folder / "data") as store, store.transaction() as tables:
        how = How.APPROVED if await tables.pins.newest() else How.FIRST_USE
        for entry in entries:
            await tables.pins.add(pin_of(entry, how, now))
