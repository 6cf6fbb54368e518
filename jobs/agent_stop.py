"""The stop of an agent: intent -> killer -> outcome -> did it really stop?"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from jobs.alert.notice import Starter, StillRunningNotice, StopNotice
from jobs.alert.outgoing import Mode, told
from jobs.alert.reason import is_snoozed, tellings
from jobs.ports import (
    Clock,
    Killer,
    Outcome,
    Stop,
    Stopped,
    StopState,
    Store,
    Tables,
    Watch,
    outlook_of,
)
from jobs.starters import starter_of
from jobs.thrash.incident import Incident, IncidentStatus
from jobs.thrash.policy import ThrashPolicy
from jobs.thrash.session import Session

_log = logging.getLogger(__name__)

_AT_ONCE: Final = 20
"""Stops carried out together: each may be a process of its own, and those are limited."""

_STATUS: Final = {
    Outcome.STOPPED: IncidentStatus.STOPPED,
    Outcome.FAILED: IncidentStatus.STOP_FAILED,
    Outcome.REFUSED: IncidentStatus.STOP_FAILED,
    Outcome.DRY_RUN: IncidentStatus.DRY_RUN,
}


class Order(StrEnum):
    """What became of an order from the chat."""

    TAKEN = "taken"
    UNDER_WAY = "under_way"
    """A stop of this session is being carried out already."""
    UNKNOWN = "unknown"
    """There is no such session."""
    RESTARTED = "restarted"
    """Another process writes the session now: it is not what the order was about."""
    NO_KILLER = "no_killer"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStop:
    """Carries out what is intended, then looks whether it held.

    1. Every intent that nobody is carrying out goes to its source's killer; those left by a crash come first of all.
    2. The outcome is committed with the report to the chat.
    3. For two beats after it, a process that lives or a call made since means: still running. The chat is told and
       one harder attempt is intended; if that does not hold either, a person is called and nothing more is tried.
    """

    store: Store
    watch: Watch
    policy: ThrashPolicy
    clock: Clock
    in_hand: set[int] = field(default_factory=set)
    """Ids of the stops that a run is busy with."""
    at_once: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def __call__(self) -> None:
        """Carry out every open intent, and look again at the stops that are watched."""
        intents = list(await self.store.reading.stops.in_state(StopState.INTENDED))
        # A person's order does not wait behind a flood of the bot's own.
        intents.sort(key=lambda stop: stop.ordered_by is None)
        watched = await self.store.reading.stops.in_state(StopState.WATCHED)
        results = await asyncio.gather(
            *(self._alone(stop, self._carry_out) for stop in intents),
            *(self._alone(stop, self._look_again) for stop in watched),
            return_exceptions=True,
        )
        if failures := [result for result in results if isinstance(result, Exception)]:
            raise ExceptionGroup("some stops could not be carried out", failures)

    async def order(self, session_id: int, *, pid: int | None, by: int) -> Order:
        """Intend the stop of a session on behalf of Telegram user `by`; `pid` is what the order was about."""
        now = self.clock.now()
        async with self.store.transaction() as tables:
            session = await tables.sessions.get(session_id)
            if session is None:
                return Order.UNKNOWN
            if session.pid != pid:
                return Order.RESTARTED
            if self._killer(session.source) is None:
                return Order.NO_KILLER
            if await tables.stops.intended_of(session_id):
                return Order.UNDER_WAY
            incident = await tables.incidents.unclosed_of(session_id)
            await self._close_watched(tables, session_id)
            await tables.stops.add(Stop.intended(session, incident, ordered_by=by, now=now))
            await self._set_status(tables, incident, IncidentStatus.STOPPING, now)
        return Order.TAKEN

    async def _close_watched(self, tables: Tables, session_id: int) -> None:
        # The new order is what is looked at from now on; of two, each would be told and escalated.
        for stop in await tables.stops.in_state(StopState.WATCHED):
            if stop.session_id == session_id:
                await tables.stops.save(replace(stop, state=StopState.OVER))

    async def stopped_among(self, sessions: Sequence[Session]) -> set[int]:
        """Return the ids of those sessions that were stopped and have made no call since."""
        stops = await self.store.reading.stops.latest_of([session.id for session in sessions])
        by_session = {stop.session_id: stop for stop in stops if stop.outcome is Outcome.STOPPED}
        return {
            session.id
            for session in sessions
            if (stop := by_session.get(session.id))
            and not has_restarted(stop, session)
            and not has_called_since(stop, session, self.policy)
        }

    async def _alone(self, stop: Stop, step: Callable[[Stop], Awaitable[None]]) -> None:
        if stop.id in self.in_hand:
            return
        self.in_hand.add(stop.id)
        try:
            # Runs overlap: another one may have dealt with it since this one looked.
            if stop == await self.store.reading.stops.get(stop.id):
                await step(stop)
        finally:
            self.in_hand.discard(stop.id)

    async def _carry_out(self, stop: Stop) -> None:
        async with self.at_once:
            started = self.clock.now()
            result = await _attempt(self._killer(stop.target.source), stop)
        await self._report(stop, result, took=self.clock.now() - started)

    async def _report(self, stop: Stop, result: Stopped, took: float) -> None:
        now = self.clock.now()
        state = StopState.OVER if result.outcome is Outcome.DRY_RUN else StopState.WATCHED
        done = replace(stop, state=state, outcome=result.outcome, detail=result.detail, finished_at=now)
        async with self.store.transaction() as tables:
            await tables.stops.save(done)
            incident = await tables.incidents.unclosed_of(stop.session_id)
            incident = await self._set_status(tables, incident, _STATUS[result.outcome], now)
            silent = incident is not None and is_snoozed(incident, now)
            starter = await starter_of(tables.sessions, stop.session_id)
            report = _report(done, result.outcome, incident, took, starter)
            message = told(report, Mode.REPLY, about=incident, silent=silent, urgent=True)
            await tables.outbox.put(message, now)
        _log.info("stop %d, session %d: %s, %s", stop.id, stop.session_id, result.outcome, result.detail)

    async def _look_again(self, stop: Stop) -> None:
        now = self.clock.now()
        since = now - (stop.finished_at or now)
        if since < 0:
            # The clock was set back: it counts from now.
            async with self.store.transaction() as tables:
                await tables.stops.save(replace(stop, finished_at=now))
            return
        session = await self.store.reading.sessions.get(stop.session_id)
        if session is None or since < self.policy.settle:
            return
        killer = self._killer(stop.target.source)
        lives = killer is not None and await _lives(killer, stop)
        if lives or (not has_restarted(stop, session) and has_called_since(stop, session, self.policy)):
            await self._still_running(stop, session, stop.target.pid if lives else None, now)
        elif since > 2 * self.policy.settle + 2 * self.policy.every and await self._has_looked_since(stop):
            await self._held(stop, now)

    async def _has_looked_since(self, stop: Stop) -> bool:
        looked_at = await self.store.reading.presence.last()
        return (
            looked_at is not None and looked_at > (stop.finished_at or stop.ordered_at) + self.policy.settle
        )

    async def _still_running(self, stop: Stop, session: Session, pid: int | None, now: float) -> None:
        had_stopped = stop.outcome is Outcome.STOPPED
        notice = StillRunningNotice(
            session=session.id,
            agent=session.agent,
            source=session.source,
            incident=stop.incident_id,
            pid=pid,
            newest_ts=session.last_ts,
            stopped_at=stop.finished_at or now,
            had_stopped=had_stopped,
            escalating=self._may_escalate(stop),
            starter=await starter_of(self.store.reading.sessions, session.id),
        )
        status = IncidentStatus.STILL_RUNNING if had_stopped else IncidentStatus.STOP_FAILED
        async with self.store.transaction() as tables:
            await tables.stops.save(replace(stop, state=StopState.OVER))
            incident = await tables.incidents.unclosed_of(stop.session_id)
            await self._set_status(tables, incident, status, now)
            silent = incident is not None and is_snoozed(incident, now)
            message = told(notice, Mode.REPLY, about=incident, silent=silent, urgent=True)
            await tables.outbox.put(message, now)
            _log.warning("stop %d, session %d: still running", stop.id, session.id)
            if notice.escalating and await tables.stops.intended_of(session.id) is None:
                again = Stop.intended(session, incident, ordered_by=stop.ordered_by, now=now)
                await tables.stops.add(replace(again, escalates=stop.id, target=stop.target))

    def _may_escalate(self, stop: Stop) -> bool:
        """Once; and what a killer has refused it will refuse again, unless its harder step is another killer."""
        watched = self.watch.sources().get(stop.target.source)
        has_other_step = watched is not None and watched.has_other_step
        return stop.escalates is None and (stop.outcome is not Outcome.REFUSED or has_other_step)

    async def _held(self, stop: Stop, now: float) -> None:
        async with self.store.transaction() as tables:
            await tables.stops.save(replace(stop, state=StopState.OVER))
            incident = await tables.incidents.unclosed_of(stop.session_id)
            if incident and incident.status is IncidentStatus.STOPPED:
                await tables.incidents.save(replace(incident, closed_at=now, updated_at=now))

    async def _set_status(
        self, tables: Tables, before: Incident | None, status: IncidentStatus, now: float
    ) -> Incident | None:
        if before is None:
            return None
        after = replace(before, status=status, updated_at=now)
        await tables.incidents.save(after)
        outlook = outlook_of(self.watch.sources().get(after.source), self.policy)
        starter = await starter_of(tables.sessions, after.session_id)
        for message in tellings(before, after, outlook, now, starter):
            await tables.outbox.put(message, now)
        return after

    def _killer(self, source: str) -> Killer | None:
        watched = self.watch.sources().get(source)
        return watched.killer if watched else None


def has_restarted(stop: Stop, session: Session) -> bool:
    """Whether another process writes the session now: the one that was stopped is not to blame for its calls."""
    return stop.target.pid is not None and session.pid != stop.target.pid


def has_called_since(stop: Stop, session: Session, policy: ThrashPolicy) -> bool:
    """Whether the session has made calls after its stop had time to settle.

    A log whose clock agreed with ours at the time of the order tells it itself. Of any other it is known only once
    a look finds calls later than a whole beat after that: they were made after it, whatever the log's clock says.
    """
    settled = (stop.finished_at or stop.ordered_at) + policy.settle
    if -policy.every - policy.settle <= stop.target.last_ts - stop.ordered_at <= policy.settle:
        return session.last_ts > settled
    return session.seen_at > settled + policy.every


def _report(
    stop: Stop, outcome: Outcome, incident: Incident | None, took: float, starter: Starter | None
) -> StopNotice:
    return StopNotice(
        session=stop.session_id,
        agent=stop.target.agent,
        source=stop.target.source,
        incident=incident,
        reason=stop.target.reason,
        outcome=outcome,
        detail=stop.detail,
        took=took,
        ordered_by=stop.ordered_by,
        escalated=stop.escalates is not None,
        starter=starter,
    )


async def _lives(killer: Killer, stop: Stop) -> bool:
    try:
        return await killer.is_alive(stop.target) is True
    except Exception:  # noqa: BLE001 - a killer that cannot say whether it lives does not know
        _log.exception("stop %d: whether it lives is not known", stop.id)
        return False


async def _attempt(killer: Killer | None, stop: Stop) -> Stopped:
    if killer is None:
        detail = f"source {stop.target.source} has no killer any more"
        return Stopped(outcome=Outcome.FAILED, detail=detail)
    try:
        return await killer.stop(stop.target, harder=stop.escalates is not None)
    except Exception as error:  # noqa: BLE001 - a stop that breaks is a failed stop, and a person must hear of it
        _log.exception("stop %d broke", stop.id)
        return Stopped(outcome=Outcome.FAILED, detail=f"{type(error).__name__}: {error}")
