"""What befalls the file never keeps the jobs from working: they go on in memory, and what they did comes back."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from importlib import resources
from pathlib import Path

import aiosqlite
import pytest

from jobs.alert.outgoing import Mode, Outgoing
from jobs.alert.pace import Pace
from jobs.ports import ChatState, Stop, StopState
from jobs.store.database import Database, is_storage_failure, open_database
from jobs.store.opening import open_memory
from jobs.store.outbox import Sent, SqlOutbox
from jobs.store.schema import FILE_NAME
from jobs.store.spare import bring_back, copy_live_rows
from jobs.thrash.session import Session
from tests.fakes import HOME, NOON
from tests.store.rows import a_session, an_incident

BOT = 42

Trouble = Callable[[Database, Path], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def full(store: Database, _: Path) -> AsyncIterator[None]:
    """The file cannot grow any more."""
    writer = store._opened.writer
    await writer.execute("PRAGMA max_page_count = 1")
    yield


@asynccontextmanager
async def read_only(store: Database, _: Path) -> AsyncIterator[None]:
    """The file can only be read."""
    await store._opened.writer.execute("PRAGMA query_only = ON")
    yield


@asynccontextmanager
async def locked(store: Database, folder: Path) -> AsyncIterator[None]:
    """Another program holds the file, for longer than anybody waits."""
    await store._opened.writer.execute("PRAGMA busy_timeout = 10")
    other = sqlite3.connect(folder / FILE_NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.close()


TROUBLES = [full, read_only, locked]


async def _write_much(store: Database) -> None:
    async with store.transaction() as tables:
        for number in range(50):
            await tables.sessions.save(a_session(session=f"s-{number}", agent="a" * 4000))


async def _fail(store: Database) -> aiosqlite.Error:
    """Write until the file refuses; return how."""
    with pytest.raises(aiosqlite.OperationalError) as failure:
        await _write_much(store)
    return failure.value


async def _in_trouble(store: Database) -> None:
    assert await store.endure(await _fail(store))


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_a_file_that_fails_is_done_without(trouble: Trouble, store: Database, tmp_path: Path) -> None:
    """After a failure of the file the same write works, and what was going on is still known."""
    async with store.transaction() as tables:
        session = await tables.sessions.save(a_session(session="before"))
        incident = await tables.incidents.add(an_incident(session))
    async with trouble(store, tmp_path):
        await _in_trouble(store)
        assert store.trouble
        await _write_much(store)
        assert await store.reading.sessions.get(session.id) == session
        assert await store.reading.incidents.unclosed_of(session.id) == incident


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_what_was_done_in_memory_comes_back_to_the_file(
    trouble: Trouble, store: Database, tmp_path: Path
) -> None:
    """Once the file can be used again it has what happened before, meanwhile, and its later state."""
    async with store.transaction() as tables:
        session = await tables.sessions.save(a_session(session="before"))
        incident = await tables.incidents.add(an_incident(session))
    async with trouble(store, tmp_path):
        await _in_trouble(store)
        async with store.transaction() as tables:
            newer = await tables.sessions.save(a_session(session="meanwhile"))
            await tables.incidents.save(replace(incident, score=10, closed_at=NOON))
    assert await store.recover()
    assert store.trouble is None
    async with open_database(tmp_path) as again:
        assert await again.reading.sessions.get(newer.id) == newer
        assert await again.reading.incidents.get(incident.id) == replace(incident, score=10, closed_at=NOON)


async def test_no_id_is_given_twice(store: Database, tmp_path: Path) -> None:
    """A session that is first seen in memory gets an id that no session ever had."""
    old = a_session(session="old", seen_at=NOON - 10 * 86_400)
    async with store.transaction() as tables:
        await tables.sessions.save(a_session(session="new"))
        forgotten = await tables.sessions.save(old)
    async with read_only(store, tmp_path):
        await _in_trouble(store)
        async with store.transaction() as tables:
            assert await tables.sessions.get(forgotten.id) is None
            seen = await tables.sessions.save(a_session(session="seen meanwhile"))
    assert seen.id > forgotten.id
    assert await store.recover()
    assert await store.reading.sessions.get(forgotten.id) == replace(old, id=forgotten.id)


async def test_a_message_that_was_sent_meanwhile_is_not_sent_again(store: Database, tmp_path: Path) -> None:
    """The outbox comes back as it stands."""
    async with store.transaction() as tables:
        waiting = await tables.outbox.put(Outgoing(kind="screen", body=b"{}", mode=Mode.SEND), NOON)
    async with read_only(store, tmp_path):
        await _in_trouble(store)
        async with store.transaction() as tables:
            queued = await tables.outbox.due(NOON, HOME)
            assert queued is not None
            assert queued.id == waiting
            await tables.outbox.mark_sent(waiting, 77, NOON)
    assert await store.recover()
    assert await store.reading.outbox.due(NOON, HOME) is None
    assert await store.reading.outbox.sent(waiting) == Sent(message=77, at=NOON)


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_no_update_is_handed_out_twice_or_never(
    trouble: Trouble, store: Database, tmp_path: Path
) -> None:
    """Whenever it came and was handled, and though it is delivered again while the file fails and after."""
    everything = {number: f"{number}" for number in range(1, 6)}

    async def deliver(*updates: int) -> None:
        async with store.transaction() as tables:
            await tables.inbox.add(BOT, {number: everything[number] for number in updates}, NOON)

    async def handle() -> int:
        async with store.transaction() as tables:
            received = await tables.inbox.next(BOT)
            assert received is not None
            assert received.body == everything[received.update_id]
            await tables.inbox.mark_handled(received.id)
            return received.update_id

    await deliver(1, 2, 3)
    handled = [await handle()]
    async with store.transaction() as tables:
        not_understood = await tables.inbox.next(BOT)
        assert not_understood is not None
        await tables.inbox.set_aside(not_understood.id, "no")
    async with trouble(store, tmp_path):
        await _in_trouble(store)
        await deliver(1, 2, 3, 4, 5)
        handled += [await handle(), await handle()]
        assert await store.reading.inbox.count_set_aside(NOON) == 1
    assert await store.recover()
    await deliver(1, 2, 3, 4, 5)
    handled += [await handle()]
    assert handled == [1, 3, 4, 5]
    assert await store.reading.inbox.next(BOT) is None
    assert await store.reading.inbox.count_set_aside(NOON) == 1


async def test_what_is_known_of_chats_is_known_without_the_file_and_again_with_it(
    store: Database, tmp_path: Path
) -> None:
    """The pace is kept, a chat that has moved is found, and one that waits is left alone."""
    held = ChatState(id=-100, pace=Pace(sent=(NOON,)), held_at=NOON, free_at=NOON + 37)
    moved = ChatState(id=-200, moved_to=-300)
    async with store.transaction() as tables:
        for chat in (held, moved):
            await tables.chats.save(chat)
        await tables.outbox.put(Outgoing(kind="screen", body=b"{}", chat="-100"), NOON)
    async with read_only(store, tmp_path):
        await _in_trouble(store)
        assert await store.reading.chats.get(-100) == held
        assert await store.reading.chats.current("-200/17") == "-300"
        assert await store.reading.outbox.due(NOON + 36, HOME) is None
        later = replace(held, lost_at=NOON + 40, free_at=NOON + 41)
        async with store.transaction() as tables:
            await tables.chats.save(later)
    assert await store.recover()
    assert await store.reading.chats.get(-100) == later
    assert await store.reading.chats.get(-200) == moved


async def test_going_on_in_memory_is_a_change(store: Database, tmp_path: Path) -> None:
    """Whoever waits for one looks again."""
    async with read_only(store, tmp_path):
        failure = await _fail(store)
        changed = store.changed
        assert await store.endure(failure)
        assert changed.is_set()


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_a_part_that_the_file_fails_leaves_the_whole_to_be_done_again(
    trouble: Trouble, store: Database, tmp_path: Path
) -> None:
    async def write() -> None:
        async with store.transaction() as tables:
            await tables.sessions.save(a_session(session="whole"))
            await _write_much(store)

    async with trouble(store, tmp_path):
        with pytest.raises(aiosqlite.OperationalError) as failure:
            await write()
        assert await store.endure(failure.value)
        assert await store.reading.sessions.newest(0, 100) == []
        await write()
        assert len(await store.reading.sessions.newest(0, 100)) == 51


@pytest.mark.parametrize("parts", [1, 2])
async def test_what_survives_a_part_that_the_file_failed_is_not_committed_without_it(
    store: Database, tmp_path: Path, parts: int
) -> None:
    """When the disk is full SQLite undoes the whole: it fails, however the part's failure was dealt with inside."""

    async def write(parts: int) -> None:
        async with store.transaction() as tables:
            await tables.presence.note(NOON)
            with suppress(aiosqlite.Error):
                await (write(parts - 1) if parts > 1 else _write_much(store))
            await tables.presence.note(NOON + 1)

    async with full(store, tmp_path):
        with pytest.raises(aiosqlite.OperationalError, match="full") as failure:
            await write(parts)
        assert await store.reading.presence.last() is None
        assert await store.endure(failure.value)
        await write(parts)
        assert await store.reading.presence.last() == NOON + 1
        assert len(await store.reading.sessions.newest(0, 100)) == 50


async def test_a_file_that_still_fails_stays_out_of_use(store: Database, tmp_path: Path) -> None:
    """Trying too early changes nothing."""
    async with locked(store, tmp_path):
        await _in_trouble(store)
        (tmp_path / FILE_NAME).rename(tmp_path / "elsewhere")
        (tmp_path / FILE_NAME).mkdir()
        assert not await store.recover()
        assert store.trouble
        await _write_much(store)


async def test_jobs_that_fail_together_all_go_on(store: Database, tmp_path: Path) -> None:
    """Each is told to try again, also the one that comes when memory is in use already."""
    async with read_only(store, tmp_path):
        failures = [await _fail(store), await _fail(store)]
        assert await asyncio.gather(*map(store.endure, failures)) == [True, True]
        await _write_much(store)


async def test_an_error_of_the_caller_is_no_failure_of_the_file(store: Database) -> None:
    """A row that breaks a constraint, or any other error, is the caller's."""
    async with store.transaction() as tables:
        session = await tables.sessions.save(a_session())
    with pytest.raises(aiosqlite.IntegrityError) as failure:
        async with store.transaction() as tables:
            await tables.sessions.save(a_session())
    assert not await store.endure(failure.value)
    assert not await store.endure(ValueError("no database in it"))
    assert store.trouble is None
    assert await store.reading.sessions.get(session.id) == session


async def test_a_failure_inside_a_group_is_found(store: Database, tmp_path: Path) -> None:
    """Jobs raise groups."""
    async with read_only(store, tmp_path):
        failure = ExceptionGroup("a look", [ValueError("other"), await _fail(store)])
        assert is_storage_failure(failure)
        assert await store.endure(failure)
        assert store.trouble == "attempt to write a readonly database"


async def test_a_damaged_file_is_kept_and_a_new_one_begun(tmp_path: Path) -> None:
    """What is no database any more is put aside under a dated name."""
    path = tmp_path / FILE_NAME
    path.write_bytes(b"this is no database at all " * 100)
    async with open_database(tmp_path) as store:
        assert store.trouble is None
        assert store.set_aside
        assert store.set_aside.name.startswith(f"{FILE_NAME}.damaged-20")
        assert store.set_aside.read_bytes().startswith(b"this is no database")
        await _write_much(store)


async def test_a_file_with_a_damaged_page_is_found_out_at_the_start(tmp_path: Path) -> None:
    """The whole file is checked before it is used."""
    async with open_database(tmp_path) as store:
        await _write_much(store)
    path = tmp_path / FILE_NAME
    content = bytearray(path.read_bytes())
    content[8192 : 8192 + 30_000] = b"\x55" * 30_000
    path.write_bytes(bytes(content))
    async with open_database(tmp_path) as store:
        assert store.set_aside
        assert await store.reading.sessions.newest(0, 5) == []


async def test_a_file_damaged_while_in_use_is_replaced(tmp_path: Path) -> None:
    """The jobs go on in memory, and when the file is tried again a new one is begun."""
    async with open_database(tmp_path) as store:
        await _write_much(store)
    async with open_database(tmp_path) as store:
        (tmp_path / FILE_NAME).write_bytes(b"\x55" * 100_000)
        with pytest.raises(aiosqlite.DatabaseError) as failure:
            await store.reading.sessions.newest(0, 100)
        assert await store.endure(failure.value)
        async with store.transaction() as tables:
            saved = await tables.sessions.save(a_session(session="meanwhile"))
        assert await store.recover()
        assert store.set_aside
        assert await store.reading.sessions.get(saved.id) == saved


async def test_a_file_that_cannot_be_used_at_the_start_is_done_without(tmp_path: Path) -> None:
    """A restart on a broken disk guards all the same."""
    (tmp_path / FILE_NAME).mkdir()
    async with open_database(tmp_path) as store:
        assert store.trouble
        await _write_much(store)
        assert await store.reading.sessions.newest(0, 1)


async def test_a_file_that_is_locked_at_the_start_gives_what_is_going_on(tmp_path: Path) -> None:
    """It can be read all the same: an intended stop is known, and nothing is mixed up when the file is back."""
    async with open_database(tmp_path) as store, store.transaction() as tables:
        session = await tables.sessions.save(a_session(session="old"))
        incident = await tables.incidents.add(an_incident(session))
        intent = await tables.stops.add(Stop.intended(session, incident, ordered_by=None, now=NOON))
    other = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    async with open_database(tmp_path) as store:
        assert store.trouble == "database is locked"
        assert await store.reading.stops.in_state(StopState.INTENDED) == [intent]
        async with store.transaction() as tables:
            newer = await tables.sessions.save(a_session(session="new"))
        assert newer.id > session.id
        other.close()
        assert await store.recover()
        assert await store.reading.sessions.get(session.id) == session
        assert await store.reading.sessions.get(newer.id) == newer
        assert await store.reading.stops.in_state(StopState.INTENDED) == [intent]


async def test_a_file_that_could_not_be_read_is_not_mixed_up_with_what_came_after(tmp_path: Path) -> None:
    """What was begun without it has ids of its own; a session known to both is one again."""
    path = tmp_path / FILE_NAME
    async with open_database(tmp_path) as store, store.transaction() as tables:
        old = await tables.sessions.save(a_session(session="old"))
        both = await tables.sessions.save(a_session(session="both"))
        await tables.incidents.add(an_incident(both))
    path.rename(tmp_path / "kept")
    path.mkdir()
    async with open_database(tmp_path) as store:
        async with store.transaction() as tables:
            again = await tables.sessions.save(a_session(session="both", agent="seen again"))
            new = await tables.sessions.save(a_session(session="new"))
        path.rmdir()
        (tmp_path / "kept").rename(path)
        assert await store.recover()
        known = await store.reading.sessions.of_source("gateway", ["old", "both", "new"])
        assert known == {"old": old, "both": again, "new": new}
        assert await store.reading.incidents.unclosed() == {}


@pytest.fixture
async def small_disk(tmp_path: Path) -> AsyncIterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    if not await _runs("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)):
        pytest.skip("only root may mount a small disk")
    yield disk
    assert await _runs("umount", "--lazy", str(disk))


async def _runs(*argv: str) -> bool:
    try:
        process = await asyncio.create_subprocess_exec(*argv, stderr=asyncio.subprocess.DEVNULL)
    except OSError:
        return False
    return await process.wait() == 0


async def test_a_disk_that_is_really_full(small_disk: Path) -> None:
    """On a disk without a free byte the jobs go on, and once there is room the file has everything."""
    async with open_database(small_disk) as store:
        async with store.transaction() as tables:
            before = await tables.sessions.save(a_session(session="before"))
        _fill(small_disk / "ballast")
        await _in_trouble(store)
        await _write_much(store)
        assert not await store.recover()
        (small_disk / "ballast").unlink()
        async with store.transaction() as tables:
            await tables.sessions.save(replace(before, agent="renamed"))
        assert await store.recover()
    async with open_database(small_disk) as store:
        kept: Session | None = await store.reading.sessions.get(before.id)
        assert kept == replace(before, agent="renamed")


def _fill(ballast: Path) -> None:
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


async def test_a_lease_of_an_earlier_life_keeps_no_chat_waiting_once_the_file_is_back(tmp_path: Path) -> None:
    """Killed while sending, started without its file: when the file comes back nobody is sending that message."""
    async with open_database(tmp_path) as store, store.transaction() as tables:
        queued = await tables.outbox.put(Outgoing(kind="notice", body=b"{}"), NOON)
        await tables.outbox.lease(queued)
    memory = await open_memory()
    async with open_database(tmp_path) as store:
        await bring_back(memory.writer, store._opened.writer)
        due = await store.reading.outbox.due(NOON, HOME)
    await memory.close()
    assert due
    assert due.id == queued


async def test_what_waits_in_the_file_of_an_earlier_release_is_taken_along(tmp_path: Path) -> None:
    """Upgraded onto a full disk: the file cannot be brought up to date, and its columns are other ones."""
    first = resources.files("jobs.store").joinpath("migrations", "0001_first.sql").read_text()
    memory = await open_memory()
    async with aiosqlite.connect(tmp_path / "old.sqlite3") as old:
        await old.executescript(first)
        await old.execute(
            """INSERT INTO outbox (kind, body, mode, silent, created_at, state, not_before, attempts)
               VALUES ('notice', '{}', 'send', 0, 1, 'queued', 0, 0)"""
        )
        await copy_live_rows(old, memory.writer)
    due = await SqlOutbox(memory.reader).due(NOON, HOME)
    await memory.close()
    assert due
    assert due.body == "{}"
