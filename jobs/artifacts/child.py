"""Judges one output and exits; see `apart`."""

import gc
import math
import os
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

import msgspec

from jobs.artifacts.apart import NO_MEMORY, Bounded, Request, Word
from jobs.artifacts.schema import SchemaError, schema_of
from jobs.artifacts.unpack import read_output
from jobs.verification.checks import Output, broken_off, run_checks
from jobs.verification.spec import WorkflowSpec
from jobs.verification.verdict import Check, CheckResult, Judged, Passed, Past

_STARTING: Final = 1 << 16
"""Bytes of an output in which a claim of success is looked for."""
_Request = TypeVar("_Request", bound=Bounded)


def main() -> None:
    """Answer the request on the standard input."""
    work_within_bounds(Request, _answer)


def work_within_bounds(kind: type[_Request], work: Callable[[_Request], None]) -> None:
    """Do what is asked on the standard input, and take no more for it than that says."""
    request = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=kind)
    _limit(request)
    gc.disable()  # of millions of values it would look at each again and again, and find none that could go
    try:
        work(request)
    except MemoryError:
        sys.exit(NO_MEMORY)
    except BaseException as error:
        # What a library in Rust raises when the interpreter has no memory for a value; its class has no importable name.
        if type(error).__name__ == "PanicException":
            sys.exit(NO_MEMORY)
        raise


def _limit(request: Bounded) -> None:
    # The timer ends it also when nobody is left who would.
    signal.setitimer(signal.ITIMER_REAL, request.seconds)
    _lower(resource.RLIMIT_CPU, math.ceil(request.seconds))
    _lower(resource.RLIMIT_AS, request.memory)
    _lower(resource.RLIMIT_CORE, 0)
    # Where memory is short for all, this is the process to be killed first.
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")


def _lower(limit: int, most: int) -> None:
    _, hard = resource.getrlimit(limit)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    # Not every system can limit everything.
    with suppress(ValueError, OSError):
        resource.setrlimit(limit, (most, hard))


def _answer(request: Request) -> None:
    output = read_output(os.fsdecode(request.path), request.spec)
    say(Word(artifact=output.artifact, start=output.data[:_STARTING]))
    judged = judge(
        output,
        request.spec,
        request.now,
        request.past,
        said=request.said,
        told=lambda result: say(Word(result=result)),
    )
    say(Word(judged=judged))


def judge(
    output: Output,
    spec: WorkflowSpec,
    now: float,
    past: Past,
    *,
    said: str = "",
    told: Callable[[CheckResult], None] = lambda _: None,
) -> Judged:
    """Judge an output as `run_checks` does, by the schema that the specification names."""
    results = list[CheckResult]()
    schema, unusable = _schema_of(spec)

    def heard(result: CheckResult) -> None:
        results.append(result)
        told(result)
        if unusable is not None and (result.check, result.passed) == (Check.PARSES, Passed.PASS):
            raise unusable

    try:
        return run_checks(output, spec, now, past, schema=schema, said=said, told=heard)
    except SchemaError as error:
        return broken_off(output, spec, results, str(error), said=said)


def _schema_of(spec: WorkflowSpec) -> tuple[object | None, SchemaError | None]:
    try:
        return schema_of(spec), None
    except SchemaError as error:
        return None, error


def say(word: msgspec.Struct) -> None:
    """Write a line of the answer, at once: what comes after it may be cut short."""
    sys.stdout.buffer.write(msgspec.json.encode(word) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
