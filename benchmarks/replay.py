"""How fast old logs are replayed, and with how much memory.

Speed is processor time, of the replay and of decoding the same lines with `orjson.loads`; lines of 300 bytes as the
gateway writes them, two a second, of several agents. Memory is the highest of a process of its own.

- Time of `orjson.loads` over the lines in memory, over the time of the replay: wanted >= 0.10.
- The same, reading the file line by line: told for comparison.
- Memory for a log of 200 MB over that for one of 10 MB: wanted <= 1.1.
"""

import asyncio
import io
import subprocess
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Final

from benchmarks.decoding import decoding_file, decoding_memory, timed
from benchmarks.gateway_log import MB, append, lines, up_to
from benchmarks.guard import make_room
from benchmarks.memory import peak
from benchmarks.rounds import fastest, report
from bot.replaying import replay

_ROUNDS: Final = 5
_AGENTS: Final = 5
_START: Final = 1_767_225_600


def _play(log: Path) -> None:
    with redirect_stdout(io.StringIO()):
        replay([str(log)], "gateway", [], is_json=True)


async def _speed(log: Path) -> None:
    sides = timed(lambda: _play(log)), decoding_file(log), decoding_memory(log)
    played, file, memory = await fastest(_ROUNDS, *sides)
    report("20 MB log: orjson.loads alone / replay", memory / played, ">= 0.10")
    report("  reading line by line through orjson.loads / replay", file / played, "(for comparison)")


def _memory(log: Path) -> int:
    done = subprocess.run([sys.executable, __file__, str(log)], stdout=subprocess.PIPE, check=True)
    return int(done.stdout)


def _main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_room(folder, 250 * MB)
        logs = {size: folder / f"{size}.jsonl" for size in (10, 20, 200)}
        for size, log in logs.items():
            append(log, up_to(size * MB, lines(_AGENTS, _START)))
        asyncio.run(_speed(logs[20]))
        report("memory for a log of 200 MB / of 10 MB", _memory(logs[200]) / _memory(logs[10]), "<= 1.10")


if __name__ == "__main__":
    match sys.argv[1:]:
        case [log]:
            _play(Path(log))
            print(peak())
        case _:
            _main()
