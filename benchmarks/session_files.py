"""What a beat costs over 1,000 session files of which 10 have grown by a few calls.

- Time of such a beat over the time of one over the same 10 files alone, each of a bot of its own: wanted <= 1.5, if
  the watch list names the format and if it says `auto`. Half of the rest is what the system takes to list folders and to
  tell of each file that it has not changed.
"""

import asyncio
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count, islice
from pathlib import Path
from time import perf_counter
from typing import Final

from benchmarks.gateway_log import append
from benchmarks.guard import guarding
from benchmarks.rounds import fastest, report
from bot.clock import SystemClock
from jobs.thrash_scan import ThrashScan

_FILES: Final = 1000
_PER_FOLDER: Final = 20
_GROWING: Final = 10
_CALLS: Final = 20
"""Of every session before."""
_NEW_CALLS: Final = 6
"""One every ten seconds."""
_ROUNDS: Final = 40
_SETTLED: Final = 3
"""Seconds after which it is certain that a file has not been written to since it was read."""


@dataclass(frozen=True, slots=True)
class Session:
    """One that goes on for ever."""

    path: Path
    turns: Iterator[bytes]

    def go_on(self, calls: int) -> None:
        append(self.path, islice(self.turns, calls))


@dataclass(frozen=True, slots=True)
class Beat:
    """A bot of its own, and the sessions that grow before each of its beats."""

    scan: ThrashScan
    growing: Sequence[Session]

    async def __call__(self) -> float:
        """Return the seconds of one beat."""
        for session in self.growing:
            session.go_on(_NEW_CALLS)
        start = perf_counter()
        await self.scan()
        return perf_counter() - start


def _turns(session: str, start: float) -> Iterator[bytes]:
    """Yield a call and its answer as Claude Code writes them, again and again."""
    for number in count():
        stamp = datetime.fromtimestamp(start + number, UTC).isoformat(timespec="milliseconds")
        every = {
            "isSidechain": False,
            "uuid": f"uuid-{session}-{number}",
            "timestamp": stamp.replace("+00:00", "Z"),
            "cwd": "/home/op/code/shop",
            "sessionId": session,
            "version": "2.1.332",
        }
        call = {
            "type": "tool_use",
            "id": f"toolu_{number}",
            "name": "Bash",
            "input": {"command": f"sed -n {number}p log"},
        }
        message = {
            "id": f"msg_{number}",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [call],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 1200, "cache_read_input_tokens": 900, "output_tokens": 30},
        }
        answer = f"{stamp} the queue is empty: {number}\n" * 20
        shown = {"stdout": answer, "stderr": "", "interrupted": False}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": answer}
        records = (
            {"type": "assistant", "message": message, **every},
            {
                "type": "user",
                "message": {"role": "user", "content": [result]},
                **every,
                "toolUseResult": shown,
            },
        )
        yield b"".join(json.dumps(record).encode() + b"\n" for record in records)


def _sessions(folder: Path, count: int, now: float) -> list[Session]:
    sessions = []
    for number in range(count):
        name = f"{number:08x}-3c1b-4b0e-9a55-1f0a6a1b2c3d"
        path = folder / f"project-{number // _PER_FOLDER}" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        session = Session(path, _turns(name, now - 1800))
        session.go_on(_CALLS)
        sessions.append(session)
    return sessions


async def _beat(stack: AsyncExitStack, folder: Path, format_name: str, files: int) -> Beat:
    sessions = _sessions(folder / "projects", files, SystemClock().now())
    await asyncio.sleep(_SETTLED)
    pattern = folder / "projects" / "**" / "*.jsonl"
    scan = await stack.enter_async_context(guarding(folder / "data", pattern, format_name))
    await scan()
    return Beat(scan, sessions[:: files // _GROWING])


async def _main() -> None:
    for format_name in ("claude-code", "auto"):
        with tempfile.TemporaryDirectory() as name:
            async with AsyncExitStack() as stack:
                many = await _beat(stack, Path(name, "many"), format_name, _FILES)
                few = await _beat(stack, Path(name, "few"), format_name, _GROWING)
                beats = await fastest(_ROUNDS, many, few)
        report(
            f"{format_name}: beat over 1,000 files of which 10 grew / over the 10",
            beats[0] / beats[1],
            "<= 1.50",
        )


if __name__ == "__main__":
    asyncio.run(_main())
