"""How much memory the scan of a hostile log takes beyond that of an empty one.

Each log is scanned by a process of its own: as it is found, then after it has grown by 100 good lines.

- Highest memory of that process over that of one that scans an empty log: wanted <= 64 MiB.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Final

from benchmarks.gateway_log import MB, append, lines, repeated
from benchmarks.guard import guarding, make_room
from benchmarks.memory import peak
from benchmarks.rounds import report
from bot.clock import SystemClock

_NOW: Final = SystemClock().now()
_MIB: Final = 1 << 20


def _call(number: int = 0, *, agent: str = "main", tool: str = "exec", args: str = "{}") -> bytes:
    ts = round(_NOW - 600 + number / 1000, 3)
    return f'{{"ts": {ts}, "agentId": "{agent}", "tool": "{tool}", "args": {args}}}\n'.encode()


def _text(size: int, number: int = 0) -> str:
    """JSON of so many bytes that is unlike that of another number."""
    return json.dumps({"command": f"{number:08}" * (size // 8)})


def _calls(count: int, *, size: int, agents: int = 1, per_second: int = 1000) -> Iterator[bytes]:
    for number in range(count):
        stamp = number * 1000 // per_second
        yield _call(stamp, agent=f"agent-{number % agents}", args=_text(size, number))


def _long_names() -> Iterator[bytes]:
    for number in range(60):
        name = f"{number:08}" * (MB // 8)
        yield _call(number, agent=name)
        yield _call(number, tool=name)


def _nested(depth: int) -> bytes:
    return _call(args="[" * depth + "]" * depth)


def _full_of_brackets(size: int) -> bytes:
    return _call(args="[" + "[]," * (size // 3) + "[]]")


_LOGS: Final[Mapping[str, Callable[[], Iterator[bytes]]]] = {
    "nothing": lambda: iter(()),
    "lines of 10 MB, too long to read": lambda: _calls(20, size=10 * MB),
    "lines of 8 MB, just short enough": lambda: _calls(20, size=8 * MB),
    "lines of 8 MB, each a name in Chinese": lambda: repeat(_call(args=f'"{"名" * (8 * MB // 3)}"'), 10),
    "an endless line": lambda: repeat(b"x" * MB, 200),
    "nesting 100,000 deep": lambda: repeat(_nested(100_000), 100),
    "nesting 900 deep": lambda: repeat(_nested(900), 20_000),
    "arguments of 8 MB that are all brackets": lambda: repeat(_full_of_brackets(8 * MB), 10),
    "arguments of 300 KB that are all brackets": lambda: repeat(_full_of_brackets(300_000), 100),
    "10,000 agents, 20 short calls each": lambda: _calls(200_000, size=100, agents=10_000, per_second=4000),
    "10,000 agents, 10 calls of 4 KB each": lambda: _calls(
        100_000, size=4000, agents=10_000, per_second=4000
    ),
    "500 agents, 200 calls of 4 KB each at once": lambda: _calls(
        100_000, size=4000, agents=500, per_second=10**9
    ),
    "200,000 agents, a call each": lambda: _calls(200_000, size=100, agents=200_000, per_second=4000),
    "names of 1 MB": _long_names,
    "the shortest lines there are": lambda: repeat(b'{"ts":1,"agentId":"a","tool":"t"}\n', 3_000_000),
    "lines that cannot be read": lambda: repeat(b"{\n", 10_000_000),
    "empty lines": lambda: repeat(b"\n" * MB, 100),
    "a binary file": lambda: (os.urandom(MB) for _ in range(100)),
    "zeros": lambda: repeat(bytes(MB), 200),
    "a log of 1 GB": lambda: repeated(1000 * MB, lines(5, _NOW - 3600)),
    "one agent, 100,000 calls of 4 KB in an instant": lambda: _calls(100_000, size=4000, per_second=10**9),
}


async def _scan(folder: Path, log: Path) -> int:
    async with guarding(folder / "data", log) as scan:
        await scan()
        append(log, chain([b"\n"], islice(lines(5, _NOW), 100)))
        await scan()
    return peak()


def _measure(hostile: Iterator[bytes]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        make_room(Path(folder), 1500 * MB)
        log = Path(folder, "log.jsonl")
        append(log, hostile)
        argv = [sys.executable, __file__, folder, str(log)]
        return int(subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout)


def _main() -> None:
    empty = None
    for name, hostile in _LOGS.items():
        highest = _measure(hostile())
        if empty is None:
            empty = highest
        else:
            report(f"MiB beyond an empty log: {name}", (highest - empty) / _MIB, "<= 64")


if __name__ == "__main__":
    match sys.argv[1:]:
        case [folder, log]:
            print(asyncio.run(_scan(Path(folder), Path(log))))
        case _:
            _main()
