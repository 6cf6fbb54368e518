"""The 60-second scan: sources -> calls -> findings -> incident -> intent to stop and alert."""

import asyncio
import logging
import math
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final, TypeVar

import msgspec

from jobs.alert.outgoing import told
from jobs.alert.reason import tellings
from jobs.ports import Batch, Clock, Cursor, Stop, Store, Tables, Watch, Watched, outlook_of
from jobs.starters import starter_of
from jobs.thrash.assess import Action, Assessment, assess, end, is_silent
from jobs.thrash.beside import NOTHING_USED, Beside
from jobs.thrash.call import LoggedCall, Usage
from jobs.thrash.finding import Finding
from jobs.thrash.heard import Heard
from jobs.thrash.incident import Incident
from jobs.thrash.policy import ThrashPolicy
from jobs.thrash.price import NO_PRICES, Prices
from jobs.thrash.session import (
    Counting,
    Session,
    count_in,
    counting,
    run_by,
    subject_of,
    take_in,
    without_calls,
)
from jobs.thrash.streak import Ended, Look

_log = logging.getLogger(__name__)

_BYTES_HELD: Final = 16 << 20
_CALLS_HELD: Final = 40_000
"""Of a long log so much is in memory at a time, and then committed."""
_SESSIONS_HELD: Final = 10
_REMEMBERED_FOR: Final = 1800
"""Seconds for which cursors are not read again, nor written where nothing is new."""

_Told = TypeVar("_Told", LoggedCall, Usage)


@dataclass(slots=True, kw_only=True)
class _Seen:
    """One session during one look."""

    new_calls: int = 0
    errors: int = 0
    """Answers that say so."""
    beside: Beside = field(default_factory=Beside)
    """What the model used, by its own account."""
    is_late: bool = False
    """Whether some of the new calls may long be over."""
    finding: Finding | None = None

    @property
    def has_more(self) -> bool:
        """Whether something was told beside the calls that is not yet in the session's state."""
        return bool(self.errors) or self.beside.total != NOTHING_USED


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What is known of a source's files between two looks."""

    cursors: Mapping[str, Cursor] = field(default_factory=dict)
    """As they are in the database."""
    storage: tuple[object, ...] = ()
    """Which database that is."""
    loaded_at: float = -math.inf
    looked_at: Mapping[str, float] = field(default_factory=dict)
    """By path. A cursor of a file in which nothing was new is older."""

    def is_good(self, storage: tuple[object, ...], now: float) -> bool:
        return self.storage == storage and 0 <= now - self.loaded_at < _REMEMBERED_FOR


@dataclass(slots=True, kw_only=True)
class _Reading:
    """What one look has read of one source so far."""

    source: str
    known: _Known
    policy: ThrashPolicy
    now: float
    prices: Prices = NO_PRICES
    seen: dict[str, _Seen] = field(default_factory=dict)
    heard: dict[str, Heard] = field(default_factory=dict)
    """By session: what is not yet in its state."""
    hooked: dict[str, Heard] = field(default_factory=dict)
    """The same, told by a hook."""
    looked_at: dict[str, float] = field(default_factory=dict)
    """By path."""
    changed: dict[str, Cursor] = field(default_factory=dict)
    cursors: dict[str, Cursor] = field(default_factory=dict)
    """Those of `changed` that are not yet committed."""
    bytes_held: int = 0
    calls_held: int = 0

    def read_on(self, batches: Iterator[Batch]) -> bool:
        """Read until enough is held; return whether there may be more. Blocks."""
        cursors, keeps_time = self.known.cursors, self.known.loaded_at == self.now
        for batch in batches:
            path = batch.path
            self.looked_at[path] = self.now
            if batch.cursor is not cursors.get(path):
                self._hear(batch)
            elif keeps_time:
                self._keep(path, msgspec.structs.replace(batch.cursor, read_at=self.now))
            if self.bytes_held >= _BYTES_HELD or self.calls_held >= _CALLS_HELD:
                return True
        return False

    def _hear(self, batch: Batch) -> None:
        is_late, heard = (
            self._is_late(batch.path),
            self.hooked if batch.is_hook else self.heard,
        )
        for name, usages in _by_session(batch.usages).items():
            self.seen.setdefault(name, _Seen()).beside.hear(usages, self.prices)
        for name, calls in _by_session(batch.calls).items():
            seen = self.seen.setdefault(name, _Seen())
            seen.is_late |= is_late
            if name not in heard:
                heard[name] = Heard(calls[0], self.policy.remembered)
            heard[name].add(calls, seen.beside.before(calls))
        for answer in batch.answers:
            self.seen.setdefault(answer.session, _Seen()).errors += answer.is_error
        self._keep(batch.path, batch.cursor)
        self.bytes_held += batch.size
        self.calls_held += len(batch.calls)

    def _keep(self, path: str, cursor: Cursor) -> None:
        self.cursors[path] = self.changed[path] = cursor

    def _is_late(self, path: str) -> bool:
        # What a log already held when it was first seen, or when the bot came back, may long be over.
        known = self.known.cursors.get(path)
        if known is None or known.is_behind:
            return True
        return self.now - self.known.looked_at.get(path, known.read_at) > self.policy.expires

    def take_in(self, name: str, stored: Session | None) -> Session | None:
        """Return a session with what was heard of it in its state."""
        seen, session = self.seen[name], stored
        if heard := self.heard.get(name):
            session = self._after_calls(heard, seen, session)
        if hooked := self.hooked.get(name):
            session = self._after_hook(hooked, seen, session)
        if session is None:
            if not seen.has_more:
                return None
            session = without_calls(self.source, name, self.now)
        used = seen.beside.total
        session = count_in(session, seen.errors, used.tokens, used.cost, self.prices.currency)
        seen.errors, seen.beside = 0, Beside()
        return session

    def _after_hook(self, hooked: Heard, seen: _Seen, known: Session | None) -> Session:
        if known and counting(known.memory, is_hook=True) is Counting.NONE:
            return run_by(known, hooked.pids, self.now)
        return self._after_calls(hooked, seen, known, is_hook=True)

    def _after_calls(
        self, heard: Heard, seen: _Seen, stored: Session | None, *, is_hook: bool = False
    ) -> Session:
        seen.new_calls += heard.calls
        session, finding = take_in(stored, self.source, heard, self.policy, self.now, is_hook=is_hook)
        if seen.is_late and finding is not None and finding.newest_ts < self.now - self.policy.expires:
            # It stays among the newest calls for a while: it must not be taken for what comes after it.
            counted = max(session.streak.newest_repeat, finding.newest_repeat)
            streak = msgspec.structs.replace(session.streak, newest_repeat=counted)
            session, finding = replace(session, streak=streak), None
        seen.finding = finding
        return session

    def untaken(self) -> Sequence[str]:
        """Return the sessions of which something was heard that is not yet in their state."""
        return [
            name
            for name, seen in self.seen.items()
            if name in self.heard or name in self.hooked or seen.has_more
        ]

    def known_now(self) -> _Known:
        """Return what is known once all is committed."""
        return replace(
            self.known,
            cursors={**self.known.cursors, **self.changed},
            looked_at={**self.known.looked_at, **self.looked_at},
        )

    def drop_held(self) -> None:
        self.heard.clear()
        self.hooked.clear()
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
    known: dict[str, _Known] = field(default_factory=dict)
    """By source."""

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
        known = await self._known_of(source, now)
        reading = _Reading(source=source, known=known, policy=self.policy, now=now, prices=watched.prices)
        batches = watched.source.read_new(known.cursors, now)
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
        self.known[source] = reading.known_now()

    async def _known_of(self, source: str, now: float) -> _Known:
        """Return what is known; unless that is put back, the database is asked the next time."""
        known = self.known.pop(source, _Known())
        self.known[source] = _Known(looked_at=known.looked_at)
        storage = (self.store.trouble, self.store.set_aside)
        if known.is_good(storage, now):
            return known
        cursors = await self.store.reading.cursors.of_source(source)
        looked_at = {path: at for path, at in known.looked_at.items() if path in cursors}
        return _Known(cursors=cursors, storage=storage, loaded_at=now, looked_at=looked_at)

    async def _commit_part(self, reading: _Reading) -> None:
        async with self.store.transaction() as tables:
            await tables.cursors.save(reading.source, reading.cursors)
            async for sessions in _taken_in(tables, reading, reading.untaken()):
                await tables.sessions.save_all(sessions)
        reading.drop_held()

    def _assess(
        self, session: Session, seen: _Seen, before: Incident | None, watched: Watched, now: float
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


def _by_session(told: Sequence[_Told]) -> dict[str, list[_Told]]:
    found: dict[str, list[_Told]] = defaultdict(list)
    for each in told:
        found[each.session].append(each)
    return found
