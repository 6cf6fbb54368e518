"""/start, /help and /status."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from aiogram.utils.formatting import Bold, Code, Text

from bot.commands import COMMANDS
from bot.views.cleaning import clean
from bot.views.differing import Differing, differing_lines
from bot.views.measure import amount, moment, plural, span
from bot.views.screen import Screen, lines, screen
from bot.views.text import name
from jobs.schedule import Runs

_PROBLEM_LIMIT: Final = 200
_PROBLEMS_SHOWN: Final = 3
_DIFFERING_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus:
    """One source as /status shows it."""

    name: str
    files: int
    sessions: int
    """Seen in the last 24 hours."""
    unreadable: Mapping[str, int]
    """Lines skipped since the files were first read, by path; only files with any."""
    stops: str
    """What a detection leads to, such as `stop`."""
    missing_killer: str | None = None
    """The one that would stop them, if it is not in force."""
    problems: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Everything that tells whether the guard works."""

    started_at: float
    scan: Runs
    other_jobs: Mapping[str, Runs]
    sources: Sequence[SourceStatus]
    watchlist_error: str | None
    differing: Sequence[Differing]
    """Entries of which the watch list says what is not in force."""
    open_incidents: int
    unstopped: int
    """Open incidents whose agent could not be stopped."""
    waiting: int
    parked: int
    """Given up in the last 24 hours."""
    lost_chats: Mapping[int, float]
    """Those that take no messages, with since when."""
    held_chats: Mapping[int, float]
    """Those that may not be written to yet, with until when."""
    refused: int
    """Updates from people or chats that may not command the bot."""
    set_aside: int
    """Updates of the last 24 hours that could not be handled."""
    not_polling: str | None
    """Why no updates come in, or not all."""


def start() -> Screen:
    """Greet."""
    return screen(
        lines(
            Text(
                Bold("Loopwarden"),
                " watches the agents on its machine, stops those that go round in circles and checks what their runs deliver.",
            ),
            "/status says whether it works, /agents who is there, /workflows how runs went, /help what else it can do.",
        )
    )


def help_text() -> Screen:
    """List the commands."""
    rows = (f"/{c.name}{' ' + c.argument if c.argument else ''}: {c.does}" for c in COMMANDS)
    return screen(lines(Bold("Commands"), *rows))


def unknown() -> Screen:
    """Answer a text that is no command."""
    return screen(Text("That is no command of mine. /help lists them."))


def stale_button() -> Screen:
    """Answer a button whose subject is over or unknown."""
    return screen(Text("That button no longer means anything. /incidents and /agents show how things stand."))


def ignored(age: float) -> Screen:
    """Answer a command that has been under way for so many seconds."""
    return screen(
        Text(f"Ignored, {span(age)} old by this machine's clock: send it again if you still want it.")
    )


def not_yours() -> str:
    """Answer a press by somebody who may not press."""
    return "Only the admins of this bot may press that."


def failed() -> Screen:
    """Answer when a handler failed."""
    return screen(
        Text("⚠️ That failed; the log says why. Watching and stopping go on. Try again, or look at /status.")
    )


def being_read(seconds: float) -> str:
    """Say that a source takes its time."""
    return f"It has been read for {span(seconds)} and is not done; the other sources do not wait."


def status(state: Status, now: float, zone: ZoneInfo) -> Screen:
    """Render how the guard fares."""
    return screen(
        lines(
            Text(_light(state), Bold("Loopwarden"), f", up {span(now - state.started_at)}"),
            _scan(state.scan, now, zone),
            *(_failing(job, runs) for job, runs in state.other_jobs.items() if runs.failures),
            None if state.not_polling is None else Text("⚠️ ", clean(state.not_polling, _PROBLEM_LIMIT)),
            *_watchlist(state),
            *differing_lines(state.differing, _DIFFERING_SHOWN),
            *(part for source in state.sources for part in _source(source)),
            f"🚨 Agents that could not be stopped: {state.unstopped}, see /incidents"
            if state.unstopped
            else None,
            f"Incidents open: {state.open_incidents}",
            f"Messages waiting: {state.waiting}, given up in 24 h: {state.parked}",
            *(
                f"⚠️ Chat {chat} has taken no message since {moment(since, now, zone)}"
                for chat, since in state.lost_chats.items()
            ),
            *(
                f"⏳ Chat {chat} is written to again at {moment(until, now, zone)}: Telegram wants it so, or fails"
                for chat, until in state.held_chats.items()
            ),
            f"Updates refused: {amount(state.refused)}" if state.refused else None,
            f"Updates set aside in 24 h, see the log: {amount(state.set_aside)}" if state.set_aside else None,
        )
    )


def _light(state: Status) -> str:
    is_bad = any(runs.failures for runs in (state.scan, *state.other_jobs.values())) or state.unstopped
    is_deaf = state.not_polling or state.set_aside
    is_told_wrong = state.watchlist_error or any(source.problems for source in state.sources)
    is_asked = any(found.is_open for found in state.differing)
    has_problems = is_deaf or is_told_wrong or is_asked or state.parked or state.lost_chats
    return "🔴 " if is_bad else "🟡 " if has_problems else "🟢 "


def _scan(scan: Runs, now: float, zone: ZoneInfo) -> Text:
    if scan.failures:
        times = plural(scan.failures, "time")
        return Text(f"The scan has failed {times} in a row: ", Code(clean(scan.error, _PROBLEM_LIMIT)))
    if scan.worked_at is None:
        return Text("The first scan is under way.")
    ago = span(now - scan.worked_at)
    return Text(f"Last scan {ago} ago ({moment(scan.worked_at, now, zone)}), took {scan.took:.2f} s")


def _failing(job: str, runs: Runs) -> Text:
    times = plural(runs.failures, "time")
    return Text(f"Job {job} has failed {times} in a row: ", Code(clean(runs.error, _PROBLEM_LIMIT)))


def _watchlist(state: Status) -> list[Text]:
    if state.watchlist_error is None:
        return []
    return [
        Text(
            "The watch list cannot be used, what was pinned is in force: ",
            Code(clean(state.watchlist_error, 300)),
        )
    ]


def _source(source: SourceStatus) -> list[Text]:
    skipped = sum(source.unreadable.values())
    unreadable = f", {plural(skipped, 'unreadable line')}" if skipped else ""
    stops: Text | str = source.stops
    if source.missing_killer is not None:
        stops = Text("killer ", name(source.missing_killer), " is not in force, observed")
    head = Text(
        "Source ",
        name(source.name),
        f": {plural(source.files, 'file')}, {plural(source.sessions, 'session')}{unreadable}, ",
        stops,
    )
    worst = sorted(source.unreadable.items(), key=lambda item: -item[1])
    skipped_in = [f"{Path(path).name}: {plural(lines, 'unreadable line')}" for path, lines in worst]
    return [head, *_listed(source.problems), *_listed(skipped_in)]


def _listed(problems: Sequence[str]) -> list[Text]:
    shown = [Text("  ⚠️ ", Code(clean(problem, _PROBLEM_LIMIT))) for problem in problems[:_PROBLEMS_SHOWN]]
    more = len(problems) - len(shown)
    return [*shown, Text(f"  ⚠️ and {more} more")] if more else shown
