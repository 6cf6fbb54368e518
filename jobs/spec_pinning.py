"""The watch list as it is written -> what a person has approved of it -> in force."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import msgspec

from jobs.alert.notice import PricesNotice, WatchlistNotice
from jobs.alert.pin_notice import (
    Pinned,
    ProposalNotice,
    altered_told,
    first_use_told,
    let_go_told,
    proposal_told,
)
from jobs.answering import Decided, answer, waiting
from jobs.aside import Aside, OverdueError
from jobs.asking import Question, ask, has_message, tell
from jobs.copying import Copying
from jobs.known_pins import KnownPins
from jobs.pinning.deciding import Decision, decide, is_first_look, pins_in_force
from jobs.pinning.kind import Kind, ProposalState
from jobs.pinning.pin import Entry, Pin, Proposal
from jobs.ports import Clock, RunTables, Store, WatchlistInForce
from jobs.proposing import notice_of
from jobs.thrash.policy import OnDetection
from jobs.thrash.price import Prices
from jobs.watchlist.error import WatchlistError
from jobs.watchlist_look import Look, look_at

_PATIENCE: Final = 30.0
"""Seconds for reading the watch list and what it refers to, which may lie on a file system that hangs."""

_Key = tuple[Kind, str]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What follows from it, by what is in the database."""

    asked: Mapping[_Key, Proposal]
    """The newest of every entry, before this."""
    notices: Mapping[_Key, ProposalNotice]
    """What is to be said of proposals that are made or withdrawn."""
    decision: Decision


@dataclass(slots=True, kw_only=True)
class _Known:
    """What the chat knows, and what is in force."""

    seen: Look | None = None
    """At the last look; it counts once the next one sees the same."""
    error: str | None = None
    prices: Prices | None = None
    """None: nothing was read yet."""
    altered: frozenset[int] = frozenset()
    loose: Mapping[_Key, tuple[str, ...]] = field(default_factory=dict)
    settled: object = None
    """The look, and the rows, of which nothing follows any more."""
    enforced: tuple[Sequence[Entry], Prices] | None = None


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
    copying: Copying
    patience: float = _PATIENCE
    known: _Known = field(default_factory=_Known)
    pinned: KnownPins = field(default_factory=KnownPins)
    enforcing: asyncio.Lock = field(default_factory=asyncio.Lock)
    aside: Aside = field(default_factory=Aside)

    async def begin(self) -> None:
        """Look for the first time, before anything else does.

        Raises:
            WatchlistError: the file cannot be used, and no bot has ever pinned one that could.
        """
        look, reading = await self._look(), self.store.reading
        is_first = is_first_look(await reading.pins.all(), await reading.proposals.newest())
        if look.error and is_first and self.store.knows_all:
            raise WatchlistError(look.error)
        self.known.seen = look
        await self._take_in(look)

    async def __call__(self) -> None:
        """Look once. What is new counts at the second look: an editor may have emptied the file for a moment."""
        look, before = await self._look(), self.known.seen
        self.known.seen = look
        await (self._take_in(look) if look == before else self.enforce())
        await self._copy()  # what could not be copied may be by now

    async def enforce(self) -> None:
        """Put in force what was approved since. Stands by, so that what is approved in the chat is in force at once."""
        await self.pinned.glance(self.store, self.clock.now())
        async with self.enforcing:
            in_force = self.pinned.entries, self.watch.prices
            if in_force != self.known.enforced:
                # Of many sources it takes a while.
                await asyncio.to_thread(self.watch.enforce, in_force[0])
                self.known.enforced = in_force
        if self.copying.of is not self.pinned.entries:
            await self._copy()

    async def _copy(self) -> None:
        # With a database that cannot be used, or was put aside, more may have been approved than is known.
        await self.copying(self.pinned.entries, are_all=not any(self.pinned.place))

    # ── what the chat may call ────────────────────────────────────────────────────────────────────

    async def approve(self, proposal_id: int, by: int) -> Decided:
        """Pin what was proposed, as it was shown, if the file still said so at the last look."""
        return await self._decide(proposal_id, ProposalState.APPROVED, by)

    async def reject(self, proposal_id: int, by: int) -> Decided:
        """Let what is in force stay so; it is not asked again before the file says a third thing."""
        return await self._decide(proposal_id, ProposalState.REJECTED, by)

    async def asked(self, proposal_id: int) -> ProposalNotice | None:
        """Return what waits for an answer, or was rejected, though it was told as one of many; None if it does not."""
        return await waiting(self.store.reading, proposal_id, self._notice)

    async def _decide(self, proposal_id: int, state: ProposalState, by: int) -> Decided:
        async with self.store.transaction() as tables:
            return await answer(tables, proposal_id, state, self._notice, by=by, now=self.clock.now())

    # ── a look ────────────────────────────────────────────────────────────────────────────────────

    async def _look(self) -> Look:
        try:
            return await self.aside("reading the watch list", self.patience, partial(look_at, self.watch))
        except OverdueError as overdue:
            return Look(error=f"{overdue}", prices=self.watch.prices)

    async def _take_in(self, look: Look) -> None:
        if look.written is not None:
            self.known.loose = look.loose
        while not await self._is_settled(look):
            pass  # somebody has decided meanwhile
        if look.error is None:
            self.known.prices = look.prices
        await self.enforce()

    async def _is_settled(self, look: Look) -> bool:
        """Commit what follows from a look; return whether it did from what is in the database by then."""
        await self.pinned.look(self.store, self.clock.now())
        reading, pins = self.store.reading, self.pinned.marks
        proposals = await reading.proposals.marks()
        if (look, pins, proposals) == self.known.settled:
            return True
        # In a thread: there may be much to compare.
        found = await asyncio.to_thread(self._found, look, await reading.proposals.newest())
        if not self._is_news(look, found.decision):
            self.known.settled = look, pins, proposals
            return True
        async with self.store.transaction() as tables:
            if (await tables.pins.marks(), await tables.proposals.marks()) != (pins, proposals):
                return False
            await self._write(tables, look, found)
        self.known.error = look.error
        self.known.altered |= {pin.id for pin in found.decision.altered}
        return True

    def _found(self, look: Look, proposals: Sequence[Proposal]) -> _Found:
        rows = list(self.pinned.rows.values())
        decision = decide(look.written, rows, proposals, self.clock.now(), is_all=self.store.knows_all)
        let_go = {(pin.kind, pin.name) for pin in decision.let_go}
        pins = {key: pin for pin in pins_in_force(rows) if (key := (pin.kind, pin.name)) not in let_go}
        told = {(each.kind, each.name): each for each in (*decision.withdrawn, *decision.proposed)}
        return _Found(
            asked={(proposal.kind, proposal.name): proposal for proposal in proposals},
            notices={key: self._notice(each, pins.get(key), decision.in_force) for key, each in told.items()},
            decision=decision,
        )

    def _is_news(self, look: Look, decision: Decision) -> bool:
        is_other = look.error != self.known.error or self._has_new_prices(look)
        has_news = decision.first_use or decision.let_go or decision.proposed or decision.withdrawn
        return bool(is_other or has_news or self._newly_altered(decision))

    def _newly_altered(self, decision: Decision) -> Sequence[Pin]:
        return [pin for pin in decision.altered if pin.id not in self.known.altered]

    def _has_new_prices(self, look: Look) -> bool:
        return look.error is None and self.known.prices not in (None, look.prices)

    # ── what is committed ─────────────────────────────────────────────────────────────────────────

    async def _write(self, tables: RunTables, look: Look, found: _Found) -> None:
        now = self.clock.now()
        await self._tell_of_file(tables, look, now)
        for altered in self._newly_altered(found.decision):
            _log.warning("pin %d of %s %s was altered", altered.id, altered.kind, altered.name)
            await tables.outbox.put(altered_told(altered.kind, altered.name), now)
        await self._pin_unasked(tables, found.decision, now)
        await self._propose(tables, found, now)

    async def _pin_unasked(self, tables: RunTables, decision: Decision, now: float) -> None:
        for pin in (*decision.first_use, *decision.let_go):
            await tables.pins.add(pin)
            _log.info("%s unasked: %s %s", "pinned" if pin.entry else "let go", pin.kind, pin.name)
        first, gone = (
            [Pinned(kind=pin.kind, name=pin.name, not_pinned=self._loose(pin)) for pin in pins]
            for pins in (decision.first_use, decision.let_go)
        )
        is_lost = not self.store.knows_all and not self.pinned.rows
        for told_of in (*first_use_told(first, is_lost=is_lost), *let_go_told(gone)):
            await tables.outbox.put(told_of, now)

    async def _tell_of_file(self, tables: RunTables, look: Look, now: float) -> None:
        if look.error != self.known.error:
            if look.error is not None:
                _log.warning("the watch list cannot be used, what was pinned stays in force: %s", look.error)
            await tell(tables, WatchlistNotice(error=look.error), "watchlist", now)
        if self._has_new_prices(look):
            await tell(tables, PricesNotice(), "prices", now)

    async def _propose(self, tables: RunTables, found: _Found, now: float) -> None:
        proposed = {(proposal.kind, proposal.name): proposal for proposal in found.decision.proposed}
        withdrawn = {(proposal.kind, proposal.name): proposal for proposal in found.decision.withdrawn}
        for key, old in withdrawn.items():
            await tables.proposals.save(old)
            if key not in proposed and await has_message(tables, old):
                await tables.outbox.put(proposal_told(found.notices[key]), now)
        asked = {**found.asked, **withdrawn}
        questions = []
        for key, new in proposed.items():
            added = await tables.proposals.add(new)
            notice = msgspec.structs.replace(found.notices[key], proposal=added.id)
            questions.append(Question(notice=notice, before=asked.get(key)))
            _log.info("%s %s differs from what is in force: proposal %d", added.kind, added.name, added.id)

        await ask(tables, questions, now)

    def _notice(self, proposal: Proposal, before: Pin | None, in_force: Sequence[Entry]) -> ProposalNotice:
        return notice_of(proposal, before, in_force, self.on_detection, self._loose(proposal))

    def _loose(self, of: Pin | Proposal) -> tuple[str, ...]:
        return self.known.loose.get((of.kind, of.name), ())
