"""A program does not outlive its use, nor an orderly end of the program that has started it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.program.group import _uninterrupted, has_ended, started

FAMILY = 'exec 3>"$0"; sleep 600 & echo up; sleep 600'
"""A shell and its child, both of which hold a pipe open."""


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


@pytest.fixture
def held(pipe: Path) -> Iterator[int]:
    """Read from the pipe: its end means that every process which had opened it is gone."""
    descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        os.set_blocking(descriptor, True)
        yield descriptor
    finally:
        os.close(descriptor)


def test_at_the_end_of_its_use_the_whole_group_is_killed(pipe: Path, held: int) -> None:
    argv = ("sh", "-c", FAMILY, str(pipe))
    with started(argv, os.environ, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"up\n"
    assert os.read(held, 1) == b""
    assert program.returncode == -9


def test_at_the_end_of_this_program_nothing_is_left(pipe: Path, held: int, tmp_path: Path) -> None:
    """Though nobody waits for the thread that does."""
    os.mkfifo(tmp_path / "is up")
    script = f"exec 3>'{pipe}'; echo up >'{tmp_path}/is up'; sleep 600 & sleep 600"
    code = (
        "import sys, threading\n"
        "from jobs.program import group\n"
        "from jobs.runners.command import ProcessRunner\n"
        "from jobs.verification.spec import CommandCheck, Names\n"
        "command = CommandCheck(argv=('sh', '-c', sys.argv[1]), timeout=600)\n"
        "run = lambda: ProcessRunner().run(command, 'nightly', Names(date='2026-11-30'), '/out/report.json')\n"
        "threading.Thread(target=run, daemon=True).start()\n"
        "open(sys.argv[2]).readline()\n"
        "while not group._running: pass\n"
    )
    argv = (sys.executable, "-c", code, script, str(tmp_path / "is up"))
    subprocess.run(argv, check=True)  # noqa: S603 - ours
    assert os.read(held, 1) == b""


def test_that_a_program_has_ended_is_seen_before_its_pid_can_be_given_away() -> None:
    """Until then its group can be ended without a doubt."""
    with started(("true",), os.environ, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as program:
        assert program.stdout is not None
        assert program.stdout.read() == b""
        while not has_ended(program):
            pass
        codes = [program.returncode]
    assert [*codes, program.returncode] == [None, 0]
    assert has_ended(program)


def test_no_handler_of_a_signal_comes_between_the_start_of_a_program_and_the_note_of_it() -> None:
    came: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: came.append(number))
    try:
        with _uninterrupted():
            signal.raise_signal(signal.SIGTERM)
            assert came == []
        assert came == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)
