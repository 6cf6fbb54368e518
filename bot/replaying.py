"""`loopwarden replay`: what the rule would have made of old logs, as a table or as a JSON object a line."""

import glob
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console
from rich.progress import DownloadColumn, TimeRemainingColumn

from bot.checking.configuration import expanded, read_configuration
from bot.clock import SystemClock
from bot.progress import progress
from bot.settings import SettingsError, assigned
from bot.views.cleaning import one_line
from bot.views.measure import plural
from bot.views.replayed import lines_of
from jobs.ports import Cursor
from jobs.replay.event import Event, EventKind
from jobs.replay.reading import read_all
from jobs.replay.replay import Replay
from jobs.sources.given import Log, LogFile, find_logs
from jobs.sources.recognise import Unknown
from jobs.sources.registry import FORMATS
from jobs.sources.tail import Identity
from jobs.thrash.policy import ThrashPolicy
from jobs.thrash.price import NO_PRICES, Prices
from jobs.watchlist.error import WatchlistError
from jobs.watchlist.reading import read_watchlist
from jobs.watchlist.sources import AUTO

_WIDTH: Final = 200
"""Columns of a table that is not shown on a terminal."""
_LONGEST_NOTE: Final = 500
_MUCH: Final = 16 << 20
"""Bytes without a line that are worth a word."""


def replay(paths: Iterable[str], format_name: str, assignments: Iterable[str], *, is_json: bool) -> int:
    """Replay logs and print what there is to tell. Return the exit code: 1 if nothing could be read at all.

    Raises SettingsError if it was asked wrongly.
    """
    policy = assigned(assignments).policy()
    if format_name != AUTO and format_name not in FORMATS:
        raise SettingsError(f"--format {format_name}: no such format, only {', '.join((AUTO, *FORMATS))}")
    problems: list[str] = []
    playing, here = _Playing(policy=policy, prices=_prices(problems), problems=problems), str(Path.cwd())
    read = set[Identity]()
    given = [_at_home(path) for path in paths]
    logs = [log for path in given for log in find_logs(path, format_name, here, problems, read)]
    try:
        (_print_json if is_json else _print_table)(playing, logs)
    except BrokenPipeError:
        # Whoever reads the output has had enough, and what is still held must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    _print_notes(playing)
    return 0 if playing.files else 1


def _at_home(path: str) -> str:
    """Return a path with `~` expanded: a pattern stands in quotes, where no shell does that."""
    user, slash, rest = path.partition("/")
    home = os.path.expanduser(user) if user.startswith("~") else user  # noqa: PTH111 - Path's own raises
    is_pattern = home != user and not os.path.lexists(f"{home}{slash}{rest}")
    return f"{glob.escape(home) if is_pattern else home}{slash}{rest}"


def _prices(problems: list[str]) -> Prices:
    """Return those of the watch list, if there is one."""
    settings = read_configuration().settings
    path = expanded(settings.watchlist) if settings else None
    try:
        return read_watchlist(path, FORMATS).prices if path and path.exists() else NO_PRICES
    except WatchlistError as error:
        problems.append(f"No price is known: the watch list is wrong ({error}).")
        return NO_PRICES


@dataclass(slots=True, kw_only=True)
class _Playing:
    """Plays one log after the other and counts what it reads."""

    policy: ThrashPolicy
    prices: Prices
    problems: list[str]
    files: int = 0
    """Of which anything could be read, be it that there is nothing in them."""
    calls: int = 0
    sessions: int = 0
    unreadable: int = 0
    foreign: Counter[tuple[str, str | Unknown]] = field(default_factory=Counter)
    """Files without a call of the format that they were read as, by that and by what they are instead."""
    bytes_read: int = 0
    now: float = field(default_factory=lambda: SystemClock().now())

    def play(self, log: Log, tell: Callable[[int], None]) -> Iterator[Event]:
        """Yield what would have happened; tell how many bytes have been read so far, of all logs."""
        play = Replay(source=log.format, policy=self.policy, prices=self.prices)
        for file in log.files:
            yield from self._play_file(play, log.format, file, tell)
        yield from play.end()
        self.calls += play.calls
        self.sessions += play.sessions

    def _play_file(
        self, play: Replay, format_name: str, file: LogFile, tell: Callable[[int], None]
    ) -> Iterator[Event]:
        calls, newest, size = play.calls, None, 0
        start = self.bytes_read
        for batch in read_all(file.source, self.now):
            yield from play.hear(msgspec.structs.replace(batch, path=file.path), is_database=file.is_database)
            newest, size = batch.cursor, size + batch.size
            # What a database holds is counted otherwise than its file.
            tell(start + min(size, file.size))
        self.bytes_read = start + file.size
        unreadable = newest.unreadable if newest else 0
        self.unreadable += unreadable
        self.problems += _problems_of(file, newest, size)
        if newest is None:
            return
        if play.calls == calls and file.kind not in {format_name, Unknown.BLANK}:
            self.foreign[format_name, file.kind] += 1
        elif play.calls > calls or not unreadable:
            self.files += 1


def _problems_of(file: LogFile, newest: Cursor | None, size: int) -> Sequence[str]:
    """Return what there is to say of a file of which so many bytes were lines, or rows."""
    if newest and not file.is_database and newest.offset - size > _MUCH:
        left = ", and what comes then is left out" if newest.is_behind else ""
        return [
            f"{file.path} has a hole, or something else that is no line, of {_MUCH >> 20} MiB or more{left}."
        ]
    problems = file.source.problems()
    return problems if problems or newest else [f"{file.path} is passed over: it is compressed, or gone."]


def _print_json(playing: _Playing, logs: Sequence[Log]) -> None:
    with _progress(logs, is_shown=not sys.stdout.isatty()) as tell:
        for log in logs:
            for event in playing.play(log, tell):
                sys.stdout.write(json.dumps(msgspec.to_builtins(event)) + "\n")
                sys.stdout.flush()


def _print_table(playing: _Playing, logs: Sequence[Log]) -> None:
    found: list[Event] = []
    with _progress(logs, is_shown=True) as tell:
        for log in logs:
            found += _last_of_each(playing.play(log, tell))
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
    notes = [*dict.fromkeys(playing.problems), *map(_foreign, playing.foreign, playing.foreign.values())]
    if playing.unreadable:
        notes.append(f"{plural(playing.unreadable, 'line')} could not be read.")
    for note in notes:
        sys.stderr.write(f"loopwarden: {one_line(note, _LONGEST_NOTE)}\n")


def _foreign(formats: tuple[str, str | Unknown], files: int) -> str:
    """Say that so many files are not what they were to be read as."""
    asked, kind = formats
    what = f"of format {kind}" if isinstance(kind, str) else "of no known format"
    return f"No call of format {asked} is in {plural(files, 'file')} {what}."


def _progress(logs: Iterable[Log], *, is_shown: bool = True) -> AbstractContextManager[Callable[[int], None]]:
    total = sum(file.size for log in logs for file in log.files)
    return progress("Reading", total, DownloadColumn(), TimeRemainingColumn(), is_shown=is_shown)
