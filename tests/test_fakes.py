"""The log in memory keeps the contract that the scan relies on, as the log in a file does."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from jobs.ports import CallSource, Cursor
from jobs.sources import gateway
from jobs.sources.log_files import EachLine, LogFiles
from tests.fakes import NOON, CallLog, call


@dataclass(frozen=True, slots=True)
class Written:
    """A source, and how the call with this number comes to be in it."""

    source: CallSource
    write: Callable[[int], object]

    def read(self, cursors: dict[str, Cursor], now: float) -> list[float]:
        """Return the times of the new calls, and move the cursors on."""
        batches = list(self.source.read_new(cursors, now))
        assert batches, "a log that exists has one batch at least"
        # The very cursor that was given says that nothing is new.
        assert all(batch.cursor.read_at == now or batch.cursor == cursors[batch.path] for batch in batches)
        cursors.update({batch.path: batch.cursor for batch in batches})
        return [each.ts - NOON for batch in batches for each in batch.calls]


@pytest.fixture(params=["file", "memory"])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Written:
    if request.param == "memory":
        log = CallLog(per_batch=2)
        return Written(log, lambda number: log.calls.append(call(NOON + number)))
    path = tmp_path / "log.jsonl"
    path.touch()

    def write(number: int) -> None:
        with path.open("ab") as file:
            line = {"ts": NOON + number, "agentId": "coder", "tool": "exec", "args": {}}
            file.write(msgspec.json.encode(line) + b"\n")

    return Written(LogFiles(name="gateway", pattern=str(path), format=EachLine(gateway.parse)), write)


def test_every_call_is_read_once_and_in_order(written: Written) -> None:
    cursors: dict[str, Cursor] = {}
    assert written.read(cursors, NOON) == []
    for number in (1, 2, 3):
        written.write(number)
    assert written.read(cursors, NOON + 60) == [1, 2, 3]
    assert written.read(cursors, NOON + 120) == []
    written.write(4)
    assert written.read(cursors, NOON + 180) == [4]


def test_what_was_read_and_not_kept_is_read_again(written: Written) -> None:
    written.write(1)
    cursors: dict[str, Cursor] = {}
    written.read(cursors, NOON)
    written.write(2)
    assert written.read(dict(cursors), NOON + 60) == [2]
    assert written.read(cursors, NOON + 120) == [2]


def test_a_log_that_can_be_read_is_no_problem(written: Written) -> None:
    written.write(1)
    written.read({}, NOON)
    assert list(written.source.problems()) == []
