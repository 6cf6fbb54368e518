"""A watch list that is edited, and the bot that pins it: files and database are real, the chat is its outbox."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from bot.watching import WatchlistFile
from jobs.alert.notice import AnyNotice
from jobs.alert.outgoing import Mode, Queued
from jobs.alert.pin_notice import ProposalNotice
from jobs.answering import Decided
from jobs.approved_copies import copies_in
from jobs.copying import Copying
from jobs.pinning.kind import ProposalState
from jobs.pinning.pin import Proposal
from jobs.spec_pinning import SpecPinning
from jobs.store.database import Database
from jobs.thrash.policy import OnDetection
from tests.fakes import HOME, HandClock

ADMIN = 42
SOURCE = """
[[sources]]
name = "gateway"
format = "gateway"
path = "calls.jsonl"
killer = "stopper"
"""
KILLER = """
[killers.stopper]
kind = "process"
match = "sleep 1000"
"""
NIGHTLY = """
[workflows.nightly]
output = "out.json"
required = ["total"]
max_age = "{max_age}"
"""
STRICT = NIGHTLY.format(max_age="30m")
LAX = NIGHTLY.format(max_age="1d")
LAXER = NIGHTLY.format(max_age="2d")
WATCHLIST = SOURCE + KILLER + STRICT


@dataclass(frozen=True, slots=True)
class Message:
    """A message as it was sent, and the one that it has edited."""

    notice: AnyNotice
    edits: int | None
    id: int


@dataclass(kw_only=True)
class PinWorld:
    """One folder with a watch list in it."""

    folder: Path
    store: Database
    clock: HandClock = field(default_factory=HandClock)
    watch: WatchlistFile = field(init=False)
    pinning: SpecPinning = field(init=False)
    _saved: int = 0

    def __post_init__(self) -> None:
        copies = copies_in(self.folder)
        self.watch = WatchlistFile(self.folder / "loopwarden.toml", OnDetection.STOP, copies=copies)
        self.pinning = SpecPinning(
            store=self.store,
            watch=self.watch,
            clock=self.clock,
            on_detection=OnDetection.STOP,
            copying=Copying(copies=copies),
        )

    def write(self, *tables: str) -> None:
        """Save the watch list, as an editor does."""
        new = self.folder / f"new-{self._saved}"
        self._saved += 1
        new.write_text("".join(tables))
        new.rename(self.folder / "loopwarden.toml")

    async def first_used(self, *tables: str) -> None:
        """Have a watch list in force that the chat was told of."""
        self.write(*(tables or (WATCHLIST,)))
        await self.pinning.begin()
        await self.hear()

    async def after(self, *tables: str) -> list[Message]:
        """Save the watch list; return what the next look tells."""
        self.write(*tables)
        return await self.look()

    async def look(self, times: int = 2) -> list[Message]:
        """Look as often as it takes for what is new to count."""
        for _ in range(times):
            self.clock.go_on(10)
            await self.pinning()
        return await self.hear()

    async def hear(self) -> list[Message]:
        """The messages queued since the last time, all of which are sent."""
        heard = []
        while message := await self.store.reading.outbox.due(self.clock.now(), HOME):
            heard.append(await self._sent(message))
        return heard

    async def _sent(self, message: Queued) -> Message:
        edits = message.target_message if message.mode is Mode.EDIT else None
        async with self.store.transaction() as tables:
            await tables.outbox.mark_sent(message.id, edits or message.id, self.clock.now())
        notice = msgspec.json.decode(message.body, type=AnyNotice)
        return Message(notice=notice, edits=edits, id=edits or message.id)

    async def restarted(self) -> "PinWorld":
        """The same folder after the bot was started anew."""
        world = replace(self, _saved=self._saved)
        await world.pinning.begin()
        return world

    async def approve(self, name: str) -> None:
        """Press Approve under the newest proposal of an entry."""
        assert await self.pinning.approve((await self.proposal(name)).id, ADMIN) is Decided.DONE
        await self.pinning.enforce()

    # ── what is in force ──────────────────────────────────────────────────────────────────────────

    @property
    def max_age(self) -> float:
        return self.watch.workflows()["nightly"].max_age

    @property
    def names(self) -> list[str]:
        return [*self.watch.sources(), *self.watch.workflows()]

    async def proposal(self, name: str = "nightly") -> Proposal:
        """The newest of an entry."""
        found = {proposal.name: proposal for proposal in await self.store.reading.proposals.newest()}
        return found[name]

    async def state(self, name: str = "nightly") -> ProposalState:
        return (await self.proposal(name)).state


def proposed(message: Message) -> ProposalNotice:
    assert isinstance(message.notice, ProposalNotice)
    return message.notice
