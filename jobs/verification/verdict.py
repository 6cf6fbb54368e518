"""The outcome of all checks for a run, and of each."""

from enum import StrEnum

import msgspec


class Check(StrEnum):
    """Every mechanical criterion, in the order in which they are tried."""

    EXISTS = "exists"
    PARSES = "parses"
    FIELDS = "fields"
    FRESH = "fresh"
    STATUS = "status"
    UNCHANGED = "unchanged"
    SIZE = "size"
    COUNT = "count"
    FORBID = "forbid"
    COMMAND = "command"


class Passed(StrEnum):
    """What became of one check."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "FAIL"
    NOT_REACHED = "not reached"
    """An earlier one had failed."""


class Outcome(StrEnum):
    """What became of a run."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    MISSING = "missing"
    """It was due and did not come."""


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """One check of one run."""

    check: Check
    passed: Passed
    reason: str = ""
    """What was found and, if it failed, what was expected; one line, at most 300 characters."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """All checks of one run; the first failure decides."""

    outcome: Outcome
    results: tuple[CheckResult, ...] = ()
    """One for every check that the workflow asks for, in order."""
    says_failed: bool = False
    """Whether the run itself says that it failed: an honest output is a valid one."""
    said_done: str | None = None
    """The word by which the run claimed success, noted beside a failing verdict."""

    @property
    def failure(self) -> CheckResult | None:
        """The check that decided."""
        return next((result for result in self.results if result.passed is Passed.FAIL), None)


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it was found, unread: what differs when it was written again."""

    path: str
    device: int
    inode: int
    mtime_ns: int
    size: int
    ctime_ns: int = 0
    """Of the last change of any kind: what is written in place can be given its old time and size, but not this."""


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """An output as it was read."""

    path: str
    device: int
    inode: int
    mtime_ns: int
    size: int
    """Bytes of the file."""
    sha256: str
    """Of the file's bytes, hex; empty if it was not read to its end."""
    ctime_ns: int = 0

    @property
    def key(self) -> str:
        """What tells it from every other output, as text."""
        return f"file:{self.device}:{self.inode}:{self.mtime_ns}:{self.sha256}:{self.path}"

    @property
    def sighting(self) -> Sighting:
        """What finding it again unchanged would show."""
        return Sighting(
            path=self.path,
            device=self.device,
            inode=self.inode,
            mtime_ns=self.mtime_ns,
            size=self.size,
            ctime_ns=self.ctime_ns,
        )


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict with what later runs are compared with."""

    verdict: Verdict
    artifact: Artifact | None = None
    """None if there was nothing to read."""
    content: str = ""
    """Digest of the values without the timestamp, where the workflow asks for `unchanged`."""
    count: int | None = None
    """Of what the workflow counts."""


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the earlier runs of a workflow."""

    last_content: str = ""
    """Digest of the last run's."""
    last_run: int | None = None
    sizes: tuple[int, ...] = ()
    """Of the last passing runs, at most ten."""
    counts: tuple[int, ...] = ()
