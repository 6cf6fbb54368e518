"""What a scan costs that finds 100 new lines, and whether that depends on how long the log already is.

- Time on a log of 1 GB over time on one of 1 MB: wanted <= 1.2.
- Time to read a log of 100 MB with `json.loads` over time of such a scan of it: wanted >= 100.
"""

import asyncio
import json
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Final

from benchmarks.gateway_log import MB, append, lines, repeated
from benchmarks.guard import guarding, make_room
from benchmarks.rounds import fastest, report
from bot.clock import SystemClock
from jobs.thrash_scan import ThrashScan

_ROUNDS: Final = 60
_NEW_LINES: Final = 100
_AGENTS: Final = 5


@dataclass(frozen=True, slots=True)
class GrowingLog:
    """A log that grows by 100 lines before each scan."""

    path: Path
    scan: ThrashScan
    new_lines: Iterator[bytes]

    async def scan_new_lines(self) -> float:
        """Return the seconds of one scan."""
        append(self.path, islice(self.new_lines, _NEW_LINES))
        start = perf_counter()
        await self.scan()
        return perf_counter() - start

    async def read_it_all(self) -> float:
        """Return the seconds of reading every line with the standard library."""
        start = perf_counter()
        with self.path.open("rb") as file:
            for line in file:
                json.loads(line)
        return perf_counter() - start


async def _growing_log(stack: AsyncExitStack, folder: Path, size: int) -> GrowingLog:
    path = folder / f"{size}.jsonl"
    now = SystemClock().now()
    append(path, repeated(size, lines(_AGENTS, now - 3600)))
    scan = await stack.enter_async_context(guarding(folder / f"{size}", path))
    await scan()
    return GrowingLog(path, scan, lines(_AGENTS, now))


async def _main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_room(folder, 2000 * MB)
        async with AsyncExitStack() as stack:
            logs = [await _growing_log(stack, folder, size * MB) for size in (1, 100, 1000)]
            small, middle, large = await fastest(_ROUNDS, *(log.scan_new_lines for log in logs))
            scan, all_of_it = await fastest(3, logs[1].scan_new_lines, logs[1].read_it_all)
    report("100 new lines: scan of a 1 GB log / of a 1 MB log", large / small, "<= 1.20")
    report(
        "100 MB log: json.loads of every line / scan of 100 new ones", all_of_it / min(scan, middle), ">= 100"
    )


if __name__ == "__main__":
    asyncio.run(_main())
