"""Tries every check on an output, in order; the first failure decides."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import msgspec

from jobs.verification.comparing import count, counted, digest, size, unchanged
from jobs.verification.criteria import FAILED, command, described, forbid, found, fresh, status
from jobs.verification.fields import fields
from jobs.verification.parsing import Document, parse, summary
from jobs.verification.spec import CountSpec, Format, StatusSpec, WorkflowSpec
from jobs.verification.success import claim
from jobs.verification.verdict import Artifact, Check, CheckResult, Judged, Outcome, Passed, Past, Verdict
from jobs.verification.wording import UnmetError, one_line

Criterion = Callable[[], str]
"""Says that it is met, or raises UnmetError."""

_UNREAD: Final = Document(format=Format.ANY)


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """What was found where the output should be."""

    artifact: Artifact | None = None
    problem: str | None = None
    """Why there is no output to look into: `exists` fails."""
    data: bytes = b""
    """Its content, unpacked."""
    damage: str | None = None
    """Why it cannot be unpacked: `parses` fails."""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the workflow's command."""

    exit: int | None
    """None if it did not come to one."""
    trouble: str | None = None
    """Why not, as a sentence: it could not be started, or took too long."""
    is_refused: bool = False
    """Whether it was not even tried, as it is not what was approved: then no exit code is expected."""
    note: str = ""
    """What else is to be said of it, as a sentence."""
    last_line: str = ""
    """Of what it wrote."""
    took: float
    """Seconds."""


def run_checks(
    output: Output,
    spec: WorkflowSpec,
    now: float,
    past: Past,
    *,
    schema: object | None = None,
    said: str = "",
    told: Callable[[CheckResult], None] = lambda _: None,
) -> Judged:
    """Judge an output by every check that the workflow asks for but `command`, which is only listed if it is not reached.

    `schema` is the JSON Schema that the specification names, decoded; `told` hears each result as soon as it is there.
    Never raises, whatever the output holds.
    """
    case = _Case(output=output, spec=spec, now=now, past=past, schema=schema)
    results: list[CheckResult] = []
    for check, criterion in case.criteria():
        results.append(_result(check, criterion))
        told(results[-1])
        if results[-1].passed is Passed.FAIL:
            break
    judged = _judged(output, spec, results, said, says_failed=case.status == FAILED)
    return msgspec.structs.replace(judged, content=case.content, count=case.count)


def with_command(judged: Judged, spec: WorkflowSpec, ran: Ran) -> Judged:
    """Add the result of the workflow's command to a verdict that passed."""
    expected = None if ran.is_refused else spec.command.exit if spec.command else 0
    result = _result(
        Check.COMMAND, partial(command, ran.exit, expected, ran.trouble, ran.last_line, ran.took)
    )
    if ran.note:
        result = msgspec.structs.replace(result, reason=one_line(f"{ran.note}; {result.reason}"))
    failed = result.passed is Passed.FAIL
    before = judged.verdict
    verdict = Verdict(
        outcome=Outcome.FAIL if failed else Outcome.PASS,
        results=(*before.results, result),
        says_failed=before.says_failed and not failed,
        said_done=before.said_done if failed else None,
    )
    return msgspec.structs.replace(judged, verdict=verdict)


def broken_off(
    output: Output, spec: WorkflowSpec, results: Sequence[CheckResult], reason: str, *, said: str = ""
) -> Judged:
    """Return the verdict of a judging that ended, for `reason`, in the check after those that have `results`."""
    if results and results[-1].passed is Passed.FAIL:
        return _judged(output, spec, results, said)
    checks = [check for check in asked(spec, output) if check is not Check.COMMAND]
    at = min(len(results), len(checks) - 1)
    failure = CheckResult(check=checks[at], passed=Passed.FAIL, reason=one_line(reason))
    return _judged(output, spec, [*results[:at], failure], said)


def asked(spec: WorkflowSpec, output: Output) -> tuple[Check, ...]:
    """Return the checks that a workflow asks for, in order."""
    case = _Case(output=output, spec=spec, now=0, past=Past(), schema=None)
    checks = [check for check, _ in case.criteria()]
    return (*checks, Check.COMMAND) if spec.command else tuple(checks)


def _judged(
    output: Output,
    spec: WorkflowSpec,
    results: Sequence[CheckResult],
    said: str,
    *,
    says_failed: bool = False,
) -> Judged:
    has_failed = results[-1].passed is Passed.FAIL
    later = asked(spec, output)[len(results) :] if has_failed else ()
    unreached = (CheckResult(check=check, passed=Passed.NOT_REACHED) for check in later)
    verdict = Verdict(
        outcome=Outcome.FAIL if has_failed else Outcome.PASS,
        results=(*results, *unreached),
        says_failed=says_failed and not has_failed,
        # The command may still fail the run.
        said_done=claim(said, output.data) if has_failed or spec.command else None,
    )
    return Judged(verdict=verdict, artifact=output.artifact)


def _result(check: Check, criterion: Criterion) -> CheckResult:
    try:
        return CheckResult(check=check, passed=Passed.PASS, reason=one_line(criterion()))
    except UnmetError as unmet:
        reason = str(unmet)
    except RecursionError:
        reason = "nested too deeply to be checked"
    except MemoryError:
        reason = "it would take more memory than there is for a check"
    return CheckResult(check=check, passed=Passed.FAIL, reason=one_line(reason))


class _Case(msgspec.Struct, kw_only=True):
    """One judging, and what its checks have found out for those after them."""

    output: Output
    spec: WorkflowSpec
    now: float
    past: Past
    schema: object | None
    bytes: int = 0
    mtime: float = 0
    document: Document = _UNREAD
    content: str = ""
    count: int | None = None
    status: str | None = None

    def criteria(self) -> Iterator[tuple[Check, Criterion]]:
        """Yield what the workflow asks for, in order; each builds on those before."""
        spec, past = self.spec, self.past
        yield Check.EXISTS, self._exists
        # Of bytes of any kind only what is packed can be damaged.
        if spec.format is not Format.ANY or self.output.damage is not None:
            yield Check.PARSES, self._parses
        if spec.required or spec.fields or spec.schema is not None:
            yield Check.FIELDS, lambda: fields(self.document, spec, self.schema)
        yield Check.FRESH, lambda: fresh(self.document, self.mtime, spec, self.now)
        if spec.status:
            yield Check.STATUS, partial(self._status, spec.status)
        if spec.unchanged:
            yield Check.UNCHANGED, lambda: unchanged(self.content, past)
        if spec.size:
            yield Check.SIZE, partial(size, self.bytes, spec.size, past)
        if spec.count:
            yield Check.COUNT, partial(self._count, spec.count)
        if spec.forbid:
            yield Check.FORBID, lambda: forbid(self.output.data, spec.forbid)

    def _exists(self) -> str:
        artifact = found(self.output.artifact, self.output.problem)
        self.bytes, self.mtime = artifact.size, artifact.mtime_ns / 1e9
        if self.spec.format is Format.ANY:
            self._keep(_UNREAD)
        return described(artifact)

    def _parses(self) -> str:
        if self.output.damage is not None:
            raise UnmetError(self.output.damage)
        self._keep(parse(self.output.data, self.spec.format))
        return summary(self.document, self.output.data)

    def _keep(self, document: Document) -> None:
        self.document = document
        # Also of a run that fails by a later check: a copy of it is no better.
        if self.spec.unchanged:
            self.content = digest(document, self.output.data, self.spec.timestamp)

    def _status(self, spec: StatusSpec) -> str:
        self.status = status(self.document, spec)
        return "failed, as the run says of itself" if self.status == FAILED else one_line(self.status)

    def _count(self, spec: CountSpec) -> str:
        self.count = counted(self.document, self.output.data, spec.of)
        return count(self.count, spec, self.past)
