"""Weeks: from Sunday 18:00 to Sunday 18:00, wherever that is."""

from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.digest.week import last_ended, shifted, slot, weeks_up_to

ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Pacific/Kiritimati",
)
zones = st.sampled_from(ZONES).map(ZoneInfo)
times = st.floats(min_value=0, max_value=4e9)
_DAY = 86_400


def _at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("week", "zone", "ends"),
    [
        ("2026-W48", "UTC", "2026-11-29T18:00"),
        ("2026-W48", "Europe/Berlin", "2026-11-29T17:00"),
        ("2026-W43", "Europe/Berlin", "2026-10-25T17:00"),
        ("2026-W42", "Europe/Berlin", "2026-10-18T16:00"),
        ("2026-W44", "America/New_York", "2026-11-01T23:00"),
        ("2026-W53", "UTC", "2027-01-03T18:00"),
        ("2027-W01", "UTC", "2027-01-10T18:00"),
        ("2026-W40", "Australia/Lord_Howe", "2026-10-04T07:00"),
    ],
)
def test_a_week_ends_on_the_sunday_of_its_iso_week(week: str, zone: str, ends: str) -> None:
    """At 18:00 by the clocks there, also on the day that they are changed."""
    assert slot(week, ZoneInfo(zone)) == _at(ends)


@pytest.mark.parametrize(
    ("at", "ended"),
    [
        ("2026-11-29T17:59:59", "2026-W47"),
        ("2026-11-29T18:00", "2026-W48"),
        ("2026-11-30T00:00", "2026-W48"),
        ("2027-01-03T17:00", "2026-W52"),
        ("2027-01-03T18:00", "2026-W53"),
        ("2027-01-10T18:00", "2027-W01"),
    ],
)
def test_the_last_week_is_over_from_its_slot_on(at: str, ended: str) -> None:
    assert last_ended(_at(at), UTC) == ended


@given(at=times, zone=zones)
def test_every_time_lies_in_one_week(at: float, zone: ZoneInfo) -> None:
    week = last_ended(at, zone)
    assert slot(week, zone) <= at < slot(shifted(week, 1), zone)
    assert last_ended(slot(week, zone), zone) == week


@given(at=times, zone=zones, count=st.integers(min_value=1, max_value=120))
def test_weeks_follow_each_other(at: float, zone: ZoneInfo, count: int) -> None:
    """None is left out or comes twice, by name or by time, also across years and changes of the clocks."""
    weeks = weeks_up_to(last_ended(at, zone), count)
    assert len(weeks) == count
    assert list(weeks) == sorted(set(weeks))
    for before, after in pairwise(weeks):
        assert shifted(before, 1) == after
        assert 6 * _DAY <= slot(after, zone) - slot(before, zone) <= 8 * _DAY
