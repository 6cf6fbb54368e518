"""What a file costs in which nothing is new: it is neither read nor written about again."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from jobs.ports import Batch, Cursor
from jobs.store.database import Database
from tests.fakes import NOON, CallLog
from tests.jobs.world import BEAT, World


@dataclass(slots=True, kw_only=True)
class IdleLog(CallLog):
    """Gives back the cursor it was given where nothing is new."""

    given: list[Cursor | None] = field(default_factory=list)
    """At every look."""

    def read_new(self, cursors: Mapping[str, Cursor], now: float) -> Iterator[Batch]:
        known = cursors.get("log")
        self.given.append(known)
        if known and known.offset == len(self.calls) and not self.breaks:
            yield Batch(path="log", cursor=known, calls=())
        else:
            yield from CallLog.read_new(self, cursors, now)


@pytest.fixture
def world(store: Database) -> World:
    return World(store=store, log=IdleLog())


async def kept(world: World) -> Cursor:
    return (await world.store.reading.cursors.of_source("gateway"))["log"]


async def test_an_idle_file_is_written_about_every_half_hour(world: World) -> None:
    """By that time those are told from it that are gone, whose cursors are deleted in the end."""
    world.works()
    await world.look()
    for _ in range(29):
        await world.look()
        assert (await kept(world)).read_at == NOON
    await world.look()
    assert (await kept(world)).read_at == NOON + 30 * BEAT


async def test_what_comes_after_a_long_silence_is_no_history(world: World) -> None:
    """Though the log's clock is far behind: the bot was there all the time."""
    world.works()
    for _ in range(15):
        await world.look()
    world.circles(offset=-world.policy.expires - BEAT)
    await world.look()
    assert len(await world.hear()) == 1


async def test_after_a_look_that_failed_the_database_is_asked(world: World) -> None:
    assert isinstance(world.log, IdleLog)
    world.works()
    await world.look()
    world.works(3)
    world.log.breaks = OSError("the disk is gone")
    with pytest.raises(ExceptionGroup):
        await world.look()
    world.log.breaks = None
    await world.look()
    await world.look()
    assert [known and known.offset for known in world.log.given] == [None, 10, 10, 13]


async def test_a_clock_that_was_set_back_keeps_no_file_from_being_written_about(world: World) -> None:
    world.works()
    await world.look()
    world.clock.go_on(-2 * BEAT)
    await world.look()
    assert (await kept(world)).read_at == NOON - BEAT


async def test_another_database_is_asked_what_it_has(world: World) -> None:
    world.works()
    await world.look()
    async with world.store.transaction() as tables:
        await tables.cursors.save("gateway", {"log": Cursor(device=1, inode=1, offset=4, head="", tail="")})
    world.store.trouble = "the disk is full"
    await world.look()
    await world.look()
    assert isinstance(world.log, IdleLog)
    assert [known and known.offset for known in world.log.given] == [None, 4, 10]
