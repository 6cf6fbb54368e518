"""The watch list as it is written -> what a person has approved of it -> in force."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from jobs.alert.notice import PricesNotice, WatchlistNotice
from jobs.alert.outgoing import Outgoing, told
from jobs.alert.pin_notice import Pinned, altered_told, first_use_told, proposal_told
from jobs.aside import Aside, OverdueError
from jobs.contents import not_pinned
from jobs.pinning.deciding import Decision, decide, is_first_look, pins_in_force
from jobs.pinning.kind import How, Kind, ProposalState
from jobs.pinning.pin import Entry, Pin, Proposal, hash_of, spec_of
from jobs.ports import Clock, RunTables, Store, WatchlistInForce
from jobs.proposing import notice_of
from jobs.thrash.policy import OnDetection
from jobs.thrash.price import Prices
from jobs.watchlist.error import WatchlistError

_PATIENCE: Final = 30.0
"""Seconds for reading the watch list and what it refers to, which may lie on a file system that hangs."""

_Key = tuple[Kind, str]

_log = logging.getLogger(__name__)


class Decided(StrEnum):
    """What became of a press."""

    DONE = "done"
    GONE = "gone"
    """There is no such proposal, or it was altered since."""
    PAST = "past"
    """It was decided already, or the file says something else by now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What the file says."""

    written: Sequence[Entry] | None = None
    loose: Mapping[_Key, tuple[str, ...]] = field(default_factory=dict)
    """What is not pinned of an entry, in words."""
    error: str | None
    prices: Prices


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What follows from it, by what is in the database."""

    pins: Mapping[_Key, Pin]
    """Those in force."""
    decision: Decision


@dataclass(slots=True, kw_only=True)
class _Known:
    """What the chat knows, and what is in force."""

    error: str | None = None
    prices: Prices | None = None
    """None: nothing was read yet."""
    altered: frozenset[int] = frozenset()
    loose: Mapping[_Key, tuple[str, ...]] = field(default_factory=dict)
    newest: int = -1
    """The id of the newest pin by then."""
    pins: Sequence[Pin] = ()
    entries: Sequence[Entry] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecPinning:
    """What is enforced is what a person has approved; what the file says otherwise waits for one.

    1. The watch list is read again if its file changed, in a thread, with digests of what it refers to.
    2. What it says is compared with what was approved: what nobody knew is pinned at first sight, or proposed as a change is.
    3. Pins, proposals and what the chat is told of them are committed together.
    4. What was approved is put in force, and nothing else. While the file cannot be used all of it stays so.
    """

    store: Store
    watch: WatchlistInForce
    clock: Clock
    on_detection: OnDetection
    """What a source leads to that does not say."""
    patience: float = _PATIENCE
    known: _Known = field(default_factory=_Known)
    aside: Aside = field(default_factory=Aside)

    async def begin(self) -> None:
        """Look for the first time, before anything else does.

        Raises:
            WatchlistError: the file cannot be used, and no bot has ever pinned one that could.
        """
        look, reading = await self._look(), self.store.reading
        if look.error and is_first_look(await reading.pins.all(), await reading.proposals.newest()):
            raise WatchlistError(look.error)
        await self._take_in(look)

    async def __call__(self) -> None:
        """Look once."""
        await self._take_in(await self._look())

    async def enforce(self) -> None:
        """Put in force what was approved since. Stands by, so that what is approved in the chat is in force at once."""
        newest = await self.store.reading.pins.newest()
        # A database that was begun anew takes nothing out of force: the next look brings the pins back.
        if newest not in {0, self.known.newest}:
            self.known.pins = await self.store.reading.pins.in_force()
            pins = self.known.pins
            self.known.entries = [Entry(kind=pin.kind, name=pin.name, spec=spec_of(pin)) for pin in pins]
            self.known.newest = newest
        self.watch.enforce(self.known.entries)

    # ── what the chat may call ────────────────────────────────────────────────────────────────────

    async def approve(self, proposal_id: int, by: int) -> Decided:
        """Pin what was proposed, as it was shown, whatever the file says by now; if it is still open."""
        return await self._decide(proposal_id, ProposalState.APPROVED, by)

    async def reject(self, proposal_id: int, by: int) -> Decided:
        """Let what is in force stay so; it is not asked again before the file says a third thing."""
        return await self._decide(proposal_id, ProposalState.REJECTED, by)

    async def _decide(self, proposal_id: int, state: ProposalState, by: int) -> Decided:
        now = self.clock.now()
        async with self.store.transaction() as tables:
            proposal = await tables.proposals.get(proposal_id)
            if proposal is None or hash_of(proposal.entry) != proposal.hash:
                return Decided.GONE
            if proposal.state is not ProposalState.OPEN:
                return Decided.PAST
            before = await tables.pins.of(proposal.kind, proposal.name)
            if state is ProposalState.APPROVED:
                await tables.pins.add(_approved(proposal, by, now))
            proposal = replace(proposal, state=state, decided_by=by, decided_at=now)
            await tables.proposals.save(proposal)
            await tables.outbox.put(self._told(proposal, before), now)
        _log.info("user %d: %s %s is %s", by, proposal.kind, proposal.name, state)
        return Decided.DONE

    # ── a look ────────────────────────────────────────────────────────────────────────────────────

    async def _look(self) -> _Look:
        try:
            return await self.aside("reading the watch list", self.patience, self._read)
        except OverdueError as overdue:
            return _Look(error=f"{overdue}", prices=self.watch.prices)

    def _read(self) -> _Look:
        written = self.watch.written()
        found = {(entry.kind, entry.name): entry.spec for entry in written or ()}
        loose = {
            key: words for key, spec in found.items() if spec is not None and (words := not_pinned(spec))
        }
        return _Look(written=written, loose=loose, error=self.watch.error, prices=self.watch.prices)

    async def _take_in(self, look: _Look) -> None:
        found = await self._found(self.store.reading, look)
        if look.written is not None:
            self.known.loose = look.loose
        if self._is_news(look, found.decision):
            async with self.store.transaction() as tables:
                await self._bring_back(tables)
                # Asked again: somebody may have decided meanwhile.
                found = await self._found(tables, look)
                await self._write(tables, look, found)
            self.known.error = look.error
            self.known.altered |= {pin.id for pin in found.decision.altered}
        if look.error is None:
            self.known.prices = look.prices
        await self.enforce()

    async def _found(self, tables: RunTables, look: _Look) -> _Found:
        pins, proposals = await tables.pins.all(), await tables.proposals.newest()
        return _Found(
            pins={(pin.kind, pin.name): pin for pin in pins_in_force(pins)},
            decision=decide(look.written, pins, proposals, self.clock.now()),
        )

    def _is_news(self, look: _Look, decision: Decision) -> bool:
        is_other = look.error != self.known.error or self._has_new_prices(look)
        has_news = decision.first_use or decision.proposed or decision.withdrawn
        return bool(is_other or has_news or self._newly_altered(decision))

    def _newly_altered(self, decision: Decision) -> Sequence[Pin]:
        return [pin for pin in decision.altered if pin.id not in self.known.altered]

    def _has_new_prices(self, look: _Look) -> bool:
        return look.error is None and self.known.prices not in (None, look.prices)

    async def _bring_back(self, tables: RunTables) -> None:
        """Give a database that was begun anew what is in force: else the file would be its first word."""
        if self.known.pins and not await tables.pins.newest():
            for pin in self.known.pins:
                await tables.pins.add(pin)

    # ── what is committed ─────────────────────────────────────────────────────────────────────────

    async def _write(self, tables: RunTables, look: _Look, found: _Found) -> None:
        now = self.clock.now()
        await self._tell_of_file(tables, look, now)
        for altered in self._newly_altered(found.decision):
            _log.warning("pin %d of %s %s was altered", altered.id, altered.kind, altered.name)
            await tables.outbox.put(altered_told(altered.kind, altered.name), now)
        if first := [await tables.pins.add(pin) for pin in found.decision.first_use]:
            pinned = [Pinned(kind=pin.kind, name=pin.name, not_pinned=self._loose(pin)) for pin in first]
            await tables.outbox.put(first_use_told(pinned), now)
            _log.info("pinned at first sight: %s", ", ".join(f"{pin.kind} {pin.name}" for pin in first))
        await self._propose(tables, found, now)

    async def _tell_of_file(self, tables: RunTables, look: _Look, now: float) -> None:
        if look.error != self.known.error:
            if look.error is not None:
                _log.warning(
                    "the watch list cannot be used, what was approved stays in force: %s", look.error
                )
            await tables.outbox.put(told(WatchlistNotice(error=look.error)), now)
        if self._has_new_prices(look):
            await tables.outbox.put(told(PricesNotice()), now)

    async def _propose(self, tables: RunTables, found: _Found, now: float) -> None:
        proposed = {(proposal.kind, proposal.name): proposal for proposal in found.decision.proposed}
        withdrawn = {(proposal.kind, proposal.name): proposal for proposal in found.decision.withdrawn}
        for key, old in withdrawn.items():
            await tables.proposals.save(old)
            if key not in proposed:
                await tables.outbox.put(self._told(old, found.pins.get(key)), now)
        for key, new in proposed.items():
            added, before = await tables.proposals.add(new), found.pins.get(key)
            await tables.outbox.put(self._told(added, before, is_replacing=key in withdrawn), now)
            _log.info("%s %s differs from what is in force: proposal %d", added.kind, added.name, added.id)

    def _told(self, proposal: Proposal, before: Pin | None, *, is_replacing: bool = False) -> Outgoing:
        notice = notice_of(proposal, before, self.on_detection, self._loose(proposal))
        return proposal_told(notice, is_replacing=is_replacing)

    def _loose(self, of: Pin | Proposal) -> tuple[str, ...]:
        return self.known.loose.get((of.kind, of.name), ())


def _approved(of: Proposal, by: int, now: float) -> Pin:
    return Pin(kind=of.kind, name=of.name, entry=of.entry, hash=of.hash, how=How.APPROVED, by=by, at=now)
