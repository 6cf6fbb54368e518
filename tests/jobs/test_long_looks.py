"""A look at more than is held at a time: committed in parts, it is one look all the same."""

from itertools import cycle, islice

from jobs.store.database import Database
from jobs.thrash.streak import Ended
from tests.fakes import NOON, CallLog, call
from tests.jobs.world import World

MANY = 50_000
"""Calls, more than one part holds."""


def others(count: int) -> list[str]:
    """Commands that are far apart, over and over."""
    return list(islice(cycle(f"{n:x}" * 20 for n in range(1, 16)), count))


async def test_everything_is_counted_once_however_many_parts_there_are(store: Database) -> None:
    world = World(store=store, log=CallLog(per_batch=7_000))
    world.log.calls = [
        call(
            NOON - MANY + n,
            f"{n}",
            session=f"s-{n % 3}",
            pid=n // 30_000 + 1,
            is_error=n % 2 == 0,
            tokens=n % 5,
        )
        for n in range(MANY)
    ]
    await world.look()
    sessions = [await world.session(f"s-{n}") for n in range(3)]
    assert sum(session.memory.calls for session in sessions) == MANY
    assert sum(session.memory.tokens or 0 for session in sessions) == sum(n % 5 for n in range(MANY))
    assert sum(session.errors for session in sessions) == MANY // 2
    assert [session.first_ts for session in sessions] == [NOON - MANY + n for n in range(3)]
    assert {(session.pid, session.pid_since_ts) for session in sessions} == {
        (2, NOON - MANY + 30_000 + n) for n in range(3)
    }
    assert (await world.store.reading.cursors.of_source("gateway"))["log"].offset == MANY


async def test_a_session_that_only_the_first_part_told_of_is_judged_at_the_end(store: Database) -> None:
    world = World(store=store, log=CallLog(per_batch=1_000))
    await world.circles_for(2)
    world.works()
    world.log.calls += [call(world.clock.now(), command, session="s-2") for command in others(MANY)]
    world.circles(session="s-3")
    await world.look()
    first, *rest = await world.incidents()
    assert (first.ended, first.steps) == (Ended.RECOVERED, 2)
    assert (await world.session()).streak.steps == 0
    third = await world.session("s-3")
    assert [incident.steps for incident in rest if incident.session_id == third.id] == [1]


async def test_a_loop_that_began_in_an_earlier_part_is_one_step(store: Database) -> None:
    world = World(store=store, log=CallLog(per_batch=1_000))
    await world.circles_for(1)
    world.circles()
    world.log.calls += [call(world.clock.now(), command, session="s-2") for command in others(MANY)]
    world.circles()
    await world.look()
    session = await world.session()
    assert (session.streak.steps, session.memory.calls) == (2, 30)


async def test_nothing_is_lost_between_looks_in_parts(store: Database) -> None:
    """Sessions that come back in later parts and later looks go on where they were."""
    world = World(store=store, log=CallLog(per_batch=3_000))
    for look in range(2):
        world.log.calls += [
            call(world.clock.now(), f"{look} {n}", session=f"s-{n % 40}") for n in range(MANY)
        ]
        await world.look()
    calls = [(await world.session(f"s-{n}")).memory.calls for n in range(40)]
    assert calls == [2 * MANY // 40] * 40
