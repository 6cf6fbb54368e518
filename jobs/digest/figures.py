"""What became of runs and checks in a length of time."""

from collections import Counter
from collections.abc import Iterable
from typing import Final, TypeVar

import msgspec

from jobs.verification.verdict import Check


class CheckFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One check of one workflow: in how many runs it passed, failed, was not reached."""

    workflow: str
    check: Check
    passed: int = 0
    failed: int = 0
    not_reached: int = 0


class RunFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one workflow. Missing ones are in no rate."""

    workflow: str
    passed: int = 0
    failed: int = 0
    missing: int = 0
    says_failed: int = 0
    """Of those that passed: they say themselves that they failed."""
    said_done: int = 0
    """They failed and had said that they were done; some of them may have passed since."""
    failed_tries: int = 0
    """What runs had failed with before they left something else, which counts."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """All of a length of time, in order of workflow and of check."""

    runs: tuple[RunFigures, ...] = ()
    checks: tuple[CheckFigures, ...] = ()


_Line = TypeVar("_Line", RunFigures, CheckFigures)
_ORDER: Final = tuple(Check)


def in_order(runs: Iterable[RunFigures], checks: Iterable[CheckFigures]) -> Figures:
    """Return figures in their order."""
    return Figures(
        runs=tuple(sorted(runs, key=lambda run: run.workflow)),
        checks=tuple(sorted(checks, key=lambda each: (each.workflow, _ORDER.index(each.check)))),
    )


def sum_of(parts: Iterable[Figures]) -> Figures:
    """Add up the figures of several lengths of time."""
    runs: dict[str, RunFigures] = {}
    checks: dict[tuple[str, Check], CheckFigures] = {}
    for part in parts:
        for run in part.runs:
            runs[run.workflow] = _plus(runs.get(run.workflow), run)
        for check in part.checks:
            key = (check.workflow, check.check)
            checks[key] = _plus(checks.get(key), check)
    return in_order(runs.values(), checks.values())


def by_workflow(figures: Figures) -> dict[str, Figures]:
    """Return the figures of each workflow that has any."""
    found: dict[str, tuple[list[RunFigures], list[CheckFigures]]] = {
        run.workflow: ([run], []) for run in figures.runs
    }
    for check in figures.checks:
        found.setdefault(check.workflow, ([], []))[1].append(check)
    return {name: Figures(runs=tuple(runs), checks=tuple(checks)) for name, (runs, checks) in found.items()}


def _plus(one: _Line | None, other: _Line) -> _Line:
    if one is None:
        return other
    sums: Counter[str] = Counter()
    for line in (one, other):
        sums.update(
            {name: value for name, value in msgspec.structs.asdict(line).items() if isinstance(value, int)}
        )
    return msgspec.structs.replace(other, **sums)
