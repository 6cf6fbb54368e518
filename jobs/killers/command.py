"""Stops a session by running a program, such as the agent's own command line."""

import asyncio
import os
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import BinaryIO, Final

from jobs.approved_copies import ApprovedCopies, NotApprovedError, ToRun, to_run
from jobs.aside import Aside, OverdueError
from jobs.killers.argv import fill_in
from jobs.ports import Outcome, Stopped, Target
from jobs.program.argv import UnsafeArgumentError
from jobs.program.environment import environment
from jobs.program.wording import ended, last_line, not_started, overrun

_KEPT: Final = 4096
"""Bytes of output."""
_LAST_WORDS: Final = 0.5
"""Seconds to wait for output after the program has ended: something it started may keep the pipe open."""
_REAPING: Final = 2.0
"""Seconds to wait for a killed program to be gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandKiller:
    """Runs `argv` without a shell. `timeout` is in seconds; then the whole process group is killed."""

    argv: tuple[str, ...]
    """Templates, see `fill_in`."""
    timeout: float = 30.0
    folder: str = "/"
    files: Mapping[str, str] | None = None
    """As of a workflow's command, as is the folder."""
    copies: ApprovedCopies | None = None

    async def stop(self, target: Target, *, harder: bool) -> Stopped:  # noqa: ARG002 - harder: once more
        try:
            argv = fill_in(self.argv, target)
            command = await self._to_run(argv)
        except (UnsafeArgumentError, NotApprovedError, OverdueError) as refusal:
            return Stopped(outcome=Outcome.REFUSED, detail=str(refusal))
        try:
            stopped = await self._run_there(command)
        except OSError as error:
            stopped = Stopped(outcome=Outcome.FAILED, detail=not_started(argv[0], error))
        return replace(stopped, detail=f"{command.note}; {stopped.detail}") if command.note else stopped

    async def _run_there(self, command: ToRun) -> Stopped:
        try:
            return await _run(command, self.timeout, self.folder)
        except OSError as error:
            if error.filename != self.folder:
                raise
        # Who moves the folder away does not stop the stop: what lay in it has its copies.
        return await _run(command, self.timeout, "/")

    async def _to_run(self, argv: Sequence[str]) -> ToRun:
        if self.files is None:
            return ToRun(argv=argv)
        look = partial(to_run, argv, self.argv, self.folder, self.files, self.copies)
        # Each stop has a thread of its own: several of one killer are under way at once.
        return await Aside()("the look at what would be run", self.timeout, look)

    async def is_alive(self, target: Target) -> bool | None:  # noqa: ARG002 - only the program would know
        return None


class _Output(asyncio.Protocol):
    """The end of what a program printed; all before it is read and dropped."""

    def __init__(self) -> None:
        self.kept = b""
        self.ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.kept = (self.kept + data)[-_KEPT:]

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - what was read is what there is
        self.ended.set()


async def _run(command: ToRun, limit: float, folder: str) -> Stopped:
    async with _output_pipe() as (output, pipe):
        program = await asyncio.create_subprocess_exec(
            *command.argv,
            executable=command.program,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
            cwd=folder,
            env=environment(),
        )
        pipe.close()
        in_time = await _has_ended(program, limit)
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                await output.ended.wait()
    stopped = in_time and program.returncode == 0
    how = ended(program.returncode) if in_time else overrun(program.returncode, limit)
    last_words = last_line(output.kept)
    return Stopped(
        outcome=Outcome.STOPPED if stopped else Outcome.FAILED,
        detail=f"{how}: {last_words}" if last_words else how,
    )


@asynccontextmanager
async def _output_pipe() -> AsyncIterator[tuple[_Output, BinaryIO]]:
    """Yield what is kept of the output, and the end to write to, which the caller closes once it is inherited.

    A pipe of our own, because asyncio's would stay open for as long as any grandchild holds it.
    """
    read_end, write_end = os.pipe()
    with os.fdopen(write_end, "wb", buffering=0) as pipe:
        reader = os.fdopen(read_end, "rb", buffering=0)
        transport, output = await asyncio.get_running_loop().connect_read_pipe(_Output, reader)
        try:
            yield output, pipe
        finally:
            transport.close()


async def _has_ended(program: Process, limit: float) -> bool:
    """Wait for the end, at most `limit` seconds; then, or on cancellation, kill the whole group."""
    try:
        async with asyncio.timeout(limit):
            await program.wait()
    except TimeoutError:
        return False
    else:
        return True
    finally:
        if program.returncode is None:
            await _kill_group(program)


async def _kill_group(program: Process) -> None:
    # Not reaped yet, so its pid, which is its group's too, cannot have been given to another. It may have become
    # another user's, as what sudo starts does; then it is left to itself.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(program.pid, signal.SIGKILL)
    with suppress(TimeoutError):
        async with asyncio.timeout(_REAPING):
            await program.wait()
