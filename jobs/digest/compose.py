"""What was counted and noted of a week -> what is told of it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from jobs.digest.digest import Away, Digest, PinChange, StoppedLoop, Tested, WeekRate
from jobs.digest.figures import Figures
from jobs.digest.questions import answers
from jobs.digest.week import shifted, weeks_up_to
from jobs.verification.drift import Alarm, Drift, RunsOfWeek, Tally, by_oddity, drift_of
from jobs.verification.verdict import Check

RATES_SHOWN: Final = 12
"""Weeks."""
LOOKED_BACK: Final = 104
"""Weeks in which drift is looked for: of a weekly job, thirty runs take thirty."""
_NONE: Final = Figures()


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """The length of time that a digest is about."""

    week: str
    """The one that it ends in."""
    weeks: int = 1
    since: float
    until: float
    is_asked: bool = False
    """Whether somebody has asked for it: then it may end in the middle of its week, and begin weeks before."""


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """What is told as it was found."""

    selftests: tuple[Tested, ...] = ()
    untested: tuple[str, ...] = ()
    stops: tuple[StoppedLoop, ...] = ()
    pins: tuple[PinChange, ...] = ()
    absences: tuple[Away, ...] = ()
    """Whatever touches the length of time."""
    commands: tuple[str, ...] = ()
    """The workflows that run a command."""
    is_watched: bool = True
    """Whether a bot was there from the beginning."""


def compose(
    span: Span,
    figures: Figures,
    *,
    rates: Sequence[WeekRate],
    alarms: Iterable[Alarm],
    noted: Noted,
) -> Digest:
    """Put a digest together; `rates` of all weeks that are known, oldest first, that of `span` last."""
    return Digest(
        week=None if span.is_asked else span.week,
        weeks=span.weeks,
        since=span.since,
        until=span.until,
        is_watched=noted.is_watched,
        figures=figures,
        rates=_shown(rates),
        alarms=by_oddity(alarms),
        selftests=noted.selftests,
        untested=noted.untested,
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
    workflow: str, history: Mapping[str, Figures], span: Span, *, watched_since: str | None
) -> tuple[Alarm, ...]:
    """Return what is odd about a workflow, in each of the weeks of `span` what was not odd in a later one.

    `history`: its figures by week; `watched_since`: the week in which it came under watch, None: it is not any more.
    """
    first = min([*history, shifted(span.week, 1 - span.weeks)])
    begun = [week for week in weeks_up_to(span.week, LOOKED_BACK + span.weeks - 1) if week >= first]
    weeks = [_runs_of(week, history.get(week, _NONE)) for week in begun]
    newest: dict[tuple[Drift, Check | None], Alarm] = {}
    for place in range(max(0, len(weeks) - span.weeks), len(weeks)):
        awaits_runs = watched_since is not None and watched_since < begun[place]
        seen = weeks[max(0, place + 1 - LOOKED_BACK) : place + 1]
        for alarm in drift_of(workflow, seen, awaits_runs=awaits_runs):
            # Of a week that goes on only a jump: of all else it is too early to say.
            if alarm.drift is Drift.JUMPED or not span.is_asked or alarm.week != span.week:
                newest[alarm.drift, alarm.check] = alarm
    return tuple(newest.values())


def _runs_of(week: str, figures: Figures) -> RunsOfWeek:
    return RunsOfWeek(
        week=week,
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
