"""What a verdict costs.

- Verdicts of a 2 KB report in a second, in this process: wanted >= 2,000 (a figure that is no ratio).
- Seconds of the verdict on a report of 100 MB, beginning with the start of the process that gives it, over those of
  reading the file and `orjson.loads`; and the highest memory of that process over that of one which does that:
  wanted <= 2 and <= 3.
- `loopwarden verify`, which keeps the verdict and, where that is new, a copy of the output, over one bash script with
  four calls of the same Python that keeps nothing: wanted <= 1.5.
- Seconds for the self-test of ten workflows with an output of 2 KB, and of one with 1 MB: wanted <= 10 (no ratios either).
"""

import asyncio
import json
import os
import resource
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Final

import orjson

from benchmarks.guard import make_room
from benchmarks.memory import peak
from benchmarks.rounds import Side, fastest, report
from bot.clock import SystemClock
from jobs.artifacts.judge import ArtifactJudge
from jobs.artifacts.trial import ApartTester
from jobs.runners.command import ProcessRunner
from jobs.verification.spec import Names, StatusSpec, WorkflowSpec
from jobs.verification.trial import GoodOutput, MadeOf
from jobs.verification.verdict import Judged, Outcome, Past

_MB: Final = 1_000_000
_NOW: Final = SystemClock().now()
_TODAY: Final = Names(date="2026-11-30")
_SPEC: Final = WorkflowSpec(
    name="nightly",
    required=("status", "result.total", "items[].id", "timestamp"),
    timestamp="timestamp",
    max_age=24 * 3600,
    status=StatusSpec(),
)
_VERDICTS: Final = 2000
_ROUNDS: Final = 7
_RUNS: Final = 25
"""Of each command."""
_numbers: Final = count()


def _item(number: int) -> dict[str, object]:
    return {
        "id": number,
        "title": f"Item {number} of the nightly run",
        "price": number / 7,
        "tags": ["new", f"group-{number % 50}"],
        "seen": {"first": "2026-11-29T23:12:01Z", "times": number % 9, "by": None},
        "ok": number % 2 == 0,
    }


def _write(path: Path, size: int) -> None:
    """Write a good report of about so many bytes."""
    with path.open("w") as file:
        file.write(f'{{"status": "ok", "timestamp": {_NOW}, "result": {{"total": 3}}, "items": [')
        separator = ""
        for item in map(_item, count()):
            file.write(separator + json.dumps(item))
            separator = ", "
            if file.tell() > size - 200:
                break
        file.write("]}\n")


def _judge(path: str) -> Judged:
    judged = ArtifactJudge(ProcessRunner()).judge(_SPEC, _TODAY, _NOW, Past(), path=path)
    if judged.verdict.outcome is not Outcome.PASS:
        raise SystemExit(f"{path} should have passed: {judged.verdict.failure}")
    return judged


# ── small ─────────────────────────────────────────────────────────────────────────────────────────


async def _small(folder: Path) -> None:
    path = folder / "small.json"
    _write(path, 2048)

    async def judge_many() -> float:
        start = perf_counter()
        for _ in range(_VERDICTS):
            _judge(str(path))
        return perf_counter() - start

    [taken] = await fastest(_ROUNDS, judge_many)
    report(f"verdicts of a report of {path.stat().st_size:,} bytes in a second", _VERDICTS / taken, ">= 2000")


# ── large ─────────────────────────────────────────────────────────────────────────────────────────


def _judge_it(path: str) -> tuple[float, int]:
    start = perf_counter()
    _judge(path)
    return perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def _load_it(path: str) -> tuple[float, int]:
    start = perf_counter()
    orjson.loads(Path(path).read_bytes())
    return perf_counter() - start, peak()


_LARGE: Final[dict[str, Callable[[str], tuple[float, int]]]] = {"judge": _judge_it, "load": _load_it}


async def _large(folder: Path) -> None:
    path, most = folder / "large.json", dict.fromkeys(_LARGE, 0)
    _write(path, 100 * _MB)

    def in_its_own_process(what: str) -> Side:
        async def run() -> float:
            process = await asyncio.create_subprocess_exec(sys.executable, __file__, what, path, stdout=PIPE)
            seconds, memory = (await process.communicate())[0].split()
            most[what] = max(most[what], int(memory))
            return float(seconds)

        return run

    judged, loaded = await fastest(_ROUNDS, *map(in_its_own_process, _LARGE))
    report("report of 100 MB: seconds of its verdict / of orjson.loads", judged / loaded, "<= 2.00")
    report("the same: memory", most["judge"] / most["load"], "<= 3.00")


# ── as a command ──────────────────────────────────────────────────────────────────────────────────

_WATCHLIST: Final = """
[workflows.nightly]
output = "small.json"
required = ["status", "result.total", "items[].id", "timestamp"]
timestamp = "timestamp"
max_age = "1d"
status = { field = "status", allowed = ["ok", "partial", "failed"] }
"""
_BY_HAND: Final = Path(__file__).with_name("verify_baseline.sh")


def _running(folder: Path, *argv: str | Path) -> Side:
    environment = os.environ | {
        "LOOPWARDEN_DATA_DIR": str(folder / "data"),
        "LOOPWARDEN_WATCHLIST": str(folder / "loopwarden.toml"),
    }

    async def run() -> float:
        start = perf_counter()
        process = await asyncio.create_subprocess_exec(*argv, env=environment, stdout=DEVNULL)
        if await process.wait():
            raise SystemExit(f"{argv[0]} should have passed")
        return perf_counter() - start

    return run


async def _command(folder: Path) -> None:
    (folder / "loopwarden.toml").write_text(_WATCHLIST)
    command = Path(sys.executable).with_name("loopwarden")
    verify = _running(folder, command, "verify", "nightly")

    async def verify_another() -> float:
        _write(folder / "small.json", 2048)
        with (folder / "small.json").open("a") as file:
            file.write(" " * next(_numbers))
        return await verify()

    verified, by_hand = await fastest(
        _RUNS,
        verify_another,
        _running(folder, "bash", _BY_HAND, sys.executable, folder / "small.json"),
    )
    report("loopwarden verify / a bash script that calls Python four times", verified / by_hand, "<= 1.50")


# ── the self-test ─────────────────────────────────────────────────────────────────────────────────


def _good(path: Path, size: int) -> GoodOutput:
    _write(path, size)
    return GoodOutput(
        workflow="nightly",
        run_id=1,
        path=str(path),
        sha256="",
        mtime_ns=int(_NOW * 1e9),
        judged_as_of=_NOW,
        names=_TODAY,
        data=path.read_bytes(),
    )


def _tested(good: GoodOutput, times: int) -> Side:
    async def run() -> float:
        start = perf_counter()
        for _ in range(times):
            made_of, result = ApartTester().test(_SPEC, good, _NOW)
            if made_of is not MadeOf.OUTPUT or result.survivors or result.trouble:
                raise SystemExit(f"the self-test went wrong: {made_of} {result}")
        return perf_counter() - start

    return run


async def _selftests(folder: Path) -> None:
    small = _tested(_good(folder / "small.json", 2048), 10)
    large = _tested(_good(folder / "megabyte.json", _MB), 1)
    ten, one = await fastest(_ROUNDS, small, large)
    report("self-tests of ten workflows with an output of 2 KB, one after the other: seconds", ten, "<= 10")
    report("self-test of an output of 1 MB: seconds", one, "<= 10")


async def _main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_room(folder, 1500 * _MB)
        await _small(folder)
        await _command(folder)
        await _selftests(folder)
        await _large(folder)


if __name__ == "__main__":
    match sys.argv[1:]:
        case [what, path]:
            print(*_LARGE[what](path))
        case _:
            asyncio.run(_main())
