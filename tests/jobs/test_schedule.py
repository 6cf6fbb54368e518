"""The timetable: jobs run at once and at their beat, and a failure of one is nobody else's."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import aiosqlite
import pytest

from jobs import schedule
from jobs.alert.notice import JobFailedNotice
from jobs.schedule import Runs, StandingBy, Timed, Timetable
from jobs.store.database import Database, open_database
from tests.fakes import NOON, HandClock
from tests.jobs.world import World

HOUR = 3600.0
SOON = 0.01
PATIENCE = 60
"""Seconds for what would otherwise never come."""


@dataclass(kw_only=True)
class Job:
    """Fails as often as told; may take until it is let go."""

    failures: list[Exception] = field(default_factory=list)
    runs: int = 0
    ended: int = 0
    begun: asyncio.Condition = field(default_factory=asyncio.Condition)
    may_end: asyncio.Event | None = None
    """Given, a run waits for it."""

    async def __call__(self) -> None:
        async with self.begun:
            self.runs += 1
            self.begun.notify_all()
        if self.may_end:
            await self.may_end.wait()
        self.ended += 1
        if self.failures:
            raise self.failures.pop(0)

    async def has_begun(self, times: int = 1) -> None:
        async with asyncio.timeout(PATIENCE), self.begun:
            await self.begun.wait_for(lambda: self.runs >= times)


def timed(
    job: Job, every: float = HOUR, *, name: str = "job", overlapping: int = 1, is_told: bool = True
) -> Timed:
    return Timed(name=name, job=job, every=every, overlapping=overlapping, is_told=is_told)


@dataclass(kw_only=True)
class Look:
    """A job without a beat: asks for another run after so many seconds, run by run, then for none."""

    job: Job = field(default_factory=Job)
    waits: list[float] = field(default_factory=list)

    async def __call__(self) -> float | None:
        await self.job()
        return self.waits.pop(0) if self.waits else None

    def standing_by(self, *, name: str = "look", at_once: int = 1, is_told: bool = True) -> StandingBy:
        return StandingBy(name=name, job=self, at_once=at_once, is_told=is_told)


@asynccontextmanager
async def running(store: Database, *jobs: Timed | StandingBy) -> AsyncIterator[Timetable]:
    timetable = started(store, *jobs)
    try:
        yield timetable
    finally:
        await timetable.stop()


def started(store: Database, *jobs: Timed | StandingBy) -> Timetable:
    timetable = Timetable([job for job in jobs if isinstance(job, Timed)], store, HandClock())
    for job in jobs:
        if isinstance(job, StandingBy):
            timetable.stand_by(job)
    timetable.start()
    return timetable


async def change(store: Database) -> None:
    async with store.transaction():
        pass


@pytest.fixture
def _no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing happens merely because time goes by."""
    monkeypatch.setattr(schedule, "_LONGEST_REST", HOUR)
    monkeypatch.setattr(schedule, "_LONGEST_PAUSE", HOUR)
    monkeypatch.setattr(schedule, "_PATIENCE", HOUR)


no_hurry = pytest.mark.usefixtures("_no_hurry")


# ── when ──────────────────────────────────────────────────────────────────────────────────────────


async def test_every_job_runs_at_once(store: Database) -> None:
    """What a crash left open does not wait for a beat."""
    one, other = Job(), Job()
    async with running(store, timed(one, name="one"), timed(other, name="other")):
        await one.has_begun()
        await other.has_begun()


async def test_a_job_runs_at_its_beat(store: Database) -> None:
    job = Job()
    async with running(store, timed(job, SOON)):
        await job.has_begun(times=3)


async def test_every_job_runs_when_the_clock_is_set_back(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard does not wait until the clock has caught up."""
    job = Job()
    monkeypatch.setattr(schedule, "_CLOCK_LOOK", SOON)
    async with running(store, timed(job)):
        await job.has_begun()
        right = schedule._machine_time
        monkeypatch.setattr(schedule, "_machine_time", lambda: right() - timedelta(hours=1))
        await job.has_begun(times=2)


async def test_a_job_that_is_busy_is_left_out(store: Database) -> None:
    busy, other = Job(may_end=asyncio.Event()), Job()
    async with running(store, timed(busy, SOON, name="busy"), timed(other, SOON, name="other")):
        await busy.has_begun()
        await other.has_begun(times=5)
        assert busy.runs == 1
        assert busy.may_end is not None
        busy.may_end.set()
        await busy.has_begun(times=2)


async def test_runs_of_a_job_overlap_as_far_as_allowed(store: Database) -> None:
    busy, other = Job(may_end=asyncio.Event()), Job()
    async with running(
        store, timed(busy, SOON, name="busy", overlapping=2), timed(other, SOON, name="other")
    ):
        await busy.has_begun(times=2)
        await other.has_begun(times=other.runs + 5)
        assert busy.runs == 2
        assert busy.may_end is not None
        busy.may_end.set()


# ── without a beat ────────────────────────────────────────────────────────────────────────────────


@no_hurry
async def test_a_job_that_stands_by_looks_at_once_and_whenever_something_changes(store: Database) -> None:
    look = Look()
    async with running(store, look.standing_by()):
        for times in (1, 2, 3):
            await look.job.has_begun(times)
            await change(store)
        await look.job.has_begun(4)


@no_hurry
async def test_a_change_while_it_looks_is_not_missed(store: Database) -> None:
    look = Look(job=Job(may_end=asyncio.Event()))
    async with running(store, look.standing_by()):
        await look.job.has_begun()
        await change(store)
        assert look.job.may_end is not None
        look.job.may_end.set()
        await look.job.has_begun(2)


@no_hurry
async def test_it_looks_again_at_once_as_long_as_it_asks_to(store: Database) -> None:
    look = Look(waits=[0, 0, 0])
    async with running(store, look.standing_by()):
        await look.job.has_begun(4)


@no_hurry
@pytest.mark.parametrize("wait", [HOUR, None])
async def test_it_rests_as_long_as_it_asks_to(store: Database, wait: float | None) -> None:
    """And as long as nothing changes if it asks for nothing."""
    resting, looking = Look(waits=[] if wait is None else [wait]), Look(waits=[SOON] * 5)
    async with running(store, resting.standing_by(name="resting"), looking.standing_by()):
        await looking.job.has_begun(6)
        assert resting.job.runs == 1


@pytest.mark.parametrize("waits", [[], [HOUR, HOUR]])
async def test_no_rest_is_longer_than_the_longest(
    store: Database, monkeypatch: pytest.MonkeyPatch, waits: list[float]
) -> None:
    """Whatever it asks for: a clock may have been set."""
    monkeypatch.setattr(schedule, "_LONGEST_REST", SOON)
    look = Look(waits=waits)
    async with running(store, look.standing_by()):
        await look.job.has_begun(3)


@no_hurry
async def test_it_stands_by_as_often_as_told(store: Database) -> None:
    """One run that takes long keeps no other from looking."""
    busy = Look(job=Job(may_end=asyncio.Event()), waits=[0] * 9)
    other = Look(waits=[SOON] * 5)
    async with running(store, busy.standing_by(at_once=3), other.standing_by(name="other")):
        await busy.job.has_begun(3)
        await other.job.has_begun(6)
        assert busy.job.runs == 3
        assert busy.job.may_end is not None
        busy.job.may_end.set()
        await busy.job.has_begun(12)


@no_hurry
async def test_each_look_that_worked_is_noted(store: Database) -> None:
    worked = asyncio.Event()
    entry = StandingBy(name="look", job=Look(), worked=worked.set)
    async with running(store, entry) as timetable:
        async with asyncio.timeout(PATIENCE):
            await worked.wait()
        assert timetable.runs == {"look": Runs(worked_at=NOON)}


# ── how it ends ───────────────────────────────────────────────────────────────────────────────────


async def test_a_running_job_is_let_come_to_its_end(store: Database) -> None:
    job = Job(may_end=asyncio.Event())
    timetable = Timetable([timed(job)], store, HandClock())
    timetable.start()
    await job.has_begun()
    stopping = asyncio.ensure_future(timetable.stop())
    await asyncio.sleep(0)
    assert job.may_end is not None
    job.may_end.set()
    await stopping
    assert job.ended == 1
    assert timetable.runs["job"].worked_at == NOON


async def test_a_job_that_does_not_end_is_cut_short(store: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """That is no failure of it: what it had begun is found by the next start."""
    monkeypatch.setattr(schedule, "_PATIENCE", SOON)
    job = Job(may_end=asyncio.Event())
    async with running(store, timed(job)) as timetable:
        await job.has_begun()
    assert (job.runs, job.ended) == (1, 0)
    assert timetable.runs["job"] == Runs()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@no_hurry
async def test_a_job_that_rests_ends_at_once(store: Database) -> None:
    look = Look(waits=[HOUR])
    timetable = started(store, look.standing_by(at_once=2))
    await look.job.has_begun(2)
    await change(store)
    await look.job.has_begun(4)
    await asyncio.sleep(0)
    await _ends(timetable)
    assert (look.job.runs, look.job.ended) == (4, 4)


@no_hurry
@pytest.mark.parametrize("wait", [0, HOUR, None])
async def test_a_job_that_stands_by_is_let_come_to_its_end_and_looks_no_more(
    store: Database, wait: float | None
) -> None:
    look = Look(job=Job(may_end=asyncio.Event()), waits=[] if wait is None else [wait])
    timetable = started(store, look.standing_by())
    await look.job.has_begun()
    stopping = asyncio.ensure_future(_ends(timetable))
    await asyncio.sleep(0)
    assert look.job.may_end is not None
    look.job.may_end.set()
    await stopping
    assert (look.job.runs, look.job.ended) == (1, 1)
    assert timetable.runs["look"].worked_at == NOON


@no_hurry
async def test_a_job_that_stands_by_and_does_not_end_is_cut_short(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "_PATIENCE", SOON)
    look = Look(job=Job(may_end=asyncio.Event()))
    timetable = started(store, look.standing_by(at_once=2))
    await look.job.has_begun(2)
    await _ends(timetable)
    assert (look.job.runs, look.job.ended) == (2, 0)
    assert timetable.runs["look"] == Runs()


async def test_a_timetable_that_is_stopped_before_its_jobs_have_begun_runs_none(store: Database) -> None:
    look = Look()
    timetable = started(store, look.standing_by())
    await _ends(timetable)
    assert look.job.runs == 0


async def _ends(timetable: Timetable) -> None:
    async with asyncio.timeout(PATIENCE):
        await timetable.stop()
    await asyncio.sleep(0)
    assert not {task for task in asyncio.all_tasks() if "_stand_by" in repr(task.get_coro())}


# ── what becomes of a failure ─────────────────────────────────────────────────────────────────────


async def told(store: Database) -> list[object]:
    return [heard.notice for heard in await World(store=store).hear()]


async def test_a_run_that_worked_is_noted_with_its_time(store: Database) -> None:
    clock = HandClock()

    async def takes_three_seconds() -> None:
        clock.go_on(3)

    entry = Timed(name="job", job=takes_three_seconds, every=HOUR)
    timetable = Timetable([entry], store, clock)
    assert timetable.runs == {"job": Runs()}
    await timetable.run(entry)
    assert timetable.runs == {"job": Runs(worked_at=NOON, took=3)}


async def test_a_job_that_raises_is_told_the_third_time_running(store: Database) -> None:
    entry = timed(Job(failures=[OSError(f"attempt {n}") for n in range(1, 7)]))
    timetable = Timetable([entry], store, HandClock())
    for expected in ([], [], [JobFailedNotice(job="job", error="OSError: attempt 3")], [], [], []):
        await timetable.run(entry)
        assert await told(store) == expected
    assert timetable.runs["job"] == Runs(failures=6, error="OSError: attempt 6")


async def test_a_job_that_works_again_is_told_again_when_it_fails_again(store: Database) -> None:
    job = Job()
    entry = timed(job)
    timetable = Timetable([entry], store, HandClock())
    for _ in range(2):
        job.failures = [OSError("no"), OSError("no"), OSError("no"), OSError("no")]
        for _ in range(4):
            await timetable.run(entry)
        await timetable.run(entry)
        assert timetable.runs["job"] == Runs(worked_at=NOON)
        assert len(await told(store)) == 1


async def test_a_failure_now_and_then_is_not_told(store: Database) -> None:
    job = Job()
    entry = timed(job)
    timetable = Timetable([entry], store, HandClock())
    for _ in range(5):
        job.failures = [OSError("no"), OSError("no")]
        for _ in range(3):
            await timetable.run(entry)
    assert await told(store) == []


async def test_the_job_that_delivers_alerts_makes_none(store: Database) -> None:
    entry = timed(Job(failures=[OSError("no")] * 5), is_told=False)
    timetable = Timetable([entry], store, HandClock())
    for _ in range(5):
        await timetable.run(entry)
    assert timetable.runs["job"].failures == 5
    assert await told(store) == []


async def test_a_job_that_stands_by_and_fails_is_tried_again_after_a_pause(
    store: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """And is told the third time running, as any other."""
    monkeypatch.setattr(schedule, "_LONGEST_PAUSE", SOON)
    look = Look(job=Job(failures=[OSError(f"attempt {n}") for n in range(1, 5)]))
    async with running(store, look.standing_by()) as timetable:
        await look.job.has_begun(5)
    assert timetable.runs["look"] == Runs(worked_at=NOON)
    assert await told(store) == [JobFailedNotice(job="look", error="OSError: attempt 3")]
    assert caplog.messages == [f"job look failed: OSError: attempt {n}" for n in range(1, 5)]


async def test_a_job_that_stands_by_pauses_the_longer_the_more_often_it_has_failed(store: Database) -> None:
    """Up to ten seconds, and from one again once it has worked."""
    look = Look(job=Job(failures=[OSError("no")] * 12))
    timetable, entry = Timetable([], store, HandClock()), look.standing_by()
    timetable.stand_by(entry)
    assert [await timetable.run(entry) for _ in range(12)] == [*range(1, 11), 10, 10]
    assert await timetable.run(entry) is None
    look.job.failures = [OSError("no")]
    assert await timetable.run(entry) == 1


async def test_where_it_failed_is_logged_when_it_fails_otherwise_than_before(
    store: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """That it fails again, and why, is said each time; also the same is new after it has worked."""
    job = Job(failures=[OSError(why) for why in ("no", "no", "no", "full", "no")])
    entry = timed(job)
    timetable = Timetable([entry], store, HandClock())
    for _ in range(6):
        await timetable.run(entry)
    job.failures = [OSError("no")]
    await timetable.run(entry)
    records = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [record.getMessage() for record in records] == [
        f"job job failed: OSError: {why}" for why in ("no", "no", "no", "full", "no", "no")
    ]
    assert [bool(record.exc_info) for record in records] == [True, False, False, True, True, True]


@no_hurry
async def test_a_job_that_stands_by_and_fails_does_not_try_again_at_once(store: Database) -> None:
    failing, looking = Look(job=Job(failures=[OSError("no")])), Look(waits=[SOON] * 5)
    async with running(store, failing.standing_by(name="failing"), looking.standing_by()) as timetable:
        timetable._runs["failing"] = Runs(failures=int(HOUR))
        await looking.job.has_begun(6)
        assert failing.job.runs == 1
        await change(store)
        await failing.job.has_begun(2)


async def test_the_job_that_delivers_alerts_makes_none_when_it_stands_by(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "_LONGEST_PAUSE", SOON)
    look = Look(job=Job(failures=[OSError("no")] * 5))
    async with running(store, look.standing_by(is_told=False)):
        await look.job.has_begun(6)
    assert await told(store) == []


async def test_a_failure_that_cannot_even_be_written_down_stops_nothing(tmp_path: Path) -> None:
    async with open_database(tmp_path) as store:
        pass
    entry = timed(Job(failures=[OSError("no")] * 4))
    timetable = Timetable([entry], store, HandClock())
    for _ in range(4):
        await timetable.run(entry)
    assert timetable.runs["job"].failures == 4


def _full() -> aiosqlite.OperationalError:
    full = aiosqlite.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    return full


async def test_a_job_that_the_database_failed_is_done_again_in_memory(store: Database) -> None:
    job = Job(failures=[_full()])
    entry = timed(job)
    timetable = Timetable([entry], store, HandClock())
    await timetable.run(entry)
    assert job.runs == 2
    assert timetable.runs["job"] == Runs(worked_at=NOON)
    assert store.trouble == "database or disk is full"


async def test_what_a_job_asked_for_when_it_was_done_again_in_memory_counts(store: Database) -> None:
    look = Look(job=Job(failures=[_full()]), waits=[7])
    timetable = Timetable([], store, HandClock())
    assert await timetable.run(look.standing_by()) == 7
    assert look.job.runs == 2
