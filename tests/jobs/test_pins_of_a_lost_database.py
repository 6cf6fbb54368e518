"""What was approved stays in force whatever becomes of the database, and what the file says then is not its equal."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from jobs.alert.notice import StorageNotice
from jobs.alert.pin_notice import AlteredNotice, FirstUseNotice, ProposalNotice
from jobs.pinning.kind import How, Kind
from jobs.pinning.pin import Entry, hash_of, pin_of
from jobs.storage_watch import StorageWatch
from jobs.store.blocking import open_blocking
from jobs.store.database import Database, open_database
from jobs.store.schema import FILE_NAME
from jobs.verification.spec import WorkflowSpec
from tests.jobs.pins import ADMIN, KILLER, LAX, SOURCE, WATCHLIST, PinWorld

HOUR = 3600
HARMLESS = SOURCE.replace('killer = "stopper"', 'on_detection = "observe"')
PLANTED = """
[killers.planted]
kind = "command"
argv = ["/bin/sh", "-c", "exit 0"]

[workflows.planted]
output = "out.json"
command = { argv = ["/bin/sh", "-c", "exit 0"] }
"""
LAX_PIN = pin_of(
    Entry(
        kind=Kind.WORKFLOW,
        name="nightly",
        spec=WorkflowSpec(name="nightly", output="/out.json", max_age=24 * HOUR),
    ),
    How.FIRST_VERIFY,
    1.0,
)


@pytest.fixture
def world(tmp_path: Path, store: Database) -> PinWorld:
    return PinWorld(folder=tmp_path, store=store)


def alter(world: PinWorld, sql: str, *values: object) -> None:
    with closing(sqlite3.connect(world.folder / FILE_NAME)) as database:
        database.execute(sql, values)
        database.commit()


@asynccontextmanager
async def hidden(folder: Path) -> AsyncIterator[PinWorld]:
    """A bot that was started while its database, in which there are pins, could not be read."""
    async with open_database(folder) as store:
        await PinWorld(folder=folder, store=store).first_used()
    (folder / FILE_NAME).rename(folder / "hidden")
    (folder / FILE_NAME).mkdir()
    async with open_database(folder) as store:
        yield PinWorld(folder=folder, store=store)


def show(folder: Path) -> None:
    (folder / FILE_NAME).rmdir()
    (folder / "hidden").rename(folder / FILE_NAME)


# ── under a guard that runs ───────────────────────────────────────────────────────────────────────


async def test_an_emptied_table_takes_nothing_out_of_force(world: PinWorld) -> None:
    """Not though `loopwarden verify` has pinned another version in it meanwhile; what was approved is written back."""
    await world.first_used()
    before = tuple(await world.store.reading.pins.all())
    alter(world, "DELETE FROM pin")
    with open_blocking(str(world.folder)) as command:
        command.write(command.tables.pins.add(LAX_PIN))
    await world.pinning.enforce()
    assert (world.max_age, world.names) == (0.5 * HOUR, ["gateway", "nightly"])
    assert await world.store.reading.pins.in_force() == before
    [told] = await world.look()
    assert told.notice == AlteredNotice(kind=Kind.SOURCE, name="gateway", others=2, is_put_back=True)
    assert await world.look() == []
    world = await world.restarted()
    assert world.max_age == 0.5 * HOUR


async def test_a_row_that_is_written_over_with_its_hash_is_written_back(world: PinWorld) -> None:
    await world.first_used()
    *_, pin = before = tuple(await world.store.reading.pins.all())
    lax = (pin.entry or "").replace("1800.0", "86400.0")
    alter(world, "UPDATE pin SET entry = ?, hash = ? WHERE id = ?", lax, hash_of(lax), pin.id)
    told = [message.notice for message in await world.after(SOURCE, KILLER, LAX)]
    assert told[0] == AlteredNotice(kind=Kind.WORKFLOW, name="nightly", is_put_back=True)
    assert isinstance(told[1], ProposalNotice)
    assert world.max_age == 0.5 * HOUR
    assert tuple(await world.store.reading.pins.all()) == before


@pytest.mark.parametrize("change", ["entry = NULL", "name = 'other'", "by = 1"], ids=["entry", "name", "by"])
async def test_a_row_of_which_but_one_column_is_written_over_is_written_back(
    world: PinWorld, change: str
) -> None:
    await world.first_used()
    *_, pin = before = tuple(await world.store.reading.pins.all())
    alter(world, f"UPDATE pin SET {change} WHERE id = ?", pin.id)  # noqa: S608 - one of those above
    told = [message.notice for message in await world.look()]
    assert told == [AlteredNotice(kind=Kind.WORKFLOW, name="nightly", is_put_back=True)]
    assert tuple(await world.store.reading.pins.all()) == before
    assert world.max_age == 0.5 * HOUR


async def test_a_database_that_is_removed_is_noticed_and_written_anew(world: PinWorld) -> None:
    """It goes on in memory first, as with any other failure of the file; nothing of it is approved a second time."""
    await world.first_used()
    storage = StorageWatch(store=world.store, clock=world.clock)
    before = tuple(await world.store.reading.pins.all())
    for path in world.folder.glob(f"{FILE_NAME}*"):
        path.unlink()
    with open_blocking(str(world.folder)) as command:
        command.write(command.tables.pins.add(LAX_PIN))
    await storage()
    assert [message.notice for message in await world.look()] == [
        StorageNotice(trouble="the file was removed, or another one is in its place", set_aside=None),
        StorageNotice(trouble=None, set_aside=None),
    ]
    assert await world.store.reading.pins.in_force() == before
    world = await world.restarted()
    assert (world.max_age, world.names) == (0.5 * HOUR, ["gateway", "nightly"])


# ── at start ──────────────────────────────────────────────────────────────────────────────────────


async def test_what_acts_is_not_pinned_while_what_was_approved_cannot_be_read(tmp_path: Path) -> None:
    """It is asked; what does no harm is pinned, and the message says that nobody has approved it."""
    async with hidden(tmp_path) as world:
        world.write(HARMLESS, LAX, PLANTED)
        await world.pinning.begin()
        assert world.names == ["gateway", "nightly"]
        told = [message.notice for message in await world.hear()]
        assert [notice.is_lost for notice in told if isinstance(notice, FirstUseNotice)] == [True]
        asked = [notice for notice in told if isinstance(notice, ProposalNotice)]
        assert [(notice.name, notice.is_new) for notice in asked] == [("planted", True)] * 2


async def test_a_wrong_list_is_no_error_while_what_was_approved_cannot_be_read(tmp_path: Path) -> None:
    async with hidden(tmp_path) as world:
        world.write("[")
        await world.pinning.begin()
        assert world.names == []
        await world.after(WATCHLIST)
        assert world.names == ["nightly"]


async def test_a_database_that_was_put_aside_makes_no_look_the_first(tmp_path: Path) -> None:
    async with open_database(tmp_path) as store:
        await PinWorld(folder=tmp_path, store=store).first_used()
    (tmp_path / FILE_NAME).write_bytes(b"damaged" * 1000)
    async with open_database(tmp_path) as store:
        world = PinWorld(folder=tmp_path, store=store)
        world.write(WATCHLIST, PLANTED)
        await world.pinning.begin()
        assert world.names == ["nightly"]


async def test_a_disk_that_is_full_from_the_first_start_on_hides_nothing(tmp_path: Path) -> None:
    """There was no database before: the first look is the first."""
    (tmp_path / FILE_NAME).symlink_to(tmp_path / "no-folder" / FILE_NAME)
    async with open_database(tmp_path) as store:
        assert store.trouble
        world = PinWorld(folder=tmp_path, store=store)
        await world.first_used()
        assert world.names == ["gateway", "nightly"]


async def test_what_is_rejected_once_the_database_is_back_is_not_in_force(tmp_path: Path) -> None:
    """By what was approved there: what was pinned in memory was so for want of it."""
    async with hidden(tmp_path) as world:
        world.write(HARMLESS, KILLER, LAX, PLANTED, LAX.replace("nightly", "another"))
        await world.pinning.begin()
        await world.hear()
        show(tmp_path)
        assert await world.store.recover()
        for message in await world.look():
            if isinstance(message.notice, ProposalNotice):
                await world.pinning.reject(message.notice.proposal, ADMIN)
        await world.look()
        assert world.max_age == 0.5 * HOUR
        assert world.watch.sources()["gateway"].killer is not None
        assert world.names == ["gateway", "nightly", "another"]


async def test_what_is_approved_once_the_database_is_back_is_in_force(tmp_path: Path) -> None:
    async with hidden(tmp_path) as world:
        world.write(SOURCE, KILLER, LAX)
        await world.pinning.begin()
        show(tmp_path)
        assert await world.store.recover()
        await world.look()
        assert world.max_age == 0.5 * HOUR
        await world.approve("nightly")
        assert world.max_age == 24 * HOUR
        assert (await world.restarted()).max_age == 24 * HOUR
