"""The 60-second scan: sources -> calls -> findings -> incident -> intent to stop and alert."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from jobs.alert.notice import AskNotice
from jobs.alert.outgoing import Mode, told
from jobs.alert.reason import telling
from jobs.ports import Batch, Clock, Cursor, Session, Stop, Store, Tables, Watch, Watched, outlook_of
from jobs.thrash.assess import Action, Assessment, Subject, assess, end, is_silent
from jobs.thrash.call import ToolCall
from jobs.thrash.finding import Finding
from jobs.thrash.incident import Incident
from jobs.thrash.locality import NOTHING_SEEN, detect_locality
from jobs.thrash.policy import ThrashPolicy
from jobs.thrash.streak import Ended, Look, Streak

_log = logging.getLogger(__name__)

_CALLS_PER_COMMIT: Final = 50_000


@dataclass(slots=True, kw_only=True)
class _Seen:
    """One session during one look."""

    session: Session
    new_calls: int = 0
    finding: Finding | None = None


@dataclass(slots=True, kw_only=True)
class _Reading:
    """What one look has read of one source so far."""

    seen: dict[str, _Seen] = field(default_factory=dict)
    cursors: dict[str, Cursor] = field(default_factory=dict)
    uncommitted: int = 0


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

    async def __call__(self) -> None:
        """Look once. Every source is looked at, whatever befalls another; then the failures are raised."""
        now = self.clock.now()
        await self._refresh(now)
        looks = (self._look(watched, now) for watched in self.watch.sources().values())
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

    async def _look(self, watched: Watched, now: float) -> None:
        source = watched.source.name
        known = await self.store.reading.cursors.of_source(source)
        reading = _Reading()
        batches = watched.source.read_new(known, now)
        while batch := await asyncio.to_thread(next, batches, None):
            await self._take_in(source, batch, reading, known.get(batch.path), now)
            if reading.uncommitted >= _CALLS_PER_COMMIT:
                await self._commit_part(source, reading)
        async with self.store.transaction() as tables:
            await tables.cursors.save(source, reading.cursors)
            unclosed = await tables.incidents.unclosed()
            for seen in reading.seen.values():
                await self._judge(tables, seen, unclosed.get(seen.session.id), watched, now)

    async def _take_in(
        self, source: str, batch: Batch, reading: _Reading, known: Cursor | None, now: float
    ) -> None:
        calls = _by_session(batch.calls)
        unread = [name for name in calls if name not in reading.seen]
        stored = await self.store.reading.sessions.of_source(source, unread)
        is_late = known is None or now - known.read_at > self.policy.expires
        for name, new in calls.items():
            if name in unread:
                reading.seen[name] = _Seen(session=stored.get(name) or _first_seen(source, new[0]))
            self._absorb(reading.seen[name], new, is_late=is_late, now=now)
        reading.cursors[batch.path] = batch.cursor
        reading.uncommitted += len(batch.calls)

    def _absorb(self, seen: _Seen, new: Sequence[ToolCall], *, is_late: bool, now: float) -> None:
        memory, finding = detect_locality(seen.session.memory, new, self.policy, now)
        seen.session = replace(_after(seen.session, new, now), memory=memory)
        seen.new_calls += len(new)
        # What a log already held when it was first seen, or when the bot came back, may long be over.
        is_history = is_late and new[-1].ts < now - self.policy.expires
        seen.finding = None if is_history else finding

    async def _commit_part(self, source: str, reading: _Reading) -> None:
        async with self.store.transaction() as tables:
            for seen in reading.seen.values():
                seen.session = await tables.sessions.save(seen.session)
            await tables.cursors.save(source, reading.cursors)
        reading.cursors.clear()
        reading.uncommitted = 0

    async def _judge(
        self, tables: Tables, seen: _Seen, before: Incident | None, watched: Watched, now: float
    ) -> None:
        look = Look(new_calls=seen.new_calls, pid=seen.session.pid, finding=seen.finding)
        policy = replace(self.policy, on_detection=outlook_of(watched, self.policy).on_detection)
        result = assess(_subject(seen.session), look, before, policy, now)
        session = await tables.sessions.save(replace(seen.session, streak=result.streak))
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
        if result.action is Action.ASK:
            notice = AskNotice(incident=incident, stops_at=now + self.policy.ask_grace)
            await tables.outbox.put(told(notice, Mode.REPLY, about=incident), now)
        elif result.action is Action.STOP and not await tables.stops.intended_of(session.id):
            await tables.stops.add(Stop.intended(session, incident, ordered_by=None, now=now))

    async def _save_incident(
        self, tables: Tables, before: Incident | None, after: Incident, now: float
    ) -> Incident:
        if after.id:
            await tables.incidents.save(after)
        else:
            after = await tables.incidents.add(after)
        outlook = outlook_of(self.watch.sources().get(after.source), self.policy)
        message = telling(before, after, outlook, now)
        if message:
            await tables.outbox.put(message, now)
        return after

    async def _end_silent(self, now: float) -> None:
        async with self.store.transaction() as tables:
            await tables.presence.note(now)
            for incident in (await tables.incidents.unclosed()).values():
                if is_silent(incident, self.policy, now):
                    await self._save_incident(tables, incident, end(incident, Ended.QUIET, now), now)


def _by_session(calls: Sequence[ToolCall]) -> dict[str, list[ToolCall]]:
    found: dict[str, list[ToolCall]] = {}
    for call in calls:
        found.setdefault(call.session, []).append(call)
    return found


def _first_seen(source: str, call: ToolCall) -> Session:
    return Session(
        id=0,
        source=source,
        session=call.session,
        agent=call.agent,
        parent=call.parent,
        pid=None,
        pid_since_ts=None,
        first_ts=call.ts,
        last_ts=call.ts,
        seen_at=0,
        errors=0,
        memory=NOTHING_SEEN,
        streak=Streak(),
    )


def _after(session: Session, calls: Sequence[ToolCall], now: float) -> Session:
    pid, since = session.pid, session.pid_since_ts
    for call in calls:
        if call.pid is not None and call.pid != pid:
            pid, since = call.pid, call.ts
    newest = calls[-1]
    return replace(
        session,
        agent=newest.agent,
        parent=newest.parent or session.parent,
        pid=pid,
        pid_since_ts=since,
        last_ts=newest.ts,
        seen_at=now,
        errors=session.errors + sum(call.is_error for call in calls),
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
