"""Times: what is one, to the second, and what is none, with the reason."""

from contextlib import suppress
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.verification.moment import moment
from jobs.verification.wording import UnmetError
from tests.verification.judging import NOW


@pytest.mark.parametrize(
    "value",
    [
        "2026-01-01T00:00:00Z",
        "2026-01-01t00:00:00z",
        "2026-01-01 00:00:00Z",
        "2026-01-01T00:00:00+00:00",
        "2026-01-01T00:00:00-00:00",
        "2026-01-01T01:30:00+01:30",
        "2026-01-01T01:30:00+0130",
        "2025-12-31T19:00:00-05",
        "2026-01-01 00:00:00 +0000",
        "2026-01-01T00:00Z",
        "20260101T000000Z",
        "2026-01-01T00:00:00.000Z",
        "2026-01-01T00:00:00,000000000Z",
        " 2026-01-01T00:00:00Z\n",
        "2025-12-31T23:59:60Z",
        "2026-01-01T00:59:60+01:00",
        1_767_225_600,
        1_767_225_600.0,
        1_767_225_600_000,
        1.7672256e12,
        "1767225600",
        "1767225600.0",
        "1767225600000",
    ],
    ids=repr,
)
def test_iso_8601_with_a_zone_and_epoch_numbers_are_times(value: object) -> None:
    """A zone is Z or an offset; a leap second is the first of the next minute; above 1e11 are milliseconds; texts are as good."""
    assert moment(value) == NOW


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("2026-01-01T00:00:00", "has no zone"),
        ("2026-01-01 00:00", "has no zone"),
        ("2026-01-01", "a date without a time"),
        ("20260101T", "is no time"),
        ("2026-13-01T00:00:00Z", "is no time"),
        ("2026-02-30T00:00:00Z", "is no time"),
        ("2026-01-01T25:00:00Z", "is no time"),
        ("2026-01-01T24:00:00Z", "is no time"),
        ("2026-01-01T00:00:61Z", "is no time"),
        ("2026-01-01T00:00:00+24:00", "is no time"),
        ("2026-01-01T00:00:00 UTC", "is no time"),
        ("2026-01-01T00:00:00ZZ", "is no time"),
        ("\uff12\uff10\uff12\uff16-01-01T00:00:00Z", "is no time"),
        ("Thu, 01 Jan 2026 00:00:00 GMT", "is no time"),
        ("yesterday", '"yesterday" is no time'),
        ("nan", "is no time"),
        ("1e9", "is no time"),
        ("", '"" is no time'),
        (True, "true is no time"),
        (None, "null is no time"),
        ([], "an array of 0 is no time"),
        ({"seconds": 1}, "a table of 1 is no time"),
        (float("nan"), "nan is no time"),
        (float("inf"), "inf is no time"),
        (10**400, "a huge number is no time"),
        (-(10**18), "is no time"),
        ("9" * 30, "is no time"),
    ],
)
def test_what_is_no_time_says_why(value: object, reason: str) -> None:
    with pytest.raises(UnmetError, match="expected ISO 8601 with a zone, or epoch") as refused:
        moment(value)
    assert reason in str(refused.value)


zones = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(timezones=zones), st.sampled_from("T "))
def test_every_time_that_is_written_is_read(at: datetime, separator: str) -> None:
    assert moment(at.isoformat(separator)) == pytest.approx(at.timestamp(), abs=1e-5)


@given(st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.none()))
def test_any_value_is_a_time_or_is_refused(value: object) -> None:
    with suppress(UnmetError):
        assert abs(moment(value)) < 1e18
