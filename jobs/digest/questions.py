"""The three questions that every digest ends with, and what the week's figures answer."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from jobs.digest.digest import Answer, WeekRate

_MODEL: Final = "Is a model in the verification path?"
_CONTRACT: Final = (
    "an import contract that every change is checked against lets the code that leads to a verdict use a short list of "
    "packages and nothing else, so no client of a model and no network."
)
_NO_JUDGES: Final = "There are no loops with judges."
_NO_MODEL: Final = f"No: {_CONTRACT} {_NO_JUDGES}"
_UNKNOWN: Final = f"Not in what the verifier does itself: {_CONTRACT} {_NO_JUDGES} What the commands of these workflows do it cannot know:"
_UNIT_TEST: Final = "Could each criterion be a unit test?"
_MECHANICAL: Final = "Yes: every check is mechanical. The same output, at the same time and after the same runs, has the same verdict."
_COMMANDS: Final = (
    "Yes, of every check that the verifier makes itself. These workflows also run a command of yours, which it can only "
    "ask for an exit code:"
)
_DOWN: Final = "Did the pass rate ever go down?"
_TOO_EARLY: Final = "That cannot be said before there are two weeks with runs."


class Fall(msgspec.Struct, frozen=True, kw_only=True):
    """A week in which less passed than in the one with runs before."""

    before: WeekRate
    after: WeekRate


def answers(rates: Sequence[WeekRate], *, commands: Sequence[str]) -> tuple[Answer, ...]:
    """Answer the three questions.

    `rates`: all weeks that are known, oldest first; `commands`: the workflows that run a command.
    """
    return (
        Answer(question=_MODEL, answer=_UNKNOWN if commands else _NO_MODEL, names=tuple(commands)),
        Answer(question=_UNIT_TEST, answer=_COMMANDS if commands else _MECHANICAL, names=tuple(commands)),
        Answer(question=_DOWN, answer=_went_down([rate for rate in rates if rate.passed + rate.failed])),
    )


def falls(rates: Sequence[WeekRate]) -> Iterator[Fall]:
    """Yield every fall, oldest first; `rates` of weeks with runs."""
    for before, after in pairwise(rates):
        # In whole numbers: a rate that stays must not fall by rounding.
        if after.passed * (before.passed + before.failed) < before.passed * (after.passed + after.failed):
            yield Fall(before=before, after=after)


def _went_down(rates: Sequence[WeekRate]) -> str:
    if len(rates) < 2:  # noqa: PLR2004 - as the sentence says
        return _TOO_EARLY
    found = list(falls(rates))
    if not found:
        return f"No, never in {len(rates)} weeks with runs: a reason to look whether the checks still ask for enough."
    last = found[-1]
    often = "once" if len(found) == 1 else f"{len(found)} times"
    return (
        f"Yes, {often} in {len(rates)} weeks with runs, the last time in {last.after.week}: "
        f"from {_share(last.before)} in {last.before.week} to {_share(last.after)}."
    )


def _share(rate: WeekRate) -> str:
    """Return a rate as it is read; rounded down, so that only what is all is called 100 %."""
    runs = rate.passed + rate.failed
    percent = "100" if rate.passed == runs else f"{1000 * rate.passed // runs / 10:.1f}"
    return f"{percent} % ({rate.passed:,} of {runs:,})".replace(",", "\u202f")
