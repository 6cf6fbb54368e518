"""The watch list and its sources: what is in the logs now, seen as the scan would see it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from bot.checking.finding import Finding, error, fine, foreign, warning
from bot.glance import Glance, glance
from bot.views.measure import moment, plural, span
from jobs.pattern import find_files
from jobs.sources.ends import Sample
from jobs.sources.overlap import Earlier
from jobs.sources.registry import FORMATS, HOOKED
from jobs.thrash.policy import OnDetection
from jobs.watchlist.error import WatchlistError
from jobs.watchlist.killers import ProcessSpec
from jobs.watchlist.reading import Watchlist, read_watchlist
from jobs.watchlist.sources import AUTO, SourceSpec

_WATCHLIST: Final = "watch list"
_SAMPLE: Final = Sample(files=50, size=1 << 20)
_PROBLEMS_SHOWN: Final = 3


def read_for_check(path: Path) -> tuple[Watchlist | None, Finding]:
    """Read the watch list; return None with the reason if `loopwarden run` would refuse it."""
    try:
        watchlist = read_watchlist(path, FORMATS)
    except WatchlistError as wrong:
        mend = "loopwarden.example.toml shows every field; copy it to begin with"
        return None, error(_WATCHLIST, foreign(str(wrong), 400), mend)
    counted = f"{plural(len(watchlist.sources), 'source')}, {plural(len(watchlist.killers), 'killer')}"
    if watchlist.workflows:
        counted += f", {plural(len(watchlist.workflows), 'workflow')}"
    return watchlist, fine(_WATCHLIST, f"{foreign(str(path))}: {counted}")


def check_source(
    spec: SourceSpec,
    watchlist: Watchlist,
    on_detection: OnDetection,
    now: float,
    zone: ZoneInfo,
    *,
    hooks: str | None = None,
) -> Iterator[Finding]:
    """Look at a source's newest files, and at what could be done about the sessions in them."""
    subject, seen = f"source {foreign(spec.name)}", glance(spec, _SAMPLE, now, hooks=hooks)
    if seen.files or not seen.problems:
        yield _reading(subject, spec, seen, now, zone)
    if seen.unreadable and seen.last_ts is not None:
        says = f"{plural(seen.unreadable, 'line')} of those looked at cannot be read and will be skipped"
        yield warning(subject, says, "see what else writes to these files, and whether `format` is right")
    shown = seen.problems[:_PROBLEMS_SHOWN]
    more = len(seen.problems) - len(shown)
    for index, problem in enumerate(shown, start=1):
        others = f" (and {more} more)" if more and index == len(shown) else ""
        mend = "let this user read it, or narrow `path` to what are logs"
        yield error(subject, f"{foreign(problem, 300)}{others}", mend)
    yield _stopping(subject, spec, watchlist, seen, spec.on_detection or on_detection)


def check_overlaps(specs: Sequence[SourceSpec]) -> Iterator[Finding]:
    """Name each two entries that find the same files; the first one reads them."""
    for place, spec in enumerate(specs):
        files = find_files(spec.path, [])
        for other in specs[:place]:
            shared = sum(Earlier.than(spec, [other]).reads(path, spec.format) for path in files)
            if shared:
                first, second = foreign(other.name), foreign(spec.name)
                says = f"source {first} finds {plural(shared, 'file')} of it, too, and comes first: there they are read"
                mend = f"narrow the `path` of {first} or of {second}, or take one of them out"
                yield warning(f"source {second}", says, mend)


def _reading(subject: str, spec: SourceSpec, seen: Glance, now: float, zone: ZoneInfo) -> Finding:
    if not seen.files:
        says = f"there is no file at {foreign(spec.path)} yet"
        return warning(subject, says, "nothing to do if no agent has logged yet; else correct `path`")
    files = plural(len(seen.files), "file")
    if len(seen.files) > _SAMPLE.files:
        files += f" (the newest {_SAMPLE.files} looked at)"
    if seen.last_ts is not None:
        ago = f" ({span(now - seen.last_ts)} ago)" if seen.last_ts <= now else ""
        last = f"{moment(seen.last_ts, now, zone)}{ago}"
        return fine(subject, f"{files}, {plural(len(seen.sessions), 'session')}, last call {last}")
    if seen.unreadable:
        says = f"{files}, and none of the {plural(seen.unreadable, 'line')} looked at is one of format {spec.format}"
        return error(subject, says, "correct `format`, or narrow `path` to what are logs")
    return fine(subject, f"{files}, no calls in them yet")


def _stopping(
    subject: str, spec: SourceSpec, watchlist: Watchlist, seen: Glance, on_detection: OnDetection
) -> Finding:
    if spec.killer is None:
        mend = "name a `killer` if its agents are to be stopped"
        return warning(subject, "observed only: it has no killer, so nothing is ever stopped", mend)
    killer = watchlist.killers[spec.killer]
    needs_pid = isinstance(killer, ProcessSpec) and killer.pid_file is None
    if needs_pid and seen.last_ts is not None and not seen.names_pid:
        says = (
            f"no call names a `pid`, and killer {foreign(spec.killer)} has no pid_file: it could stop nothing"
        )
        mend = "let the agents log their `pid`, or give the killer a `pid_file`"
        if spec.format in {AUTO, *HOOKED}:
            mend = "let the agents' program call `loopwarden hook`, or give the killer a `pid_file`"
        return error(subject, says, mend)
    return fine(subject, f"on a detection: {on_detection}, by killer {foreign(spec.killer)}")
