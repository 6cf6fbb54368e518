"""A transaction is one task's own, and it is all or nothing, however it ends."""

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine

import pytest

from jobs.ports import Cursor, Stop
from jobs.store.database import Database
from tests.store.rows import a_session, an_incident

CURSOR = Cursor(device=1, inode=1, offset=1, head="", tail="")


async def write(store: Database, path: str) -> None:
    async with store.transaction() as tables:
        await tables.cursors.save("gateway", {path: CURSOR})


async def written(store: Database) -> set[str]:
    return set(await store.reading.cursors.of_source("gateway"))


def cut_short() -> None:
    """Cancel the task that calls this: its next await is left while the SQL is under way."""
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


async def test_it_commits_when_its_block_ends(store: Database) -> None:
    await write(store, "a")
    assert await written(store) == {"a"}


async def test_it_is_undone_when_its_block_raises(store: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        await _fail_after_writing(store)
    await write(store, "b")
    assert await written(store) == {"b"}


async def test_it_is_undone_when_a_statement_fails(store: Database) -> None:
    async with store.transaction() as tables:
        session = await tables.sessions.save(a_session())

    async def write_and_save_it_again() -> None:
        async with store.transaction() as tables:
            await tables.cursors.save("gateway", {"a": CURSOR})
            await tables.sessions.save(a_session())

    with pytest.raises(sqlite3.IntegrityError):
        await write_and_save_it_again()
    assert await written(store) == set()
    assert await store.reading.sessions.get(session.id) == session


async def test_it_is_undone_when_it_is_cut_short_in_its_block(store: Database) -> None:
    async def cut_short_while_writing() -> None:
        async with store.transaction() as tables:
            await tables.cursors.save("gateway", {"a": CURSOR})
            cut_short()
            await tables.cursors.save("gateway", {"b": CURSOR})

    await _is_cancelled(cut_short_while_writing)
    await write(store, "c")
    assert await written(store) == {"c"}


async def test_it_leaves_nothing_open_when_it_is_cut_short_as_it_begins(store: Database) -> None:
    async def cut_short_at_once() -> None:
        cut_short()
        await write(store, "a")

    await _is_cancelled(cut_short_at_once)
    await write(store, "b")
    assert await written(store) == {"b"}


async def test_it_is_all_or_nothing_when_it_is_cut_short_as_it_commits(store: Database) -> None:
    async def cut_short_at_the_end() -> None:
        async with store.transaction() as tables:
            await tables.cursors.save("gateway", {"a": CURSOR, "b": CURSOR})
            cut_short()

    await _is_cancelled(cut_short_at_the_end)
    before = await written(store)
    assert before in ({"a", "b"}, set())
    await write(store, "c")
    assert await written(store) == {*before, "c"}


async def test_one_that_waits_for_its_turn_can_be_cut_short(store: Database) -> None:
    async with store.transaction() as tables:
        await tables.cursors.save("gateway", {"a": CURSOR})
        waiting = asyncio.ensure_future(write(store, "b"))
        await _until_it_waits(waiting)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert await written(store) == {"a"}


async def test_two_tasks_do_not_share_one(store: Database) -> None:
    """What one undoes is not what the other has written meanwhile."""
    is_inside, may_go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        async with store.transaction() as tables:
            await tables.cursors.save("gateway", {"slow": CURSOR})
            is_inside.set()
            await may_go_on.wait()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(slow())
        await is_inside.wait()
        failing = tasks.create_task(_is_undone(store))
        await _until_it_waits(failing)
        may_go_on.set()
    assert await written(store) == {"slow"}


async def test_many_tasks_take_turns(store: Database) -> None:
    async def count(name: str) -> None:
        async with store.transaction() as tables:
            before = await tables.cursors.of_source("counted")
            offset = before["n"].offset if before else 0
            cursor = Cursor(device=1, inode=1, offset=offset + 1, head=name, tail="")
            await tables.cursors.save("counted", {"n": cursor})

    await asyncio.gather(*(count(f"{n}") for n in range(20)))
    assert (await store.reading.cursors.of_source("counted"))["n"].offset == 20


# ── a part of it ──────────────────────────────────────────────────────────────────────────────────


async def test_a_part_is_committed_with_the_whole(store: Database) -> None:
    """Until then nobody else sees it."""
    async with store.transaction() as tables:
        await tables.cursors.save("gateway", {"before": CURSOR})
        await write(store, "a")
        assert await written(store) == set()
        await write(store, "b")
        await tables.cursors.save("gateway", {"after": CURSOR})
    assert await written(store) == {"before", "a", "b", "after"}


async def test_a_part_that_raises_is_undone_by_itself(store: Database) -> None:
    async with store.transaction() as tables:
        await tables.cursors.save("gateway", {"before": CURSOR})
        with pytest.raises(ZeroDivisionError):
            await _fail_after_writing(store)
        await tables.cursors.save("gateway", {"after": CURSOR})
    assert await written(store) == {"before", "after"}


async def test_a_part_whose_statement_fails_is_undone_by_itself(store: Database) -> None:
    async def write_and_save_it_again() -> None:
        async with store.transaction() as part:
            await part.cursors.save("gateway", {"a": CURSOR})
            await part.sessions.save(a_session())

    async with store.transaction() as tables:
        await tables.sessions.save(a_session())
        with pytest.raises(sqlite3.IntegrityError):
            await write_and_save_it_again()
    assert await written(store) == set()
    assert len(await store.reading.sessions.newest(0, 9)) == 1


async def test_a_part_of_a_part_is_undone_with_it(store: Database) -> None:
    async def write_in_parts() -> None:
        async with store.transaction() as part:
            await part.cursors.save("gateway", {"outer": CURSOR})
            with pytest.raises(ZeroDivisionError):
                await _fail_after_writing(store)
            await write(store, "inner")
            raise ZeroDivisionError

    async with store.transaction() as tables:
        await tables.cursors.save("gateway", {"before": CURSOR})
        with pytest.raises(ZeroDivisionError):
            await write_in_parts()
        await write(store, "after")
    assert await written(store) == {"before", "after"}


async def test_with_the_whole_every_part_is_undone(store: Database) -> None:
    async def write_and_fail() -> None:
        async with store.transaction() as tables:
            await tables.cursors.save("gateway", {"before": CURSOR})
            await write(store, "a")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await write_and_fail()
    assert await written(store) == set()
    await write(store, "b")
    assert await written(store) == {"b"}


async def test_a_part_that_is_cut_short_undoes_the_whole(store: Database) -> None:
    async def cut_short_in_a_part() -> None:
        async with store.transaction() as tables:
            await tables.cursors.save("gateway", {"before": CURSOR})
            async with store.transaction() as part:
                await part.cursors.save("gateway", {"a": CURSOR})
                cut_short()
                await part.cursors.save("gateway", {"b": CURSOR})

    await _is_cancelled(cut_short_in_a_part)
    await write(store, "c")
    assert await written(store) == {"c"}


@pytest.mark.parametrize("first_step", ["begin", "end"])
async def test_a_part_that_is_cut_short_at_its_edge_undoes_the_whole(
    store: Database, first_step: str
) -> None:
    async def cut_short_at_the_edge() -> None:
        async with store.transaction() as tables:
            await tables.cursors.save("gateway", {"before": CURSOR})
            if first_step == "begin":
                cut_short()
            async with store.transaction():
                if first_step == "end":
                    cut_short()

    await _is_cancelled(cut_short_at_the_edge)
    await write(store, "c")
    assert await written(store) == {"c"}


async def test_what_another_task_writes_is_no_part_of_it(store: Database) -> None:
    """Also not when the task was begun inside: it waits for the whole to end, and is not undone with it."""
    others: list[asyncio.Task[None]] = []

    async def write_and_fail() -> None:
        async with store.transaction():
            async with store.transaction() as part:
                await part.cursors.save("gateway", {"a": CURSOR})
                others.append(asyncio.ensure_future(write(store, "other")))
                await _until_it_waits(others[0])
            await write(store, "b")
            assert not others[0].done()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await write_and_fail()
    await others[0]
    assert await written(store) == {"other"}


# ── who waits for a change ────────────────────────────────────────────────────────────────────────


async def test_a_commit_is_a_change(store: Database) -> None:
    """It is set once for each, so that whoever asked before looking misses none."""
    before = store.changed
    await write(store, "a")
    between = store.changed
    assert (before.is_set(), between.is_set()) == (True, False)
    await write(store, "b")
    assert between.is_set()
    assert not store.changed.is_set()


async def test_what_was_committed_can_be_read_once_it_is_a_change(store: Database) -> None:
    changed = store.changed
    writing = asyncio.ensure_future(write(store, "a"))
    await changed.wait()
    assert await written(store) == {"a"}
    await writing


async def test_what_was_undone_is_no_change(store: Database) -> None:
    changed = store.changed
    with pytest.raises(ZeroDivisionError):
        await _fail_after_writing(store)
    assert not changed.is_set()
    assert store.changed is changed


async def test_a_part_is_no_change_before_the_whole_has_ended(store: Database) -> None:
    changed = store.changed
    async with store.transaction():
        await write(store, "a")
        assert not changed.is_set()
    assert changed.is_set()


# ── what the schema refuses ───────────────────────────────────────────────────────────────────────


async def test_a_session_has_one_unclosed_incident(store: Database) -> None:
    async with store.transaction() as tables:
        session = await tables.sessions.save(a_session())
        first = await tables.incidents.add(an_incident(session))
    with pytest.raises(sqlite3.IntegrityError):
        async with store.transaction() as tables:
            await tables.incidents.add(an_incident(session))
    assert await store.reading.incidents.unclosed() == {session.id: first}


async def test_a_session_has_one_stop_that_is_only_intended(store: Database) -> None:
    async with store.transaction() as tables:
        session = await tables.sessions.save(a_session())
        stop = Stop.intended(session, None, ordered_by=None, now=1)
        await tables.stops.add(stop)
    with pytest.raises(sqlite3.IntegrityError):
        async with store.transaction() as tables:
            await tables.stops.add(stop)


async def test_an_incident_is_of_a_session_that_exists(store: Database) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        async with store.transaction() as tables:
            await tables.incidents.add(an_incident(a_session()))


async def test_nothing_is_written_outside_of_a_transaction(store: Database) -> None:
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        await store.reading.cursors.save("gateway", {"a": CURSOR})


# ── how they are driven ───────────────────────────────────────────────────────────────────────────


async def _fail_after_writing(store: Database) -> None:
    async with store.transaction() as tables:
        await tables.cursors.save("gateway", {"failed": CURSOR})
        raise ZeroDivisionError


async def _is_undone(store: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        await _fail_after_writing(store)


async def _until_it_waits(task: "asyncio.Task[None]") -> None:
    """Let a new task run up to its first pause, which is for its turn."""
    await asyncio.sleep(0)
    assert not task.done()


async def _is_cancelled(work: Callable[[], Coroutine[None, None, None]]) -> None:
    task = asyncio.ensure_future(work())
    with pytest.raises(asyncio.CancelledError):
        await task
