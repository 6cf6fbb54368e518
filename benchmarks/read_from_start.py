"""How fast a log is read from its start, rule and all, against decoding its lines with `orjson.loads`.

The scan finds a log of 100 MB that it has never seen, of several agents, in a new database. What is measured is
processor time, all threads together: both sides keep one core busy, and whoever else uses the machine counts less.

- Time to read the file line by line through orjson over the time of the scan: wanted >= 0.8.
- The same with the lines already in memory, nothing but `loads`: told for comparison.
"""

import asyncio
import tempfile
from pathlib import Path
from time import process_time
from typing import Final

from benchmarks.decoding import decoding_file, decoding_memory
from benchmarks.gateway_log import MB, append, lines, up_to
from benchmarks.guard import guarding, make_room
from benchmarks.rounds import fastest, report
from bot.clock import SystemClock

_ROUNDS: Final = 15
_AGENTS: Final = 5


async def _main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_room(folder, 300 * MB)
        log = folder / "log.jsonl"
        append(log, up_to(100 * MB, lines(_AGENTS, SystemClock().now() - 48 * 3600)))

        async def scan_it() -> float:
            with tempfile.TemporaryDirectory(dir=folder) as data:
                async with guarding(Path(data), log) as scan:
                    start = process_time()
                    await scan()
                    return process_time() - start

        sides = scan_it, decoding_file(log), decoding_memory(log)
        scanned, file, memory = await fastest(_ROUNDS, *sides)
    report("100 MB log from its start: orjson.loads line by line / scan", file / scanned, ">= 0.80")
    report("  lines in memory, orjson.loads alone / scan", memory / scanned, "(for comparison)")


if __name__ == "__main__":
    asyncio.run(_main())
