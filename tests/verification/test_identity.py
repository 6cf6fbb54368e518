"""Which run a report is about."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from jobs.verification.history import RecordedVerdict, Report, Trigger
from jobs.verification.identity import (
    is_about,
    is_failed_try,
    is_missing,
    is_verified,
    names_of,
    run_of,
    slot_for,
)
from jobs.verification.spec import Names, WorkflowSpec
from jobs.verification.verdict import Judged, Outcome, Sighting
from tests.fakes import NOON
from tests.verdicts import MISSING, a_report, a_run, a_sighting, a_verdict, an_artifact, failing, passing

PLAIN = WorkflowSpec(name="nightly", max_age=1800)
DAILY = WorkflowSpec(name="nightly", expect="0 2 * * *")
SLOT = datetime(2027, 1, 15, 2, tzinfo=UTC).timestamp()
"""The newest at noon."""


# ── when it was due ───────────────────────────────────────────────────────────────────────────────


def test_a_report_is_about_the_newest_slot() -> None:
    assert slot_for(DAILY, a_report(at=SLOT + 3600), UTC) == SLOT


def test_a_report_that_waited_is_about_the_slot_at_its_time() -> None:
    """However late it is dealt with."""
    assert slot_for(DAILY, a_report(at=SLOT - 60), UTC) == SLOT - 86_400


def test_a_slot_that_is_known_is_kept() -> None:
    report = Report(workflow="nightly", by=Trigger.SLOT, at=NOON, slot=SLOT - 86_400)
    assert slot_for(DAILY, report, UTC) == SLOT - 86_400


def test_without_slots_a_run_has_none() -> None:
    assert slot_for(PLAIN, a_report(), UTC) is None


def test_the_date_is_the_slots_in_the_zone_of_the_settings() -> None:
    """2 o'clock in Auckland is the day before in UTC."""
    auckland = ZoneInfo("Pacific/Auckland")
    report = a_report(at=datetime(2027, 1, 14, 14, tzinfo=UTC).timestamp())
    assert names_of(DAILY, report, auckland) == Names(date="2027-01-15", run=None)


def test_without_slots_the_date_is_the_days_on_which_it_was_reported() -> None:
    report = a_report(at=SLOT, reported="r-7")
    assert names_of(PLAIN, report, UTC) == Names(date="2027-01-15", run="r-7")


# ── what tells it from the others ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("spec", "report", "slot", "key"),
    [
        (DAILY, a_report(reported="r-7"), SLOT, f"slot:{SLOT:.0f}"),
        (PLAIN, a_report(Trigger.SLOT), NOON, f"due:{NOON:.0f}"),
        (PLAIN, a_report(reported="r-7"), None, "run:r-7"),
        (PLAIN, a_report(Trigger.SESSION, reported="s-1"), None, f"end:s-1:{NOON:.3f}"),
    ],
)
def test_a_run_is_told_by_its_slot_or_its_reporters_id(
    spec: WorkflowSpec, report: Report, slot: float | None, key: str
) -> None:
    run = run_of(spec, report, slot, an_artifact())
    assert (run.workflow, run.key, run.slot, run.at) == ("nightly", key, slot, NOON)
    assert run.reported == report.reported


def test_else_a_run_is_told_by_what_it_left() -> None:
    first, again, other = (run_of(PLAIN, a_report(), None, an_artifact(n)) for n in (1, 1, 2))
    assert first.key == again.key != other.key


def test_what_left_nothing_is_told_by_its_time() -> None:
    assert run_of(PLAIN, a_report(), None, None).key == f"none:{NOON:.3f}"


# ── one output, one run ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("report", "reported", "age", "same"),
    [
        (a_report(Trigger.OUTPUT), None, 0, True),
        (a_report(Trigger.OUTPUT), "r-7", 9999, True),
        (a_report(reported="r-7"), "r-7", 9999, True),
        (a_report(reported="r-8"), "r-7", 0, False),
        (a_report(reported="r-7"), None, 130, True),
        (a_report(reported="r-7"), None, 131, False),
        (a_report(Trigger.SESSION, reported="s-1"), None, 60, True),
        (a_report(Trigger.SESSION, reported="s-1"), "s-1", 60, False),
    ],
)
def test_a_report_is_about_the_run_that_left_the_output_unless_another_has_claimed_it(
    report: Report, reported: str | None, age: float, *, same: bool
) -> None:
    """An output that was verified long before is no excuse for having left none."""
    verdict = a_verdict(passing(), at=NOON - age)
    assert is_about(report, a_run(reported=reported), verdict, PLAIN) is same


# ── verified once ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("newest", "by", "verified"),
    [
        (None, Trigger.OUTPUT, False),
        (a_verdict(passing(1)), Trigger.OUTPUT, True),
        (a_verdict(failing(1)), Trigger.REPORT, True),
        (a_verdict(passing(2)), Trigger.OUTPUT, False),
        (a_verdict(failing(None)), Trigger.OUTPUT, False),
        (a_verdict(MISSING), Trigger.OUTPUT, False),
        (a_verdict(passing(1)), Trigger.COMMAND, False),
        (a_verdict(passing(1)), Trigger.CHAT, False),
    ],
)
def test_a_run_whose_output_has_a_verdict_needs_no_other_unless_asked_for(
    newest: RecordedVerdict | None, by: Trigger, *, verified: bool
) -> None:
    assert is_verified(a_report(by), newest, a_sighting(1)) is verified


def test_a_run_that_still_has_left_nothing_is_not_verified_again() -> None:
    assert is_verified(a_report(), a_verdict(failing(None)), None)
    assert not is_verified(a_report(), a_verdict(MISSING), None)


@pytest.mark.parametrize(
    ("newest", "by", "output", "failed"),
    [
        (None, Trigger.COMMAND, a_sighting(1), False),
        (a_verdict(passing(1)), Trigger.COMMAND, a_sighting(2), False),
        (a_verdict(MISSING), Trigger.COMMAND, a_sighting(1), False),
        (a_verdict(failing(1)), Trigger.COMMAND, a_sighting(2), True),
        (a_verdict(failing(1)), Trigger.CHAT, a_sighting(2), True),
        (a_verdict(failing(1)), Trigger.COMMAND, a_sighting(1), False),
        (a_verdict(failing(None)), Trigger.COMMAND, a_sighting(1), True),
        (a_verdict(failing(None)), Trigger.COMMAND, None, True),
        (a_verdict(failing(None)), Trigger.CHAT, None, False),
        (a_verdict(failing(1)), Trigger.CHAT, None, True),
    ],
)
def test_a_try_has_failed_if_another_one_follows(
    newest: RecordedVerdict | None, by: Trigger, output: Sighting | None, *, failed: bool
) -> None:
    """Not if the same output is judged once more, or a person only asks whether it has come."""
    assert is_failed_try(a_report(by), newest, output, Outcome.FAIL) is failed


@pytest.mark.parametrize(("newest", "failed"), [(None, False), (passing(1), False), (failing(1), True)])
def test_what_passes_has_failed_until_now(newest: Judged | None, *, failed: bool) -> None:
    """Though it is the same output: then it is the bar that was lowered, or the time that was chosen."""
    before = None if newest is None else a_verdict(newest)
    assert is_failed_try(a_report(Trigger.COMMAND), before, a_sighting(1), Outcome.PASS) is failed


# ── does a person who asks find it at last? ───────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("by", "newest", "output", "still"),
    [
        (Trigger.CHAT, a_verdict(MISSING), None, True),
        (Trigger.CHAT, a_verdict(MISSING), a_sighting(mtime=SLOT - 1), True),
        (Trigger.CHAT, a_verdict(MISSING), a_sighting(mtime=SLOT), False),
        (Trigger.CHAT, a_verdict(failing(None)), None, False),
        (Trigger.CHAT, None, None, False),
        (Trigger.REPORT, a_verdict(MISSING), None, False),
        (Trigger.COMMAND, a_verdict(MISSING), None, False),
    ],
)
def test_a_missing_run_is_missing_until_it_has_left_something(
    by: Trigger, newest: RecordedVerdict | None, output: Sighting | None, *, still: bool
) -> None:
    """Unless its reporter says that it was there: then it has left nothing, which is a failure."""
    assert is_missing(a_report(by), SLOT, newest, output) is still


def test_a_missing_run_that_was_never_due_is_found_with_any_output() -> None:
    assert not is_missing(a_report(Trigger.CHAT), None, a_verdict(MISSING), a_sighting())
