"""The timetable: which job, how often or upon what, and what becomes of one that fails (APScheduler)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.interval import IntervalTrigger

from jobs.alert.notice import JobFailedNotice
from jobs.alert.outgoing import told
from jobs.ports import Clock, Store

_LONGEST_PAUSE: Final = 10.0
"""Seconds until a job that stands by is tried again after many failures; after one it is a second."""
_LONGEST_REST: Final = 10.0
"""Seconds after which a job that stands by looks, whatever it was told."""
_PATIENCE: Final = 2.0
"""Seconds that running jobs get at the end."""

_CLOCK_LOOK: Final = 1.0
"""Seconds between two looks at the clock."""
_CLOCK_STEP: Final = 1.0
"""Seconds by which it must have been set to matter."""
_TOLD_AFTER: Final = 3
"""Failures in a row after which a failing job is an alert."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """A job and its beat."""

    name: str
    job: Callable[[], Awaitable[None]]
    every: float
    """Seconds. A late run is made up for once, however many were missed."""
    overlapping: int = 1
    """How many runs may be under way; further ones are left out."""
    worked: Callable[[], None] | None = None
    """Called after each run that worked."""
    is_told: bool = True
    """Whether a failure is an alert; not for the job that delivers alerts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingBy:
    """A job without a beat: it looks when the database has changed, and after as long as it has asked for."""

    name: str
    job: Callable[[], Awaitable[float | None]]
    """Does one thing and returns the seconds after which there may be another, though nothing changes; 0: look again."""
    at_once: int = 1
    """How many runs may be under way."""
    worked: Callable[[], None] | None = None
    is_told: bool = True
    """As of a timed job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """How a job has fared. Times are epoch seconds."""

    worked_at: float | None = None
    took: float = 0
    """Seconds of the last run that worked."""
    failures: int = 0
    """In a row, up to now."""
    error: str = ""


class Timetable:
    """Runs the jobs. A job that raises is logged and tried again at its next beat; the third time running is an alert."""

    def __init__(self, jobs: Iterable[Timed], store: Store, clock: Clock) -> None:
        self._jobs = tuple(jobs)
        self._standing_by: list[StandingBy] = []
        self._store = store
        self._clock = clock
        self._runs = {timed.name: Runs() for timed in self._jobs}
        self._under_way: set[asyncio.Task[None]] = set()
        self._standing: list[asyncio.Task[None]] = []
        self._is_stopping = False
        self._watching_clock: asyncio.Future[None] | None = None
        # In UTC, since a beat must not skip or double when the clocks change.
        self._scheduler = AsyncIOScheduler(
            timezone=UTC, job_defaults={"coalesce": True, "misfire_grace_time": None}
        )

    @property
    def runs(self) -> Mapping[str, Runs]:
        """How every job has fared, by name."""
        return self._runs

    def stand_by(self, job: StandingBy) -> None:
        """Take in a job without a beat, before the start."""
        self._standing_by.append(job)
        self._runs[job.name] = Runs()

    def start(self) -> None:
        """Run every job now, and then at its beat or when there is something to do."""
        now = _machine_time()
        for timed in self._jobs:
            self._scheduler.add_job(
                partial(self.run, timed),
                IntervalTrigger(seconds=timed.every, timezone=UTC),
                id=timed.name,
                next_run_time=now,
                max_instances=timed.overlapping,
            )
        self._scheduler.start()
        self._watching_clock = asyncio.ensure_future(self._watch_clock())
        for job in self._standing_by:
            self._standing += [asyncio.ensure_future(self._stand_by(job)) for _ in range(job.at_once)]

    async def _stand_by(self, job: StandingBy) -> None:
        while True:
            changed = self._store.changed
            wait = await self.run(job)
            if self._is_stopping:
                # At rest it would keep `stop` waiting, which has seen it at work.
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(_LONGEST_REST if wait is None else min(wait, _LONGEST_REST)):
                    await changed.wait()

    async def _watch_clock(self) -> None:
        """Run every job at once when the machine's clock was set: APScheduler would wait until it has caught up."""
        loop = asyncio.get_running_loop()
        offset = _machine_time().timestamp() - loop.time()
        while True:
            await asyncio.sleep(_CLOCK_LOOK)
            before, offset = offset, _machine_time().timestamp() - loop.time()
            if abs(offset - before) > _CLOCK_STEP:
                _log.warning("the clock was set by %+.0f s", offset - before)
                for job in self._scheduler.get_jobs():
                    job.modify(next_run_time=_machine_time())

    async def stop(self) -> None:
        """Begin nothing new, let what runs come to its end, cut short what takes longer than `_PATIENCE`."""
        if self._watching_clock:
            self._watching_clock.cancel()
        self._scheduler.pause()
        self._is_stopping = True
        for task in self._standing:
            if task not in self._under_way:
                task.cancel()
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=_PATIENCE)
        self._scheduler.shutdown(wait=False)
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, *self._standing, return_exceptions=True)

    async def run_now(self, name: str) -> None:
        """Run one of the jobs once, beside its beat."""
        await self.run(next(timed for timed in self._jobs if timed.name == name))

    async def run(self, timed: Timed | StandingBy) -> float | None:
        """Run a job once and return what it returned. Never raises for what the job does."""
        task = asyncio.current_task()
        if task:
            self._under_way.add(task)
        started = self._clock.now()
        try:
            wait = await self._work(timed)
        except asyncio.CancelledError:
            # Only `stop` cancels, and this task ends here. What a job had begun is an intent that the next start finds.
            _log.info("job %s was cut short", timed.name)
            return None
        except Exception as error:  # noqa: BLE001 - whatever a job raises becomes durable here
            await self._note_failure(timed, error)
            return min(_LONGEST_PAUSE, self._runs[timed.name].failures)
        else:
            self._runs[timed.name] = Runs(worked_at=started, took=self._clock.now() - started)
            if timed.worked:
                timed.worked()
            return wait
        finally:
            if task:
                self._under_way.discard(task)

    async def _work(self, timed: Timed | StandingBy) -> float | None:
        try:
            return await timed.job()
        except Exception as error:
            # A job that the database failed is done again at once, in memory: agents do not wait for a full disk.
            if not await self._store.endure(error):
                raise
            _log.error("the database cannot be used, going on in memory: %s", self._store.trouble)
            return await timed.job()

    async def _note_failure(self, timed: Timed | StandingBy, error: Exception) -> None:
        before = self._runs[timed.name]
        told_as = "; ".join(_leaves(error))
        # The same again is said again, and not where it was each time.
        _log.error("job %s failed: %s", timed.name, told_as, exc_info=told_as != before.error and error)
        failures = before.failures + 1
        self._runs[timed.name] = replace(before, failures=failures, error=told_as)
        if not timed.is_told or failures != _TOLD_AFTER:
            return
        try:
            async with self._store.transaction() as tables:
                await tables.outbox.put(
                    told(JobFailedNotice(job=timed.name, error=told_as)), self._clock.now()
                )
        except Exception:  # noqa: BLE001 - the database itself may be what failed
            _log.exception("the failure of job %s could not be queued for the chat", timed.name)


def _machine_time() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - APScheduler lives on the machine's clock, whatever the jobs' clock is


def _leaves(error: BaseException) -> Iterator[str]:
    """Yield what is wrong, group by group, with the notes that say where."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        where = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        yield f"{type(error).__name__}: {error}{where}"
