"""When a run is due, in winter and in summer."""

from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.verification.slots import date_of, next_expected, slot_of, slots_between
from jobs.verification.spec import WorkflowSpec

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = [UTC, BERLIN, ZoneInfo("America/New_York"), ZoneInfo("Australia/Lord_Howe"), ZoneInfo("Asia/Kolkata")]
NIGHTLY = "0 2 * * *"
EXPRESSIONS = [NIGHTLY, "30 2 * * *", "*/30 * * * *", "15 */6 * * 1-5", "0 0 1 * *", "0,30 1-3 * * *"]


def at(text: str, zone: tzinfo = UTC) -> float:
    """A local time; of the repeated hour the first."""
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


def local(slots: tuple[float, ...], zone: tzinfo) -> list[str]:
    return [datetime.fromtimestamp(slot, zone).strftime("%d %H:%M %z") for slot in slots]


@pytest.mark.parametrize(
    ("now", "slot"),
    [
        ("2027-03-01T02:00:00", "2027-03-01T02:00"),
        ("2027-03-01T01:59:59.999", "2027-02-28T02:00"),
        ("2027-03-01T23:00", "2027-03-01T02:00"),
    ],
)
def test_a_moment_belongs_to_the_newest_slot_up_to_it(now: str, slot: str) -> None:
    assert slot_of(NIGHTLY, at(now), UTC) == at(slot)


def test_the_zone_decides_when_a_slot_is() -> None:
    """2 o'clock in Berlin is 1 o'clock in UTC in winter, and midnight in summer."""
    assert slot_of(NIGHTLY, at("2027-01-10T12:00"), BERLIN) == at("2027-01-10T01:00")
    assert slot_of(NIGHTLY, at("2027-07-10T12:00"), BERLIN) == at("2027-07-10T00:00")


@pytest.mark.parametrize("sunday", ["0", "7", "SUN", "sun"])
def test_0_and_7_are_sunday(sunday: str) -> None:
    """28 February 2027 is a Sunday."""
    assert slot_of(f"0 2 * * {sunday}", at("2027-03-02T12:00"), UTC) == at("2027-02-28T02:00")


def test_a_slot_in_the_hour_that_summer_time_skips_is_once() -> None:
    """On 28 March 2027 the clock in Berlin goes from 2 to 3: what was due between is due then."""
    found = slots_between("30 2 * * *", at("2027-03-27T12:00"), at("2027-03-29T12:00"), BERLIN, 10)
    assert local(found, BERLIN) == ["28 03:00 +0200", "29 02:30 +0200"]


def test_all_slots_of_the_skipped_hour_are_one() -> None:
    found = slots_between("0,15,45 2 * * *", at("2027-03-28T00:00"), at("2027-03-28T12:00"), BERLIN, 10)
    assert local(found, BERLIN) == ["28 03:00 +0200"]


def test_a_slot_in_the_hour_that_winter_time_repeats_is_once() -> None:
    """On 31 October 2027 the clock in Berlin goes from 3 back to 2: what is due between is due the first time."""
    found = slots_between("30 2 * * *", at("2027-10-30T12:00"), at("2027-11-01T12:00"), BERLIN, 10)
    assert local(found, BERLIN) == ["31 02:30 +0200", "01 02:30 +0100"]


def test_within_the_repeated_hour_the_slot_has_passed() -> None:
    """Ten past two the second time is later than half past two the first time."""
    second = at("2027-10-31T00:30") + 40 * 60
    assert datetime.fromtimestamp(second, BERLIN).strftime("%H:%M %z") == "02:10 +0100"
    assert slot_of("30 2 * * *", second, BERLIN) == at("2027-10-31T00:30")
    spec = WorkflowSpec(expect="30 2 * * *")
    assert next_expected(spec, 0, second, BERLIN) == at("2027-11-01T01:30")


def test_every_half_hour_comes_twice_in_the_repeated_hour() -> None:
    """It is due every half hour that passes, whatever the clock shows."""
    found = slots_between("*/30 * * * *", at("2027-10-30T23:59"), at("2027-10-31T02:00"), BERLIN, 10)
    assert [after - before for before, after in pairwise(found)] == [1800] * 4


def test_of_very_many_slots_the_newest_are_returned_oldest_first() -> None:
    found = slots_between("* * * * *", 0, at("2027-03-01T12:00:30"), UTC, 3)
    assert local(found, UTC) == ["01 11:58 +0000", "01 11:59 +0000", "01 12:00 +0000"]


def test_between_a_slot_and_itself_there_is_none() -> None:
    slot = at("2027-03-01T02:00")
    assert slots_between(NIGHTLY, slot, slot, UTC, 9) == ()
    assert slots_between(NIGHTLY, slot - 1, slot, UTC, 9) == (slot,)


def test_a_day_that_never_comes_has_no_slot() -> None:
    """1 February as the fifth Saturday of its month."""
    never = "0 0 */31 2 6#5"
    assert slot_of(never, at("2027-03-01T12:00"), UTC) is None
    assert next_expected(WorkflowSpec(expect=never), 0, at("2027-03-01T12:00"), UTC) is None
    assert slots_between(never, 0, at("2027-03-01T12:00"), UTC, 9) == ()


def test_what_comes_every_so_often_is_due_that_long_after_the_last() -> None:
    assert next_expected(WorkflowSpec(every=3600), 1000, 9999, UTC) == 4600


def test_what_has_no_time_is_not_expected() -> None:
    assert next_expected(WorkflowSpec(), 1000, 9999, UTC) is None


def test_a_date_is_that_of_the_zone() -> None:
    assert date_of(at("2027-03-01T23:30"), UTC) == "2027-03-01"
    assert date_of(at("2027-03-01T23:30"), BERLIN) == "2027-03-02"


@given(
    expect=st.sampled_from(EXPRESSIONS),
    zone=st.sampled_from(ZONES),
    now=st.datetimes(datetime(2026, 1, 1), datetime(2029, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_looking_back_and_looking_ahead_find_the_same_slots(expect: str, zone: tzinfo, now: datetime) -> None:
    """From any moment of any year: the slot after it is, once it has come, the newest; and none lies between."""
    moment = now.timestamp()
    coming = next_expected(WorkflowSpec(expect=expect), 0, moment, zone)
    assert coming is not None
    assert coming > moment
    assert slot_of(expect, coming, zone) == coming
    newest = slot_of(expect, moment, zone)
    assert newest is not None
    assert newest <= moment
    assert slot_of(expect, coming - 0.001, zone) == newest
    span = timedelta(days=3).total_seconds()
    found = slots_between(expect, moment - span, moment, zone, 1000)
    assert list(found) == sorted(set(found))
    assert all(slot_of(expect, slot, zone) == slot for slot in found)
