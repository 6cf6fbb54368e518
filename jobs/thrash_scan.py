"""The 60-second scan: sources -> calls -> findings -> incident -> intent to stop and alert."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Final

from jobs.alert.reason import tellings
from jobs.aside import Aside
from jobs.ports import Clock, Stop, Store, Tables, Watch, Watched, absence_of, outlook_of
from jobs.source_look import Known, Seen, SourceLook
from jobs.starters import starter_of
from jobs.thrash.assess import Action, Assessment, assess, end, is_silent
from jobs.thrash.incident import Incident
from jobs.thrash.policy import ThrashPolicy
from jobs.thrash.session import Session, subject_of
from jobs.thrash.streak import Ended, Look

_log = logging.getLogger(__name__)

_SESSIONS_HELD: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrashScan:
    """One look at every watched session.

    1. Of every source the new calls are read and taken in by the detector, session by session.
    2. Each session's streak advances, its incident opens, grows or ends, and a stop is intended when it is time.
    3. Cursors, sessions, incidents, intents and messages are committed together. `AgentStop` carries the intents out.
    4. Incidents of sessions that have fallen silent end. That it has looked is noted, and how long nobody had before.
    """

    store: Store
    watch: Watch
    policy: ThrashPolicy
    clock: Clock
    looking: dict[str, float] = field(default_factory=dict)
    """Since when each source is being read; one that takes longer than a beat is left out of the next look."""
    known: dict[str, Known] = field(default_factory=dict)
    """By source."""
    aside: Aside = field(default_factory=Aside)

    async def __call__(self) -> None:
        """Look once. Every source is looked at, whatever befalls another; then the failures are raised."""
        now = self.clock.now()
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
        known = await self._known_of(source, now)
        reading = SourceLook(source=source, known=known, policy=self.policy, now=now, prices=watched.prices)
        batches = watched.source.read_new(known.cursors, now)
        while await self.aside(f"reading {source}", None, partial(reading.read_on, batches)):
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
        self.known[source] = reading.known_now()

    async def _known_of(self, source: str, now: float) -> Known:
        """Return what is known; unless that is put back, the database is asked the next time."""
        known = self.known.pop(source, Known())
        self.known[source] = Known(looked_at=known.looked_at)
        storage = (self.store.trouble, self.store.set_aside)
        if known.is_good(storage, now):
            return known
        cursors = await self.store.reading.cursors.of_source(source)
        looked_at = {path: at for path, at in known.looked_at.items() if path in cursors}
        return Known(cursors=cursors, storage=storage, loaded_at=now, looked_at=looked_at)

    async def _commit_part(self, reading: SourceLook) -> None:
        async with self.store.transaction() as tables:
            await tables.cursors.save(reading.source, reading.cursors)
            async for sessions in _taken_in(tables, reading, reading.untaken()):
                await tables.sessions.save_all(sessions)
        reading.drop_held()

    def _assess(
        self, session: Session, seen: Seen, before: Incident | None, watched: Watched, now: float
    ) -> Assessment:
        look = Look(new_calls=seen.new_calls, pid=session.pid, finding=seen.finding)
        policy = replace(self.policy, on_detection=outlook_of(watched, self.policy).on_detection)
        return assess(subject_of(session), look, before, policy, now)

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
        starter = await starter_of(tables.sessions, after.session_id)
        for message in tellings(before, after, outlook, now, starter):
            await tables.outbox.put(message, now)
        return after

    async def _end_silent(self, now: float) -> None:
        async with self.store.transaction() as tables:
            await self._note_presence(tables, now)
            for incident in (await tables.incidents.unclosed()).values():
                if is_silent(incident, self.policy, now):
                    await self._save_incident(tables, incident, end(incident, Ended.QUIET, now), now)

    async def _note_presence(self, tables: Tables, now: float) -> None:
        last = await tables.presence.last()
        if last is not None and now < last <= self.clock.now():
            # Others have looked since this look began.
            return
        if absence := absence_of(last, now, self.policy.every):
            await tables.absences.add(absence)
        await tables.presence.note(now)


async def _taken_in(
    tables: Tables, reading: SourceLook, names: Iterable[str]
) -> AsyncIterator[Sequence[Session]]:
    """Yield sessions with what was heard of them in their state, a few at a time."""
    rest = iter(names)
    while some := tuple(islice(rest, _SESSIONS_HELD)):
        stored = await tables.sessions.of_source(reading.source, some)
        yield [session for name in some if (session := reading.take_in(name, stored.get(name)))]
