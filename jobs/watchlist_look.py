"""One look at the watch list: what its file says, and what no pin of that holds still."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jobs.contents import not_pinned
from jobs.pinning.kind import Kind
from jobs.pinning.pin import Entry
from jobs.ports import WatchlistInForce
from jobs.thrash.price import Prices


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What the file says."""

    written: Sequence[Entry] | None = None
    loose: Mapping[tuple[Kind, str], tuple[str, ...]] = field(default_factory=dict)
    """What is not pinned of an entry, in words."""
    error: str | None
    prices: Prices


def look_at(watch: WatchlistInForce) -> Look:
    """Read the watch list if its file changed, with digests of what it refers to. Blocks."""
    written = watch.written()
    found = {(entry.kind, entry.name): entry.spec for entry in written or ()}
    loose = {key: words for key, spec in found.items() if spec is not None and (words := not_pinned(spec))}
    return Look(written=written, loose=loose, error=watch.error, prices=watch.prices)
