"""What was counted and noted of a week -> what is told of it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from jobs.digest.digest import Away, Digest, PinChange, StoppedLoop, Tested, WeekRate
from jobs.digest.figures import Figures
from jobs.digest.questions import answers
from jobs.digest.week import weeks_up_to
from jobs.verification.drift import Alarm, RunsOfWeek, Tally, by_oddity, drift_of

RATES_SHOWN: Final = 12
"""Weeks."""
LOOKED_BACK: Final = 104
"""Weeks in which drift is looked for: of a weekly job, thirty runs take thirty."""
_LATE: Final = 3600
"""Seconds after its slot."""
_NONE: Final = Figures()


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """The length of time that a digest is about."""

    week: str
    """The one that it ends in."""
    since: float
    until: float
    is_asked: bool = False
    """Whether somebody has asked for it: then it may end in the middle of its week, and begin weeks before."""


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """What is told as it was found."""

    selftests: tuple[Tested, ...] = ()
    stops: tuple[StoppedLoop, ...] = ()
    pins: tuple[PinChange, ...] = ()
    absences: tuple[Away, ...] = ()
    """Whatever touches the length of time."""
    commands: tuple[str, ...] = ()
    """The workflows that run a command."""


def compose(
    span: Span,
    figures: Figures,
    *,
    rates: Sequence[WeekRate],
    alarms: Iterable[Alarm],
    noted: Noted,
    now: float,
) -> Digest:
    """Put a digest together; `rates` of all weeks that are known, oldest first, that of `span` last."""
    return Digest(
        week=None if span.is_asked else span.week,
        since=span.since,
        until=span.until,
        is_late=not span.is_asked and now - span.until > _LATE,
        figures=figures,
        rates=_shown(rates),
        alarms=by_oddity(alarms),
        selftests=noted.selftests,
        stops=noted.stops,
        pins=noted.pins,
        absences=tuple(_within(span, away) for away in noted.absences),
        answers=answers(rates, commands=noted.commands),
    )


def rate_of(week: str, figures: Figures) -> WeekRate:
    """Return the rate of all runs."""
    passed, failed = sum(run.passed for run in figures.runs), sum(run.failed for run in figures.runs)
    return WeekRate(week=week, passed=passed, failed=failed)


def alarms_of(
    workflow: str, history: Mapping[str, Figures], span: Span, *, is_watched: bool
) -> tuple[Alarm, ...]:
    """Return what is odd about a workflow; `history`: its figures by week, that of `span` among them."""
    first = min(history, default=span.week)
    weeks = [week for week in weeks_up_to(span.week, LOOKED_BACK) if week >= first]
    return drift_of(
        workflow,
        [_runs_of(history.get(week, _NONE)) for week in weeks],
        awaits_runs=is_watched and not span.is_asked,
    )


def _runs_of(figures: Figures) -> RunsOfWeek:
    return RunsOfWeek(
        runs=sum(run.passed + run.failed for run in figures.runs),
        missing=sum(run.missing for run in figures.runs),
        checks={
            each.check: Tally(passed=each.passed, failed=each.failed, not_reached=each.not_reached)
            for each in figures.checks
        },
    )


def _shown(rates: Sequence[WeekRate]) -> tuple[WeekRate, ...]:
    by_week = {rate.week: rate for rate in rates}
    weeks = [week for week in weeks_up_to(rates[-1].week, RATES_SHOWN) if week >= rates[0].week]
    return tuple(by_week.get(week, WeekRate(week=week)) for week in weeks)


def _within(span: Span, away: Away) -> Away:
    return Away(since=max(away.since, span.since), until=min(away.until, span.until))
