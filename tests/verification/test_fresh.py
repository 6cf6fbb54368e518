"""Is it fresh? As old as is allowed at most, and not from the future."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.verification.checks import run_checks
from jobs.verification.spec import Format, WorkflowSpec
from jobs.verification.verdict import Check, Past
from tests.verification.judging import (
    BARE,
    GOOD,
    NOW,
    SPEC,
    Row,
    assert_judged,
    each,
    judged,
    output,
    written,
)

FRESH = Check.FRESH


def made(at: object) -> bytes:
    return written({**GOOD, "timestamp": at})


def timed(form: Format, path: str = "at") -> WorkflowSpec:
    return msgspec.structs.replace(BARE[form], timestamp=path)


BATTERY = (
    Row(made(NOW), None, "timestamp is 0 s old, at most 30 min"),
    Row(made(NOW - 1800), None, "timestamp is 30 min old"),
    Row(made(NOW + 60), None, "timestamp is 1 min ahead"),
    Row(made((NOW - 600) * 1000), None, "timestamp is 10 min old"),
    Row(made(str(NOW - 600)), None),
    Row(made("2026-01-01T01:00:00+01:00"), None),
    Row(made("2025-12-31T23:30:00Z"), None),
    Row(made("2026-01-01T00:01:00Z"), None),
    Row(made(NOW - 1800.001), FRESH, "30 min old (2025-12-31 23:29:59 UTC), expected at most 30 min"),
    Row(made("2025-12-31T23:29:59.999Z"), FRESH, "expected at most 30 min"),
    Row(made(NOW + 60.001), FRESH, "timestamp is 1 min ahead (2026-01-01 00:01:00 UTC), expected at most 60 s"),
    Row(made("2026-01-01T00:01:00.001Z"), FRESH, "ahead"),
    Row(made("2026-01-01T00:00:00+00:30"), None),
    Row(made("2026-01-01T00:00:00-01:00"), FRESH, "timestamp is 1 h ahead"),
    Row(made(NOW * 1_000_000), FRESH, "ahead (epoch 1,767,225,600,000)"),
    Row(made(-1), FRESH, "timestamp is 20,454 d old (epoch -1)"),
    Row(made(0), FRESH, "timestamp is 20,454 d old (1970-01-01 00:00:00 UTC)"),
    Row(made("2026-01-01T00:00:00"), FRESH, 'timestamp: "2026-01-01T00:00:00" has no zone, expected ISO 8601'),
    Row(made("2026-01-01"), FRESH, "a date without a time"),
    Row(made(True), FRESH, "timestamp: true is no time"),
    Row(made([]), FRESH, "timestamp: an array of 0 is no time"),
    Row(made("completed"), FRESH, 'timestamp: "completed" is no time'),
    Row(b"{}", FRESH, "at is missing, expected a time", timed(Format.JSON)),
    Row(b'{"at": null}', FRESH, "at: null is no time", timed(Format.JSON)),
    Row(b'[{"at": 1}, {"at": 1767225600}]', None, "[].at is 0 s old", timed(Format.JSON, "[].at")),
    Row(b'[{"at": 1767229200}, {"at": 1767225600}]', FRESH, "[0].at is 1 h ahead", timed(Format.JSON, "[].at")),
    Row(b"[]", FRESH, "[].at holds no value at all, expected a time", timed(Format.JSON, "[].at")),
    Row(b'{"at": 1767225600}\n{"at": 5}', None, "at is 0 s old", timed(Format.JSONL)),
    Row(b'{"at": 1767225600}\n{"at": "5 o\'clock"}', FRESH, "line 2: at: ", timed(Format.JSONL)),
    Row(b'{"at": 1767225600}\n{}', FRESH, "line 2: at is missing", timed(Format.JSONL)),
    Row(b'{"at": 1767225600}\n{"at": 1767229200}', FRESH, "line 2: at is 1 h ahead", timed(Format.JSONL)),
    Row(b"at,x\n1767225600,1\n", None, "", timed(Format.CSV)),
    Row(b"at,x\n2026-01-01 00:00:00Z,1\n5,1\n", None, "", timed(Format.CSV)),
    Row(b"at,x\n1767225600,1\n,2\n", FRESH, 'row 3: at: "" is no time', timed(Format.CSV)),
    Row(b"at,x\n", FRESH, "at holds no value at all", timed(Format.CSV)),
    Row(b"at: 2026-01-01T00:00:00Z", None, "", timed(Format.YAML)),
    Row(b"at: 2026-01-01 01:00:00 +01:00", None, "", timed(Format.YAML)),
    Row(b"at: 2026-01-01 00:00:00", FRESH, "has no zone", timed(Format.YAML)),
    Row(b"at: 2026-01-01", FRESH, "a date without a time", timed(Format.YAML)),
    Row(b"at = 2026-01-01T00:00:00Z", None, "", timed(Format.TOML)),
    Row(b"at = 2026-01-01T00:00:00", FRESH, "has no zone", timed(Format.TOML)),
    Row(b"at = 2026-01-01", FRESH, "a date without a time", timed(Format.TOML)),
    Row(b"at = 00:00:00", FRESH, "is no time", timed(Format.TOML)),
    Row(b"2026-01-01T00:00:00Z", FRESH, "at is missing", timed(Format.TEXT)),
)  # fmt: skip


@each(BATTERY)
def test_its_newest_time_is_recent_and_none_is_from_the_future(row: Row) -> None:
    assert_judged(row, judged(row.data, row.spec))


@pytest.mark.parametrize(
    ("mtime", "fails", "reason"),
    [
        (NOW - 1800, None, "the file is 30 min old, at most 30 min"),
        (NOW + 60, None, "the file is 1 min ahead"),
        (NOW - 1800.5, FRESH, "the file is 30 min old (2025-12-31 23:29:59 UTC), expected at most 30 min"),
        (NOW + 60.5, FRESH, "the file is 1 min ahead"),
        (0, FRESH, "the file is 20,454 d old"),
    ],
)
@pytest.mark.parametrize("form", [Format.JSON, Format.TEXT, Format.ANY])
def test_without_a_timestamp_the_time_of_the_file_counts(
    mtime: float, fails: Check | None, reason: str, form: Format
) -> None:
    found = run_checks(output(b"{}", mtime=mtime), BARE[form], NOW, Past())
    assert_judged(Row(b"", fails, reason), found)


@given(st.floats(0, 1e7), st.floats(-1e3, 1e7))
def test_the_age_alone_decides(max_age: float, age: float) -> None:
    spec = msgspec.structs.replace(SPEC, max_age=max_age)
    found = judged(made(NOW - age), spec)
    # As the text has it: a float of seconds holds no more than so many digits.
    at = float(str(NOW - age))
    is_fresh = -60 <= NOW - at <= max_age
    assert_judged(Row(b"", None if is_fresh else FRESH), found)
