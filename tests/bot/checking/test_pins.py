"""What is in force and what the file says are compared, and nothing is changed by it."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from bot.checking.finding import Finding, Level
from bot.checking.pins import check_pins, in_order_of_approval
from bot.watching import WatchlistFile
from jobs.pinning.kind import How, Kind
from jobs.pinning.pin import pin_of
from jobs.store.database import open_database
from jobs.store.schema import FILE_NAME
from jobs.thrash.policy import OnDetection
from jobs.watchlist.sources import SourceSpec
from tests.bot.checking.conftest import SetUp
from tests.bot.room import NOON, WATCHLIST, Room, open_room

NIGHTLY = '\n[workflows.nightly]\noutput = "report.json"\nrequired = ["status"]\nmax_age = "30m"\n'
LOOSER = NIGHTLY.replace("30m", "1d")
CHECKED = '\n[workflows.checked]\noutput = "checked.json"\ncommand = { argv = ["true"] }\n'
HARMLESS = '\n[workflows.weekly]\noutput = "weekly.json"\n'


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    """A bot that runs."""
    async with open_room(tmp_path, watchlist=WATCHLIST + NIGHTLY) as room:
        yield room


def write(folder: Path, workflows: str) -> None:
    (folder / "loopwarden.toml").write_text(WATCHLIST + workflows)


def look(folder: Path) -> list[Finding]:
    watch = WatchlistFile(folder / "loopwarden.toml", OnDetection.STOP)
    return list(check_pins(folder / "data", watch, OnDetection.STOP, NOON))


def said(folder: Path) -> list[tuple[Level, str, str]]:
    return [(found.level, found.subject, found.says) for found in look(folder)]


IN_FORCE = [(Level.OK, "pins", "what is in force is what the watch list says")]
CHANGED = "the file differs from what is in force; it waits for approval; max_age: 30 min → 1 d (looser)"


async def test_what_was_approved_is_fine_while_a_bot_runs_and_when_none_does(tmp_path: Path) -> None:
    async with open_room(tmp_path, watchlist=WATCHLIST + NIGHTLY):
        assert said(tmp_path) == IN_FORCE
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "data").iterdir()}
    assert said(tmp_path) == IN_FORCE
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "data").iterdir()} == before


async def test_before_the_first_start_everything_is_still_to_be_pinned(tmp_path: Path) -> None:
    write(tmp_path, NIGHTLY)
    assert said(tmp_path) == []
    async with open_database(tmp_path / "data"):
        pass
    assert said(tmp_path) == [(Level.OK, "pins", "what the watch list says is pinned at the next start")]


async def test_what_loopwarden_verify_has_pinned_otherwise_is_asked_at_the_first_start(
    tmp_path: Path,
) -> None:
    write(tmp_path, NIGHTLY)
    watch = WatchlistFile(tmp_path / "loopwarden.toml", OnDetection.STOP)
    pins = [pin_of(entry, How.FIRST_VERIFY, NOON) for entry in watch.written() or ()]
    async with open_database(tmp_path / "data") as store, store.transaction() as tables:
        await tables.pins.add(next(pin for pin in pins if pin.kind is Kind.WORKFLOW))
    assert said(tmp_path) == [(Level.OK, "pins", "what the watch list says is pinned at the next start")]
    write(tmp_path, LOOSER)
    assert said(tmp_path) == [
        (Level.WARNING, "pin of workflow nightly", CHANGED),
        (Level.OK, "pins", "what else the watch list says is pinned at the next start"),
    ]


async def test_a_change_is_a_warning_whether_the_bot_has_seen_it_or_not(room: Room) -> None:
    write(room.folder, LOOSER)
    [unseen] = look(room.folder)
    assert (unseen.level, unseen.subject, unseen.says) == (Level.WARNING, "pin of workflow nightly", CHANGED)
    assert unseen.mend == "press Approve or Reject under its message; /audit shows it"
    await room.look_at_watchlist()
    assert look(room.folder) == [unseen]
    await room.press(room.shown[-1], "Reject")
    [rejected] = look(room.folder)
    assert rejected.says == CHANGED.replace("it waits for approval", "it was rejected")
    assert rejected.mend == "make the file say again what is in force, or something else that is asked"
    write(room.folder, NIGHTLY)
    assert said(room.folder) == IN_FORCE


async def test_what_is_new_or_gone_is_named(room: Room) -> None:
    write(room.folder, CHECKED)
    assert said(room.folder) == [
        (
            Level.WARNING,
            "pin of workflow checked",
            "new in the file, not in force; it waits for approval",
        ),
        (
            Level.WARNING,
            "pin of workflow nightly",
            "no longer in the file, still in force; its removal waits for approval",
        ),
    ]


async def test_a_killer_that_waits_is_worth_none(room: Room) -> None:
    (room.folder / "loopwarden.toml").write_text((WATCHLIST + NIGHTLY).replace("stopper", "other"))
    [source] = [found.says for found in look(room.folder) if found.subject == "pin of source gateway"]
    assert source.endswith("killer: stopper → other (looser)")


async def test_what_is_pinned_without_being_asked_is_no_warning(room: Room) -> None:
    write(room.folder, NIGHTLY + HARMLESS)
    assert said(room.folder) == IN_FORCE


async def test_of_many_changes_the_first_are_named(room: Room) -> None:
    write(room.folder, LOOSER.replace('"status"', '"a", "b", "c"'))
    [found] = look(room.folder)
    assert found.says.endswith(
        "; max_age: 30 min → 1 d (looser); required: nothing → a (stricter); and 2 more"
    )


async def test_a_pin_that_was_altered_is_a_warning(room: Room) -> None:
    with closing(sqlite3.connect(room.folder / "data" / FILE_NAME)) as database:
        database.execute("UPDATE pin SET entry = replace(entry, '1800', '9999') WHERE name = 'nightly'")
        database.commit()
    found = look(room.folder)
    assert found[0].says == "was altered in the database; it is not used"
    assert found[0].subject == "pin of workflow nightly"


@pytest.mark.parametrize("ruin", ["PRAGMA user_version = 5", "DROP TABLE pin"])
async def test_a_database_that_cannot_be_asked_is_passed_over(tmp_path: Path, ruin: str) -> None:
    async with open_room(tmp_path, watchlist=WATCHLIST + NIGHTLY):
        pass
    with closing(sqlite3.connect(tmp_path / "data" / FILE_NAME)) as database:
        database.execute(ruin)
    for name in (f"{FILE_NAME}-wal", f"{FILE_NAME}-shm"):
        (tmp_path / "data" / name).unlink(missing_ok=True)
    assert said(tmp_path) == []


async def test_a_database_that_was_not_closed_in_order_is_left_alone(tmp_path: Path) -> None:
    async with open_room(tmp_path, watchlist=WATCHLIST + NIGHTLY):
        pass
    (tmp_path / "data" / f"{FILE_NAME}-wal").write_bytes(b"left behind")
    assert said(tmp_path) == []


async def test_a_watch_list_that_is_wrong_is_another_point(room: Room) -> None:
    write(room.folder, "[workflows.nightly]\noutputs = 1")
    assert said(room.folder) == []


@pytest.mark.asyncio(loop_scope="module")
async def test_the_check_names_what_waits_for_approval(right: SetUp) -> None:
    checked = await right.check()
    assert not [line for line in checked.lines if "pin" in line.split(":")[0]]
    async with open_database(right.data):
        pass
    assert (await right.check()).about("pins").endswith("is pinned at the next start")


async def test_new_sources_come_last_wherever_they_stand_in_the_file(tmp_path: Path) -> None:
    """As in what is in force: none takes a file from another by standing before it."""
    old, new = (SourceSpec(name=name, path="/w/calls.jsonl") for name in ("gateway", "thief"))
    assert in_order_of_approval(tmp_path / "data", [new, old]) == [new, old]
    async with open_room(tmp_path, watchlist=WATCHLIST):
        assert in_order_of_approval(tmp_path / "data", [new, old]) == [old, new]
