"""Databases are read by a process of their own: whatever becomes of it, the bot goes on."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from jobs.ports import Batch, Cursor
from jobs.sources.ends import Sample, ends_of
from jobs.sources.sqlite_log import Databases
from jobs.sources.sqlite_process import PROGRAM, SPARING
from jobs.sources.table_format import RowLimits
from tests.environment import unmeasured
from tests.sources.databases import OpenClaw, Row, openclaw_rows
from tests.sources.odd_tables import Odd

ROOT = Path(__file__).parents[2]
CALLS = 6
"""In the sample."""


def databases(pattern: object, *, patience: float = 60, chunk: int = 1 << 20) -> Databases:
    limits = RowLimits(chunk=chunk)
    return Databases(name="agents", pattern=str(pattern), formats=[Odd()], limits=limits, patience=patience)


def calls_in(batches: Sequence[Batch]) -> int:
    return sum(len(batch.calls) for batch in batches)


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of three databases, the second without a row. Nobody has them open: this process is no reader to be ended."""
    for name in ("a", "b", "c"):
        with closing(OpenClaw(tmp_path / f"{name}.sqlite")) as writer:
            for row in () if name == "b" else openclaw_rows():
                writer.add(row)
    return tmp_path


def add_session(folder: Path, name: str) -> Path:
    path = folder / "b.sqlite"
    with closing(OpenClaw.again(path)) as writer:
        for row in openclaw_rows(name):
            writer.add(row)
    return path


@pytest.mark.parametrize(
    ("session", "why"),
    [
        ("fails", "no such luck"),
        ("eats", "that takes too much memory"),
        ("exits", "its reader ended with exit code 3"),
        ("cuts", f"its reader was ended by signal {signal.SIGBUS:d}"),
        ("babbles", "its reader makes no sense"),
        ("boasts", "its reader makes no sense"),
    ],
)
def test_a_database_that_ends_its_reader_is_a_problem_and_the_others_are_read(
    folder: Path, session: str, why: str
) -> None:
    """Its cursor stays where it was, and the next look tries again."""
    path, source = add_session(folder, session), databases(folder / "*.sqlite")
    before = children()
    for _ in range(2):
        batches = list(source.read_new({}, now=0))
        assert source.problems() == (f"{path} cannot be read: {why}.",)
        assert {Path(batch.path).name for batch in batches} == {"a.sqlite", "c.sqlite"}
        assert calls_in(batches) == 2 * CALLS
    assert children() == before


def test_what_was_read_before_the_reader_ended_is_told_once(folder: Path) -> None:
    path = add_session(folder, "exits")
    with closing(OpenClaw.again(path)) as writer:
        for row in openclaw_rows("early"):
            writer.add(Row(row.session, row.seq, row.event, at=1))
    source = databases(path, chunk=100)
    cursors: dict[str, Cursor] = {}
    told = []
    for _ in range(2):
        for batch in source.read_new(dict(cursors), now=0):
            cursors[batch.path] = batch.cursor
            told += [call.session for call in batch.calls]
        assert cursors[str(path)].is_behind
    assert len(told) == CALLS


def test_a_reader_that_says_nothing_is_ended(folder: Path) -> None:
    source, before = databases(add_session(folder, "hangs"), patience=1), children()
    assert list(source.read_new({}, now=0)) == []
    assert "its reader took longer than 1 s" in "".join(source.problems())
    assert children() == before


def test_a_look_that_is_given_up_leaves_no_process(folder: Path) -> None:
    before = children()
    looking = iter(databases(folder / "*.sqlite", chunk=100).read_new({}, now=0))
    next(looking)
    assert len(children() - before) == 1
    looking.close()  # type: ignore[attr-defined]
    assert children() == before


def test_a_reader_that_cannot_be_started_is_a_problem(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nothing")
    source = databases(folder / "a.sqlite")
    assert list(source.read_new({}, now=0)) == []
    assert source.problems() == (
        f"{folder}/a.sqlite cannot be read: its reader cannot be started: No such file or directory.",
    )


def test_without_a_reader_a_glance_begins_nowhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading says why."""
    sample = Sample(files=10, size=1000)
    assert len(ends_of(f"{folder}/*.sqlite", [Odd()], sample, now=0).places) == 3
    monkeypatch.setattr(sys, "executable", "/nothing")
    assert ends_of(f"{folder}/*.sqlite", [Odd()], sample, now=0).places == {}


def test_the_reader_knows_none_of_the_bots_secrets(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever gets the better of it may read its environment."""
    monkeypatch.setenv("LOOPWARDEN_TOKEN", "123:secret")
    (batch,) = databases(folder / "a.sqlite").read_new({}, now=0)
    assert {call.agent for call in batch.calls} == {"reports"}  # `Odd` would name the token


UPGRADE = """
import sys
from pathlib import Path
from jobs.sources import sqlite_process
from jobs.sources.opencode_tables import Parts
from jobs.sources.sqlite_log import Databases
source, program = Databases(name="agents", pattern=sys.argv[1], formats=[Parts()]), Path(sqlite_process.__file__)
list(source.read_new({}, now=0))
print(*source.problems())
program.with_name("sqlite_child.py").write_text("def main(): return 0")
list(source.read_new({}, now=0))
print(*source.problems())
"""


def test_a_reader_of_another_release_is_a_reason_to_restart_the_bot(folder: Path) -> None:
    """Its files may be replaced while it runs."""
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "jobs", folder / "program" / "jobs", ignore=without)
    path, environment = folder / "a.sqlite", os.environ | {"PYTHONPATH": f"{folder / 'program'}"}
    command = [sys.executable, "-P", "-c", UPGRADE, str(path)]
    printed = subprocess.check_output(command, text=True, env=environment)  # noqa: S603 - ours
    advice = "and the program was replaced after the bot had started: restart the bot."
    assert printed.splitlines() == [
        f"{path} cannot be read: it has no table part.",
        f"{path} cannot be read: its reader ended with exit code 0, {advice}",
    ]


SCRIPT = """
import sys
from tests.sources.test_sqlite_process import databases
looking = databases(sys.argv[1], chunk=100).read_new({}, now=0)
next(looking)
print("begun", flush=True)
sys.stdin.read()
"""


def test_the_reader_does_not_outlive_the_bot(folder: Path) -> None:
    """Not even one that was killed in the midst of a look."""
    path = add_session(folder, "waits")
    command = (sys.executable, "-c", SCRIPT, str(path))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as bot:  # noqa: S603 - ours
        assert bot.stdout
        assert bot.stdout.readline() == b"begun\n"
        reader = psutil.Process(int(path.with_suffix(".pid").read_text()))
        bot.kill()
    reader.wait(timeout=60)


def test_the_reader_starts_quickly() -> None:
    """It imports nothing that reading a database does not need."""
    modules = "sqlite_child, openclaw_tables, openclaw_audit, opencode_tables"
    script = f"{SPARING}; from jobs.sources import {modules}; print(*sys.modules)"
    command = [sys.executable, "-c", script]
    printed = subprocess.check_output(command, text=True, env=unmeasured())  # noqa: S603 - ours
    loaded = {name.partition(".")[0] for name in printed.split()}
    assert not loaded & {
        "aiogram",
        "aiosqlite",
        "asyncio",
        "bot",
        "pathlib",
        "psutil",
        "rapidfuzz",
        "subprocess",
    }
    assert not loaded & {"ast", "inspect"}, "typing_extensions imports them, for msgspec if it is there"
    assert "jobs.ports" not in printed.split()


def test_requests_come_through_a_pipe() -> None:
    """That end of input ends the reader."""
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, input=b"", capture_output=True, check=True)  # noqa: S603 - ours
    assert (done.stdout, done.stderr) == (b"", b"")
    assert os.WIFEXITED(done.returncode)
