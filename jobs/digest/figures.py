"""What became of runs and checks in a length of time."""

import msgspec


class CheckFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One check of one workflow: in how many runs it passed, failed, was not reached."""

    workflow: str
    check: str
    passed: int
    failed: int
    not_reached: int


class RunFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one workflow. Missing ones are in no rate."""

    workflow: str
    passed: int = 0
    failed: int = 0
    missing: int = 0
    says_failed: int = 0
    """Of those that passed: they say themselves that they failed."""
    said_done: int = 0
    """Of those that failed: they said that they were done."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """All of a length of time, in order of workflow and of check."""

    runs: tuple[RunFigures, ...] = ()
    checks: tuple[CheckFigures, ...] = ()
