"""What a log held before anybody looked is taken in, however many looks that takes, and never judged."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.ports import Watched
from jobs.sources import gateway
from jobs.sources.log_files import EachLine, LogFiles
from jobs.sources.tail import ReadLimits
from jobs.store.database import open_database
from jobs.thrash.policy import OnDetection, ThrashPolicy
from jobs.thrash_scan import ThrashScan
from tests.fakes import NOON, FixedWatch, HandClock
from tests.sources.log_reader import append

HOUR = 3600.0


def circles(start: float, count: int) -> Iterator[bytes]:
    """Equal calls, one a second."""
    for n in range(count):
        call = {"ts": start + n, "agentId": "main", "tool": "exec", "args": {"command": "make"}}
        yield json.dumps(call).encode() + b"\n"


@pytest.mark.parametrize("look", [1 << 30, 1000], ids=["in one look", "in many looks"])
async def test_a_long_history_of_circles_is_no_incident(tmp_path: Path, look: int) -> None:
    """Though each look finds new ones; those of now are judged once the end has been reached."""
    log = tmp_path / "log.jsonl"
    append(log, b"".join(circles(NOON - HOUR, 100)))
    limits = ReadLimits(chunk=512, longest_line=2048, look=look)
    source = LogFiles(name="gateway", pattern=str(log), format=EachLine(gateway.parse), limits=limits)
    watch = FixedWatch(watched=[Watched(source=source, killer=None, on_detection=OnDetection.OBSERVE)])
    async with open_database(tmp_path / "data") as store:
        scan = ThrashScan(store=store, watch=watch, policy=ThrashPolicy(), clock=HandClock())
        looks = 0
        while not looks or (await store.reading.cursors.of_source("gateway"))[str(log)].is_behind:
            await scan()
            looks += 1
        assert looks > 10 if look == 1000 else looks == 1
        assert await store.reading.incidents.unclosed() == {}
        append(log, b"".join(circles(NOON - 10, 10)))
        await scan()
        await scan()
        assert len(await store.reading.incidents.unclosed()) == 1
