"""A process is signalled only if it is the one that is meant; then it and all it has started end."""

import asyncio
import os
import re
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from jobs.killers.family import Family, family_of, send
from jobs.killers.identity import is_living
from jobs.killers.process import ProcessKiller, _failed, _kill, _listed
from jobs.ports import Outcome, Stopped
from tests.killers.conftest import OTHER_USER, TARGET, Spawn, TargetOf, acting_as, as_root, idle_as

MARK = "agent-under-test"
MATCH = re.compile(MARK)

# Children say "up" when they are ready, and hold their standard output: it ends when the last of them has.
IDLE = "import signal; print('up', flush=True); signal.pause()"
STUBBORN = """
import os, signal
signal.signal(signal.SIGTERM, lambda *_: os.write(1, b'asked to end\\n'))
print('up', flush=True)
while True: signal.pause()
"""
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); signal.pause()"
LAUNCHER = """
import signal, subprocess, sys
inner, marker = sys.argv[1], sys.argv[2]
child = subprocess.Popen([sys.executable, '-c', inner, *sys.argv[2:]], stdout=subprocess.PIPE, text=True)
child.stdout.readline()
print('up', child.pid, flush=True)
child.wait()
"""
"""Starts its first argument as code, and passes the others on."""
TWO_GENERATIONS = """
import os, signal
if os.fork() == 0:
    if os.fork() == 0:
        print('up', flush=True)
    signal.pause()
signal.pause()
"""


def killer(*, pid_file: Path | None = None, grace: float = 60) -> ProcessKiller:
    return ProcessKiller(match=MATCH, pid_file=pid_file, grace=grace)


def up(child: "subprocess.Popen[str]") -> str:
    """Wait until the child is ready; return what it says besides."""
    assert child.stdout is not None
    line = child.stdout.readline()
    assert line.startswith("up")
    return line.removeprefix("up").strip()


def last_words(child: "subprocess.Popen[str]") -> str:
    """Wait until all who hold the child's output are gone; return what they said."""
    assert child.stdout is not None
    return child.stdout.read()


def refused(detail: str) -> Stopped:
    return Stopped(outcome=Outcome.REFUSED, detail=detail)


def wait_for_zombie(child: "subprocess.Popen[str]") -> None:
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)


@pytest.fixture
def idle(spawn: Spawn) -> "subprocess.Popen[str]":
    child = spawn(IDLE, MARK)
    up(child)
    return child


# ── guards ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("pid", [1, 0, -1, -1234])
async def test_no_agent_has_such_a_pid(pid: int, target_of: TargetOf) -> None:
    result = await killer().stop(target_of(pid=pid, pid_since_ts=0), harder=False)
    assert result == refused(f"pid {pid} is no agent's: expected one above 1")


async def test_the_bot_is_not_signalled(target_of: TargetOf) -> None:
    everything = ProcessKiller(match=re.compile("."))
    bot, parent = os.getpid(), os.getppid()
    assert await everything.stop(target_of(pid=bot, pid_since_ts=2e9), harder=True) == refused(
        f"process {bot} is the bot itself"
    )
    assert await everything.stop(target_of(pid=parent, pid_since_ts=2e9), harder=True) == refused(
        f"process {parent} is an ancestor of the bot"
    )


async def test_a_thread_of_the_bot_is_not_signalled(target_of: TargetOf) -> None:
    """The kernel takes a thread's id where a process's belongs, and ends the whole process."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        everything = ProcessKiller(match=re.compile("."))
        result = await everything.stop(target_of(pid=thread.native_id, pid_since_ts=2e9), harder=True)
    finally:
        over.set()
        thread.join()
    assert result == refused(f"{thread.native_id} is the id of a thread, expected a process")


@as_root
async def test_another_users_process_is_not_signalled(spawn: Spawn, target_of: TargetOf) -> None:
    """Not even by root."""
    child = spawn(idle_as(OTHER_USER), MARK)
    up(child)
    result = await killer().stop(target_of(child), harder=True)
    assert result == refused(f"process {child.pid} belongs to user {OTHER_USER}, expected user 0")
    assert await killer().is_alive(target_of(child)) is None
    assert child.poll() is None


@as_root
async def test_a_process_that_acts_as_another_user_is_not_signalled(
    spawn: Spawn, target_of: TargetOf
) -> None:
    child = spawn(idle_as(OTHER_USER, "seteuid"), MARK)
    up(child)
    result = await killer().stop(target_of(child), harder=True)
    assert result == refused(
        f"process {child.pid} belongs to user 0, acting as {OTHER_USER}, expected user 0"
    )


@as_root
async def test_a_process_out_of_reach_counts_as_another_users(spawn: Spawn, target_of: TargetOf) -> None:
    """/proc may hide it (hidepid), and it must not seem to have exited."""
    child = spawn(idle_as(OTHER_USER - 1), MARK)
    up(child)
    with acting_as(OTHER_USER):
        result = await killer().stop(target_of(child), harder=True)
    assert result == refused(
        f"process {child.pid} belongs to another user, expected user 0, or a security module forbids signals"
    )


async def test_another_command_line_is_not_signalled(
    idle: "subprocess.Popen[str]", target_of: TargetOf
) -> None:
    result = await ProcessKiller(match=re.compile("^node .*agent")).stop(target_of(idle), harder=True)
    found = f"{sys.executable} -c {IDLE} {MARK}"
    assert result == refused(f'process {idle.pid} is "{found}", expected a match of "^node .*agent"')
    assert await ProcessKiller(match=re.compile("^node .*agent")).is_alive(target_of(idle)) is None
    assert idle.poll() is None


async def test_a_long_command_line_is_quoted_in_part(spawn: Spawn, target_of: TargetOf) -> None:
    child = spawn(IDLE, "x" * 10_000)
    up(child)
    result = await ProcessKiller(match=re.compile("y" * 10_000)).stop(target_of(child), harder=True)
    assert len(result.detail) < 500


async def test_a_pid_given_to_a_later_process_is_not_signalled(
    idle: "subprocess.Popen[str]", target_of: TargetOf
) -> None:
    first_call = psutil.Process(idle.pid).create_time() - 5
    later = target_of(idle, pid_since_ts=first_call)
    assert await killer().stop(later, harder=True) == refused(
        f"pid reused: process {idle.pid} started 5.0 s after the first call that named it"
    )
    assert await killer().is_alive(later) is False
    assert idle.poll() is None


async def test_the_clocks_granularity_is_allowed_for(
    idle: "subprocess.Popen[str]", target_of: TargetOf
) -> None:
    just_before = psutil.Process(idle.pid).create_time() - 1.9
    assert await killer().is_alive(target_of(idle, pid_since_ts=just_before)) is True


async def test_without_a_first_call_the_newest_is_the_bound(
    idle: "subprocess.Popen[str]", target_of: TargetOf
) -> None:
    newest_call = psutil.Process(idle.pid).create_time() - 5
    result = await killer().stop(target_of(idle, pid_since_ts=None, last_ts=newest_call), harder=True)
    assert result == refused(f"pid reused: process {idle.pid} started 5.0 s after the session's newest call")


async def test_without_a_pid_nothing_is_done() -> None:
    assert await killer().stop(TARGET, harder=False) == refused(
        "no pid known: the log names none, and the killer has no pid_file"
    )
    assert await killer().is_alive(TARGET) is None


async def test_no_descriptor_left_to_look(idle: "subprocess.Popen[str]", target_of: TargetOf) -> None:
    target = target_of(idle)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        result = await killer().stop(target, harder=False)
        alive = await killer().is_alive(target)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert result == Stopped(
        outcome=Outcome.FAILED, detail="processes cannot be looked at: Too many open files"
    )
    assert alive is None


# ── pid files ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_pid_file_counts_more_than_the_log(
    idle: "subprocess.Popen[str]", target_of: TargetOf, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    pid_file.write_text(f" {idle.pid}\n")
    result = await killer(pid_file=pid_file).stop(target_of(idle, pid=1), harder=True)
    assert result == Stopped(outcome=Outcome.STOPPED, detail=f"process {idle.pid} has exited, after SIGKILL")


async def test_a_process_younger_than_its_pid_file_is_not_signalled(
    idle: "subprocess.Popen[str]", target_of: TargetOf, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    pid_file.write_text(f"{idle.pid}\n")
    written = psutil.Process(idle.pid).create_time() - 7
    os.utime(pid_file, (written, written))
    result = await killer(pid_file=pid_file).stop(target_of(idle), harder=True)
    assert result == refused(f"pid reused: process {idle.pid} started 7.0 s after its pid file was written")


async def test_a_process_younger_than_the_newest_call_is_not_signalled(
    idle: "subprocess.Popen[str]", target_of: TargetOf, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    pid_file.write_text(f"{idle.pid}\n")
    newest_call = psutil.Process(idle.pid).create_time() - 9
    result = await killer(pid_file=pid_file).stop(target_of(idle, last_ts=newest_call), harder=True)
    assert result == refused(f"pid reused: process {idle.pid} started 9.0 s after the session's newest call")


@pytest.mark.parametrize(
    "content", [b"", b"agent", b"12 34", b"1" * 100, b"12\0", b"0x12", b" " * 10_000 + b"12"]
)
async def test_a_pid_file_holds_one_number(content: bytes, target_of: TargetOf, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    pid_file.write_bytes(content)
    result = await killer(pid_file=pid_file).stop(target_of(), harder=False)
    assert result == refused(f"no pid known: {pid_file} does not hold one number")


async def test_a_negative_number_in_a_pid_file_is_no_pid(target_of: TargetOf, tmp_path: Path) -> None:
    """To the kernel it would be a process group."""
    pid_file = tmp_path / "pid"
    pid_file.write_text("-1")
    result = await killer(pid_file=pid_file).stop(target_of(), harder=False)
    assert result == refused("pid -1 is no agent's: expected one above 1")


async def test_a_pid_file_is_a_file(target_of: TargetOf, tmp_path: Path) -> None:
    """A pipe in its place is not waited for."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe):
        result = await killer(pid_file=path).stop(target_of(), harder=False)
        assert result == refused(f"no pid known: {path} is not a regular file")


async def test_a_missing_pid_file_names_no_process(target_of: TargetOf, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    result = await killer(pid_file=pid_file).stop(target_of(), harder=False)
    assert result == refused(f"no pid known: {pid_file} cannot be read (No such file or directory)")
    assert await killer(pid_file=pid_file).is_alive(target_of()) is None


# ── ends ──────────────────────────────────────────────────────────────────────────────────────────


async def test_a_process_that_is_gone_is_stopped(idle: "subprocess.Popen[str]", target_of: TargetOf) -> None:
    """A zombie is gone, too, and so is one whose parent has taken note."""
    target = target_of(idle)
    expected = Stopped(outcome=Outcome.STOPPED, detail=f"process {idle.pid} has already exited")
    idle.terminate()
    wait_for_zombie(idle)
    assert await killer().stop(target, harder=False) == expected
    assert await killer().is_alive(target) is False
    idle.wait()
    assert await killer().stop(target, harder=False) == expected
    assert await killer().is_alive(target) is False


async def test_a_process_that_ends_when_asked_is_not_killed(
    idle: "subprocess.Popen[str]", target_of: TargetOf
) -> None:
    """Its parent is this test, which does not reap it meanwhile."""
    target = target_of(idle)
    assert await killer().is_alive(target) is True
    result = await killer().stop(target, harder=False)
    assert result.outcome is Outcome.STOPPED
    assert re.fullmatch(rf"process {idle.pid} has exited, after SIGTERM, \d\.\d s", result.detail)
    assert await killer().is_alive(target) is False
    assert idle.wait() == -signal.SIGTERM


async def test_a_process_that_ignores_the_request_is_killed(spawn: Spawn, target_of: TargetOf) -> None:
    child = spawn(STUBBORN, MARK)
    up(child)
    result = await killer(grace=0.1).stop(target_of(child), harder=False)
    assert result == Stopped(outcome=Outcome.STOPPED, detail=f"process {child.pid} has exited, after SIGKILL")
    assert child.wait() == -signal.SIGKILL


async def test_harder_does_not_ask(spawn: Spawn, target_of: TargetOf) -> None:
    child = spawn(STUBBORN, MARK)
    up(child)
    result = await killer().stop(target_of(child), harder=True)
    assert result == Stopped(outcome=Outcome.STOPPED, detail=f"process {child.pid} has exited, after SIGKILL")
    assert last_words(child) == ""


@pytest.mark.parametrize("harder", [False, True])
async def test_a_launchers_child_ends_with_it(spawn: Spawn, target_of: TargetOf, *, harder: bool) -> None:
    child = spawn(LAUNCHER, IDLE, MARK)
    inner = psutil.Process(int(up(child)))
    result = await killer().stop(target_of(child), harder=harder)
    assert result.detail.startswith(f"process {child.pid} has exited, and 1 child, after SIG")
    assert not is_living(inner)


async def test_every_generation_ends(spawn: Spawn, target_of: TargetOf) -> None:
    child = spawn(TWO_GENERATIONS, MARK)
    up(child)
    result = await killer().stop(target_of(child), harder=False)
    assert result.detail.startswith(f"process {child.pid} has exited, and 2 children, after SIGTERM")
    assert last_words(child) == ""


async def test_an_orphan_that_stays_behind_is_killed(spawn: Spawn, target_of: TargetOf) -> None:
    """The launcher ends when asked; its child, remembered from before, does not."""
    child = spawn(LAUNCHER, DEAF, MARK)
    inner = psutil.Process(int(up(child)))
    result = await killer(grace=0.2).stop(target_of(child), harder=False)
    assert result.detail == f"process {child.pid} has exited, and 1 child, after SIGKILL"
    assert not is_living(inner)


async def test_who_joins_during_the_grace_is_killed_too(spawn: Spawn) -> None:
    """Asked to end, it starts another instead."""
    code = """
import os, signal
def start_another(*_):
    os.fork()
    os.write(1, b'another\\n')
    while True: signal.pause()
signal.signal(signal.SIGTERM, start_another)
print('up', flush=True)
signal.pause()
"""
    child = spawn(code, MARK)
    up(child)
    root = psutil.Process(child.pid)
    before = family_of([root])
    send(signal.SIGTERM, before.members)
    assert [await line_of(child), await line_of(child)] == ["another\n", "another\n"]
    result = await _kill(root, before)
    assert result.detail == f"process {child.pid} has exited, and 1 child, after SIGKILL"
    assert last_words(child) == ""


@as_root
async def test_a_descendant_of_another_user_is_left_alone_and_named(
    spawn: Spawn, target_of: TargetOf
) -> None:
    code = f"""
import os, signal
if os.fork() == 0:
    os.setuid({OTHER_USER})
    print('up', os.getpid(), flush=True)
signal.pause()
"""
    child = spawn(code, MARK)
    foreign = psutil.Process(int(up(child)))
    result = await killer().stop(target_of(child), harder=True)
    try:
        assert result.detail == (
            f"process {child.pid} has exited, after SIGKILL; "
            f"left alone: process {foreign.pid} (of user {OTHER_USER})"
        )
        assert is_living(foreign)
    finally:
        foreign.kill()


async def test_cancellation_leaves_the_rest_alone(spawn: Spawn, target_of: TargetOf) -> None:
    child = spawn(STUBBORN, MARK)
    up(child)
    stopping = asyncio.ensure_future(killer().stop(target_of(child), harder=False))
    assert await line_of(child) == "asked to end\n"
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert await killer().is_alive(target_of(child)) is True
    assert len(asyncio.all_tasks()) == 1


async def line_of(child: "subprocess.Popen[str]") -> str:
    assert child.stdout is not None
    return await asyncio.to_thread(child.stdout.readline)


# ── what no test can bring about with a process of its own ────────────────────────────────────────


def test_the_bot_is_spared_wherever_it_stands() -> None:
    parent, bot = psutil.Process(os.getppid()), psutil.Process()
    family = family_of([parent])
    assert parent not in family.members
    assert bot not in family.members
    assert family.spared[bot] == family.spared[parent] == "the bot or its ancestor"


@as_root
def test_who_may_not_be_signalled_is_named(spawn: Spawn) -> None:
    child = spawn(idle_as(OTHER_USER - 1))
    up(child)
    process = psutil.Process(child.pid)
    with acting_as(OTHER_USER):
        denied = send(signal.SIGKILL, [process])
    assert denied == [process]
    assert _failed([process], denied) == Stopped(
        outcome=Outcome.FAILED,
        detail=f"still running after SIGKILL: process {process.pid} (no permission to signal it)",
    )


def test_who_survives_is_named() -> None:
    assert _failed([psutil.Process()], []).detail == f"still running after SIGKILL: process {os.getpid()}"


def test_signalling_the_dead_is_no_error(spawn: Spawn) -> None:
    child = spawn(IDLE)
    process = psutil.Process(child.pid)
    child.kill()
    child.wait()
    assert send(signal.SIGTERM, [process]) == []
    assert family_of([process]) == Family(members=[], spared={})


def test_a_list_of_processes_is_bounded() -> None:
    assert _listed(f"process {n}" for n in range(2, 14)).endswith("process 11 and 2 more")
