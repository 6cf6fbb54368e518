"""Runs: the alert, the verdict that somebody has asked for, one run with every check."""

from collections.abc import Sequence
from typing import Final, assert_never
from zoneinfo import ZoneInfo

from aiogram.types import InlineKeyboardButton
from aiogram.utils.formatting import Bold, Code, Text

from bot.callbacks import RunButton, RunVerb
from bot.views.cleaning import clean
from bot.views.measure import amount, moment, ordinal, span
from bot.views.screen import Screen, lines, screen
from bot.views.text import flat, name, path
from jobs.alert.run_notice import RunNotice, VerifiedNotice
from jobs.verification.history import RecordedVerdict, Run, Trigger
from jobs.verification.verdict import Artifact, CheckResult, Outcome, Passed, Verdict

_LISTED_REASON: Final = 250
"""UTF-16 units: with these, every check of a run fits into one message."""
_ALONE_REASON: Final = 300
_EARLIER_SHOWN: Final = 5
_SHORT: Final = 10
"""Seconds below which their tenths tell something."""

_MARKS: Final = {Passed.PASS: "✅", Passed.FAIL: "❌", Passed.NOT_REACHED: "▫️"}
_REASONS: Final = {
    Trigger.COMMAND: "by loopwarden verify",
    Trigger.OUTPUT: "its output had changed",
    Trigger.REPORT: "a program had reported it",
    Trigger.SESSION: "the agent's work had ended",
    Trigger.SLOT: "it was due",
    Trigger.CHAT: "asked for in the chat",
}
_LABELS: Final = {
    RunVerb.RECHECK: "Recheck",
    RunVerb.HISTORY: "History",
    RunVerb.SILENCE_1: "Silence 1 h",
    RunVerb.SILENCE_24: "Silence 24 h",
}


# ── the alert ─────────────────────────────────────────────────────────────────────────────────────


def alert(notice: RunNotice, now: float, zone: ZoneInfo) -> Screen:
    """Render the alert of a run, as it stands."""
    is_silenced = notice.silenced_until is not None and notice.silenced_until > now
    silenced = f"🔕 silenced until {moment(notice.silenced_until or 0, now, zone)}" if is_silenced else None
    if notice.resolved_by is not None:
        return screen(lines(*_resolved(notice, now, zone), silenced), _row(notice.run, RunVerb.HISTORY))
    failures = f", {ordinal(notice.failures)} failure in a row" if notice.failures > 1 else ""
    return screen(
        lines(
            _title(notice.workflow, notice.verdict),
            *_found(notice, now, zone),
            _output(notice.path),
            f"Run #{notice.run} at {moment(notice.at, now, zone)}{failures}",
            silenced,
        ),
        _row(notice.run, RunVerb.RECHECK, RunVerb.HISTORY),
        _row(notice.alert or notice.run, RunVerb.SILENCE_1, RunVerb.SILENCE_24),
    )


def _found(notice: RunNotice, now: float, zone: ZoneInfo) -> list[Text | str | None]:
    """Say what is wrong with a run."""
    verdict = notice.verdict
    if verdict.outcome is Outcome.MISSING:
        due = "" if notice.slot is None else f"It was due at {moment(notice.slot, now, zone)}. "
        return [f"{due}Nothing had come by {moment(notice.at, now, zone)}."]
    if verdict.says_failed:
        return ["The output is valid; it is the run itself that says so."]
    failure = verdict.failure
    return [None if failure is None else Code(flat(failure.reason, _ALONE_REASON)), _claim(verdict)]


def _resolved(notice: RunNotice, now: float, zone: ZoneInfo) -> list[Text | str]:
    title = Text("✅ ", Bold(name(notice.workflow)), Bold(" delivers again"), f", run #{notice.resolved_by}")
    if notice.resolved_by == notice.run:
        due = "" if notice.slot is None else f"; it was due at {moment(notice.slot, now, zone)}"
        return [title, f"Verified again at {moment(notice.at, now, zone)}{due}."]
    failures = f", {ordinal(notice.failures)} failure in a row" if notice.failures > 1 else ""
    was = f"Run #{notice.run} at {moment(notice.at, now, zone)}: {_said(notice.verdict)}{failures}"
    return [title, was]


# ── a verdict, and a run ──────────────────────────────────────────────────────────────────────────


def verified(notice: VerifiedNotice, now: float, zone: ZoneInfo) -> Screen:
    """Render the verdict that a person has asked for."""
    return screen(
        lines(
            _title(notice.workflow, notice.verdict),
            *_checks(notice.verdict),
            _output(notice.path),
            f"Run #{notice.run} at {moment(notice.at, now, zone)}",
            _as_of(notice.as_of, now, zone),
            _claim(notice.verdict),
        ),
        _row(notice.run, RunVerb.RECHECK, RunVerb.HISTORY),
    )


def run(about: Run, verdicts: Sequence[RecordedVerdict], now: float, zone: ZoneInfo) -> Screen:
    """Render a run with all its verdicts, the newest of which, the first, counts."""
    newest, *earlier = verdicts
    verdict, artifact = newest.judged.verdict, newest.judged.artifact
    return screen(
        lines(
            _title(about.workflow, verdict),
            _identity(about, now, zone),
            *_checks(verdict),
            *_facts(artifact, now, zone),
            f"Verified at {moment(newest.at, now, zone)}, {_REASONS[newest.by]}; took {_took(newest.took)}",
            _as_of(newest.as_of, now, zone),
            _claim(verdict),
            *_earlier(earlier, now, zone),
        ),
        _row(about.id, RunVerb.RECHECK, RunVerb.HISTORY),
    )


def _identity(about: Run, now: float, zone: ZoneInfo) -> Text:
    due = "" if about.slot is None else f", due at {moment(about.slot, now, zone)}"
    own = [] if about.reported is None else [", own id ", name(about.reported)]
    return Text(f"Run #{about.id}{due}", *own)


def _checks(verdict: Verdict) -> list[Text]:
    return [_check(result) for result in verdict.results]


def _check(result: CheckResult) -> Text:
    mark = f"{_MARKS[result.passed]} {result.check}"
    if result.passed is Passed.NOT_REACHED:
        return Text(f"{mark}: not reached")
    return Text(f"{mark} ", Code(flat(result.reason, _LISTED_REASON)))


def _facts(artifact: Artifact | None, now: float, zone: ZoneInfo) -> list[Text | str | None]:
    """Say which output was read."""
    if artifact is None:
        return []
    written = moment(artifact.mtime_ns / 1e9, now, zone)
    return [
        _output(artifact.path),
        f"{amount(artifact.size)} bytes, written at {written}",
        Text("sha256 ", Code(artifact.sha256)) if artifact.sha256 else None,
    ]


def _took(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < _SHORT else span(seconds)


def _earlier(verdicts: Sequence[RecordedVerdict], now: float, zone: ZoneInfo) -> list[Text | str]:
    if not verdicts:
        return []
    rows = [f"{summary(verdict)} at {moment(verdict.at, now, zone)}" for verdict in verdicts[:_EARLIER_SHOWN]]
    more = len(verdicts) - len(rows)
    return [Bold("Earlier verdicts"), *rows, *([f"… and {more} more"] if more > 0 else [])]


# ── parts of them ─────────────────────────────────────────────────────────────────────────────────


def _title(workflow: str, verdict: Verdict) -> Text:
    return Text(f"{_icon(verdict)} ", Bold(name(workflow)), Bold(f" {_said(verdict)}"))


def summary(verdict: RecordedVerdict) -> str:
    """Return what became of a run, in a few words."""
    found = verdict.judged.verdict
    return f"{_icon(found)} {_said(found)}"


def _icon(verdict: Verdict) -> str:
    match verdict.outcome:
        case Outcome.PASS:
            return "🟠" if verdict.says_failed else "✅"
        case Outcome.FAIL:
            return "❌"
        case Outcome.MISSING:
            return "⏰"
        case _:
            assert_never(verdict.outcome)


def _said(verdict: Verdict) -> str:
    match verdict.outcome:
        case Outcome.PASS:
            return "says it failed" if verdict.says_failed else "passed"
        case Outcome.FAIL:
            return f"failed: {verdict.failure.check}" if verdict.failure else "failed"
        case Outcome.MISSING:
            return "is missing"
        case _:
            assert_never(verdict.outcome)


def _claim(verdict: Verdict) -> Text | None:
    return Text("Yet the run says ", Code(flat(verdict.said_done, 20))) if verdict.said_done else None


def _output(found: str | None) -> Text | None:
    return None if found is None else Text("Output ", path(found))


def _as_of(at: float | None, now: float, zone: ZoneInfo) -> str | None:
    return None if at is None else f"Its age was judged as of {moment(at, now, zone)}, when it had come."


def _row(run_id: int, *verbs: RunVerb) -> list[InlineKeyboardButton]:
    return [
        InlineKeyboardButton(text=_LABELS[verb], callback_data=RunButton(verb=verb, run=run_id).pack())
        for verb in verbs
    ]


# ── answers ───────────────────────────────────────────────────────────────────────────────────────


def checking(workflow: str, run_id: int | None = None) -> Screen:
    """Say that a verdict follows."""
    which = "" if run_id is None else f", run #{run_id}"
    return screen(Text("⏳ Checking ", name(workflow), f"{which} …"))


def which() -> Screen:
    """Say that an id is missing."""
    return screen(Text("Which one? /run ID, with an id from /history."))


def not_found(words: str) -> Screen:
    """Say that an id means nothing."""
    return screen(Text("No run ", Code(clean(words, 64) or "?"), ". /history lists them."))


def gone() -> Screen:
    """Answer a button whose run is no longer known."""
    return screen(Text("That run is no longer known. /history and /workflows show how things stand."))
