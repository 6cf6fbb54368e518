"""A digest in a line: which time it is of, and how that was."""

from datetime import datetime
from math import floor, log10
from typing import Final
from zoneinfo import ZoneInfo

from bot.views.measure import amount, plural
from jobs.digest.digest import Digest

_RARE: Final = 0.01
"""Chances below which percents say too little."""
_RAREST: Final = 10**-9


def title(digest: Digest) -> str:
    """Return what length of time it is of."""
    if digest.week is not None:
        return f"Week {number_of(digest.week)}"
    return f"The last {digest.weeks} weeks" if digest.weeks > 1 else "The week so far"


def number_of(week: str) -> str:
    """Return `48` of `2026-W48`."""
    return f"{int(week.partition('-W')[2])}"


def dates(digest: Digest, zone: ZoneInfo) -> str:
    """Return the days between which it lies: `22 to 29 Nov 2026`."""
    since, until = (datetime.fromtimestamp(at, zone) for at in (digest.since, digest.until))
    month = "" if (since.year, since.month) == (until.year, until.month) else f" {since:%b}"
    year = "" if since.year == until.year else f" {since.year}"
    return f"{since.day}{month}{year} to {until.day} {until:%b} {until.year}"


def summary(digest: Digest) -> str:
    """Return how the runs were: `312 of 318 runs passed, 6 failed, 2 missing`."""
    passed, failed, missing, failed_tries = (
        sum(getattr(run, name) for run in digest.figures.runs)
        for name in ("passed", "failed", "missing", "failed_tries")
    )
    total = passed + failed
    if not total:
        return f"No run came, {amount(missing)} missing" if missing else "No runs"
    whole = (
        f"{amount(passed)} of {plural(total, 'run')} passed"
        if failed
        else f"All {plural(total, 'run')} passed"
    )
    return ", ".join(
        [
            "1 run passed" if (passed, failed) == (1, 0) else whole,
            *([f"{amount(failed)} failed"] if failed else []),
            *([f"{amount(missing)} missing"] if missing else []),
            *([tries(failed_tries)] if failed_tries else []),
        ]
    )


def tries(failed: int) -> str:
    """Return what runs had failed with before what counts: `after 5 failed tries`."""
    return f"after {amount(failed)} failed {'try' if failed == 1 else 'tries'}"


def rate(digest: Digest) -> str:
    """Return how many of the runs passed, in percent: all of them only if none failed."""
    passed = sum(run.passed for run in digest.figures.runs)
    failed = sum(run.failed for run in digest.figures.runs)
    if not passed + failed:
        return "No runs"
    if not failed:
        return "100 %"
    return f"{floor(1000 * passed / (passed + failed)) / 10:.1f} %"


def chance(likelihood: float) -> str:
    """Return a likelihood as people read it: `11 %`, `1 in 4 200`."""
    if likelihood >= _RARE:
        return f"{100 * likelihood:.0f} %"
    if likelihood < _RAREST:
        return "less than 1 in a billion"
    times = 1 / likelihood
    places = 10 ** (floor(log10(times)) - 1)
    return f"1 in {amount(round(times / places) * places)}"


def when(at: float, zone: ZoneInfo) -> str:
    """Return a time within a week or some: `Tue 24 Nov, 03:12`."""
    return f"{datetime.fromtimestamp(at, zone):%a %d %b, %H:%M}"
