"""Everything that the jobs work with, real but for the clock, the log, the killer and the chat."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import msgspec

from jobs.agent_stop import AgentStop
from jobs.alert.notice import AnyNotice
from jobs.alert.outgoing import Mode
from jobs.ports import Killer, Stop, StopState, Watched
from jobs.store.database import Database
from jobs.thrash.incident import Incident
from jobs.thrash.policy import OnDetection, ThrashPolicy
from jobs.thrash.session import Session
from jobs.thrash_scan import ThrashScan
from tests.fakes import HOME, CallLog, FixedWatch, HandClock, ScriptedKiller, call

BEAT = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A message as it was queued."""

    notice: AnyNotice
    mode: Mode
    subject: str | None
    silent: bool


@dataclass(kw_only=True)
class World:
    """One source called `gateway`, with a killer."""

    store: Database
    policy: ThrashPolicy = field(default_factory=ThrashPolicy)
    clock: HandClock = field(default_factory=HandClock)
    log: CallLog = field(default_factory=CallLog)
    killer: ScriptedKiller = field(default_factory=ScriptedKiller)
    watch: FixedWatch = field(default_factory=FixedWatch)
    scan: ThrashScan = field(init=False)
    agent_stop: AgentStop = field(init=False)

    def __post_init__(self) -> None:
        if not self.watch.watched:
            self.watch_with(self.killer, OnDetection.STOP)
        self.scan = ThrashScan(store=self.store, watch=self.watch, policy=self.policy, clock=self.clock)
        self.agent_stop = AgentStop(store=self.store, watch=self.watch, policy=self.policy, clock=self.clock)

    def watch_with(self, killer: Killer | None, on_detection: OnDetection = OnDetection.STOP) -> None:
        self.watch.watched = [Watched(source=self.log, killer=killer, on_detection=on_detection)]

    def restarted(self, store: Database) -> "World":
        """The same world after the bot was started anew."""
        return replace(self, store=store)

    # ── what agents do ────────────────────────────────────────────────────────────────────────────

    def circles(self, *, session: str = "s-1", pid: int | None = 1234, offset: float = 0) -> None:
        """Ten calls that repeat each other, the last one just now; `offset` is how far the log's clock is ahead."""
        now = self.clock.now() + offset
        self.log.calls += [
            call(now - 9 + n, session=session, agent=f"agent of {session}", pid=pid) for n in range(10)
        ]

    def works(self, calls: int = 10, *, session: str = "s-1", pid: int | None = 1234) -> None:
        """Calls that have nothing in common, nor with any others."""
        for n in range(calls):
            ts = self.clock.now() - calls + 1 + n
            command = hashlib.sha256(f"{ts}".encode()).hexdigest()
            self.log.calls.append(call(ts, command, session=session, agent=f"agent of {session}", pid=pid))

    # ── what the bot does ─────────────────────────────────────────────────────────────────────────

    async def look(self, *, beats: float = 1) -> None:
        await self.scan()
        self.clock.go_on(beats * BEAT)

    async def circles_for(self, looks: int, *, session: str = "s-1") -> None:
        for _ in range(looks):
            self.circles(session=session)
            await self.look()

    async def hear(self) -> list[Heard]:
        """The messages queued since the last time, all of which are sent, urgent ones first."""
        heard = []
        while message := await self.store.reading.outbox.due(self.clock.now(), HOME):
            async with self.store.transaction() as tables:
                await tables.outbox.mark_sent(message.id, message.id, self.clock.now())
            notice: AnyNotice = msgspec.json.decode(message.body, type=AnyNotice)
            heard.append(
                Heard(notice=notice, mode=message.mode, subject=message.subject, silent=bool(message.silent))
            )
        return heard

    # ── what the database says ────────────────────────────────────────────────────────────────────

    async def session(self, name: str = "s-1") -> Session:
        return (await self.store.reading.sessions.of_source("gateway", [name]))[name]

    async def incidents(self) -> Sequence[Incident]:
        """Oldest first."""
        return (await self.store.reading.incidents.newest(100))[::-1]

    async def incident(self) -> Incident:
        """The only one."""
        (incident,) = await self.incidents()
        return incident

    async def stops(self, name: str = "s-1") -> Sequence[Stop]:
        """Oldest first."""
        session = await self.session(name)
        return (await self.store.reading.stops.of_session(session.id, 100))[::-1]

    async def intents(self) -> Sequence[Stop]:
        return await self.store.reading.stops.in_state(StopState.INTENDED)
