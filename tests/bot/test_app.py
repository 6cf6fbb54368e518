"""The bot as it runs: its beats, its polls, what keeps it from running and what does not."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiogram.exceptions import (
    ClientDecodeError,
    TelegramBadRequest,
    TelegramForbiddenError,
    TelegramMigrateToChat,
    TelegramNetworkError,
    TelegramNotFound,
    TelegramRetryAfter,
    TelegramUnauthorizedError,
)
from aiogram.methods import GetMe, SetMyCommands
from pydantic import HttpUrl, SecretStr

from bot.app import open_app
from bot.commands import COMMANDS
from bot.console import PERSON
from bot.pulse import FOLDER
from bot.session import session_for
from bot.settings import Chat, TelegramSettings
from jobs.opening import opened_to_read
from jobs.store.schema import FILE_NAME, StoreError
from tests.bot.room import COLLEAGUE, GROUP, Intercepted, Room, open_room, settings_for

LONG = 60
"""Seconds of patience with a machine that has other things to do."""


@asynccontextmanager
async def running(room: Room) -> AsyncIterator[None]:
    """The bot at its beats, and stopped as by SIGTERM."""
    room.forget_introduction()
    stop = asyncio.Event()
    ended = asyncio.ensure_future(room.app.run(stop))
    try:
        yield
    finally:
        stop.set()
        async with asyncio.timeout(LONG):
            await ended


async def answered(room: Room, text: str) -> str:
    """Type, and wait for the next message."""
    before = max(room.console.messages, default=0)
    room.console.type(text)
    return (await room.console.wait_for(lambda shown: shown.id > before, seconds=LONG)).text


# ── it guards and talks ───────────────────────────────────────────────────────────────────────────


async def test_it_scans_as_soon_as_it_runs_and_answers_commands(room: Room) -> None:
    room.call(times=8)
    async with running(room):
        alert = await room.console.wait_for(
            lambda shown: "going round in circles" in shown.text, seconds=LONG
        )
        room.console.press(alert, "Details")
        await room.console.wait_for(lambda shown: "last calls of" in shown.text, seconds=LONG)
        assert "1 file" in await answered(room, "/status")


async def test_its_database_is_never_opened_as_a_log(room: Room) -> None:
    """To close it would give up the locks on it."""
    with pytest.raises(PermissionError):
        opened_to_read(str(room.folder / "data" / FILE_NAME))


async def test_whatever_it_does_gives_signs_of_life(room: Room) -> None:
    """So health turns red when scanning, fetching, handling or sending has stopped."""
    signs = room.folder / "data" / FOLDER
    assert {file.name for file in signs.iterdir()} == {"scan", "poll", "handling", "delivery"}
    for file in signs.iterdir():
        os.utime(file, (0, 0))
    room.call(times=8)
    async with running(room):
        await room.console.wait_for(lambda shown: "going round in circles" in shown.text, seconds=LONG)
        for _ in range(2):
            await answered(room, "/start")
    assert all(file.stat().st_mtime for file in signs.iterdir())


async def test_its_menu_is_set_in_every_chat_that_it_obeys(tmp_path: Path) -> None:
    async with open_room(tmp_path, chat=Chat(id=GROUP)) as room:
        unknown = TelegramBadRequest(method=SetMyCommands(commands=[]), message="Bad Request: chat not found")
        menus = Intercepted(room, SetMyCommands, unknown)
        async with running(room):
            await answered(room, "/start")
    assert {call.scope.chat_id for call in menus.calls} == {PERSON.id, COLLEAGUE.id, GROUP}
    assert [command.command for command in menus.calls[-1].commands] == [command.name for command in COMMANDS]


# ── a chat that cannot be reached ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TelegramUnauthorizedError(method=GetMe(), message="Unauthorized"), "LOOPWARDEN_TOKEN"),
        (TelegramNetworkError(method=GetMe(), message="no route to host"), "no route to host"),
        (ClientDecodeError("Failed to decode object", ValueError(), "<html>"), "Scans and stops go on"),
        (RuntimeError("a bug"), "scans and stops go on"),
    ],
    ids=["refused", "unreachable", "not Telegram", "bug"],
)
async def test_it_is_tried_again_and_said_in_the_log(
    room: Room, caplog: pytest.LogCaptureFixture, error: Exception, said: str
) -> None:
    room.forget_introduction()
    tries = Intercepted(room, GetMe, error, times=2)
    room.console.type("/start")
    waits = [await room.app.polling._attempt() for _ in range(3)]
    assert [wait > 0 for wait in waits] == [True, True, False]
    [answer] = await room.answers()
    assert "Loopwarden" in answer.text
    assert len(tries.calls) == 3
    assert said in caplog.text


@pytest.mark.parametrize(
    "error",
    [
        TelegramBadRequest(method=SetMyCommands(commands=[]), message="Bad Request: chat not found"),
        TelegramForbiddenError(method=SetMyCommands(commands=[]), message="Forbidden: bot was blocked"),
        TelegramMigrateToChat(method=SetMyCommands(commands=[]), message="upgraded", migrate_to_chat_id=-1),
        TelegramRetryAfter(method=SetMyCommands(commands=[]), message="Too Many Requests", retry_after=3600),
        TelegramNotFound(method=SetMyCommands(commands=[]), message="Not Found"),
        TelegramNetworkError(method=SetMyCommands(commands=[]), message="no route to host"),
        ClientDecodeError("Failed to decode object", ValueError(), "<html>"),
    ],
    ids=["unknown", "blocked", "moved", "flood", "not found", "unreachable", "not Telegram"],
)
async def test_a_chat_that_takes_no_menu_does_not_keep_it_from_polling(
    tmp_path: Path, error: Exception
) -> None:
    """Else one admin who has blocked the bot would make it deaf to all, and a menu that comes too often, too."""
    async with open_room(tmp_path, chat=Chat(id=GROUP)) as room:
        room.forget_introduction()
        menus = Intercepted(room, SetMyCommands, error, times=99)
        room.console.type("/start")
        assert await room.app.polling._attempt() == 0
    assert len(menus.calls) == 3


async def test_a_bot_that_waits_to_try_again_ends_at_once(room: Room) -> None:
    tries = Intercepted(room, GetMe, TelegramNetworkError(method=GetMe(), message="no route"), times=99)
    async with running(room):
        await tries.begun.wait()
    assert len(tries.calls) == 1


# ── coming back ───────────────────────────────────────────────────────────────────────────────────


async def test_after_having_been_away_it_says_for_how_long_and_what_was_going_on(tmp_path: Path) -> None:
    async with open_room(tmp_path) as room:
        await room.thrash()
    room.clock.go_on(3600)
    async with open_room(tmp_path, before=room) as again, running(again):
        back = await again.console.wait_for(lambda shown: "Back after" in shown.text, seconds=LONG)
    assert back.text.splitlines()[:3] == [
        "👋 Back after 1 h",
        "Nobody watched since 12:01:00. Incidents open then: 1",
        "🔁 #1 12:01:00 worker-3 is going round in circles: read_file, 7 calls",
    ]


async def test_what_was_not_sent_before_a_restart_is_sent_after_it(tmp_path: Path) -> None:
    async with open_room(tmp_path) as room:
        room.call(times=8)
        await room.run("thrash_scan")
    async with open_room(tmp_path, before=room) as again, running(again):
        await again.console.wait_for(lambda shown: "going round in circles" in shown.text, seconds=LONG)


# ── what keeps it from running ────────────────────────────────────────────────────────────────────


async def test_two_bots_never_share_a_data_directory(room: Room, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="another Loopwarden is running with the data directory"):
        async with open_app(settings_for(tmp_path), session=room.console):
            pass


async def test_a_data_directory_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with pytest.raises(StoreError, match="cannot be used"):
        async with open_room(tmp_path):
            pass


async def test_the_machines_clock_is_used_unless_another_is_given(tmp_path: Path) -> None:
    async with open_room(tmp_path) as room:
        pass
    async with open_app(settings_for(tmp_path), session=room.console) as app:
        assert app.delivery.clock.now() < room.clock.now()


@pytest.mark.parametrize("base", ["http://127.0.0.1:8081", "http://127.0.0.1:8081/"])
def test_requests_go_to_the_configured_server(base: str) -> None:
    settings = TelegramSettings.model_construct(token=SecretStr("1:x"), telegram_api=HttpUrl(base))
    assert session_for(settings).api.api_url("1:x", "getMe") == "http://127.0.0.1:8081/bot1:x/getMe"
