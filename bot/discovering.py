"""`loopwarden sources`: the logs of known programs at their usual places, and the watch list that would read them."""

import glob
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import MofNCompleteColumn, TextColumn

from bot.clock import SystemClock
from bot.glance import glance
from bot.progress import progress
from bot.views.cleaning import one_line
from bot.views.discovered import Discovered, lines_of, nothing_at, watchlist_of
from jobs.pattern import find_files
from jobs.sources.ends import Sample
from jobs.sources.registry import FORMATS
from jobs.watchlist.sources import SourceSpec

_SAMPLE: Final = Sample(files=1000, size=1 << 19, sessions=200)
"""Of each pattern: half a gigabyte at the most."""
_WIDTH: Final = 200
"""Columns of a table that is not shown on a terminal."""
_LONGEST_NOTE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A pattern that finds something."""

    format: str
    shown: str
    """The pattern, from `~` if it lies there."""
    pattern: str
    files: int


def show_sources() -> int:
    """Look and print. Return the exit code: 1 if there is nothing."""
    problems: list[str] = []
    usual = list(_usual_places(os.environ, Path.home()))
    now = SystemClock().now()
    found = _looked_at(_with_files(usual, problems), now)
    problems += [problem for entry in found for problem in entry.seen.problems]
    try:
        _print(found, usual, now)
    except BrokenPipeError:
        # Whoever reads the output has had enough, and what is still held must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    for problem in dict.fromkeys(problems):
        sys.stderr.write(f"loopwarden: {one_line(problem, _LONGEST_NOTE)}\n")
    return 0 if found else 1


def _print(found: Sequence[Discovered], usual: Sequence[_Place], now: float) -> None:
    console = Console(highlight=False)
    if not found:
        # No line of a watch list, where one may be expected.
        sys.stderr.write(nothing_at([place.shown for place in usual], sys.stderr.encoding))
    elif console.is_terminal:
        console.print(*lines_of(found, _SAMPLE, now, console.encoding), sep="")
        sys.stdout.write(watchlist_of(found))
    else:
        # What is sent to a file is a watch list as it is.
        console.width = _WIDTH
        with console.capture() as table:
            console.print(*lines_of(found, _SAMPLE, now, console.encoding), sep="")
        sys.stdout.writelines(f"# {line}".rstrip() + "\n" for line in table.get().splitlines())
        sys.stdout.write(watchlist_of(found))
    sys.stdout.flush()


def _usual_places(environment: Mapping[str, str], home: Path) -> Iterator[_Place]:
    start = glob.escape(str(home)).rstrip("/")
    for name, form in FORMATS.items():
        for place in form.home.places(environment) if form.home else ():
            pattern = f"{start}{place[1:]}" if place.startswith("~/") else place
            shown = (
                f"~{pattern.removeprefix(start)}" if pattern.startswith(f"{start}/") and start else pattern
            )
            yield _Place(format=name, shown=shown, pattern=pattern, files=0)


def _with_files(places: Iterable[_Place], problems: list[str]) -> list[_Place]:
    """Leave out the places that have no file, or none but those of the places before: an old home may be a link."""
    found, known = list[_Place](), set[str]()
    for place in places:
        files = {
            os.path.realpath(path) for path in find_files(place.pattern, problems) if Path(path).is_file()
        }
        if not files <= known:
            known |= files
            found.append(
                _Place(format=place.format, shown=place.shown, pattern=place.pattern, files=len(files))
            )
    return found


def _looked_at(places: Sequence[_Place], now: float) -> list[Discovered]:
    found: list[Discovered] = []
    names: set[str] = set()
    total = sum(place.files for place in places)
    with progress("Looking", total, MofNCompleteColumn(), TextColumn("files")) as tell:
        done = 0
        for place in places:
            spec = SourceSpec(name=_unique(place.format, names), format=place.format, path=place.pattern)
            seen = glance(spec, _SAMPLE, now, progress=_after(done, tell))
            done += place.files
            entry = Discovered(
                name=spec.name,
                format=place.format,
                path=place.shown,
                process=FORMATS[place.format].process,
                seen=seen,
            )
            found.append(entry)
    return found


def _after(done: int, tell: Callable[[int], None]) -> Callable[[int], None]:
    return lambda files: tell(done + files)


def _unique(name: str, taken: set[str]) -> str:
    number, unique = 1, name
    while unique in taken:
        number += 1
        unique = f"{name}-{number}"
    taken.add(unique)
    return unique
