"""A program with all that it starts, none of which outlives its use here, nor an orderly end of this program."""

import atexit
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

_REAPING: Final = 2.0
"""Seconds to wait for a killed program to be gone."""

_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_running: Final[set[subprocess.Popen[bytes]]] = set()


@contextmanager
def started(
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    stdin: int,
    stderr: int,
    folder: str | None = None,
    program: str | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program in a process group of its own; at the end of the block whoever is left of that is killed.

    `program` is what is executed, if it is not what `argv` begins with. Raises OSError.
    """
    with ExitStack() as held:
        with _uninterrupted():
            running = subprocess.Popen(  # noqa: S603 - what this program or its operator has written, without a shell
                argv,
                executable=program,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
                bufsize=0,
                cwd=folder,
                env=env,
                start_new_session=True,
            )
            held.callback(_let_go, running)
            _running.add(running)
        yield running


def _let_go(program: subprocess.Popen[bytes]) -> None:
    end(program)
    _running.discard(program)
    for pipe in (program.stdin, program.stdout, program.stderr):
        if pipe is not None:
            pipe.close()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Put off what handlers of signals do until the block is over: one that raises would leave nobody to end a program.

    They run in the main thread alone. The signals are not blocked: a program that is started would inherit that.
    """
    came: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    heard = [number for number in _ENDING if is_main and callable(signal.getsignal(number))]
    before = {number: signal.signal(number, lambda each, _: came.append(each)) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for each in came:
            signal.raise_signal(each)


def has_ended(program: subprocess.Popen[bytes]) -> bool:
    """Whether a program has ended. It is not reaped by that, so that its group can still be ended."""
    if program.returncode is not None:
        return True
    return os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def end(program: subprocess.Popen[bytes]) -> None:
    """Kill a program that has not ended, and in any case whoever is left of its group."""
    if program.returncode is None:
        # Not reaped yet, so its pid, which is its group's too, cannot have been given to another. It may have become
        # another user's, as what sudo starts does; then it is left to itself.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(program.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            program.wait(_REAPING)


@atexit.register
def _end_all() -> None:
    # The threads that wait for them may be daemons, which are not waited for.
    for program in list(_running):
        end(program)
