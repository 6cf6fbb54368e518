"""Judges one output and exits; see `apart`."""

import gc
import math
import os
import resource
import signal
import sys
from contextlib import suppress
from typing import Final

import msgspec

from jobs.artifacts.apart import NO_MEMORY, Request, Word
from jobs.artifacts.schema import SchemaError, read_schema
from jobs.artifacts.unpack import read_output
from jobs.verification.checks import Output, broken_off, run_checks
from jobs.verification.spec import WorkflowSpec
from jobs.verification.verdict import Check, CheckResult, Judged, Passed

_STARTING: Final = 1 << 16
"""Bytes of an output in which a claim of success is looked for."""


def main() -> None:
    """Answer the request on the standard input."""
    request = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Request)
    _limit(request)
    gc.disable()  # of millions of values it would look at each again and again, and find none that could go
    try:
        _answer(request)
    except MemoryError:
        sys.exit(NO_MEMORY)
    except BaseException as error:
        # What a library in Rust raises when the interpreter has no memory for a value; its class has no importable name.
        if type(error).__name__ == "PanicException":
            sys.exit(NO_MEMORY)
        raise


def _limit(request: Request) -> None:
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
    _say(Word(artifact=output.artifact, start=output.data[:_STARTING]))
    _say(Word(judged=_judged(output, request)))


def _judged(output: Output, request: Request) -> Judged:
    spec, results = request.spec, list[CheckResult]()
    schema, unusable = _schema_of(spec)

    def told(result: CheckResult) -> None:
        results.append(result)
        _say(Word(result=result))
        if unusable is not None and (result.check, result.passed) == (Check.PARSES, Passed.PASS):
            raise unusable

    try:
        return run_checks(
            output, spec, request.now, request.past, schema=schema, said=request.said, told=told
        )
    except SchemaError as error:
        return broken_off(output, spec, results, str(error), said=request.said)


def _schema_of(spec: WorkflowSpec) -> tuple[object | None, SchemaError | None]:
    if spec.schema is None:
        return None, None
    try:
        return read_schema(spec.schema), None
    except SchemaError as error:
        return None, error


def _say(word: Word) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(word) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
