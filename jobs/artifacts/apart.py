"""Has an output judged in a process of its own, whose memory and time are bounded."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from typing import Final, TypeVar

import msgspec

from jobs.artifacts.find import sighting
from jobs.artifacts.packing import packing_of
from jobs.program.environment import own_environment, own_module
from jobs.program.group import started
from jobs.verification.checks import Output, broken_off
from jobs.verification.spec import MEGABYTE, WorkflowSpec
from jobs.verification.verdict import Artifact, CheckResult, Judged, Past
from jobs.verification.wording import number

_ARGV: Final = own_module("jobs.artifacts.child")
_OWN_END: Final = 5.0
"""Seconds after its time in which the process ends by itself."""
NO_MEMORY: Final = 3
"""Its exit code when it may have no more memory."""
_ALOUD: Final = "RUST_BACKTRACE"
"""Set, it makes some libraries gather where they ran out of memory, for which they need memory, and wait for ever."""
_LARGE: Final = 4 * MEGABYTE
"""Bytes from which on the values of an output may fill a large part of the memory."""
_turn: Final = threading.Lock()
"""Who has it judges what may be large: several at once might take all the memory of the machine."""
_OUT_OF_TIME: Final = (-signal.SIGALRM, -signal.SIGXCPU)

_Line = TypeVar("_Line")


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What judging one output may take."""

    seconds: float = 60.0
    """Of processor time, and by the clock."""
    memory: int = 2000 * MEGABYTE
    """Bytes of address space, beside those for a large output."""
    memory_per_byte: int = 4
    """Of `max_size`: it may have to be unpacked, and its values lie beside it."""

    def memory_for(self, spec: WorkflowSpec) -> int:
        """Return the bytes that a workflow's outputs may take."""
        return self.memory + self.memory_per_byte * spec.max_size


class Bounded(msgspec.Struct, frozen=True, kw_only=True):
    """What a process is told, and what it may take for that."""

    spec: WorkflowSpec
    now: float
    seconds: float
    memory: int


class Request(Bounded, frozen=True, kw_only=True):
    """What the process is told."""

    path: bytes
    """As the system has it: perhaps no text."""
    past: Past
    said: str


class Word(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of what it answers: first what it has read, then each result, at last all of it."""

    artifact: Artifact | None = None
    start: bytes = b""
    """Of its content: enough to see whether it claims success."""
    result: CheckResult | None = None
    judged: Judged | None = None


def judge_apart(
    path: str, spec: WorkflowSpec, now: float, past: Past, *, said: str, limits: Limits
) -> Judged:
    """Judge the output at `path`; whatever that does to the process becomes the failure of the check it was in."""
    request = Request(
        path=os.fsencode(path),
        spec=spec,
        now=now,
        past=past,
        said=said.encode(errors="replace").decode(),
        seconds=limits.seconds,
        memory=limits.memory_for(spec),
    )
    # Its time begins when its turn has come.
    with _turn if _may_be_large(path) else nullcontext():
        return _judged(request)


def _may_be_large(path: str) -> bool:
    seen = sighting(path)
    return seen is not None and (seen.size > _LARGE or packing_of(path, b"") is not None)


def _judged(request: Request) -> Judged:
    try:
        answer, why = answered(_ARGV, request)
    except OSError as error:
        return _broken_off([], request, f": no process can be started: {error.strerror}")
    words = list(lines_of(answer, Word))
    for word in words:
        if word.judged is not None:
            return word.judged
    return _broken_off(words, request, why)


def answered(argv: Sequence[str], request: Bounded) -> tuple[bytes, str]:
    """Return what a process has written, and why that may not be all of it. Raises OSError."""
    answer, code = _answer(argv, msgspec.msgpack.encode(request), request.seconds + _OWN_END)
    return answer, _reason(code, request)


def _answer(argv: Sequence[str], request: bytes, seconds: float) -> tuple[bytes, int | None]:
    """Return its exit code, too; None if it took so long that it had to be killed."""
    env = own_environment() | {_ALOUD: "0"}
    with started(argv, env, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            return process.communicate(request, timeout=seconds)[0], process.returncode
        except subprocess.TimeoutExpired as late:
            return late.output or b"", None


def lines_of(answer: bytes, kind: type[_Line]) -> Iterator[_Line]:
    """Yield the lines that a process has written."""
    for line in answer.splitlines():
        # The last one may be cut.
        with suppress(msgspec.DecodeError):
            yield msgspec.json.decode(line, type=kind)


def _broken_off(words: Sequence[Word], request: Request, reason: str) -> Judged:
    read = next((word for word in words if word.artifact is not None), Word())
    return broken_off(
        Output(artifact=read.artifact, data=read.start),
        request.spec,
        [word.result for word in words if word.result is not None],
        f"it could not be judged{reason}",
        said=request.said,
    )


def _reason(code: int | None, request: Bounded) -> str:
    if code is None or code in _OUT_OF_TIME:
        return f" within {request.seconds:g} s, the most that it may take"
    if code in {NO_MEMORY, -signal.SIGABRT}:
        return f" with {number(request.memory)} bytes of memory, the most that it may take"
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return f": the process that did ended with {how}"
