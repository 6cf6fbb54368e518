"""Makes one good output bad in every way, judges what comes of it, and exits; see `trial`."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO, Final

import msgspec
from msgspec.structs import replace

from jobs.artifacts.child import judge, say, work_within_bounds
from jobs.artifacts.packing import packing_of
from jobs.artifacts.snapshot import take_snapshot
from jobs.artifacts.trial import TrialRequest, TrialWord
from jobs.artifacts.unpack import read_output, unpacked
from jobs.verification.checks import Output
from jobs.verification.mutants import Mutant, mutants, narrowed
from jobs.verification.spec import MEGABYTE, WorkflowSpec
from jobs.verification.synthetic import synthetic
from jobs.verification.trial import MadeOf, Trial
from jobs.verification.verdict import Check, Judged, Past

_MOST: Final = 4 * MEGABYTE
"""Bytes of a good output once it is unpacked: it is judged dozens of times."""
_NOWHERE: Final = "/dev/null/none"
"""A path at which no file can be."""


class _Ground(msgspec.Struct, frozen=True, kw_only=True):
    """What is made bad."""

    made_of: MadeOf
    data: bytes
    """Unpacked."""
    now: float
    mtime: float
    packed: bytes | None = None


class _UnfitError(Exception):
    """Nothing can be made bad; the message is a sentence."""


def main() -> None:
    """Answer the request on the standard input."""
    work_within_bounds(TrialRequest, _answer)


def _answer(request: TrialRequest) -> None:
    spec = request.spec
    try:
        ground = _ground(request)
    except _UnfitError as unfit:
        say(TrialWord(made_of=MadeOf.NOTHING, trouble=str(unfit)))
    else:
        say(TrialWord(made_of=ground.made_of))
        for mutant in mutants(ground.data, spec, ground.now, ground.mtime):
            say(TrialWord(trial=_tried(mutant, _output_of(mutant, spec), spec, ground.now)))
        if ground.packed is not None:
            say(TrialWord(trial=_tried_packed(ground, ground.packed, request)))
    say(TrialWord(is_all=True))


# ── what is made bad ──────────────────────────────────────────────────────────────────────────────


def _ground(request: TrialRequest) -> _Ground:
    good = None if request.good is None else _of_output(request, request.good)
    return good or _of_specification(request)


def _of_output(request: TrialRequest, good: bytes) -> _Ground | None:
    """Return None if it does not pass any more."""
    # A little may become very much once it is unpacked.
    bounded = replace(request.spec, max_size=min(request.spec.max_size, _MOST))
    output = _packed_output(good, request.path, request.mtime_ns, bounded)
    if packing_of("", output.data) or _failure(judge(output, bounded, request.judged_as_of, Past())):
        return None
    return _Ground(
        made_of=MadeOf.OUTPUT,
        data=output.data,
        now=request.judged_as_of,
        mtime=request.mtime_ns / 1e9,
        packed=good if output.data != good else None,
    )


def _of_specification(request: TrialRequest) -> _Ground:
    spec, now = request.spec, request.now
    data = synthetic(spec, now)
    if data is None:
        raise _UnfitError("no output can be made up after the specification")
    with _file(data, int(now * 1e9)) as path:
        failure = _failure(judge(read_output(path, spec), spec, now, Past()))
    if failure:
        raise _UnfitError(f"an output made up after the specification does not pass: {failure}")
    return _Ground(made_of=MadeOf.SPECIFICATION, data=data, now=now, mtime=now)


def _failure(judged: Judged) -> str | None:
    failure = judged.verdict.failure
    return None if failure is None else f"{failure.check}: {failure.reason}"


# ── what is tried ─────────────────────────────────────────────────────────────────────────────────


def _tried(mutant: Mutant, output: Output, spec: WorkflowSpec, now: float) -> Trial:
    whole = judge(output, spec, now, mutant.past)
    alone = judge(output, narrowed(spec, mutant.check), now, mutant.past)
    found = _survival(mutant.check, whole, alone)
    return Trial(mutant=mutant.name, check=mutant.check, is_detected=found is None, found=found or "")


def _survival(check: Check, whole: Judged, alone: Judged) -> str | None:
    """Return what the verifier said of a mutant that it should have failed by `check`; None if it did.

    `alone`: by that check without those that might have failed it before.
    """
    failure = alone.verdict.failure
    if failure is not None and failure.check is not check:
        return f"{failure.check} fails instead: {failure.reason}"
    passing = next((judged for judged in (alone, whole) if judged.verdict.failure is None), None)
    if passing is None:
        return None
    reasons = {result.check: result.reason for result in passing.verdict.results}
    return f"it passes: {reasons.get(check, 'that check was not tried')}"


def _tried_packed(ground: _Ground, packed: bytes, request: TrialRequest) -> Trial:
    # Padding may follow what is packed, and be cut off.
    cut = packed.rstrip(b"\0")[:-1]
    mutant = Mutant(
        name="packed bytes cut",
        check=Check.PARSES,
        data=cut,
        mtime=ground.mtime,
    )
    output = _packed_output(cut, request.path, request.mtime_ns, request.spec)
    return _tried(mutant, output, request.spec, ground.now)


# ── files ─────────────────────────────────────────────────────────────────────────────────────────


def _output_of(mutant: Mutant, spec: WorkflowSpec) -> Output:
    if mutant.data is None:
        return read_output(_NOWHERE, spec)
    with _file(mutant.data, int(mutant.mtime * 1e9)) as path:
        return read_output(path, spec)


def _packed_output(data: bytes, name: str, mtime_ns: int, spec: WorkflowSpec) -> Output:
    """Return what is read of a file that may be packed, which its name may tell."""
    with _file(data, mtime_ns) as path:
        return unpacked(replace(take_snapshot(path, spec.max_size), path=name), spec)


@contextmanager
def _file(data: bytes, mtime_ns: int) -> Iterator[str]:
    """Give the path of a file that has no name, so that nothing is left of it however this process ends."""
    with _nameless() as file:
        file.write(data)
        file.flush()
        os.utime(file.fileno(), ns=(mtime_ns, mtime_ns))
        file.seek(0)
        yield f"/dev/fd/{file.fileno()}"


def _nameless() -> IO[bytes]:
    # In memory, since there may be no folder to write to; not every system can do that.
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("mutant"), "w+b")
    return TemporaryFile()


if __name__ == "__main__":
    main()
