"""What is odd about a week: what a person must look at, and apart from it what has been too good for long."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final, assert_never

from aiogram.utils.formatting import Text
from msgspec.structs import replace

from bot.views.digest_pages import Line
from bot.views.digest_parts import each_of, heading, in_lines, joined, section
from bot.views.digest_words import chance
from bot.views.measure import amount, plural
from bot.views.text import name
from jobs.digest.digest import Digest
from jobs.verification.drift import Alarm, Drift

_TOO_GOOD: Final = "No failure for weeks. How likely that is if they fail as often as before, or once in 100 runs where they never did:"


def drift(digest: Digest) -> Iterator[Line]:
    """Yield what is odd."""
    checks: dict[Alarm, list[str]] = defaultdict(list)
    for alarm in digest.alarms:
        if alarm.drift is Drift.TOO_GOOD:
            continue
        # What is not reached is so in several checks alike.
        checks[replace(alarm, check=None)] += [] if alarm.check is None else [alarm.check]
    yield from section(
        "⚠️ Drift",
        list(checks.items()),
        lambda told: Text(
            name(told[0].workflow),
            *(f", {each}" for each in (*told[1], *_when_found(told[0], digest))),
            f": {_oddity(told[0])}",
        ),
    )


def too_good(digest: Digest) -> Iterator[Line]:
    """Yield what has not failed for long: most checks of a good workflow, so those that are alike share a line."""
    checks: dict[tuple[str, tuple[str, ...], str], list[str]] = defaultdict(list)
    for alarm in digest.alarms:
        if alarm.drift is Drift.TOO_GOOD:
            key = (alarm.workflow, _when_found(alarm, digest), _oddity(alarm))
            checks[key] += [] if alarm.check is None else [alarm.check]
    workflows: dict[str, list[str]] = defaultdict(list)
    for (workflow, found, oddity), named in checks.items():
        workflows[": ".join(filter(None, (", ".join((*named, *found)), oddity)))].append(workflow)
    told = [(said, names) for said, alike in workflows.items() for names in in_lines(alike)]
    if told:
        yield heading("Can they still fail?")
        yield Line(content=Text(_TOO_GOOD), is_heading=True)
        yield from each_of(told, lambda alike: Text(joined(alike[1]), f": {alike[0]}"))


def _when_found(alarm: Alarm, digest: Digest) -> tuple[str, ...]:
    """Return the week of an alarm, where it could be of several."""
    return (alarm.week,) if digest.weeks > 1 else ()


def _oddity(alarm: Alarm) -> str:
    runs, before = plural(alarm.runs, "run"), amount(alarm.earlier_runs)
    match alarm.drift:
        case Drift.JUMPED:
            as_before = "nothing has changed" if alarm.earlier_failed else "1 in 100 fails"
            return (
                f"{amount(alarm.failed)} of {runs} failed, {amount(alarm.earlier_failed)} of {before} in the weeks"
                f" before; if {as_before}, the chance of that is {chance(alarm.likelihood)}."
            )
        case Drift.NO_RUNS:
            due = f"; {amount(alarm.runs)} {'was' if alarm.runs == 1 else 'were'} due" if alarm.runs else ""
            last = f"the last one came in {alarm.last_ran}" if alarm.last_ran else "none has ever come"
            return f"no run came{due}; {last}."
        case Drift.NEVER_REACHED:
            return f"never tried in {runs}, as an earlier check had failed in each."
        case Drift.TOO_GOOD:
            earlier = f", as {amount(alarm.earlier_failed)} of {before} failed before"
            seen = f"{runs} of {plural(alarm.weeks, 'week')}, {chance(alarm.likelihood)}"
            return f"{seen}{earlier if alarm.earlier_failed else ''}"
        case _:
            assert_never(alarm.drift)
