"""A program is run without a shell, for a limited time, and what it says last is kept."""

import asyncio
import os
import resource
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jobs.contents import with_contents
from jobs.killers.command import CommandKiller, _has_ended
from jobs.ports import Outcome, Stopped
from jobs.program.wording import overrun
from jobs.watchlist.killers import CommandSpec
from tests.killers.conftest import OTHER_USER, TARGET, TargetOf, acting_as, as_root, idle_as

SHELL = ("sh", "-c")


def python(code: str, *argv: str) -> CommandKiller:
    return CommandKiller(argv=(sys.executable, "-c", code.replace("{", "{{").replace("}", "}}"), *argv))


def stopped(detail: str) -> Stopped:
    return Stopped(outcome=Outcome.STOPPED, detail=detail)


def refused(detail: str) -> Stopped:
    return Stopped(outcome=Outcome.REFUSED, detail=detail)


def failed(detail: str) -> Stopped:
    return Stopped(outcome=Outcome.FAILED, detail=detail)


@contextmanager
def held_open(path: Path) -> Iterator[int]:
    """A pipe in the file system: reads end only when every process that opened it is gone."""
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_descriptors() -> list[str]:
    return sorted(os.listdir("/proc/self/fd"))  # noqa: PTH208 - the names are all there is


async def read(descriptor: int) -> bytes:
    """What is written next, or b"" once nobody can write any more."""
    readable = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(descriptor)
    return os.read(descriptor, 1024)


# ── what an exit means ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (
            "echo session {session} is gone",
            stopped("the command ended with exit code 0: session s-1 is gone"),
        ),
        ("exit 0", stopped("the command ended with exit code 0")),
        ("echo first; echo last; echo", stopped("the command ended with exit code 0: last")),
        ("echo no such session >&2; exit 3", failed("the command ended with exit code 3: no such session")),
        ("kill -9 $$", failed("the command was ended by signal 9")),
        ("printf 'caf\\303'", stopped("the command ended with exit code 0: caf�")),
        ("cat; echo nothing to read", stopped("the command ended with exit code 0: nothing to read")),
    ],
)
async def test_only_exit_code_0_is_a_stop(script: str, expected: Stopped) -> None:
    assert await CommandKiller(argv=(*SHELL, script)).stop(TARGET, harder=False) == expected


async def test_a_value_is_one_argument_whatever_it_holds(target_of: TargetOf) -> None:
    killer = python("import sys; print(sys.argv[1:])", "{session}", "by {agent}")
    result = await killer.stop(target_of(session="a b; $(id) `id` '\""), harder=False)
    assert result == stopped("the command ended with exit code 0: ['a b; $(id) `id` \\'\"', 'by coder']")


async def test_harder_runs_it_once_more(tmp_path: Path) -> None:
    killer = CommandKiller(argv=(*SHELL, f"echo ran >> {tmp_path}/runs"))
    assert await killer.stop(TARGET, harder=True) == stopped("the command ended with exit code 0")
    assert (tmp_path / "runs").read_text() == "ran\n"


async def test_only_the_program_would_know_what_lives() -> None:
    assert await CommandKiller(argv=("true",)).is_alive(TARGET) is None


async def test_an_option_made_by_a_value_is_refused(target_of: TargetOf) -> None:
    result = await CommandKiller(argv=("echo", "{session}")).stop(target_of(session="--all"), harder=False)
    assert result == refused('"--all" would be read as an option')


# ── what was approved ─────────────────────────────────────────────────────────────────────────────


async def test_a_program_that_is_not_the_one_that_was_approved_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "stop"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran")
    program.chmod(0o755)
    spec = with_contents(CommandSpec(argv=(str(program),)))
    killer = CommandKiller(argv=spec.argv, files=spec.files)
    assert await killer.stop(TARGET, harder=False) == stopped("the command ended with exit code 0")
    (tmp_path / "ran").unlink()
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran; # planted")
    assert await killer.stop(TARGET, harder=False) == refused(f"{program} is not the file that was approved")
    assert not (tmp_path / "ran").exists()


async def test_it_runs_in_its_folder_and_relative_files_are_those_in_it(tmp_path: Path) -> None:
    (tmp_path / "stop.sh").write_text("pwd")
    spec = with_contents(CommandSpec(argv=("sh", "stop.sh"), folder=f"{tmp_path}"))
    killer = CommandKiller(argv=spec.argv, folder=spec.folder, files=spec.files)
    result = await killer.stop(TARGET, harder=False)
    assert result == stopped(f"the command ended with exit code 0: {tmp_path}")
    (tmp_path / "stop.sh").write_text("true")
    result = await killer.stop(TARGET, harder=False)
    assert result == refused(f"{tmp_path}/stop.sh is not the file that was approved")


async def test_a_file_called_like_one_of_its_words_does_not_disarm_it(tmp_path: Path) -> None:
    """Whoever may write where it runs could stop the stop."""
    spec = with_contents(CommandSpec(argv=("/bin/echo", "abort", "{session}"), folder=f"{tmp_path}"))
    killer = CommandKiller(argv=spec.argv, folder=spec.folder, files=spec.files)
    (tmp_path / "abort").touch()
    assert (await killer.stop(TARGET, harder=False)).outcome is Outcome.STOPPED


async def test_contents_that_cannot_be_looked_at_in_time_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system that hangs holds up neither the bot nor the stop."""
    back = threading.Event()
    monkeypatch.setattr("jobs.killers.command.to_run", lambda *_: back.wait())
    killer = CommandKiller(argv=("touch", f"{tmp_path}/ran"), files={}, timeout=0.01)
    result = await killer.stop(TARGET, harder=False)
    back.set()
    assert result == refused("the look at what would be run has not come back within 0.01 s")
    assert not (tmp_path / "ran").exists()


async def test_several_stops_at_once_look_at_the_same_program(tmp_path: Path) -> None:
    spec = with_contents(CommandSpec(argv=("/bin/sh", "-c", f"echo ran >> {tmp_path}/runs")))
    killer = CommandKiller(argv=spec.argv, files=spec.files)
    results = await asyncio.gather(*(killer.stop(TARGET, harder=False) for _ in range(5)))
    assert {result.outcome for result in results} == {Outcome.STOPPED}


# ── what a program gets ───────────────────────────────────────────────────────────────────────────


async def test_the_bots_own_settings_are_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPWARDEN_TOKEN", "secret")
    monkeypatch.setenv("loopwarden_token", "secret")
    monkeypatch.setenv("OTHER_SETTING", "inherited")
    script = "echo $OTHER_SETTING $(env | grep -ci ^loopwarden)"
    assert await CommandKiller(argv=(*SHELL, script)).stop(TARGET, harder=False) == stopped(
        "the command ended with exit code 0: inherited 0"
    )


async def test_it_runs_in_a_session_of_its_own() -> None:
    result = await python("import os; print(os.getsid(0) == os.getpgrp() == os.getpid())").stop(
        TARGET, harder=False
    )
    assert result == stopped("the command ended with exit code 0: True")


# ── output ────────────────────────────────────────────────────────────────────────────────────────


async def test_much_output_is_drained_and_its_end_kept() -> None:
    """Far more than any pipe holds, on both streams: it would stand still if nobody read on."""
    code = "import sys; sys.stdout.write('x' * 5_000_000); sys.stderr.write('y' * 5_000_000 + '\\nthe end')"
    assert await python(code).stop(TARGET, harder=False) == stopped(
        "the command ended with exit code 0: the end"
    )


async def test_a_long_last_line_is_cut() -> None:
    result = await python("print('z' * 100_000)").stop(TARGET, harder=False)
    assert result == stopped(f"the command ended with exit code 0: {'z' * 199}…")


async def test_a_grandchild_that_keeps_the_output_open_is_not_waited_for() -> None:
    result = await CommandKiller(argv=(*SHELL, "sleep 600 & echo $!")).stop(TARGET, harder=False)
    os.kill(int(result.detail.removeprefix("the command ended with exit code 0: ")), signal.SIGKILL)
    assert result.outcome is Outcome.STOPPED


# ── time ──────────────────────────────────────────────────────────────────────────────────────────


async def test_after_its_time_the_whole_group_is_killed(tmp_path: Path) -> None:
    script = f"exec 3>{tmp_path}/held; sleep 600 & echo stopping; sleep 600"
    with held_open(tmp_path / "held") as held:
        result = await CommandKiller(argv=(*SHELL, script), timeout=1).stop(TARGET, harder=False)
        assert await read(held) == b""
    assert result.outcome is Outcome.FAILED
    assert result.detail.startswith("the command did not end within 1 s and was killed")


async def test_cancellation_kills_the_whole_group(tmp_path: Path) -> None:
    script = f"exec 3>{tmp_path}/held; sleep 600 & echo up >&3; sleep 600"
    killer = CommandKiller(argv=(*SHELL, script))
    with held_open(tmp_path / "held") as held:
        stopping = asyncio.ensure_future(killer.stop(TARGET, harder=False))
        assert await read(held) == b"up\n"
        stopping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stopping
        assert await read(held) == b""


@as_root
async def test_a_program_that_became_another_users_is_left_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.killers.command._REAPING", 0.01)
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-c", idle_as(OTHER_USER - 1), stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    assert program.stdout is not None
    assert await program.stdout.readline() == b"up\n"
    with acting_as(OTHER_USER):
        assert not await _has_ended(program, 0.01)
    assert overrun(program.returncode, 30) == "the command did not end within 30 s and could not be killed"
    program.kill()
    await program.communicate()


# ── programs that cannot be started ───────────────────────────────────────────────────────────────


async def test_a_missing_program() -> None:
    result = await CommandKiller(argv=("no-such-program-here",)).stop(TARGET, harder=False)
    assert result == failed("no-such-program-here was not found, or the interpreter its first line names")


async def test_a_file_that_is_no_program(tmp_path: Path) -> None:
    file = tmp_path / "stop"
    file.write_bytes(b"\x7fnothing that runs")
    killer = CommandKiller(argv=(str(file),))
    assert await killer.stop(TARGET, harder=False) == failed(f"{file} may not be executed")
    file.chmod(0o755)
    assert await killer.stop(TARGET, harder=False) == failed(
        f"{file} could not be started: Exec format error"
    )


async def test_a_value_longer_than_an_argument_can_be(target_of: TargetOf) -> None:
    result = await CommandKiller(argv=("true", "{session}")).stop(
        target_of(session="x" * 10_000_000), harder=False
    )
    assert result == failed("true could not be started: Argument list too long")


async def test_no_descriptor_left() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        result = await CommandKiller(argv=("true",)).stop(TARGET, harder=False)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert result == failed("true could not be started: Too many open files")


async def test_nothing_stays_open() -> None:
    """Neither descriptors nor tasks, however it ended."""
    killers = CommandKiller(argv=("true",)), CommandKiller(argv=("no-such-program-here",))
    await killers[0].stop(TARGET, harder=False)  # the first child makes the loop open what it keeps
    before = open_descriptors()
    for killer in killers:
        await killer.stop(TARGET, harder=False)
    await asyncio.sleep(0)  # a transport closes in the loop's next round
    assert open_descriptors() == before
    assert len(asyncio.all_tasks()) == 1
