"""A good report, and what becomes of it."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import pytest

from jobs.verification.checks import Output, run_checks
from jobs.verification.spec import Format, StatusSpec, WorkflowSpec
from jobs.verification.verdict import Artifact, Check, Judged, Outcome, Passed, Past

NOW: Final = 1_767_225_600.0
"""2026-01-01 00:00:00 UTC"""
NO_PAST: Final = Past()

GOOD: Final[dict[str, object]] = {
    "status": "ok",
    "result": {"total": 12},
    "items": [{"id": "a-1"}, {"id": "a-2"}],
    "timestamp": "2025-12-31T23:50:00Z",
}
SPEC: Final = WorkflowSpec(
    name="nightly",
    output="/srv/out/report.json",
    required=("status", "result.total", "items[].id", "timestamp"),
    timestamp="timestamp",
    status=StatusSpec(),
)

BARE: Final = {form: WorkflowSpec(format=form) for form in Format}
"""Nothing but existence, form and the file's own time."""


def written(value: object) -> bytes:
    return json.dumps(value).encode()


def output(data: bytes, *, mtime: float = NOW - 60, damage: str | None = None) -> Output:
    artifact = Artifact(
        path="/srv/out/report.json",
        device=1,
        inode=2,
        mtime_ns=round(mtime * 1e9),
        size=len(data),
        sha256="5e",
    )
    return Output(artifact=artifact, data=data, damage=damage)


def judged(data: bytes, spec: WorkflowSpec, *, past: Past = NO_PAST, schema: object | None = None) -> Judged:
    return run_checks(output(data), spec, NOW, past, schema=schema)


@dataclass(frozen=True, slots=True)
class Row:
    """One artifact, and the check that it must fail with a reason that holds `reason`; None if it is good."""

    data: bytes
    fails: Check | None = None
    reason: str = ""
    spec: WorkflowSpec = SPEC


def each(table: Sequence[Row]) -> pytest.MarkDecorator:
    """Run a test once for every row."""
    names = [f"{at} {row.spec.format} {row.data[:40]!r}" for at, row in enumerate(table, 1)]
    return pytest.mark.parametrize("row", table, ids=names)


def assert_judged(row: Row, found: Judged) -> None:
    """Its verdict, its failing check and the reason are the row's; what is after the failure is not reached."""
    failure = found.verdict.failure
    assert (failure.check if failure else None) == row.fails, failure
    reasons = [
        result.reason for result in found.verdict.results if result.check is (row.fails or result.check)
    ]
    assert any(row.reason in reason for reason in reasons), reasons
    assert_well_formed(found)


def assert_well_formed(found: Judged) -> None:
    """The first failure decides, what is after it is not reached, and each reason is one printable line of its length."""
    verdict = found.verdict
    states = [result.passed for result in verdict.results]
    failed = [at for at, state in enumerate(states) if state is Passed.FAIL]
    if failed:
        assert verdict.outcome is Outcome.FAIL
        assert states[: failed[0]] == [Passed.PASS] * failed[0]
        assert states[failed[0] + 1 :] == [Passed.NOT_REACHED] * (len(states) - failed[0] - 1)
    else:
        assert verdict.outcome is Outcome.PASS
        assert set(states) == {Passed.PASS}
    assert [result.check for result in verdict.results] == sorted(
        (result.check for result in verdict.results), key=list(Check).index
    )
    for result in verdict.results:
        assert len(result.reason) <= 300
        assert result.reason.isprintable()
        assert bool(result.reason) == (result.passed is not Passed.NOT_REACHED)


def rows(form: Format, table: Iterable[tuple[bytes, str | None]]) -> list[Row]:
    """A row for each artifact of a format: what its parsing complains of, None if it is good."""
    return [Row(data, Check.PARSES if reason else None, reason or "", BARE[form]) for data, reason in table]
