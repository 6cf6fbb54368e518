"""A digest is put together from what was counted and noted."""

from collections.abc import Mapping, Sequence

import pytest

from jobs.digest.compose import Noted, Span, alarms_of, compose, rate_of
from jobs.digest.digest import Away, Digest, StoppedLoop, WeekRate
from jobs.digest.figures import CheckFigures, Figures, RunFigures
from jobs.digest.week import weeks_up_to
from jobs.verification.drift import Alarm, Drift
from jobs.verification.verdict import Check
from tests.digests import SUNDAY, WEEK

SPAN = Span(week="2026-W48", since=SUNDAY - WEEK, until=SUNDAY)
ASKED = Span(week="2026-W48", since=SUNDAY - 3 * WEEK, until=SUNDAY - 60, is_asked=True)
NOW = (WeekRate(week="2026-W48", passed=1),)


def _composed(span: Span = SPAN, *, rates: Sequence[WeekRate] = NOW, noted: Noted | None = None) -> Digest:
    return compose(span, Figures(), rates=rates, alarms=(), noted=noted or Noted())


@pytest.mark.parametrize(("later", "is_late"), [(0, False), (3600, False), (3601, True)])
def test_it_is_late_more_than_an_hour_after_its_slot(later: float, is_late: bool) -> None:
    digest = _composed()
    assert digest.is_late(digest.until + later) is is_late


def test_one_that_was_asked_for_is_of_no_week_and_never_late() -> None:
    asked = _composed(ASKED)
    assert (asked.week, asked.is_late(asked.until + 9999)) == (None, False)
    assert (asked.since, asked.until) == (SUNDAY - 3 * WEEK, SUNDAY - 60)


def test_of_the_rates_the_last_twelve_weeks_are_shown_and_all_are_asked_about() -> None:
    """A week between, of which nothing is known, had no runs."""
    weeks = weeks_up_to("2026-W48", 20)
    rates = [WeekRate(week=week, passed=20 - n, failed=n) for n, week in enumerate(weeks) if n != 17]
    digest = _composed(rates=rates)
    assert [rate.week for rate in digest.rates] == list(weeks[-12:])
    assert digest.rates[-3] == WeekRate(week=weeks[17])
    assert "18 times in 19 weeks" in digest.answers[2].answer


def test_weeks_before_the_first_that_is_known_are_not_shown() -> None:
    assert _composed().rates == NOW


def test_an_absence_is_cut_to_the_time_that_is_told() -> None:
    noted = Noted(absences=(Away(since=0, until=SUNDAY - 60), Away(since=SUNDAY - 30, until=SUNDAY + 60)))
    assert _composed(noted=noted).absences == (
        Away(since=SUNDAY - WEEK, until=SUNDAY - 60),
        Away(since=SUNDAY - 30, until=SUNDAY),
    )


def test_the_rate_is_that_of_all_workflows() -> None:
    runs = (RunFigures(workflow="a", passed=3, missing=9), RunFigures(workflow="b", passed=1, failed=2))
    assert rate_of("2026-W48", Figures(runs=runs)) == WeekRate(week="2026-W48", passed=4, failed=2)


def _history(*passed: int) -> Mapping[str, Figures]:
    """Of the weeks up to that of the digest; none of those in which nothing has passed."""
    weeks = weeks_up_to("2026-W48", len(passed))
    return {
        week: Figures(
            runs=(RunFigures(workflow="nightly", passed=number),),
            checks=(CheckFigures(workflow="nightly", check=Check.FRESH, passed=number),),
        )
        for week, number in zip(weeks, passed, strict=True)
        if number
    }


def test_drift_is_looked_for_in_all_weeks_of_a_workflow_also_those_between() -> None:
    [alarm] = alarms_of("nightly", _history(20, 0, 5, 5), SPAN, watched_since=None)
    assert (alarm.drift, alarm.weeks, alarm.runs) == (Drift.TOO_GOOD, 3, 30)


@pytest.mark.parametrize(
    ("span", "watched_since", "is_odd"),
    [
        (SPAN, "2026-W47", True),
        (SPAN, "2026-W48", False),
        (SPAN, None, False),
        (ASKED, "2026-W47", False),
    ],
)
def test_runs_are_awaited_of_a_workflow_that_was_watched_in_all_of_a_week_that_is_over(
    span: Span, watched_since: str | None, is_odd: bool
) -> None:
    odd = Alarm(drift=Drift.NO_RUNS, workflow="nightly", week="2026-W48", last_ran="2026-W47")
    expected = (odd,) if is_odd else ()
    assert alarms_of("nightly", _history(5, 0), span, watched_since=watched_since) == expected


def test_of_several_weeks_each_that_is_over_is_looked_at() -> None:
    """Also of a workflow that has never run; the newest of a kind is told."""
    several = Span(week="2026-W48", weeks=3, since=SUNDAY - 3 * WEEK, until=SUNDAY - 60, is_asked=True)
    [alarm] = alarms_of("nightly", {}, several, watched_since="2026-W45")
    assert alarm == Alarm(drift=Drift.NO_RUNS, workflow="nightly", week="2026-W47")
    good, silent = alarms_of("nightly", _history(20, 5, 5, 0, 9), several, watched_since="2026-W45")
    assert (good.drift, good.week, good.runs) == (Drift.TOO_GOOD, "2026-W46", 30)
    assert (silent.drift, silent.week, silent.last_ran) == (Drift.NO_RUNS, "2026-W47", "2026-W46")


@pytest.mark.parametrize(
    ("span", "tokens", "cost", "per_hour"),
    [
        (600.0, 1000, 5_000, (6000, 30_000)),
        (600.0, None, None, (None, None)),
        (0.0, 1000, 5_000, (None, None)),
    ],
    ids=["ten minutes", "nothing known", "no time"],
)
def test_what_a_loop_would_have_cost_is_reckoned_by_the_rate_it_had(
    span: float, tokens: int | None, cost: int | None, per_hour: tuple[int | None, int | None]
) -> None:
    stop = StoppedLoop(
        at=SUNDAY,
        agent="coder",
        source="gateway",
        incident=1,
        ordered_by=None,
        tool="exec",
        kind="thrash_loop",
        score=8,
        calls=10,
        span=span,
        tokens=tokens,
        cost=cost,
        currency=None,
        is_cost_part=False,
    )
    assert (stop.tokens_per_hour, stop.cost_per_hour) == per_hour
