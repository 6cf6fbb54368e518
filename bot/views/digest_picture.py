"""A digest as a picture: few enough bars to be read on a phone, and none of the numbers left out."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final
from zoneinfo import ZoneInfo

from bot.chart.picture import Bar, Picture, Rate
from bot.views.cleaning import one_line
from bot.views.digest_words import dates, number_of, rate, summary, title
from bot.views.measure import plural
from jobs.digest.digest import Digest
from jobs.digest.figures import CheckFigures

MOST_BARS: Final = 8
"""A higher picture is shown smaller."""
_LONGEST_NAME: Final = 200
"""Characters: who draws it leaves out what there is no room for, but not what tells it from another."""


def picture(digest: Digest, zone: ZoneInfo) -> Picture:
    """Return what is to be drawn."""
    return Picture(
        title=title(digest),
        dates=dates(digest, zone),
        headline=rate(digest),
        # Not once more what stands above it.
        summary="" if summary(digest) == rate(digest) else summary(digest),
        rates=tuple(
            Rate(week=number_of(week.week), passed=week.passed, failed=week.failed) for week in digest.rates
        ),
        bars=_bars(digest),
    )


def _bars(digest: Digest) -> tuple[Bar, ...]:
    """Return a bar for each check; if those are too many, first what has failed, and the others together."""
    places = {run.workflow: place for place, run in enumerate(digest.figures.runs, start=1)}
    groups = [[check] for check in digest.figures.checks]
    if len(groups) > MOST_BARS:
        groups = _failing_first(digest.figures.checks)
    shown = groups if len(groups) <= MOST_BARS else groups[: MOST_BARS - 1]
    others = [check for group in groups[len(shown) :] for check in group]
    rest = [_bar(others, f"{plural(len(others), 'more check')}, in all")] if others else []
    return (*(_bar_of(group, places) for group in _side_by_side(shown)), *rest)


def _side_by_side(groups: Sequence[list[CheckFigures]]) -> list[list[CheckFigures]]:
    """Return those of one workflow one after the other, where the first of them stands."""
    workflows = list(dict.fromkeys(group[0].workflow for group in groups))
    return sorted(groups, key=lambda group: workflows.index(group[0].workflow))


def _failing_first(figures: Sequence[CheckFigures]) -> list[list[CheckFigures]]:
    """Return each check that has failed, the worst first, and then of each workflow those that have fared alike."""
    clean: dict[tuple[str, int, int], list[CheckFigures]] = defaultdict(list)
    for check in figures:
        if not check.failed:
            clean[check.workflow, check.passed, check.not_reached].append(check)
    failing = sorted((check for check in figures if check.failed), key=lambda check: -check.failed)
    return [*([check] for check in failing), *clean.values()]


def _bar_of(group: Sequence[CheckFigures], places: Mapping[str, int]) -> Bar:
    """Return a bar that tells of runs, of whichever check in the group."""
    workflow = group[0].workflow
    named = group[0].check if len(group) == 1 else f"{plural(len(group), 'check')}, each"
    return _bar(group[:1], named, workflow=one_line(workflow, _LONGEST_NAME), place=places[workflow])


def _bar(group: Sequence[CheckFigures], named: str, *, workflow: str = "", place: int = 0) -> Bar:
    return Bar(
        workflow=workflow,
        place=place,
        check=named,
        passed=sum(check.passed for check in group),
        failed=sum(check.failed for check in group),
        not_reached=sum(check.not_reached for check in group),
    )
