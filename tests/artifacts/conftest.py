"""Good reports, files that cannot be read, and commands that are only recorded."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from jobs.artifacts.snapshot import take_snapshot
from jobs.verification.checks import Ran
from jobs.verification.spec import CommandCheck, Names

NOW: Final = 1_780_000_000.0
GOOD: Final = {"status": "ok", "result": {"total": 3}, "timestamp": NOW - 60}


@dataclass
class RecordedCommands:
    """Runs nothing."""

    ran: Ran = field(default_factory=lambda: Ran(exit=0, took=1.0))
    paths: list[str] = field(default_factory=list)

    def run(self, command: CommandCheck, workflow: str, names: Names, path: str) -> Ran:  # noqa: ARG002
        self.paths.append(path)
        return self.ran


MOST: Final = 256_000_000


def problem(path: Path | str) -> str:
    """Why it cannot be read, without its path in front; nothing is left open."""
    before = os.listdir("/proc/self/fd")  # noqa: PTH208 - the names are all there is
    taken = take_snapshot(str(path), MOST)
    assert os.listdir("/proc/self/fd") == before  # noqa: PTH208
    assert taken.problem is not None
    assert taken.data == b""
    return taken.problem.removeprefix(f"{path} ")


Report = Callable[..., Path]


@pytest.fixture
def report(tmp_path: Path) -> Report:
    """Write a good report; keyword arguments change its fields."""

    def write(name: str = "report.json", **fields: object) -> Path:
        path = tmp_path / name
        path.write_text(json.dumps({**GOOD, **fields}))
        return path

    return write
