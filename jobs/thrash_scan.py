"""The 60-second scan: sources -> calls -> findings -> incident -> intent to stop and alert."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

import msgspec

from jobs.alert.outgoing import told
from jobs.alert.reason import tellings
from jobs.ports import Batch, Clock, Cursor, Session, Stop, Store, Tables, Watch, Watched, outlook_of
from jobs.thrash.assess import Action, Assessment, Subject, assess, end, is_silent
from jobs.thrash.call import LoggedCall
from jobs.thrash.finding import Finding
from jobs.thrash.heard import Heard
from jobs.thrash.incident import Incident
from jobs.thrash.locality import NOTHING_SEEN, detect_locality, pass_over
from jobs.thrash.policy import ThrashPolicy
from jobs.thrash.streak import Ended, Look, Streak

_log = logging.getLogger(__name__)

_BYTES_HELD: Final = 16 << 20
_CALLS_HELD: Final = 40_000
"""Of a long log so much is in memory at a time, and then committed."""
_SESSIONS_HELD: Final = 10


@dataclass(slots=True, kw_only=True)
class _Seen:
    """One session during one look."""

    new_calls: int = 0
    is_late: bool = False
    """Whether some of the new calls may long be over."""
    finding: Finding | None = None


@dataclass(slots=True, kw_only=True)
class _Reading:
    """What one look has read of one source so far."""

    source: str
    known: Mapping[str, Cursor]
    policy: ThrashPolicy
    now: float
    seen: dict[str, _Seen] = field(default_factory=dict)
    heard: dict[str, Heard] = field(default_factory=dict)
    """By session: what is not yet in its state."""
    cursors: dict[str, Cursor] = field(default_factory=dict)
    """Not yet committed."""
    bytes_held: int = 0
    calls_held: int = 0

    def read_on(self, batches: Iterator[Batch]) -> bool:
        """Read until enough is held; return whether there may be more. Blocks."""
        for batch in batches:
            self._hear(batch)
            if self.bytes_held >= _BYTES_HELD or self.calls_held >= _CALLS_HELD:
                return True
        return False

    def _hear(self, batch: Batch) -> None:
        is_late = self._is_late(self.known.get(batch.path))
        for name, calls in _by_session(batch.calls).items():
            seen = self.seen.setdefault(name, _Seen())
            seen.new_calls += len(calls)
            seen.is_late |= is_late
            if name not in self.heard:
                self.heard[name] = Heard(calls[0], self.policy.remembered)
            self.heard[name].add(calls)
        self.cursors[batch.path] = batch.cursor
        self.bytes_held += batch.size
        self.calls_held += len(batch.calls)

    def _is_late(self, known: Cursor | None) -> bool:
        # What a log already held when it was first seen, or when the bot came back, may long be over.
        return known is None or known.is_behind or self.now - known.read_at > self.policy.expires

    def take_in(self, name: str, stored: Session | None) -> Session | None:
        """Return a session with what was heard of it in its state."""
        heard, seen = self.heard.get(name), self.seen[name]
        if heard is None:
            return stored
        session = stored or _first_seen(self.source, heard)
        memory = pass_over(session.memory, heard.passed, heard.passed_tokens)
        memory, finding = detect_locality(memory, heard.newest, self.policy, self.now)
        session = replace(_after(session, heard, self.now), memory=memory)
        if seen.is_late and finding is not None and finding.newest_ts < self.now - self.policy.expires:
            # It stays among the newest calls for a while: it must not be taken for what comes after it.
            counted = max(session.streak.newest_repeat, finding.newest_repeat)
            streak = msgspec.structs.replace(session.streak, newest_repeat=counted)
            session, finding = replace(session, streak=streak), None
        seen.finding = finding
        return session

    def drop_held(self) -> None:
        self.heard.clear()
        self.cursors.clear()
        self.bytes_held = self.calls_held = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrashScan:
    """One look at every watched session.

    1. The watch list is read again if it changed.
    2. Of every source the new calls are read and taken in by the detector, session by session.
    3. Each session's streak advances, its incident opens, grows or ends, and a stop is intended when it is time.
    4. Cursors, sessions, incidents, intents and messages are committed together. `AgentStop` carries the intents out.
    5. Incidents of sessions that have fallen silent end.
    """

    store: Store
    watch: Watch
    policy: ThrashPolicy
    clock: Clock
    looking: dict[str, float] = field(default_factory=dict)
    """Since when each source is being read; one that takes longer than a beat is left out of the next look."""

    async def __call__(self) -> None:
        """Look once. Every source is looked at, whatever befalls another; then the failures are raised."""
        now = self.clock.now()
        await self._refresh(now)
        looks = (self._look_alone(watched, now) for watched in self.watch.sources().values())
        results = await asyncio.gather(*looks, return_exceptions=True)
        await self._end_silent(now)
        if failures := [result for result in results if isinstance(result, Exception)]:
            raise ExceptionGroup("some sources could not be looked at", failures)

    async def snooze(self, incident_id: int, seconds: float) -> Incident | None:
        """Mute an incident for so long; return it, or None if it is over."""
        now = self.clock.now()
        async with self.store.transaction() as tables:
            before = await tables.incidents.get(incident_id)
            if before is None or before.closed_at is not None:
                return None
            after = replace(before, snoozed_until=now + seconds)
            await self._save_incident(tables, before, after, now)
            return after

    async def _refresh(self, now: float) -> None:
        if notice := await asyncio.to_thread(self.watch.refresh):
            async with self.store.transaction() as tables:
                await tables.outbox.put(told(notice), now)

    async def _look_alone(self, watched: Watched, now: float) -> None:
        source = watched.source.name
        if source in self.looking:
            return
        self.looking[source] = now
        try:
            await self._look(watched, now)
        except Exception as error:
            error.add_note(f"source {source}")
            raise
        finally:
            del self.looking[source]

    async def _look(self, watched: Watched, now: float) -> None:
        source = watched.source.name
        known = await self.store.reading.cursors.of_source(source)
        reading = _Reading(source=source, known=known, policy=self.policy, now=now)
        batches = watched.source.read_new(known, now)
        while await asyncio.to_thread(reading.read_on, batches):
            await self._commit_part(reading)
        async with self.store.transaction() as tables:
            await tables.cursors.save(source, reading.cursors)
            unclosed = await tables.incidents.unclosed()
            async for sessions in _taken_in(tables, reading, reading.seen):
                calm = []
                for session in sessions:
                    before = unclosed.get(session.id)
                    result = self._assess(session, reading.seen[session.session], before, watched, now)
                    judged = replace(session, streak=result.streak)
                    if result.ended or result.current:
                        await self._carry_out(tables, result, before, judged, now)
                    else:
                        calm.append(judged)
                await tables.sessions.save_all(calm)

    async def _commit_part(self, reading: _Reading) -> None:
        async with self.store.transaction() as tables:
            await tables.cursors.save(reading.source, reading.cursors)
            async for sessions in _taken_in(tables, reading, reading.heard):
                await tables.sessions.save_all(sessions)
        reading.drop_held()

    def _assess(
        self, session: Session, seen: _Seen, before: Incident | None, watched: Watched, now: float
    ) -> Assessment:
        look = Look(new_calls=seen.new_calls, pid=session.pid, finding=seen.finding)
        policy = replace(self.policy, on_detection=outlook_of(watched, self.policy).on_detection)
        return assess(_subject(session), look, before, policy, now)

    async def _carry_out(
        self, tables: Tables, result: Assessment, before: Incident | None, session: Session, now: float
    ) -> None:
        session = await tables.sessions.save(session)
        if before and result.ended:
            await self._save_incident(tables, before, result.ended, now)
            before = None
        if result.current:
            current = replace(result.current, session_id=session.id)
            current = await self._save_incident(tables, before, current, now)
            _log.info(
                "incident %d, session %d: step %d, %s", current.id, session.id, current.steps, result.action
            )
            await self._act(tables, result, current, session, now)

    async def _act(
        self, tables: Tables, result: Assessment, incident: Incident, session: Session, now: float
    ) -> None:
        if result.action is Action.STOP and not await tables.stops.intended_of(session.id):
            await tables.stops.add(Stop.intended(session, incident, ordered_by=None, now=now))

    async def _save_incident(
        self, tables: Tables, before: Incident | None, after: Incident, now: float
    ) -> Incident:
        if after.id:
            await tables.incidents.save(after)
        else:
            after = await tables.incidents.add(after)
        outlook = outlook_of(self.watch.sources().get(after.source), self.policy)
        for message in tellings(before, after, outlook, now):
            await tables.outbox.put(message, now)
        return after

    async def _end_silent(self, now: float) -> None:
        async with self.store.transaction() as tables:
            await tables.presence.note(now)
            for incident in (await tables.incidents.unclosed()).values():
                if is_silent(incident, self.policy, now):
                    await self._save_incident(tables, incident, end(incident, Ended.QUIET, now), now)


async def _taken_in(
    tables: Tables, reading: _Reading, names: Iterable[str]
) -> AsyncIterator[Sequence[Session]]:
    """Yield sessions with what was heard of them in their state, a few at a time."""
    rest = iter(names)
    while some := tuple(islice(rest, _SESSIONS_HELD)):
        stored = await tables.sessions.of_source(reading.source, some)
        yield [session for name in some if (session := reading.take_in(name, stored.get(name)))]


def _by_session(calls: Sequence[LoggedCall]) -> dict[str, list[LoggedCall]]:
    found: dict[str, list[LoggedCall]] = defaultdict(list)
    for call in calls:
        found[call.session].append(call)
    return found


def _first_seen(source: str, heard: Heard) -> Session:
    newest = heard.newest[-1]
    return Session(
        id=0,
        source=source,
        session=newest.session,
        agent=newest.agent,
        parent=heard.first.parent,
        pid=None,
        pid_since_ts=None,
        first_ts=heard.first.ts,
        last_ts=newest.ts,
        seen_at=0,
        errors=0,
        memory=NOTHING_SEEN,
        streak=Streak(),
    )


def _after(session: Session, heard: Heard, now: float) -> Session:
    pid, since = session.pid, session.pid_since_ts
    for changed, ts in heard.pids:
        if changed != pid:
            # A log's clock may be ahead of ours, and the process is not younger than the line that names it.
            pid, since = changed, min(ts, now)
    newest = heard.newest[-1]
    return replace(
        session,
        agent=newest.agent,
        parent=newest.parent or session.parent,
        pid=pid,
        pid_since_ts=since,
        last_ts=newest.ts,
        seen_at=now,
        errors=session.errors + heard.errors,
    )


def _subject(session: Session) -> Subject:
    return Subject(
        session_id=session.id,
        source=session.source,
        agent=session.agent,
        streak=session.streak,
        calls=session.memory.calls,
        newest_ts=session.last_ts,
        tokens=session.memory.tokens,
    )
