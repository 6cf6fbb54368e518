"""The pins: what is in force, and what the watch list says otherwise."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bot.checking.data import is_held, read_only, schemas_known
from bot.checking.finding import Finding, fine, foreign, warning
from bot.views.differing import Differing
from bot.watching import WatchlistFile
from jobs.pinning.change import Change
from jobs.pinning.deciding import Decision, decide, is_first_look, pins_in_force
from jobs.pinning.difference import difference
from jobs.pinning.kind import Kind
from jobs.pinning.links import Killers, killers_in
from jobs.pinning.pin import Pin, Proposal, Spec, spec_of
from jobs.store.blocking import BlockingConnection, run
from jobs.store.pins import SqlPins, SqlProposals
from jobs.store.schema import FILE_NAME
from jobs.thrash.policy import OnDetection
from jobs.watchlist.sources import SourceSpec

_PINS: Final = "pins"
_CHANGES_SHOWN: Final = 3
_VALUE: Final = 60
"""UTF-16 units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    pins: Sequence[Pin]
    proposals: Sequence[Proposal]


def check_pins(
    folder: Path, watch: WatchlistFile, on_detection: OnDetection, now: float
) -> Iterator[Finding]:
    """Compare what a watch list that can be read says with what was approved of it."""
    rows, written = _rows(folder), watch.written()
    if rows is None or written is None:
        return
    decision = decide(written, rows.pins, rows.proposals, now)
    in_force = {(entry.kind, entry.name): entry.spec for entry in decision.in_force}
    for altered in decision.altered:
        says = "was altered in the database; it is not used"
        yield warning(_subject(altered), says, "see who can write to the database")
    differing = _differing(rows.proposals, decision)
    for proposal in differing:
        before = in_force.get((proposal.kind, proposal.name))
        yield _difference(proposal, before, on_detection, killers_in(decision.in_force))
    is_all = not decision.altered and not differing
    if is_first_look(rows.pins, rows.proposals):
        if decision.first_use:
            yield fine(
                _PINS, f"what {'' if is_all else 'else '}the watch list says is pinned at the next start"
            )
    elif is_all:
        yield fine(_PINS, "what is in force is what the watch list says")


def in_order_of_approval(folder: Path, sources: Sequence[SourceSpec]) -> Sequence[SourceSpec]:
    """Return the sources in the order in which they take files: new ones last, whatever their place in the file."""
    rows = _rows(folder)
    pins = pins_in_force(rows.pins) if rows else ()
    places = {pin.name: place for place, pin in enumerate(pins) if pin.kind is Kind.SOURCE}
    return sorted(sources, key=lambda source: places.get(source.name, len(pins)))


def _rows(folder: Path) -> _Rows | None:
    """Read what was approved; None where there is no database, or none that can be read without changing it."""
    path = folder / FILE_NAME
    uri = read_only(path, is_running=is_held(folder))
    if uri is None or not path.exists():
        return None
    try:
        with closing(BlockingConnection(uri, is_uri=True)) as connection:
            [(schema,)] = run(connection.execute_fetchall("PRAGMA user_version"))
            if schema != schemas_known():
                return None
            pins, proposals = SqlPins(connection), SqlProposals(connection)
            return _Rows(pins=run(pins.all()), proposals=run(proposals.newest()))
    except sqlite3.Error:
        return None  # what is wrong with it is another point


def _differing(proposals: Sequence[Proposal], decision: Decision) -> list[Proposal]:
    """Return what the next look would leave as asked."""
    asked = {(each.kind, each.name): each for each in proposals if each.state.still_differs}
    for withdrawn in decision.withdrawn:
        del asked[withdrawn.kind, withdrawn.name]
    return [*asked.values(), *decision.proposed]


def _difference(
    proposal: Proposal, before: Spec | None, on_detection: OnDetection, killers: Killers
) -> Finding:
    found = Differing(proposal=proposal, is_new=before is None)
    after = spec_of(proposal)
    changes = difference(before, after, on_detection, killers) if before and after else ()
    shown = [_change(change) for change in changes[:_CHANGES_SHOWN]]
    more = [f"and {len(changes) - len(shown)} more"] if len(changes) > len(shown) else []
    mend = "press Approve or Reject under its message; /audit shows it"
    if not found.is_open:
        mend = "make the file say again what is in force, or something else that is asked"
    return warning(_subject(proposal), "; ".join((found.words, *shown, *more)), mend)


def _change(change: Change) -> str:
    before, after = (foreign(value, _VALUE) or "nothing" for value in (change.before, change.after))
    return f"{foreign(change.field, _VALUE)}: {before} → {after} ({change.mark})"


def _subject(of: Pin | Proposal) -> str:
    return f"pin of {of.kind} {foreign(of.name)}"
