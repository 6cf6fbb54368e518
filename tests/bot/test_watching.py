"""The watch list, edited while the bot runs."""

from pathlib import Path

import pytest

from bot.app import open_app
from bot.console import ConsoleSession
from jobs.thrash.price import Price
from jobs.watchlist.error import WatchlistError
from tests.bot.room import WATCHLIST, Room, open_room, settings_for
from tests.fakes import HandClock

WRONG = WATCHLIST.replace('match = "sleep 1000"', "match = 1000")
OTHER = '\n[[sources]]\nname = "other"\nformat = "gateway"\npath = "other.jsonl"\n'


def write(room: Room, watchlist: str) -> None:
    (room.folder / "loopwarden.toml").write_text(watchlist)


async def look(room: Room) -> list[str]:
    """Let the bot look at the file; return what it has to say."""
    return [shown.text for shown in await room.look_at_watchlist()]


async def test_a_source_that_comes_is_in_force_from_the_next_look_on_and_told(room: Room) -> None:
    write(room, WATCHLIST + OTHER)
    [told] = await look(room)
    assert "Source: other" in told
    assert "Source other" in (await room.ask("/status")).text


async def test_a_source_that_goes_is_watched_until_that_is_approved(room: Room) -> None:
    write(room, '[workflows.nightly]\noutput = "out.json"\n')
    assert any("No longer in the file: source gateway" in told for told in await look(room))
    [alert] = await room.thrash()
    assert "at 3 it is stopped" in alert.text


async def test_changed_prices_are_in_force_for_every_source_and_told(room: Room) -> None:
    for price in (1, 2):
        room.clock.go_on(3600)
        write(room, WATCHLIST + f'\n[prices]\n"gpt-*" = {{ input = {price}, output = 9 }}\n')
        assert await look(room) == ["📋 The changed prices are in force."]
        [watched] = room.app.handling.desk.watch.sources().values()
        assert watched.prices.models == {"gpt-*": Price(input=price, output=9)}


async def test_there_may_be_workflows_and_no_sources(tmp_path: Path) -> None:
    """Then there is nothing to scan, and nothing is wrong with that."""
    workflows = '[workflows.nightly]\noutput = "out.json"\n'
    async with open_room(tmp_path, watchlist=workflows) as room:
        assert await room.scan() == []
        assert (await room.ask("/status")).text
        await room.rewrite(f"{workflows}unchanged = true\n")
        assert room.app.handling.desk.watch.workflows()["nightly"].unchanged


async def test_a_list_that_is_left_alone_is_not_told(room: Room) -> None:
    assert await look(room) == []


async def test_a_list_that_was_only_saved_again_is_not_told(room: Room) -> None:
    write(room, WATCHLIST + "\n# a remark\n")
    assert await look(room) == []


async def test_a_session_that_two_entries_find_is_one(room: Room) -> None:
    """It has one incident and is stopped once, as the entry says that was approved first."""
    write(room, '\n[[sources]]\nname = "twin"\nformat = "auto"\npath = "*.jsonl"\n' + WATCHLIST)
    await look(room)
    [alert] = await room.thrash()
    assert "at 3 it is stopped" in alert.text
    assert (await room.ask("/agents")).text.count("8 calls") == 1
    assert (await room.ask("/incidents")).text.count("7 calls") == 1


async def test_a_wrong_list_is_told_once_and_what_was_approved_stays_in_force(room: Room) -> None:
    write(room, WRONG)
    [told] = await look(room)
    assert told.splitlines() == [
        "⚠️ The watch list cannot be used; what was pinned stays in force",
        "killers.stopper.match: expected str, got int",
    ]
    assert await look(room) == []
    [alert] = await room.thrash()
    assert "at 3 it is stopped" in alert.text


async def test_a_wrong_list_stands_in_the_log(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    """For who reads it there while Telegram is away."""
    write(room, WRONG)
    await look(room)
    [line] = [record for record in caplog.records if record.levelname == "WARNING"]
    assert "the watch list cannot be used" in line.getMessage()


async def test_a_wrong_list_shows_in_status_until_it_is_repaired(room: Room) -> None:
    write(room, WRONG)
    await room.scan()
    await look(room)
    status = await room.ask("/status")
    assert status.text.startswith("🟡")
    assert "what was pinned is in force: killers.stopper.match: expected str, got int" in status.text
    write(room, WATCHLIST)
    assert await look(room) == ["📋 The watch list can be used again."]
    assert (await room.ask("/status")).text.startswith("🟢")


async def test_a_list_that_disappears_is_told_and_stays_in_force(room: Room) -> None:
    (room.folder / "loopwarden.toml").unlink()
    [told] = await look(room)
    assert "no such file" in told
    assert await look(room) == []
    assert "Source gateway" in (await room.ask("/status")).text


async def test_at_start_a_wrong_list_is_an_error_where_nothing_is_pinned(tmp_path: Path) -> None:
    with pytest.raises(WatchlistError, match=r"killers\.stopper\.match: expected str, got int"):
        async with open_room(tmp_path, watchlist=WRONG):
            pass


async def test_at_start_a_missing_list_is_an_error_where_nothing_is_pinned(tmp_path: Path) -> None:
    clock = HandClock()
    with pytest.raises(WatchlistError, match="no such file"):
        async with open_app(settings_for(tmp_path), session=ConsoleSession(print, clock), clock=clock):
            pass


async def test_a_bot_whose_list_went_wrong_meanwhile_guards_all_the_same(tmp_path: Path) -> None:
    async with open_room(tmp_path) as room:
        pass
    async with open_room(tmp_path, watchlist=WRONG, before=room) as room:
        [told] = await look(room)
        assert "what was pinned stays in force" in told
        [alert] = await room.thrash()
        assert "at 3 it is stopped" in alert.text
