"""A process that pins a watch list, and may die of it.

usage: pinner.py look|approve FOLDER [CRASH]

As `look` it looks once, as a bot does at its start; as `approve` it has the newest proposal approved then. The watch list
and the database lie in FOLDER. CRASH is JSON: where it is to die.
"""

import asyncio
import json
import sys
from pathlib import Path

from jobs.store.database import open_database
from tests.crashing import Crash, arm
from tests.jobs.pins import ADMIN, PinWorld


async def pin(role: str, folder: Path) -> None:
    async with open_database(folder) as store:
        world = PinWorld(folder=folder, store=store)
        await world.pinning.begin()
        if role == "approve":
            newest = await world.proposal()
            await world.pinning.approve(newest.id, ADMIN)


def main(role: str, folder: str, crash: str | None = None) -> None:
    if crash:
        armed: Crash = json.loads(crash)
        arm(armed)
    asyncio.run(pin(role, Path(folder)))


if __name__ == "__main__":
    main(*sys.argv[1:])
