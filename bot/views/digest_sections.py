"""The sections of a digest, each with its heading; one that has nothing to tell is left out."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, assert_never
from zoneinfo import ZoneInfo

from aiogram.utils.formatting import Bold, Text
from msgspec.structs import replace

from bot.views.digest_pages import Line
from bot.views.digest_words import chance, when
from bot.views.measure import amount, money, plural, span
from bot.views.text import name
from jobs.digest.digest import Digest, PinChange, StoppedLoop
from jobs.digest.figures import CheckFigures, RunFigures
from jobs.verification.drift import Alarm, Drift
from jobs.verification.trial import MadeOf

_NAMES_IN_A_LINE: Final = 8
_ABSENCES: Final = 10
_HASH: Final = 8
"""Digits that tell versions apart."""
_LONGEST_WHY: Final = 300


def drift(digest: Digest) -> Iterator[Line]:
    """Yield what is odd."""
    checks: dict[Alarm, list[str]] = defaultdict(list)
    for alarm in digest.alarms:
        # What never fails has often never failed in several checks alike.
        checks[replace(alarm, check=None)] += [] if alarm.check is None else [alarm.check]
    told = [
        Text(name(alarm.workflow), *(f", {check}" for check in named), f": {_oddity(alarm)}")
        for alarm, named in checks.items()
    ]
    yield from _section("⚠️ Drift", told)


def said_done(digest: Digest) -> Iterator[Line]:
    """Yield who claimed success without one."""
    told = [
        Text(name(run.workflow), f": {plural(run.said_done, 'run')}")
        for run in digest.figures.runs
        if run.said_done
    ]
    yield from _section("❌ Said done, but was not", told)


def missing(digest: Digest) -> Iterator[Line]:
    """Yield whose runs did not come."""
    told = [
        Text(name(run.workflow), f": {plural(run.missing, 'run')}")
        for run in digest.figures.runs
        if run.missing
    ]
    yield from _section("❌ Missing", told)


def checks(digest: Digest) -> Iterator[Line]:
    """Yield every check of every workflow."""
    if not digest.figures.runs:
        return
    yield _heading("Checks")
    for run in digest.figures.runs:
        counted = [check for check in digest.figures.checks if check.workflow == run.workflow]
        rows = [Text(f"✗ {check.check}: {_counts(check)}") for check in counted if check.failed]
        if clean := [check for check in counted if not check.failed]:
            rows.append(Text(f"✓ {_grouped(clean)}"))
        yield Line(content=Text(name(run.workflow), f": {_runs(run)}"), is_heading=bool(rows))
        yield from (Line(content=row) for row in rows)


def selftest(digest: Digest) -> Iterator[Line]:
    """Yield how well the verifier has noticed what was made bad."""
    tests = digest.selftests
    detected, total = sum(test.trials.detected for test in tests), sum(test.trials.total for test in tests)
    told: list[Text] = []
    for test in tests:
        told += [
            Text("✗ ", name(test.workflow), f", {trial.check}: ", name(trial.mutant), " was not noticed")
            for trial in test.trials.survivors
        ]
        if test.trials.trouble:
            told.append(Text("✗ ", name(test.workflow), ": ", name(test.trials.trouble, _LONGEST_WHY)))
    made_up = [test.workflow for test in tests if test.made_of is MadeOf.SPECIFICATION]
    told += [
        Text("Made up after its specification, for want of a good output: ", names)
        for names in _listed(made_up)
    ]
    if tests:
        title = f"Self-test: {amount(detected)} of {amount(total)} mutants detected"
        yield _heading(title, is_alone=not told)
        yield from (Line(content=each) for each in told)


def loops(digest: Digest, zone: ZoneInfo) -> Iterator[Line]:
    """Yield which loops were stopped, and what they had come to."""
    title = f"🛑 Loops stopped: {amount(len(digest.stops))}"
    yield from _section(title, [_stopped(stop, zone) for stop in digest.stops])


def pins(digest: Digest, zone: ZoneInfo) -> Iterator[Line]:
    """Yield what is another bar by now."""
    title = f"Pins changed: {amount(len(digest.pins))}"
    yield from _section(title, [_pin(change, zone) for change in digest.pins])


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
    yield from _section(f"The bot was away for {total}", told)


def questions(digest: Digest) -> Iterator[Line]:
    """Yield the three questions with their answers."""
    for answer in digest.answers:
        yield _heading(answer.question)
        yield Line(content=Text(answer.answer))
        yield from (Line(content=names) for names in _listed(answer.names))


def _section(title: str, told: Sequence[Text]) -> Iterator[Line]:
    if told:
        yield _heading(title)
        yield from (Line(content=each) for each in told)


def _heading(title: str, *, is_alone: bool = False) -> Line:
    return Line(content=Text(Bold(title)), is_heading=not is_alone, is_apart=True)


def _listed(names: Sequence[str]) -> Iterator[Text]:
    """Yield names, some in a line."""
    for start in range(0, len(names), _NAMES_IN_A_LINE):
        parts: list[Text | str] = []
        for each in names[start : start + _NAMES_IN_A_LINE]:
            parts += [", ", name(each)] if parts else [name(each)]
        yield Text(*parts)


# ── in a line ─────────────────────────────────────────────────────────────────────────────────────


def _oddity(alarm: Alarm) -> str:
    runs, before = plural(alarm.runs, "run"), amount(alarm.earlier_runs)
    match alarm.drift:
        case Drift.JUMPED:
            return (
                f"{amount(alarm.failed)} of {runs} failed, {amount(alarm.earlier_failed)} of {before} in the weeks"
                f" before; if nothing has changed, the chance of that is {chance(alarm.likelihood)}."
            )
        case Drift.NO_RUNS:
            due = f"; {amount(alarm.runs)} {'was' if alarm.runs == 1 else 'were'} due" if alarm.runs else ""
            return f"no run came{due}; {before} came in the weeks before."
        case Drift.NEVER_REACHED:
            return f"never tried in {runs}, as an earlier check had failed in each."
        case Drift.TOO_GOOD:
            return (
                f"no failure in {runs} of {plural(alarm.weeks, 'week')}{_how_good(alarm)}. Can it still fail?"
            )
        case _:
            assert_never(alarm.drift)


def _how_good(alarm: Alarm) -> str:
    likely = chance(alarm.likelihood)
    if not alarm.earlier_failed:
        return f", nor before; with 1 failure in 100 runs the chance of that would be {likely}"
    before = f"{amount(alarm.earlier_failed)} of {amount(alarm.earlier_runs)} failed before"
    return f"; {before}, and if nothing has changed the chance of that is {likely}"


def _runs(run: RunFigures) -> str:
    total = run.passed + run.failed
    told = [
        f"{amount(run.passed)} of {plural(total, 'run')} passed" if total else "no run came",
        f"{plural(run.says_failed, 'honest failure')} among them" if run.says_failed else "",
        f"{amount(run.missing)} missing" if run.missing else "",
    ]
    return ", ".join(filter(None, told))


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
