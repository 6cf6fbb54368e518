"""What keeps the guard in order: the database file is watched, old rows go, and being away is owned up to."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import aiosqlite
import pytest

from jobs.alert.notice import BackNotice, StorageNotice
from jobs.ports import Batch, Cursor, StopState
from jobs.retention import Retention
from jobs.return_report import ReturnReport
from jobs.storage_watch import StorageWatch
from jobs.store.database import Database, open_database
from jobs.store.schema import FILE_NAME
from jobs.thrash.incident import IncidentStatus
from tests.fakes import CallLog
from tests.jobs.world import BEAT, World

DAY = 86_400.0


@pytest.fixture
def storage(world: World) -> StorageWatch:
    return StorageWatch(store=world.store, clock=world.clock)


@pytest.fixture
def retention(world: World) -> Retention:
    return Retention(store=world.store, clock=world.clock, days=90)


@pytest.fixture
def on_return(world: World) -> ReturnReport:
    return ReturnReport(store=world.store, policy=world.policy, clock=world.clock)


# ── the file ──────────────────────────────────────────────────────────────────────────────────────


async def test_nothing_is_said_of_a_file_that_works(world: World, storage: StorageWatch) -> None:
    await storage()
    assert await world.hear() == []


async def test_the_chat_hears_once_that_the_file_fails_and_once_that_it_works(
    world: World, storage: StorageWatch, store: Database, tmp_path: Path
) -> None:
    """However often it is looked at in between."""
    await _break(store)
    (tmp_path / FILE_NAME).rename(tmp_path / "kept")
    (tmp_path / FILE_NAME).mkdir()
    for _ in range(3):
        await storage()
    (heard,) = await world.hear()
    assert isinstance(heard.notice, StorageNotice)
    assert heard.notice.trouble
    (tmp_path / FILE_NAME).rmdir()
    (tmp_path / "kept").rename(tmp_path / FILE_NAME)
    for _ in range(3):
        await storage()
    (heard,) = await world.hear()
    assert heard.notice == StorageNotice(trouble=None, set_aside=None)


async def test_the_chat_hears_where_a_damaged_file_is_kept(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"no database" * 1000)
    async with open_database(tmp_path) as store:
        world = World(store=store)
        await StorageWatch(store=store, clock=world.clock)()
        (heard,) = await world.hear()
        assert store.set_aside
        assert heard.notice == StorageNotice(trouble=None, set_aside=store.set_aside.name)


async def test_an_agent_is_stopped_while_the_file_fails(world: World, store: Database) -> None:
    """Three looks in memory stop a thrashing agent as they do on disk."""
    await _break(store)
    await world.circles_for(3)
    await world.agent_stop()
    assert [target.session for target in world.killer.attempts] == ["s-1"]


async def _break(store: Database) -> None:
    await store._opened.writer.execute("PRAGMA query_only = ON")
    with pytest.raises(aiosqlite.OperationalError) as failure:
        async with store.transaction() as tables:
            await tables.presence.note(0)
    assert await store.endure(failure.value)


# ── old rows ──────────────────────────────────────────────────────────────────────────────────────


async def test_what_is_over_and_old_is_deleted(world: World, retention: Retention) -> None:
    """A stopped agent's session, incident, stop and messages are gone after 90 days."""
    await world.circles_for(3)
    await world.agent_stop()
    world.clock.go_on(BEAT)
    await world.look(beats=4)
    await world.agent_stop()
    await world.hear()
    assert (await world.incident()).closed_at
    world.clock.go_on(90 * DAY + 10 * BEAT)
    await retention()
    assert await world.incidents() == []
    assert await world.store.reading.stops.in_state(StopState.OVER) == []
    assert await world.store.reading.sessions.newest(0, 9) == []
    assert await world.store.reading.outbox.sent(1) is None


async def test_all_of_it_is_deleted_in_however_small_portions(world: World) -> None:
    await world.circles_for(3)
    world.clock.go_on(2 * 90 * DAY)
    async with world.store.transaction() as tables:
        await tables.inbox.add(1, dict.fromkeys(range(5), "{}"), world.clock.now() - 91 * DAY)
    await Retention(store=world.store, clock=world.clock, days=90, at_once=2)()
    [(left,)] = await world.store.reading.connection.execute_fetchall("SELECT count(*) FROM inbox")
    assert left == 0


async def test_what_is_younger_stays(world: World, retention: Retention) -> None:
    await world.circles_for(3)
    await world.agent_stop()
    await world.hear()
    world.clock.go_on(89 * DAY)
    await retention()
    assert await world.incident()
    assert await world.session()


async def test_what_is_not_over_stays_however_old(world: World, retention: Retention) -> None:
    """An intent that was never carried out, its incident and session, and a message nobody got."""
    await world.circles_for(3)
    world.clock.go_on(400 * DAY)
    await retention()
    assert len(await world.intents()) == 1
    assert (await world.incident()).status is IncidentStatus.STOPPING
    assert len(await world.hear()) == 1


async def test_a_file_that_is_still_there_is_not_read_again(world: World, retention: Retention) -> None:
    """Its cursor was renewed at every look."""
    world.works()
    await world.look()
    world.clock.go_on(400 * DAY)
    await world.look()
    await retention()
    assert set(await world.store.reading.cursors.of_source("gateway")) == {"log"}


# ── having been away ──────────────────────────────────────────────────────────────────────────────


async def test_the_first_start_is_no_return(world: World, on_return: ReturnReport) -> None:
    await on_return()
    assert await world.hear() == []


async def test_a_restart_is_not_worth_a_message(world: World, on_return: ReturnReport) -> None:
    await world.look()
    world.clock.go_on(200)
    await on_return()
    assert await world.hear() == []


async def test_after_downtime_the_chat_hears_how_long_and_what_was_going_on(
    world: World, on_return: ReturnReport
) -> None:
    """The message names the incidents that were open when the bot went away."""
    await world.circles_for(1)
    await world.hear()
    left_at = world.clock.now() - BEAT
    world.clock.go_on(3 * DAY)
    await on_return()
    (heard,) = await world.hear()
    assert heard.notice == BackNotice(
        since=left_at, back_at=world.clock.now(), incidents=(await world.incident(),)
    )


async def test_a_time_in_which_nobody_looked_is_an_absence(world: World) -> None:
    """The bot was away, or the machine asleep; up to three beats without a look are none."""
    await world.look()
    world.clock.go_on(2 * BEAT)
    await world.look()
    left_at = world.clock.now() - BEAT
    world.clock.go_on(2 * BEAT + 1)
    await world.look()
    found = await world.store.reading.absences.between(0, world.clock.now())
    assert [(each.since, each.until) for each in found] == [(left_at, left_at + 3 * BEAT + 1)]


async def test_a_clock_that_is_set_back_shows_no_absence(world: World) -> None:
    await world.look()
    world.clock.go_on(-DAY)
    await world.look()
    await world.look()
    assert await world.store.reading.absences.between(0, world.clock.now() + DAY) == []


@dataclass(slots=True, kw_only=True)
class HangingLog(CallLog):
    """Takes as long as it is told to."""

    begun: threading.Event = field(default_factory=threading.Event)
    may_end: threading.Event = field(default_factory=threading.Event)

    def read_new(self, cursors: Mapping[str, Cursor], now: float) -> Iterator[Batch]:
        self.begun.set()
        assert self.may_end.wait(timeout=60)
        # Not `super()`: a dataclass with slots is another class than the one that is written here.
        yield from CallLog.read_new(self, cursors, now)


async def test_while_one_look_takes_long_the_others_are_looks_all_the_same(store: Database) -> None:
    """Its end does not hide them, as if nobody had looked since it began."""
    log = HangingLog()
    world = World(store=store, log=log)
    long_look = asyncio.ensure_future(world.scan())
    await asyncio.to_thread(log.begun.wait, 60)
    for _ in range(10):
        world.clock.go_on(BEAT)
        await world.scan()
    log.may_end.set()
    await long_look
    assert await store.reading.presence.last() == world.clock.now()
    world.clock.go_on(BEAT)
    await world.scan()
    assert await store.reading.absences.between(0, world.clock.now()) == []
