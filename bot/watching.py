"""The watch list of one file: as it is written, and as it is in force."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jobs.approved_copies import ApprovedCopies
from jobs.contents import with_contents
from jobs.killers.dry_run import DryRunKiller
from jobs.killers.registry import Escalating, killers_of
from jobs.pinning.kind import Kind
from jobs.pinning.links import Killers, killers_in, missing_killer
from jobs.pinning.pin import Entry, Spec
from jobs.ports import Watched, WatchlistInForce
from jobs.sources.registry import FORMATS, build_source
from jobs.thrash.policy import OnDetection
from jobs.thrash.price import NO_PRICES, Prices
from jobs.verification.spec import WorkflowSpec
from jobs.watchlist.error import WatchlistError
from jobs.watchlist.reading import Watchlist, read_watchlist
from jobs.watchlist.sources import SourceSpec


class WatchlistFile(WatchlistInForce):
    """Reads the file, and keeps in force what it is told to, whatever the file says."""

    def __init__(
        self,
        path: Path,
        on_detection: OnDetection,
        hooks: Path | None = None,
        copies: ApprovedCopies | None = None,
    ) -> None:
        """Read nothing yet. `hooks` is the folder in which hooks tell of calls."""
        self._path = path
        self._on_detection = on_detection
        self._hooks = None if hooks is None else str(hooks.absolute())
        self._copies = copies
        self._state: tuple[int, ...] | None = None
        self._written: Watchlist | None = None
        self._built_of: tuple[Sequence[SourceSpec], Killers, Prices] | None = None
        self._watched: Mapping[str, Watched] = {}
        self._workflows: Mapping[str, WorkflowSpec] = {}
        self.error: str | None = None
        self.prices: Prices = NO_PRICES

    def sources(self) -> Mapping[str, Watched]:
        """Every watched source by its name."""
        return self._watched

    def workflows(self) -> Mapping[str, WorkflowSpec]:
        """Every workflow by its name."""
        return self._workflows

    def written(self) -> Sequence[Entry] | None:
        """Read the file again if it changed, and return what it says in its order, with contents; None: see `error`."""
        state = _state(self._path)
        if state is None or state != self._state:
            self._read()
            self._state = state
        return None if self._written is None else tuple(_entries(self._written))

    def enforce(self, entries: Sequence[Entry]) -> None:
        """Put these in force, and nothing else."""
        specs = [entry.spec for entry in entries]
        killers = killers_in(entries)
        sources = [spec for spec in specs if isinstance(spec, SourceSpec)]
        if (parts := (sources, killers, self.prices)) != self._built_of:
            self._watched = self._built(*parts)
            self._built_of = parts
        self._workflows = {spec.name: spec for spec in specs if isinstance(spec, WorkflowSpec)}

    def _read(self) -> None:
        try:
            self._written = read_watchlist(self._path, FORMATS)
        except WatchlistError as error:
            self._written, self.error = None, str(error)
        else:
            self.error, self.prices = None, self._written.prices

    def _built(
        self, specs: Sequence[SourceSpec], killer_specs: Killers, prices: Prices
    ) -> Mapping[str, Watched]:
        killers = killers_of(killer_specs, self._copies)
        sources = (build_source(spec, self._hooks, specs[:place]) for place, spec in enumerate(specs))
        return {
            spec.name: Watched(
                source=source,
                # One that is not in force is none: its sessions are observed.
                killer=(killer := killers.get(spec.killer or "")),
                on_detection=spec.on_detection or self._on_detection,
                is_dry_run=isinstance(killer, DryRunKiller),
                has_other_step=isinstance(killer, Escalating),
                missing_killer=missing_killer(spec, killer_specs),
                prices=prices,
            )
            for spec, source in zip(specs, sources, strict=True)
        }


def _entries(watchlist: Watchlist) -> Iterator[Entry]:
    yield from (_entry(Kind.SOURCE, spec.name, spec) for spec in watchlist.sources)
    yield from (_entry(Kind.KILLER, name, spec) for name, spec in watchlist.killers.items())
    yield from (_entry(Kind.WORKFLOW, name, spec) for name, spec in watchlist.workflows.items())


def _entry(kind: Kind, name: str, spec: Spec) -> Entry:
    return Entry(kind=kind, name=name, spec=with_contents(spec))


def _state(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
