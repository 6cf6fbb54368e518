"""Finds an output, reads it and tries every check on it."""

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from jobs.artifacts.find import NothingFoundError, absolute, locate, sighting
from jobs.artifacts.packing import packing_of
from jobs.artifacts.snapshot import take_snapshot
from jobs.verification.checks import Output, Ran, run_checks, with_command
from jobs.verification.spec import Format, Names, WorkflowSpec
from jobs.verification.verdict import Artifact, Judged, Outcome, Past

if TYPE_CHECKING:
    from jobs.ports import CommandRunner

_SMALL: Final = 1_000_000
"""Bytes that, in a simple format, take at most some tenths of a second and some tens of megabytes of this process."""
_SIMPLE: Final = frozenset({Format.JSON, Format.JSONL, Format.CSV, Format.TEXT, Format.ANY})


class ArtifactJudge:
    """Judges here what is plainly cheap, and all else in a process of its own, where it is bounded."""

    def __init__(self, runner: "CommandRunner") -> None:
        self._runner = runner

    def judge(
        self,
        spec: WorkflowSpec,
        names: Names,
        now: float,
        past: Past,
        *,
        path: str | None = None,
        said: str = "",
    ) -> Judged:
        """Judge the output as of `now`; `path` in place of the newest match, `said`: what its reporter says of it.

        Never raises for what lies there, and takes bounded time and memory.
        """
        try:
            found = absolute(path) if path is not None else locate(spec, names)
        except NothingFoundError as nothing:
            return run_checks(Output(problem=str(nothing)), spec, now, past, said=said)
        judged = _judge_here(found, spec, now, past, said) if _is_cheap(found, spec) else None
        if judged is None:
            judged = _judge_apart(found, spec, now, past, said)
        if spec.command is None or judged.verdict.outcome is not Outcome.PASS:
            return judged
        ran = self._runner.run(spec.command, spec.name, names, found)
        return with_command(judged, spec, ran if _is_still(found, judged.artifact) else _in_vain(ran))


def _is_still(path: str, judged: Artifact | None) -> bool:
    """Whether what lies there is what was judged."""
    seen = sighting(path)
    if seen is None or judged is None:
        return False
    # A name that is no text is kept as one.
    return replace(seen, path=judged.path) == judged.sighting


def _in_vain(ran: Ran) -> Ran:
    return replace(ran, exit=None, trouble="the output changed while the command ran")


def _is_cheap(path: str, spec: WorkflowSpec) -> bool:
    has_patterns = spec.forbid or any(field.pattern is not None for field in spec.fields.values())
    if spec.format not in _SIMPLE or spec.schema is not None or has_patterns:
        return False
    seen = sighting(path)
    return seen is None or seen.size <= _SMALL


def _judge_here(path: str, spec: WorkflowSpec, now: float, past: Past, said: str) -> Judged | None:
    """Return None if it is compressed: a little may become very much. Or if it has become larger meanwhile."""
    snapshot = take_snapshot(path, min(spec.max_size, _SMALL))
    if snapshot.artifact and snapshot.artifact.size > _SMALL:
        return None
    if snapshot.problem is None and packing_of(path, snapshot.data) is not None:
        return None
    output = Output(artifact=snapshot.artifact, problem=snapshot.problem, data=snapshot.data)
    return run_checks(output, spec, now, past, said=said)


def _judge_apart(path: str, spec: WorkflowSpec, now: float, past: Past, said: str) -> Judged:
    # Costs as much to import as a small verdict takes.
    from jobs.artifacts.apart import Limits, judge_apart  # noqa: PLC0415

    return judge_apart(path, spec, now, past, said=said, limits=Limits())
