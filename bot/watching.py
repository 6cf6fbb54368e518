"""The watch list in force: read at start, read again when the file changes, the last good one kept."""

import logging
from collections.abc import Mapping
from pathlib import Path

from jobs.alert.notice import WatchlistNotice
from jobs.killers.registry import killers_of
from jobs.ports import CallSource, Killer, Watched
from jobs.sources.registry import FORMATS, build_source
from jobs.thrash.policy import OnDetection
from jobs.verification.spec import WorkflowSpec
from jobs.watchlist.error import WatchlistError
from jobs.watchlist.killers import DryRunSpec
from jobs.watchlist.reading import Watchlist, read_watchlist
from jobs.watchlist.sources import SourceSpec

_log = logging.getLogger(__name__)


class WatchlistFile:
    """Keeps the watch list of one file in force."""

    def __init__(self, path: Path, on_detection: OnDetection, hooks: Path | None = None) -> None:
        """Read the file; raises `WatchlistError` if it is wrong. `hooks` is the folder in which hooks tell of calls."""
        self._path = path
        self._on_detection = on_detection
        self._hooks = None if hooks is None else str(hooks.absolute())
        self._state = _state(path)
        self._watchlist = read_watchlist(path, FORMATS)
        self._watched = self._build()
        self.error: str | None = None
        """Why the file as it is now is not in force; None if it is."""

    def sources(self) -> Mapping[str, Watched]:
        """Every watched source by its name."""
        return self._watched

    def workflows(self) -> Mapping[str, WorkflowSpec]:
        """Every workflow by its name."""
        return self._watchlist.workflows

    def refresh(self) -> WatchlistNotice | None:
        """Read the file again if it changed; return what the chat must be told of it."""
        state = _state(self._path)
        if state == self._state:
            return None
        self._state = state
        was_wrong = self.error is not None
        try:
            watchlist = read_watchlist(self._path, FORMATS)
        except WatchlistError as error:
            self.error = str(error)
            _log.warning("the watch list is wrong, the last good one stays in force: %s", self.error)
            return WatchlistNotice(error=self.error)
        self.error = None
        if watchlist == self._watchlist:
            return WatchlistNotice(error=None) if was_wrong else None
        self._watchlist = watchlist
        self._watched = self._build()
        _log.info("the changed watch list is in force")
        return WatchlistNotice(error=None)

    def _build(self) -> Mapping[str, Watched]:
        killers, specs = killers_of(self._watchlist.killers), self._watchlist.sources
        sources = (build_source(spec, self._hooks, specs[:place]) for place, spec in enumerate(specs))
        return {
            spec.name: _watched(spec, source, self._watchlist, killers, self._on_detection)
            for spec, source in zip(specs, sources, strict=True)
        }


def _watched(
    source: SourceSpec,
    read_by: CallSource,
    watchlist: Watchlist,
    killers: Mapping[str, Killer],
    on_detection: OnDetection,
) -> Watched:
    spec = None if source.killer is None else watchlist.killers[source.killer]
    return Watched(
        source=read_by,
        killer=None if source.killer is None else killers[source.killer],
        on_detection=source.on_detection or on_detection,
        is_dry_run=isinstance(spec, DryRunSpec),
        has_other_step=spec is not None and spec.then is not None,
        prices=watchlist.prices,
    )


def _state(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
