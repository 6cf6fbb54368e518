"""Every other criterion: each says what was found, or raises UnmetError with what was expected."""

import re
from functools import partial
from typing import Final

from jobs.verification.moment import moment
from jobs.verification.parsing import Document
from jobs.verification.path import ABSENT, parse_path
from jobs.verification.spec import StatusSpec, WorkflowSpec
from jobs.verification.verdict import Artifact
from jobs.verification.wording import (
    UnmetError,
    duration,
    instant,
    listed,
    one_line,
    quantity,
    shown,
)

FAILED: Final = "failed"
"""What an honest run says that did not succeed."""
_LARGEST_LEAD: Final = 60
"""Seconds that an output's time may be ahead of the clock."""
_LONGEST_NAME: Final = 100
_LONGEST_PATTERN: Final = 100


def found(artifact: Artifact | None, problem: str | None) -> Artifact:
    """Return the output that was read. Raises UnmetError if there is none, or nothing in it."""
    if problem is not None:
        raise UnmetError(problem)
    if artifact is None:
        raise UnmetError("there is no output, expected one")
    if not artifact.size:
        raise UnmetError(f"{_name(artifact)} is empty, expected some content")
    return artifact


def described(artifact: Artifact) -> str:
    """Say which output was read."""
    return f"{_name(artifact)}, {quantity(artifact.size, 'byte')}"


def _name(artifact: Artifact) -> str:
    return one_line(artifact.path.rpartition("/")[2], _LONGEST_NAME)


def fresh(document: Document, mtime: float, spec: WorkflowSpec, now: float) -> str:
    """Say how old the output is."""
    if spec.timestamp is None:
        return _recent(mtime, "the file", spec.max_age, now)
    times = document.checked(parse_path(spec.timestamp), partial(_no_time, now))
    if not times:
        raise UnmetError(f"{spec.timestamp} holds no value at all, expected a time")
    return _recent(max(map(moment, times)), spec.timestamp, spec.max_age, now)


def _no_time(now: float, value: object) -> str | None:
    if value is ABSENT:
        return " is missing, expected a time"
    try:
        return _ahead(moment(value), now)
    except UnmetError as unmet:
        return f": {unmet}"


def _ahead(at: float, now: float) -> str | None:
    if at - now <= _LARGEST_LEAD:
        return None
    return f" is {duration(at - now)} ahead ({instant(at)}), expected at most {_LARGEST_LEAD} s"


def _recent(at: float, what: str, max_age: float, now: float) -> str:
    if ahead := _ahead(at, now):
        raise UnmetError(f"{what}{ahead}")
    age = now - at
    says = f"{what} is {duration(age)} old" if age >= 0 else f"{what} is {duration(-age)} ahead"
    if age > max_age:
        raise UnmetError(f"{says} ({instant(at)}), expected at most {duration(max_age)}")
    return f"{says}, at most {duration(max_age)}"


def status(document: Document, spec: StatusSpec) -> str:
    """Return the last status that the run gives itself; all must be allowed."""
    found = document.checked(parse_path(spec.field), partial(_not_allowed, spec.allowed))
    if not found:
        raise UnmetError(f"{spec.field} holds no value at all, expected {listed(spec.allowed)}")
    return str(found[-1])


def _not_allowed(allowed: tuple[str, ...], value: object) -> str | None:
    if isinstance(value, str) and value in allowed:
        return None
    return f" is {'missing' if value is ABSENT else shown(value)}, expected {listed(allowed)}"


def forbid(data: bytes, patterns: tuple[str, ...]) -> str:
    """Say that none of the patterns is found; what is found is not shown: it may be what is to be kept out."""
    text = data.decode(errors="replace")
    for pattern in patterns:
        if match := re.search(pattern, text):
            line = text.count("\n", 0, match.start()) + 1
            raise UnmetError(
                f"line {line} matches {one_line(pattern, _LONGEST_PATTERN)}, which is forbidden: expected no match"
            )
    return f"{quantity(len(patterns), 'pattern')} not found"


def command(
    exit_code: int | None, expected: int | None, trouble: str | None, last_line: str, took: float
) -> str:
    """Say how the command ended; nothing is expected of one that is not what was approved."""
    said = f": {one_line(last_line, 150)}" if last_line.strip() else ""
    if exit_code is None:
        instead = "" if expected is None else f", expected exit code {expected}"
        raise UnmetError(f"{trouble or 'the command did not end'}{instead}{said}")
    ended = f"exit code {exit_code} after {duration(took)}"
    if exit_code != expected:
        raise UnmetError(f"{ended}, expected {expected}{said}")
    return f"{ended}{said}"
