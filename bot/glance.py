"""A glance at what a source holds: the ends of its newest files, read as the scan would read them."""

from collections.abc import Callable
from dataclasses import dataclass, field

from jobs.sources.ends import Sample, ends_of
from jobs.sources.registry import build_source, tables_of
from jobs.watchlist.sources import SourceSpec


@dataclass(slots=True, kw_only=True)
class Glance:
    """What was seen."""

    files: set[str] = field(default_factory=set)
    sessions: set[str] = field(default_factory=set)
    calls: int = 0
    last_ts: float | None = None
    """Of the newest call, by the log's own clock."""
    names_pid: bool = False
    unreadable: int = 0
    """Lines."""
    problems: list[str] = field(default_factory=list)
    is_all: bool = True
    """Whether it was more than a glance: nothing was left out."""


def glance(
    spec: SourceSpec,
    sample: Sample,
    now: float,
    *,
    hooks: str | None = None,
    progress: Callable[[int], None] = lambda _files: None,
) -> Glance:
    """Look at a source; tell how many files have been looked at so far.

    Of what hooks have told in a folder, if it is given, only that counts which logs do not tell: the process.
    """
    ends = ends_of(spec.path, tables_of(spec.format), sample, now)
    seen, source, unreadable = Glance(is_all=ends.is_all), build_source(spec, hooks), dict[str, int]()
    for batch in source.read_new(ends.places, now):
        seen.names_pid |= any(call.pid is not None for call in batch.calls)
        if batch.is_hook:
            continue
        seen.files.add(batch.path)
        unreadable[batch.path] = batch.cursor.unreadable
        seen.calls += len(batch.calls)
        for call in batch.calls:
            seen.sessions.add(call.session)
            seen.last_ts = max(call.ts, seen.last_ts or 0)
        progress(len(seen.files))
    seen.unreadable = sum(unreadable.values())
    seen.problems += source.problems()
    return seen
