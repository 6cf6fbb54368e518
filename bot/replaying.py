"""`loopwarden replay`: what the rule would have made of old logs, as a table or as a JSON object a line."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from bot.clock import SystemClock
from bot.settings import SettingsError, assigned
from bot.views.cleaning import one_line
from bot.views.measure import plural
from bot.views.replayed import lines_of
from jobs.replay import Event, EventKind, Replay, read_all
from jobs.sources.given import Log, LogFile, find_logs
from jobs.sources.registry import FORMATS
from jobs.thrash.policy import ThrashPolicy
from jobs.watchlist import AUTO

_WIDTH: Final = 200
"""Columns of a table that is not shown on a terminal."""
_LONGEST_NOTE: Final = 500


def replay(paths: Iterable[str], format_name: str, assignments: Iterable[str], *, is_json: bool) -> int:
    """Replay logs and print what there is to tell. Return the exit code: 1 if nothing could be read at all.

    Raises SettingsError if it was asked wrongly.
    """
    policy = assigned(assignments).policy()
    if format_name != AUTO and format_name not in FORMATS:
        raise SettingsError(f"--format {format_name}: no such format, only {', '.join((AUTO, *FORMATS))}")
    playing, here = _Playing(policy=policy), str(Path.cwd())
    logs = [
        log for path in dict.fromkeys(paths) for log in find_logs(path, format_name, here, playing.problems)
    ]
    try:
        (_print_json if is_json else _print_table)(playing, logs)
    except BrokenPipeError:
        # Whoever reads the output has had enough, and what is still held must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    _print_notes(playing)
    return 0 if playing.files else 1


@dataclass(slots=True, kw_only=True)
class _Playing:
    """Plays one log after the other and counts what it reads."""

    policy: ThrashPolicy
    problems: list[str] = field(default_factory=list)
    files: int = 0
    """Of which anything could be read, be it that there is nothing in them."""
    calls: int = 0
    sessions: int = 0
    unreadable: int = 0
    bytes_read: int = 0
    now: float = field(default_factory=lambda: SystemClock().now())

    def play(self, log: Log, progress: Callable[[int], None]) -> Iterator[Event]:
        """Yield what would have happened; tell how many bytes have been read so far, of all logs."""
        play = Replay(source=log.format, policy=self.policy)
        for file in log.files:
            yield from self._play_file(play, file, progress)
        yield from play.end()
        self.calls += play.calls
        self.sessions += play.sessions

    def _play_file(self, play: Replay, file: LogFile, progress: Callable[[int], None]) -> Iterator[Event]:
        calls, unreadable, is_found = play.calls, 0, False
        end = self.bytes_read + file.size
        for batch in read_all(file.source, self.now):
            yield from play.hear(msgspec.structs.replace(batch, path=file.path))
            unreadable, is_found = batch.cursor.unreadable, True
            # What a database holds is counted otherwise than its file.
            self.bytes_read = min(self.bytes_read + batch.size, end)
            progress(self.bytes_read)
        self.bytes_read = end
        self.unreadable += unreadable
        self.files += is_found and (play.calls > calls or not unreadable)
        self.problems += file.source.problems()
        if not is_found and not file.source.problems():
            self.problems.append(f"{file.path} is passed over: it is compressed, or gone.")


def _print_json(playing: _Playing, logs: Sequence[Log]) -> None:
    with _progress(logs, is_shown=not sys.stdout.isatty()) as progress:
        for log in logs:
            for event in playing.play(log, progress):
                sys.stdout.write(json.dumps(msgspec.to_builtins(event)) + "\n")
                sys.stdout.flush()


def _print_table(playing: _Playing, logs: Sequence[Log]) -> None:
    found: list[Event] = []
    with _progress(logs, is_shown=True) as progress:
        for log in logs:
            found += _last_of_each(playing.play(log, progress))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _WIDTH
    for line in lines_of(found, playing.calls, playing.sessions, playing.policy.every, console.encoding):
        console.print(line)


def _last_of_each(events: Iterable[Event]) -> Iterable[Event]:
    """Return the stop of each session, else its first alert."""
    found: dict[str, Event] = {}
    for event in events:
        if event.event is EventKind.KILL or event.session not in found:
            found[event.session] = event
    return found.values()


def _print_notes(playing: _Playing) -> None:
    notes = list(dict.fromkeys(playing.problems))
    if playing.unreadable:
        notes.append(f"{plural(playing.unreadable, 'line')} could not be read.")
    for note in notes:
        sys.stderr.write(f"loopwarden: {one_line(note, _LONGEST_NOTE)}\n")


@contextmanager
def _progress(logs: Iterable[Log], *, is_shown: bool) -> Iterator[Callable[[int], None]]:
    """Show on a terminal how far one has come."""
    columns = (TextColumn("Reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    total = sum(file.size for log in logs for file in log.files)
    with Progress(
        *columns, console=console, transient=True, disable=not (is_shown and console.is_terminal)
    ) as bar:
        task = bar.add_task("", total=total)
        yield lambda place: bar.update(task, completed=place)
