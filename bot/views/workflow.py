"""Workflows: how each stands."""

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final
from zoneinfo import ZoneInfo

from aiogram.utils.formatting import Bold, Code, Text

from bot.views.cleaning import clean
from bot.views.differing import Differing, differing_lines
from bot.views.measure import moment
from bot.views.run import summary
from bot.views.screen import Screen, lines, screen
from bot.views.text import name
from jobs.alert.run_notice import UnverifiedNotice
from jobs.verification.history import RecordedVerdict, WorkflowState
from jobs.verification.trial import SelfTest
from jobs.verification.verdict import Outcome

_SHOWN: Final = 25
_NAMED: Final = 20
_NEW_SHOWN: Final = 5
_WHY: Final = 100
"""UTF-16 units."""
_NONE: Final = "The watch list has no workflows."


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a workflow stands."""

    name: str
    state: WorkflowState | None
    """None if nobody has looked at it yet."""
    last: RecordedVerdict | None
    """What counts for its newest run."""
    due: float | None
    """When its next run is, or was."""
    differing: Differing | None = None
    """What the watch list says of it that is not in force."""
    selftest: SelfTest | None = None
    """The newest one."""


def workflow_list(
    standings: Sequence[Standing], now: float, zone: ZoneInfo, new: Sequence[Differing] = ()
) -> Screen:
    """Render how every workflow stands: those first that did not deliver; last those that are not in force yet."""
    if not standings and not new:
        return screen(Text(_NONE))
    ordered = sorted(standings, key=lambda standing: not _is_bad(standing))
    more = len(ordered) - _SHOWN
    return screen(
        lines(
            Bold("Workflows"),
            *(_standing(standing, now, zone) for standing in ordered[:_SHOWN]),
            f"… and {more} more" if more > 0 else None,
            *differing_lines(new, _NEW_SHOWN),
            "/verify NAME checks one now, /history NAME shows its runs.",
        )
    )


def unknown(words: str, known: Collection[str]) -> Screen:
    """Say that there is no workflow of this name, and which there are."""
    if not known:
        return screen(Text(_NONE))
    close = difflib.get_close_matches(words, known, 1)
    hint = Text(" Did you mean ", name(close[0]), "?") if close else Text()
    return screen(
        lines(Text("No workflow ", Code(clean(words, 64) or "?"), ".", hint), Text("Known: ", _named(known)))
    )


def which(command: str, known: Collection[str]) -> Screen:
    """Say that a name is missing, and which there are."""
    if not known:
        return screen(Text(_NONE))
    return screen(Text(f"Which one? /{command} NAME: ", _named(known)))


def not_in_force(found: Differing) -> Screen:
    """Say that a workflow cannot be verified, as nobody has approved it."""
    return screen(lines(*differing_lines([found], 1)))


def unwatched(workflow: str) -> Screen:
    """Say that a run cannot be verified again."""
    return screen(Text("The workflow ", name(workflow), " is no longer in the watch list."))


def unverified(notice: UnverifiedNotice) -> Screen:
    """Say why a person who has asked for a verdict gets none."""
    if notice.run is None:
        return unwatched(notice.workflow)
    return screen(
        Text(
            *(f"Run #{notice.run} of ", name(notice.workflow), " cannot be judged again:"),
            f" what lies there now is the output of run #{notice.replaced_by}.",
        )
    )


def not_yet(workflow: str) -> Screen:
    """Say that there is no history."""
    return screen(_not_yet(workflow))


def _not_yet(workflow: str) -> Text:
    return Text("▫️ ", name(workflow), " has not run yet")


def _standing(standing: Standing, now: float, zone: ZoneInfo) -> Text:
    state = standing.state
    silenced = state.silenced_until if state else None
    known = (*_facts(standing, now, zone), _next(standing.due, now, zone), _tested(standing.selftest))
    facts = [fact for fact in known if fact]
    return lines(
        _head(standing),
        f"    {', '.join(facts)}" if facts else None,
        _untested(standing.selftest),
        f"    🔕 silenced until {moment(silenced, now, zone)}" if silenced and silenced > now else None,
        f"    📌 {standing.differing.words}" if standing.differing else None,
    )


def _is_bad(standing: Standing) -> bool:
    last = standing.last
    return last is not None and (last.outcome is not Outcome.PASS or last.says_failed)


def _head(standing: Standing) -> Text:
    if standing.last is None:
        return _not_yet(standing.name)
    icon, _, says = summary(standing.last).partition(" ")
    return Text(f"{icon} ", name(standing.name), f" {says}")


def _facts(standing: Standing, now: float, zone: ZoneInfo) -> list[str]:
    if standing.last is None:
        return []
    failures = standing.state.failures if standing.state else 0
    run = f"run #{standing.last.run_id} {moment(standing.last.at, now, zone)}"
    return [run, f"{failures} failures in a row"] if failures > 1 else [run]


def _next(due: float | None, now: float, zone: ZoneInfo) -> str | None:
    if due is None:
        return None
    return f"{'next' if due > now else 'due since'} {moment(due, now, zone)}"


def _tested(test: SelfTest | None) -> str | None:
    if test is None or not test.result.total:
        return None
    result = test.result
    warning = "⚠️ " if result.survivors or result.trouble else ""
    return f"{warning}self-test {result.detected} of {result.total}"


def _untested(test: SelfTest | None) -> Text | None:
    if test is None or test.result.total:
        return None
    why = test.result.trouble or "there is nothing that could be made bad"
    return Text("    ⚠️ self-test not possible: ", name(why, _WHY))


def _named(known: Collection[str]) -> Text:
    shown = sorted(known)[:_NAMED]
    parts: list[Text | str] = []
    for each in shown:
        parts += [", ", name(each)] if parts else [name(each)]
    more = len(known) - len(shown)
    return Text(*parts, f" and {more} more" if more > 0 else "")
