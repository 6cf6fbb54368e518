"""Drift: what is odd about the weeks of a workflow, and how odd."""

from collections.abc import Sequence
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.verification.binomial import at_least
from jobs.verification.drift import Alarm, Drift, DriftPolicy, RunsOfWeek, Tally, by_oddity, drift_of
from jobs.verification.verdict import Check

FRESH, STATUS = Check.FRESH, Check.STATUS


def week(
    passed: int = 0, failed: int = 0, *, not_reached: int = 0, missing: int = 0, name: str = ""
) -> RunsOfWeek:
    """A week in which one check was asked for, if there were any runs."""
    runs = passed + failed + not_reached
    tally = Tally(passed=passed, failed=failed, not_reached=not_reached)
    return RunsOfWeek(week=name, runs=runs, missing=missing, checks={FRESH: tally} if runs else {})


def _alarms(*weeks: RunsOfWeek, awaits_runs: bool = True) -> tuple[Alarm, ...]:
    return drift_of("nightly", weeks, awaits_runs=awaits_runs)


def _drifts(*weeks: RunsOfWeek) -> list[Drift]:
    return [alarm.drift for alarm in _alarms(*weeks)]


# ── too good ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("weeks", "is_too_good"),
    [
        ([week(10), week(10), week(10)], True),
        ([week(10), week(10), week(9)], False),
        ([week(100), week(100)], False),
        ([week(1), week(14), week(), week(15)], True),
        ([week(28), week(1), week(1)], True),
        ([week(9, 1), week(10), week(10), week(10)], True),
        ([week(9, 1), week(10), week(10)], False),
        ([week(5), week(5, 1), week(10), week(10), week(9)], False),
        ([week(30), week(30), week(30), week()], False),
        ([week(1)] * 29, False),
        ([week(1)] * 30, True),
    ],
)
def test_a_check_is_too_good_that_has_not_failed_in_three_weeks_and_thirty_runs(
    weeks: Sequence[RunsOfWeek], is_too_good: bool
) -> None:
    """As many weeks are looked at as hold thirty runs; those without any are passed over, but not the newest."""
    assert (Drift.TOO_GOOD in _drifts(*weeks)) is is_too_good


def test_it_says_how_likely_that_is_by_the_rate_of_the_eight_weeks_before() -> None:
    """Not of earlier ones."""
    weeks = [week(1, 9), *[week(9, 1)] * 8, week(10), week(12), week(), week(13)]
    [alarm] = _alarms(*weeks)
    assert alarm == Alarm(
        drift=Drift.TOO_GOOD,
        workflow="nightly",
        check=FRESH,
        weeks=3,
        runs=35,
        earlier_runs=80,
        earlier_failed=8,
        likelihood=alarm.likelihood,
    )
    assert isclose(alarm.likelihood, 0.9**35)


@pytest.mark.parametrize("before", [[], [week(20)] * 8], ids=["no runs before", "no failures before"])
def test_without_a_failure_on_record_one_in_a_hundred_is_assumed(before: Sequence[RunsOfWeek]) -> None:
    [alarm] = _alarms(*before, week(10), week(10), week(10))
    assert alarm.earlier_failed == 0
    assert isclose(alarm.likelihood, 0.99**30)


_some = st.builds(week, st.integers(0, 20), st.sampled_from([0, 0, 0, 1, 5]), not_reached=st.integers(0, 3))


@given(weeks=st.lists(_some, min_size=1, max_size=40))
def test_nothing_is_too_good_that_has_failed_in_the_weeks_it_is_about(weeks: list[RunsOfWeek]) -> None:
    """The newest weeks with so many runs, and the likelihood is that of so many runs without a failure."""
    for alarm in _alarms(*weeks):
        if alarm.drift is not Drift.TOO_GOOD:
            continue
        tallies = [each.checks.get(FRESH, Tally()) for each in weeks]
        tried = [tally for tally in tallies if tally.tried][-alarm.weeks :]
        assert not any(tally.failed for tally in tried)
        assert sum(tally.tried for tally in tried) == alarm.runs >= 30
        assert alarm.weeks >= 3
        assert sum(tally.tried for tally in tried[1:]) < 30 or alarm.weeks == 3
        rate = alarm.earlier_failed / alarm.earlier_runs if alarm.earlier_failed else 0.01
        assert isclose(alarm.likelihood, (1 - rate) ** alarm.runs)


# ── no runs, never reached ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("weeks", "numbers"),
    [
        ([week(3, 1), week(name="W2"), week(2, name="W3"), week(name="W4")], (0, "W3")),
        ([week(missing=7)], (7, "")),
        ([week(5, name="W1"), week(missing=2)], (2, "W1")),
        ([week(9, name="W1"), *[week()] * 50], (0, "W1")),
        ([week()], (0, "")),
        ([week(1), week(1)], None),
        ([week(1), week(1, missing=3)], None),
    ],
    ids=["some before", "only missing", "both", "long ago", "never any", "runs", "runs and missing"],
)
def test_no_runs_are_odd_however_long_there_were_none(
    weeks: Sequence[RunsOfWeek], numbers: tuple[int, str] | None
) -> None:
    """When the last ones were is said, and how many were missing."""
    found = [(alarm.runs, alarm.last_ran) for alarm in _alarms(*weeks) if alarm.drift is Drift.NO_RUNS]
    assert found == ([] if numbers is None else [numbers])


def test_no_runs_are_not_odd_before_the_week_is_over_nor_of_what_is_not_watched() -> None:
    assert _alarms(week(5), week(), awaits_runs=False) == ()


def test_a_check_is_never_reached_that_was_asked_for_and_not_tried_in_any_run() -> None:
    """Of three runs at least: one or two that fail early are no drift."""
    [alarm] = _alarms(week(not_reached=3))
    assert alarm == Alarm(drift=Drift.NEVER_REACHED, workflow="nightly", check=FRESH, runs=3)
    assert _drifts(week(not_reached=2)) == []
    assert _drifts(week(1, not_reached=4)) == []
    assert _drifts(week(0, 1, not_reached=4)) == []


# ── jumped ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("weeks", "has_jumped"),
    [
        ([week(99, 1), week(10, 5)], True),
        ([week(90, 10), week(9, 1)], False),
        ([week(100), week(10, 1)], False),
        ([week(100), week(10, 2)], True),
        ([week(100), week(13, 2)], True),
        ([week(100), week(14, 2)], False),
        ([week(0, 10), week(0, 10)], False),
        ([week(0, 10)], False),
        ([week(), week(0, 10)], False),
        ([week(5, 5), week(6, 5)], False),
    ],
)
def test_a_failure_rate_has_jumped_that_is_hardly_likely_by_the_one_before(
    weeks: Sequence[RunsOfWeek], has_jumped: bool
) -> None:
    """At least two failures, and something to be compared with."""
    assert (Drift.JUMPED in _drifts(*weeks)) is has_jumped


def test_a_jump_says_how_unlikely_it_is() -> None:
    [alarm] = _alarms(week(0, 50), *[week(19, 1)] * 8, week(12, 8))
    assert alarm == Alarm(
        drift=Drift.JUMPED,
        workflow="nightly",
        check=FRESH,
        runs=20,
        failed=8,
        earlier_runs=160,
        earlier_failed=8,
        likelihood=at_least(8, 20, 0.05),
    )


def test_the_numbers_are_a_policy() -> None:
    strict = DriftPolicy(good_weeks=1, good_runs=1, unlikely=1)
    weeks = [week(8, 2), week(6, 4)]
    assert [alarm.drift for alarm in drift_of("nightly", weeks, policy=strict)] == [Drift.JUMPED]
    [alarm] = drift_of("nightly", [week(8, 2), week(3)], policy=strict)
    assert (alarm.drift, alarm.weeks, alarm.earlier_runs) == (Drift.TOO_GOOD, 1, 10)


# ── all together ──────────────────────────────────────────────────────────────────────────────────


def test_every_check_of_the_newest_week_is_looked_at() -> None:
    """In the order in which they are tried; one that is not asked for any more is forgotten."""
    good = Tally(passed=10)
    before = RunsOfWeek(runs=10, checks={Check.EXISTS: good, FRESH: good, STATUS: good})
    newest = RunsOfWeek(runs=10, checks={FRESH: good, STATUS: good})
    assert [alarm.check for alarm in _alarms(before, before, newest)] == [FRESH, STATUS]


def test_alarms_are_told_kind_by_kind_the_least_likely_first() -> None:
    jump = Alarm(drift=Drift.JUMPED, workflow="a", check=FRESH, likelihood=0.009)
    unlikely = Alarm(drift=Drift.TOO_GOOD, workflow="b", check=FRESH, likelihood=0.1)
    likely = Alarm(drift=Drift.TOO_GOOD, workflow="a", check=FRESH, likelihood=0.7)
    unseen = Alarm(drift=Drift.NEVER_REACHED, workflow="a", check=FRESH)
    silent = Alarm(drift=Drift.NO_RUNS, workflow="c")
    other = Alarm(drift=Drift.NO_RUNS, workflow="b")
    ordered = (jump, other, silent, unseen, unlikely, likely)
    assert by_oddity(reversed(ordered)) == ordered
