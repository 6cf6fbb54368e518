"""Good outputs made bad on purpose, and whether the verifier has noticed."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec

from jobs.verification.spec import MEGABYTE, Names
from jobs.verification.verdict import Check

MOST_KEPT: Final = MEGABYTE
"""Bytes of a good output that is kept."""


class MadeOf(StrEnum):
    """What a self-test has made bad."""

    OUTPUT = "output"
    """The last good output."""
    SPECIFICATION = "specification"
    """One made up after the specification: there is no good output, or it does not pass any more."""
    NOTHING = "nothing"
    """Neither is to be had; `trouble` says why."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One mutant."""

    mutant: str
    """How it is bad, such as `status renamed`."""
    check: Check
    """Which check claims to catch that."""
    is_detected: bool
    found: str = ""
    """Of one that survived: what the verifier said of it."""


class Trials(msgspec.Struct, frozen=True, kw_only=True):
    """All mutants of one workflow."""

    detected: int = 0
    survivors: tuple[Trial, ...] = ()
    trouble: str = ""
    """Why nothing, or not all, could be tried, as a sentence."""

    @property
    def total(self) -> int:
        """How many there were."""
        return self.detected + len(self.survivors)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoodOutput:
    """The last output of a workflow that passed, as its file's bytes."""

    workflow: str
    run_id: int
    path: str
    sha256: str
    mtime_ns: int
    judged_as_of: float
    """Epoch seconds: the time that its age was taken at."""
    names: Names
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfTest:
    """One self-test of one workflow."""

    id: int = 0
    workflow: str
    pin_id: int | None
    """The pin that was in force."""
    made_of: MadeOf
    result: Trials
    at: float
