"""A verdict, its run, its alert and how its workflow stands are there together or not at all, whoever dies of writing them."""

import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from jobs.store.schema import FILE_NAME
from tests.crashing import Crash

Role = Literal["command", "bot", "watch"]
ROLES: tuple[Role, ...] = ("command", "bot")
PATIENCE = 120
STEPS = [
    f"jobs.store.{step}" for step in ("runs:SqlRuns.put", "verdicts:SqlVerdicts.add", "outbox:SqlOutbox.put")
] + ["jobs.store.workflows:SqlWorkflows.save", "jobs.store.reports:SqlReports.remove"]


@dataclass(frozen=True, slots=True)
class Recorder:
    """A database, an output, and the processes that record verdicts about it."""

    folder: Path

    def start(self, role: Role, times: int, crash: Crash | None = None) -> "subprocess.Popen[bytes]":
        script = Path(__file__).parent / "recorder.py"
        places = [str(self.folder / "data"), str(self.folder / "report.json")]
        last = [json.dumps(crash)] if crash else []
        command = [sys.executable, str(script), role, *places, f"{times}", *last]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603 - our own
        assert process.stdout
        assert process.stdout.readline() == b"recording\n"
        return process

    def records(self, role: Role, times: int) -> None:
        assert _ends(self.start(role, times)) == 0

    def dies(self, role: Role, crash: Crash, *, times: int = 1) -> None:
        assert _ends(self.start(role, times, crash)) == -signal.SIGKILL

    def __call__(self, sql: str) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(self.folder / "data" / FILE_NAME)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def is_whole(self) -> int:
        """Every run has a verdict, the alert shows the last one, which is known as such; return how many there are."""
        runs = [row[0] for row in self("SELECT id FROM run ORDER BY id")]
        assert [row[0] for row in self("SELECT DISTINCT run_id FROM verdict ORDER BY run_id")] == runs
        alerts = self("SELECT subject, body ->> 'run', body ->> 'failures' FROM outbox")
        assert alerts == ([(f"run:{runs[0]}", runs[-1], len(runs))] if runs else [])
        stands = self("SELECT last_run, alerted_run, failures FROM workflow")
        assert stands == ([(runs[-1], runs[0], len(runs))] if runs else [])
        return len(runs)


def _ends(process: "subprocess.Popen[bytes]") -> int:
    process.communicate(timeout=PATIENCE)
    return process.returncode


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path)


@pytest.mark.parametrize("step", STEPS, ids=[step.rpartition(":")[2] for step in STEPS])
@pytest.mark.parametrize("role", ROLES)
def test_a_death_while_recording_leaves_all_or_nothing(recorder: Recorder, role: Role, step: str) -> None:
    """The bot makes up for it when it is back: the report is still there."""
    recorder.records(role, 1)
    recorder.dies(role, Crash(when="after", step=step, time=1))
    assert recorder.is_whole() == 1
    if role == "bot":
        recorder.records("bot", 0)
        assert recorder.is_whole() == 2
        assert recorder("SELECT count(*) FROM report") == [(0,)]


@pytest.mark.parametrize("step", STEPS, ids=[step.rpartition(":")[2] for step in STEPS])
def test_a_death_while_runs_are_found_missing_leaves_all_or_nothing(recorder: Recorder, step: str) -> None:
    """Two nights without a run: neither is forgotten and neither is told twice."""
    recorder.records("watch", 0)
    recorder.dies("watch", Crash(when="after", step=step, time=2), times=2)
    assert recorder("SELECT count(*) FROM run") == [(0,)]
    for _ in range(2):
        recorder.records("watch", 2)
        assert recorder.is_whole() == 2
    assert recorder("SELECT outcome FROM verdict") == [("missing",)] * 2


@pytest.mark.parametrize("role", ROLES)
def test_what_was_recorded_survives_a_death_right_after(recorder: Recorder, role: Role) -> None:
    step = "jobs.run_verification:RunVerification._record"
    if role == "command":
        recorder.records("command", 1)
    else:
        recorder.dies("bot", Crash(when="after", step=step, time=1))
    assert recorder.is_whole() == 1


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("seed", range(3))
def test_a_death_at_any_moment_leaves_all_or_nothing(recorder: Recorder, role: Role, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - dice
    recorder.records(role, 1)
    process = recorder.start(role, 100_000)
    time.sleep(chance.uniform(0, 0.3))
    process.kill()
    assert _ends(process) == -signal.SIGKILL
    recorder.is_whole()


def test_a_command_and_the_bot_record_the_same_run_at_once(recorder: Recorder) -> None:
    """Whoever is first has made the run; both verdicts are its own, and it is told once."""
    recorder.records("command", 1)
    processes = [recorder.start(role, 30) for role in ROLES]
    assert [_ends(process) for process in processes] == [0, 0]
    runs = recorder.is_whole()
    assert recorder("SELECT count(*) FROM (SELECT DISTINCT workflow, key FROM run)") == [(runs,)]
    assert recorder("SELECT count(*) FROM report") == [(0,)]
