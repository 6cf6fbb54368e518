"""What 10,000 known sessions cost a running bot when 100 of them are active.

- Seconds of one beat in which each of the 100 has made 10 calls: wanted <= 1 (the one figure here that is no ratio).
- Memory the process has gained over what it had before it knew any session, for each of the 10,000 that are
  idle: wanted <= 2 KB.
"""

import asyncio
import gc
import tempfile
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Final

from benchmarks.gateway_log import append, lines
from benchmarks.guard import guarding
from benchmarks.memory import resident
from benchmarks.rounds import fastest, report
from bot.clock import SystemClock

_KNOWN: Final = 10_000
_ACTIVE: Final = 100
_CALLS: Final = 10
"""Of every session, on average: before, and in each beat."""
_ROUNDS: Final = 10


async def _main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, now = Path(name), SystemClock().now()
        log = folder / "log.jsonl"
        active = lines(_ACTIVE, now)

        async with guarding(folder / "data", log) as scan:

            async def beat() -> float:
                append(log, islice(active, _ACTIVE * _CALLS))
                start = perf_counter()
                await scan()
                return perf_counter() - start

            # Before the first figure the code is loaded and the caches are warm.
            await fastest(_ROUNDS, beat)
            gc.collect()
            before = resident()
            append(log, islice(lines(_KNOWN, now - 1800), _KNOWN * _CALLS))
            await scan()
            (seconds,) = await fastest(_ROUNDS, beat)
            gc.collect()
            gained = resident() - before
    report("10,000 known sessions, 100 active: seconds of one beat", seconds, "<= 1.00")
    report("KB of memory for each idle session", gained / (_KNOWN - _ACTIVE) / 1000, "<= 2.00")


if __name__ == "__main__":
    asyncio.run(_main())
