"""What reading a log is compared with: decoding its lines with `orjson.loads`, and nothing else."""

from collections.abc import Callable, Iterable
from pathlib import Path
from time import process_time

import orjson

from benchmarks.rounds import Side


def timed(work: Callable[[], object]) -> Side:
    """Return a side that does the work and counts processor time."""

    async def side() -> float:
        start = process_time()
        work()
        return process_time() - start

    return side


def decoding_memory(log: Path) -> Side:
    """Return the side that has the lines in memory already."""
    lines = log.read_bytes().splitlines()
    return timed(lambda: _decode(lines))


def decoding_file(log: Path) -> Side:
    """Return the side that reads the file line by line."""

    def decode() -> None:
        with log.open("rb") as file:
            _decode(file)

    return timed(decode)


def _decode(lines: Iterable[bytes]) -> None:
    for line in lines:
        orjson.loads(line)
