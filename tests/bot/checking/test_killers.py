"""Killers are rehearsed: programs are looked for, processes are looked at, nothing is run and nobody is signalled."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from bot.checking.finding import Finding, Level
from bot.checking.killers import check_killer
from bot.clock import SystemClock
from jobs.watchlist.killers import CommandSpec, DryRunSpec, KillerSpec, ProcessSpec
from tests.bot.checking.conftest import NOBODY, as_anyone, start_agent

Spawn = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def spawn(folder: Path) -> Iterator[Spawn]:
    """Start a process that does nothing, told from all others by the folder in its command line."""
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str = "", user: int | None = None) -> "subprocess.Popen[bytes]":
        started.append(start_agent(f"{folder.name}{name}", user))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def look(spec: KillerSpec) -> list[Finding]:
    return list(check_killer("stopper", spec, SystemClock().now()))


def match_of(folder: Path) -> str:
    return f"agent-of-{folder.name}"


# ── commands ──────────────────────────────────────────────────────────────────────────────────────


def test_a_command_is_shown_filled_in_and_not_run(folder: Path) -> None:
    made = folder / "made"
    [found] = look(
        CommandSpec(argv=("touch", f"{made}", "--reference={session} of {agent}", "{{}} {reason}"))
    )
    assert found.level is Level.OK
    assert found.says == (f"would run: touch {made} '--reference=SESSION of AGENT' '{{}} thrash_loop:8'")
    assert not made.exists()


def test_a_secret_in_a_command_is_masked() -> None:
    [found] = look(CommandSpec(argv=("true", "--api-key=hunter2hunter2", "{session}")))
    assert "hunter2" not in found.says


@pytest.mark.parametrize(
    ("content", "mode", "says"),
    [
        (None, 0, "is not there"),
        ("#!/bin/sh\n", 0o644, "may not be executed by this user"),
        ("echo\n", 0o755, "cannot be started: it is a script without #!"),
        ("", 0o755, "cannot be started: it is a script without #!"),
        ("#!\n", 0o755, "cannot be started: the interpreter that its first line names is not there"),
        ("#! /no/such/shell -x\n", 0o755, "cannot be started: the interpreter that its first line names"),
        ("#! /bin/sh -x\n", 0o755, None),
        ("#!/usr/bin/env sh\n", 0o755, None),
        ("#!/usr/bin/env -S sh -x\n", 0o755, None),
        ("#!/usr/bin/env no-such-shell\n", 0o755, "the interpreter that its first line names is not there"),
    ],
)
def test_a_program_that_would_not_start_is_an_error(
    folder: Path, content: str | None, mode: int, says: str | None
) -> None:
    program = folder / "stop"
    if content is not None:
        program.write_text(content)
        program.chmod(mode)
    [found] = look(CommandSpec(argv=(str(program), "{session}")))
    assert found.level is (Level.ERROR if says else Level.OK)
    assert (says or "would run: ") in found.says


def test_a_pipe_in_place_of_a_program_is_an_error(folder: Path) -> None:
    """Opening it would wait for a writer."""
    os.mkfifo(folder / "stop", 0o755)
    (folder / "stop").chmod(0o755)
    [found] = look(CommandSpec(argv=(str(folder / "stop"),)))
    assert "cannot be started: it is no regular file" in found.says


def test_a_program_that_may_be_run_but_not_read_is_believed(folder: Path) -> None:
    program = folder / "stop"
    program.write_text("nobody knows")
    program.chmod(0o711)
    with as_anyone():
        [found] = look(CommandSpec(argv=(str(program),)))
    assert found.level is (Level.OK if os.getuid() == 0 else Level.ERROR)


def test_a_program_in_a_closed_folder_is_an_error(folder: Path) -> None:
    closed = folder / "closed"
    closed.mkdir()
    (closed / "stop").write_text("#!/bin/sh\n")
    (closed / "stop").chmod(0o755)
    closed.chmod(0)
    with as_anyone():
        [found] = look(CommandSpec(argv=(str(closed / "stop"),)))
    closed.chmod(0o700)
    assert found.level is Level.ERROR


def test_an_argument_that_no_program_can_be_given_is_an_error() -> None:
    [found] = look(CommandSpec(argv=("true", "\ud800{session}")))
    assert found.level is Level.ERROR
    assert "holds characters that no argument can" in found.says


def test_a_dry_run_is_fine() -> None:
    assert [finding.level for finding in look(DryRunSpec())] == [Level.OK]


# ── processes ─────────────────────────────────────────────────────────────────────────────────────


def test_the_processes_that_match_are_counted_and_the_first_named(folder: Path, spawn: Spawn) -> None:
    pids = sorted(spawn().pid for _ in range(4))
    [found] = look(ProcessSpec(match=match_of(folder)))
    assert found.level is Level.OK
    assert found.says.startswith("`match` means 4 processes that run now (4 of this user): ")
    assert found.says.endswith(", and 1 more")
    named = [part.split()[0] for part in found.says.partition("): ")[2].split("; ")]
    assert len(named) == 3
    assert set(map(int, named)) < set(pids)
    assert f"/bin/sh -c echo && read line agent-of-{folder.name}" in found.says


def test_no_process_that_matches_is_a_warning(folder: Path) -> None:
    [found] = look(ProcessSpec(match=match_of(folder)))
    assert found.level is Level.WARNING
    assert "nothing to do while no agent runs; else correct `match`" in found.mend


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can have processes of another user")
def test_only_this_users_processes_can_be_stopped(folder: Path, spawn: Spawn) -> None:
    """Others are counted apart; if there is nobody else, that is a warning."""
    spawn(user=NOBODY)
    [found] = look(ProcessSpec(match=match_of(folder)))
    assert found.level is Level.WARNING
    assert "1 process that runs now (0 of this user, 1 of others)" in found.says
    assert "run Loopwarden as the agents' user" in found.mend
    spawn()
    [found] = look(ProcessSpec(match=match_of(folder)))
    assert found.level is Level.OK
    assert "(1 of this user, 1 of others)" in found.says


def test_a_match_of_more_than_twenty_processes_is_too_wide(folder: Path, spawn: Spawn) -> None:
    for _ in range(20):
        spawn()
    assert look(ProcessSpec(match=match_of(folder)))[0].level is Level.OK
    spawn()
    [found] = look(ProcessSpec(match=match_of(folder)))
    assert found.level is Level.WARNING
    assert "make `match` narrower" in found.mend


@pytest.mark.parametrize("who", ["itself", "parent"])
def test_a_match_of_the_program_itself_or_its_ancestors_is_too_wide(who: str) -> None:
    process = psutil.Process() if who == "itself" else psutil.Process().parents()[0]
    match = "^" + "".join(char if char.isalnum() else "." for char in " ".join(process.cmdline())) + "$"
    [found] = look(ProcessSpec(match=match))
    assert found.level is Level.WARNING
    assert "`match` means this program itself or what has started it: " in found.says
    assert f"{process.pid} " in found.says


def test_a_secret_in_a_command_line_is_masked(folder: Path, spawn: Spawn) -> None:
    spawn(" --token=hunter2hunter2")
    [found] = look(ProcessSpec(match=match_of(folder)))
    assert "--token" in found.says
    assert "hunter2" not in found.says


# ── pid files ─────────────────────────────────────────────────────────────────────────────────────


def pid_file(folder: Path, content: str) -> Finding:
    file = folder / "agent.pid"
    file.write_text(content)
    return look(ProcessSpec(match=match_of(folder), pid_file=str(file)))[1]


def test_a_pid_file_that_names_the_agent_is_fine(folder: Path, spawn: Spawn) -> None:
    agent = spawn()
    found = pid_file(folder, f"{agent.pid}\n")
    assert found.level is Level.OK
    assert f"process {agent.pid}" in found.says
    assert agent.poll() is None


def test_a_pid_file_of_a_process_that_has_exited_is_a_warning(folder: Path, spawn: Spawn) -> None:
    agent = spawn()
    agent.kill()
    agent.wait()
    found = pid_file(folder, f"{agent.pid}\n")
    assert found.level is Level.WARNING
    assert f"process {agent.pid}, which pid_file names, has exited" in found.says


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("none", "does not hold one number"),
        (f"{os.getpid()}", "is the bot itself"),
        ("1", "pid 1 is no agent's"),
    ],
    ids=["no number", "the bot", "init"],
)
def test_a_pid_file_that_means_no_agent_is_a_warning(folder: Path, content: str, says: str) -> None:
    """With the guard's own sentence."""
    found = pid_file(folder, content)
    assert found.level is Level.WARNING
    assert says in found.says


def test_a_pid_file_that_is_not_there_is_a_warning(folder: Path) -> None:
    found = look(ProcessSpec(match="agent", pid_file=str(folder / "none")))[1]
    assert found.level is Level.WARNING
    assert "nothing to do while no agent runs; else correct `pid_file`" in found.mend


def test_a_pid_file_that_may_not_be_read_is_an_error(folder: Path) -> None:
    file = folder / "agent.pid"
    file.write_text("4711")
    file.chmod(0)
    with as_anyone():
        found = look(ProcessSpec(match="agent", pid_file=str(file)))[1]
    assert found.level is Level.ERROR
    assert found.mend == "let this user read it"
