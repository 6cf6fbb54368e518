"""Has a workflow's way of passing changed, week by week? Too good for too long is as odd as too bad."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec
from msgspec.structs import replace

from jobs.verification.binomial import at_least
from jobs.verification.verdict import Check


class Drift(StrEnum):
    """What is odd."""

    JUMPED = "jumped"
    """A check fails much more often than in the weeks before."""
    NO_RUNS = "no runs"
    """None in a week, of a workflow that is watched."""
    NEVER_REACHED = "never reached"
    """A check was asked for and never tried: an earlier one has failed in every run."""
    TOO_GOOD = "too good"
    """A check has not failed for weeks."""


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is odd, with the numbers that say so."""

    drift: Drift
    workflow: str
    check: Check | None = None
    """None: the workflow as a whole, of NO_RUNS."""
    week: str = ""
    """The one that it was found in, such as `2026-W48`."""
    weeks: int = 1
    """Weeks with runs that it is about, the last one among them."""
    runs: int = 0
    """In these weeks, that tried the check; of NEVER_REACHED, that did not come to it; of NO_RUNS, that were missing."""
    failed: int = 0
    """Of these; only JUMPED has any."""
    earlier_runs: int = 0
    """That tried the check in the weeks before."""
    earlier_failed: int = 0
    """Of the earlier ones. None at all: one failure in 100 runs is assumed."""
    likelihood: float = 1.0
    """How likely so good, or so bad, a result is if the earlier rate still held; of TOO_GOOD and JUMPED."""
    last_ran: str = ""
    """Of NO_RUNS: the week of the last run; empty: there never was one."""


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one check in the runs of a week."""

    passed: int = 0
    failed: int = 0
    not_reached: int = 0

    @property
    def tried(self) -> int:
        """How many runs came to it."""
        return self.passed + self.failed


class RunsOfWeek(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one workflow in a week."""

    week: str = ""
    runs: int = 0
    """Those that came."""
    missing: int = 0
    checks: Mapping[Check, Tally] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftPolicy:
    """What is odd."""

    earlier: int = 8
    """Weeks that the newest ones are compared with."""
    good_weeks: int = 3
    """Too good: weeks with runs and without a failure, at least so many ..."""
    good_runs: int = 30
    """... with at least so many runs in them, for which further weeks are looked at."""
    assumed: float = 1 / 100
    """The rate of failures where none is known."""
    unlikely: float = 0.01
    """A jump is what is less likely than this."""
    least_failures: int = 2
    """A single failure is no jump."""
    least_not_reached: int = 3
    """Runs in which a check was never reached: fewer say little."""


_NOTHING: Final = Tally()
_ORDER: Final = tuple(Drift)


def drift_of(
    workflow: str,
    weeks: Sequence[RunsOfWeek],
    *,
    awaits_runs: bool = True,
    policy: DriftPolicy = DriftPolicy(),
) -> tuple[Alarm, ...]:
    """Return what is odd about a workflow; `weeks` without a gap, the newest last.

    `awaits_runs`: whether that one is over, and the workflow was watched in all of it.
    """
    *earlier, newest = weeks
    alarms = [_no_runs(workflow, earlier, newest)] if awaits_runs else []
    for check in newest.checks:
        tallies = [week.checks.get(check, _NOTHING) for week in weeks]
        alarms += [
            _jumped(workflow, check, tallies, policy),
            _never_reached(workflow, check, tallies[-1], policy),
            _too_good(workflow, check, tallies, policy),
        ]
    return tuple(replace(alarm, week=newest.week) for alarm in alarms if alarm)


def by_oddity(alarms: Iterable[Alarm]) -> tuple[Alarm, ...]:
    """Return alarms in the order in which they are to be told: kind by kind, the least likely first."""
    return tuple(
        sorted(alarms, key=lambda alarm: (_ORDER.index(alarm.drift), alarm.likelihood, alarm.workflow))
    )


def _no_runs(workflow: str, earlier: Sequence[RunsOfWeek], newest: RunsOfWeek) -> Alarm | None:
    if newest.runs:
        return None
    last_ran = next((week.week for week in reversed(earlier) if week.runs), "")
    return Alarm(drift=Drift.NO_RUNS, workflow=workflow, runs=newest.missing, last_ran=last_ran)


def _never_reached(workflow: str, check: Check, newest: Tally, policy: DriftPolicy) -> Alarm | None:
    if newest.tried or newest.not_reached < policy.least_not_reached:
        return None
    return Alarm(drift=Drift.NEVER_REACHED, workflow=workflow, check=check, runs=newest.not_reached)


def _too_good(workflow: str, check: Check, tallies: Sequence[Tally], policy: DriftPolicy) -> Alarm | None:
    good = _good_weeks(tallies, policy)
    if good is None:
        return None
    runs = sum(tally.tried for tally in tallies[good:])
    earlier = _sum(tallies[max(0, good - policy.earlier) : good])
    return Alarm(
        drift=Drift.TOO_GOOD,
        workflow=workflow,
        check=check,
        weeks=sum(tally.tried > 0 for tally in tallies[good:]),
        runs=runs,
        earlier_runs=earlier.tried,
        earlier_failed=earlier.failed,
        likelihood=(1 - _rate(earlier, policy)) ** runs,
    )


def _good_weeks(tallies: Sequence[Tally], policy: DriftPolicy) -> int | None:
    """Return where the newest weeks without a failure begin that are enough to be too good; None if they are not."""
    weeks = runs = 0
    for place in reversed(range(len(tallies))):
        tally = tallies[place]
        # A workflow that has stopped is not too good week after week.
        if tally.failed or not (tallies[-1].tried):
            return None
        weeks, runs = weeks + (tally.tried > 0), runs + tally.tried
        if weeks >= policy.good_weeks and runs >= policy.good_runs:
            return place
    return None


def _jumped(workflow: str, check: Check, tallies: Sequence[Tally], policy: DriftPolicy) -> Alarm | None:
    newest, earlier = tallies[-1], _sum(tallies[-1 - policy.earlier : -1])
    if newest.failed < policy.least_failures or not earlier.tried:
        return None
    likelihood = at_least(newest.failed, newest.tried, _rate(earlier, policy))
    if likelihood >= policy.unlikely:
        return None
    return Alarm(
        drift=Drift.JUMPED,
        workflow=workflow,
        check=check,
        runs=newest.tried,
        failed=newest.failed,
        earlier_runs=earlier.tried,
        earlier_failed=earlier.failed,
        likelihood=likelihood,
    )


def _sum(tallies: Sequence[Tally]) -> Tally:
    return Tally(passed=sum(tally.passed for tally in tallies), failed=sum(tally.failed for tally in tallies))


def _rate(earlier: Tally, policy: DriftPolicy) -> float:
    return earlier.failed / earlier.tried if earlier.failed else policy.assumed
