"""The sections of a digest, each with its heading; one that has nothing to tell is left out."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final
from zoneinfo import ZoneInfo

from aiogram.utils.formatting import Text

from bot.views.digest_pages import Line
from bot.views.digest_parts import MOST, each_of, heading, listed, section
from bot.views.digest_words import tries, when
from bot.views.measure import amount, money, plural, span
from bot.views.text import name
from jobs.digest.digest import Digest, PinChange, StoppedLoop
from jobs.digest.figures import CheckFigures, RunFigures, by_workflow
from jobs.pinning.kind import How
from jobs.verification.trial import MadeOf, Trial

_ABSENCES: Final = 10
_HASH: Final = 8
"""Digits that tell versions apart."""
_LONGEST_WHY: Final = 300


def said_done(digest: Digest) -> Iterator[Line]:
    """Yield who claimed success without one."""
    yield from section(
        "❌ Said done, but was not",
        [run for run in digest.figures.runs if run.said_done],
        lambda run: Text(name(run.workflow), f": {plural(run.said_done, 'run')}"),
    )


def missing(digest: Digest) -> Iterator[Line]:
    """Yield whose runs did not come."""
    runs = [run for run in digest.figures.runs if run.missing]
    title = f"❌ Missing: {plural(sum(run.missing for run in runs), 'run')}"
    yield from section(title, list(listed([run.workflow for run in runs])), lambda line: line)


def checks(digest: Digest) -> Iterator[Line]:
    """Yield every check of every workflow, of very many of the worst."""
    runs: Sequence[RunFigures] = digest.figures.runs
    if not runs:
        return
    yield heading("Checks")
    if len(runs) > MOST:
        runs = sorted(runs, key=lambda run: -run.failed - run.missing)
    counted = by_workflow(digest.figures)
    for run in runs[:MOST]:
        yield from _workflow(run, counted[run.workflow].checks)
    if len(runs) > MOST:
        yield Line(content=Text(_rest(runs[MOST:])))


def selftest(digest: Digest) -> Iterator[Line]:
    """Yield how well the verifier has noticed what was made bad."""
    tests = digest.selftests
    detected, total = sum(test.trials.detected for test in tests), sum(test.trials.total for test in tests)
    told = list(_tested(digest))
    if tests or told:
        result = f"{amount(detected)} of {amount(total)} mutants detected" if tests else "none yet"
        title = f"Self-test: {result}"
        yield heading(title, is_alone=not told)
        yield from told


def _tested(digest: Digest) -> Iterator[Line]:
    wrong: list[tuple[str, Trial | str]] = []
    for test in digest.selftests:
        wrong += [(test.workflow, survivor) for survivor in test.trials.survivors]
        wrong += [(test.workflow, test.trials.trouble)] if test.trials.trouble else []
    yield from each_of(wrong, _wrong)
    made_up = [test.workflow for test in digest.selftests if test.made_of is MadeOf.SPECIFICATION]
    for names in (
        listed(made_up, "Made up after its specification, for want of a good output: "),
        listed(digest.untested, "Not tested this week: "),
    ):
        yield from (Line(content=each) for each in names)


def loops(digest: Digest, zone: ZoneInfo) -> Iterator[Line]:
    """Yield which loops were stopped, and what they had come to."""
    title = f"🛑 Loops stopped: {amount(len(digest.stops))}"
    yield from section(title, digest.stops, partial(_stopped, zone=zone))


def pins(digest: Digest, zone: ZoneInfo) -> Iterator[Line]:
    """Yield what is another bar by now."""
    first: dict[str, list[str]] = defaultdict(list)
    for change in digest.pins:
        if change.how == How.FIRST_USE:
            first[change.kind].append(change.name)
    if not digest.pins:
        return
    yield heading(f"Pins changed: {amount(len(digest.pins))}")
    for kind, names in first.items():
        yield from (Line(content=each) for each in listed(names, f"At first use, {kind}s: "))
    others = [change for change in digest.pins if change.how != How.FIRST_USE]
    yield from each_of(others, partial(_pin, zone=zone))


def absences(digest: Digest, zone: ZoneInfo) -> Iterator[Line]:
    """Yield when nobody watched: the longest absences, and the others as a sum."""
    by_length = sorted(digest.absences, key=lambda away: away.since - away.until)
    shown, others = by_length[:_ABSENCES], by_length[_ABSENCES:]
    told = [
        Text(f"{when(away.since, zone)}: {span(away.until - away.since)}")
        for away in sorted(shown, key=lambda away: away.since)
    ]
    if others:
        lasted = span(sum(away.until - away.since for away in others))
        told.append(Text(f"… and {amount(len(others))} shorter, {lasted} in all"))
    total = span(sum(away.until - away.since for away in digest.absences))
    yield from section(f"The bot was away for {total}", told, lambda line: line)


def questions(digest: Digest) -> Iterator[Line]:
    """Yield the three questions with their answers."""
    for answer in digest.answers:
        yield heading(answer.question)
        yield Line(content=Text(answer.answer))
        yield from (Line(content=names) for names in listed(answer.names))


# ── in a line ─────────────────────────────────────────────────────────────────────────────────────


def _workflow(run: RunFigures, counted: Sequence[CheckFigures]) -> Iterator[Line]:
    if counted and all(_is_clean(check, run) for check in counted):
        passed = ", ".join(check.check for check in counted)
        yield Line(content=Text(name(run.workflow), f": {_runs(run)}; ✓ {passed}"))
    else:
        rows = list(_rows(counted))
        yield Line(content=Text(name(run.workflow), f": {_runs(run)}"), is_heading=bool(rows))
        yield from (Line(content=row) for row in rows)


def _rest(runs: Sequence[RunFigures]) -> str:
    bad = sum(bool(run.failed or run.missing) for run in runs)
    fared = f"{amount(bad)} with runs that failed or did not come" if bad else "all of whose runs passed"
    return f"… and {amount(len(runs))} more, {fared}"


def _wrong(told: tuple[str, Trial | str]) -> Text:
    workflow, what = told
    if isinstance(what, str):
        return Text("✗ ", name(workflow), ": ", name(what, _LONGEST_WHY))
    return Text("✗ ", name(workflow), f", {what.check}: ", name(what.mutant), " was not noticed")


def _runs(run: RunFigures) -> str:
    total = run.passed + run.failed
    told = [
        f"{amount(run.passed)} of {plural(total, 'run')} passed" if total else "no run came",
        f"{plural(run.says_failed, 'honest failure')} among them" if run.says_failed else "",
        f"{amount(run.missing)} missing" if run.missing else "",
        tries(run.failed_tries) if run.failed_tries else "",
    ]
    return ", ".join(filter(None, told))


def _rows(counted: Sequence[CheckFigures]) -> Iterator[Text]:
    """Yield the checks of a workflow: each that has failed, and together those that have passed, or were not tried."""
    yield from (Text(f"✗ {check.check}: {_counts(check)}") for check in counted if check.failed)
    if clean := [check for check in counted if check.passed and not check.failed]:
        yield Text(f"✓ {_grouped(clean)}")
    if untried := [check for check in counted if not check.passed and not check.failed]:
        yield Text(f"\u2013 {_grouped(untried)}")


def _is_clean(check: CheckFigures, run: RunFigures) -> bool:
    """Whether a check has passed in every run, so that its numbers say nothing more."""
    return (check.passed, check.failed, check.not_reached) == (run.passed + run.failed, 0, 0)


def _counts(check: CheckFigures) -> str:
    told = (
        (check.passed, "passed"),
        (check.failed, "failed"),
        (check.not_reached, "not reached"),
    )
    return ", ".join(f"{amount(count)} {word}" for count, word in told if count) or "never tried"


def _grouped(clean: Sequence[CheckFigures]) -> str:
    """Return checks that have fared alike as one."""
    alike: dict[str, list[str]] = defaultdict(list)
    for check in clean:
        alike[_counts(check)].append(check.check)
    return "; ".join(f"{', '.join(names)}: {counts}" for counts, names in alike.items())


def _stopped(stop: StoppedLoop, zone: ZoneInfo) -> Text:
    ordered = "" if stop.ordered_by is None else f", ordered by {stop.ordered_by}"
    spent = ", ".join(_spent(stop.tokens, stop.cost, stop))
    hour = ", ".join(_spent(stop.tokens_per_hour, stop.cost_per_hour, stop))
    return Text(
        f"{when(stop.at, zone)}: ",
        *(name(stop.agent), " of ", name(stop.source), f"{ordered}; "),
        *(name(stop.tool), ", ", name(f"{stop.kind}:{stop.score}")),
        f"; {plural(stop.calls, 'call')} in {span(stop.span)}{spent and f', {spent}'}",
        f"; another hour of it: {hour}" if hour else "",
    )


def _spent(tokens: int | None, cost: int | None, stop: StoppedLoop) -> Iterator[str]:
    if tokens is not None:
        yield plural(tokens, "token")
    if cost is not None:
        yield money(cost, stop.currency, is_part=stop.is_cost_part)


def _pin(change: PinChange, zone: ZoneInfo) -> Text:
    by = "" if change.by is None else f" by {change.by}"
    before, after = change.before[:_HASH] or "new", change.after[:_HASH] or "removed"
    return Text(
        f"{when(change.at, zone)}: {change.kind} ",
        name(change.name),
        f", {before} → {after}, {change.how}{by}",
    )
