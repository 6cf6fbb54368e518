"""A target, and real processes to aim at."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec
import psutil
import pytest

from jobs.ports import Target

TARGET = Target(
    source="main",
    session="s-1",
    agent="coder",
    reason="thrash_loop:8",
    score=8,
    pid=None,
    pid_since_ts=None,
    last_ts=0,
)

OTHER_USER = 65534
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can have processes of another user")


def idle_as(user: int, how: str = "setuid") -> str:
    """Code for a child: it changes itself, because the other user may not be allowed to read this Python."""
    return f"import os, signal; os.{how}({user}); print('up', flush=True); signal.pause()"


@contextmanager
def acting_as(user: int) -> Iterator[None]:
    """Be root without root's rights over other users' processes."""
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)


Spawn = Callable[..., "subprocess.Popen[str]"]
TargetOf = Callable[..., Target]


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """Start `python -c code *argv`; with its standard streams as pipes.

    Whatever still lives after the test, with its descendants, is killed.
    """
    started: list[subprocess.Popen[str]] = []

    def start(code: str, *argv: str) -> "subprocess.Popen[str]":
        child = subprocess.Popen(  # noqa: S603 - the code is the test's own
            [sys.executable, "-c", code, *argv],
            stdout=subprocess.PIPE,
            stdin=subprocess.PIPE,
            text=True,
        )
        started.append(child)
        return child

    yield start
    for child in started:
        _end(child)


def _end(child: "subprocess.Popen[str]") -> None:
    if child.returncode is None:
        for process in [*psutil.Process(child.pid).children(recursive=True), psutil.Process(child.pid)]:
            process.kill()
    child.communicate()


@pytest.fixture
def target_of() -> TargetOf:
    """A target that is, unless told otherwise, about `child`, whose first call came when it was started."""

    def target(child: "subprocess.Popen[str] | None" = None, **fields: object) -> Target:
        about: dict[str, object] = {}
        if child is not None:
            born = psutil.Process(child.pid).create_time()
            about = {"pid": child.pid, "pid_since_ts": born, "last_ts": born}
        return msgspec.structs.replace(TARGET, **{**about, **fields})

    return target
