"""The watch list, edited while the bot runs."""

from pathlib import Path

import pytest

from bot.watching import WatchlistFile
from jobs.thrash.policy import OnDetection
from jobs.thrash.price import Price
from jobs.watchlist.error import WatchlistError
from tests.bot.room import WATCHLIST, Room, open_room

WRONG = WATCHLIST.replace('match = "sleep 1000"', "match = 1000")


def write(room: Room, watchlist: str) -> None:
    (room.folder / "loopwarden.toml").write_text(watchlist)


async def test_a_change_is_in_force_from_the_next_scan_on_and_told(room: Room) -> None:
    write(room, WATCHLIST + '\n[[sources]]\nname = "other"\nformat = "gateway"\npath = "other.jsonl"\n')
    [told] = await room.scan()
    assert told.text == "📋 The changed watch list is in force."
    assert "Source other" in (await room.ask("/status")).text


async def test_a_changed_price_is_a_change(room: Room) -> None:
    """It is in force for every source, and told."""
    for price in (1, 2):
        write(room, WATCHLIST + f'\n[prices]\n"gpt-*" = {{ input = {price}, output = 9 }}\n')
        [told] = await room.scan()
        assert told.text == "📋 The changed watch list is in force."
        [watched] = WatchlistFile(room.folder / "loopwarden.toml", OnDetection.STOP).sources().values()
        assert watched.prices.models == {"gpt-*": Price(input=price, output=9)}


async def test_there_may_be_workflows_and_no_sources(tmp_path: Path) -> None:
    """Then there is nothing to scan, and nothing is wrong with that. A changed workflow is a change."""
    workflows = '[workflows.nightly]\noutput = "out.json"\n'
    async with open_room(tmp_path, watchlist=workflows) as room:
        assert await room.scan() == []
        assert (await room.ask("/status")).text
        write(room, f"{workflows}unchanged = true\n")
        [told] = await room.scan()
        assert told.text == "📋 The changed watch list is in force."
        assert room.app.handling.desk.watch.workflows()["nightly"].unchanged


async def test_a_list_that_is_left_alone_is_not_told(room: Room) -> None:
    assert await room.scan() == []


async def test_a_list_that_was_only_saved_again_is_not_told(room: Room) -> None:
    write(room, WATCHLIST + "\n# a remark\n")
    assert await room.scan() == []


async def test_a_session_that_two_entries_find_is_one(room: Room) -> None:
    """It has one incident and is stopped once, as the first entry says."""
    write(room, WATCHLIST + '\n[[sources]]\nname = "twin"\nformat = "auto"\npath = "*.jsonl"\n')
    await room.scan()
    [alert] = await room.thrash()
    assert "at 3 it is stopped" in alert.text
    assert (await room.ask("/agents")).text.count("8 calls") == 1
    assert (await room.ask("/incidents")).text.count("7 calls") == 1


async def test_a_wrong_list_is_told_once_and_the_last_good_one_stays_in_force(room: Room) -> None:
    write(room, WRONG)
    [told] = await room.scan()
    assert told.text.splitlines() == [
        "⚠️ The watch list is wrong; the last good one stays in force",
        "killers.stopper.match: expected str, got int",
    ]
    assert await room.scan() == []
    [alert] = await room.thrash()
    assert "at 3 it is stopped" in alert.text


async def test_a_wrong_list_stands_in_the_log(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    """For who reads it there while Telegram is away."""
    write(room, WRONG)
    await room.scan()
    [line] = [record for record in caplog.records if record.levelname == "WARNING"]
    assert "the watch list is wrong" in line.getMessage()


async def test_a_wrong_list_shows_in_status_until_it_is_repaired(room: Room) -> None:
    write(room, WRONG)
    await room.scan()
    status = await room.ask("/status")
    assert status.text.startswith("🟡")
    assert "last good one in force: killers.stopper.match: expected str, got int" in status.text
    write(room, WATCHLIST)
    [told] = await room.scan()
    assert told.text == "📋 The changed watch list is in force."
    assert (await room.ask("/status")).text.startswith("🟢")


async def test_a_list_that_disappears_is_told_and_stays_in_force(room: Room) -> None:
    (room.folder / "loopwarden.toml").unlink()
    [told] = await room.scan()
    assert "no such file" in told.text
    assert await room.scan() == []
    assert "Source gateway" in (await room.ask("/status")).text


async def test_at_start_a_wrong_list_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WatchlistError, match=r"killers\.stopper\.match: expected str, got int"):
        async with open_room(tmp_path, watchlist=WRONG):
            pass


def test_at_start_a_missing_list_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WatchlistError, match="no such file"):
        WatchlistFile(tmp_path / "loopwarden.toml", OnDetection.STOP)
