"""`loopwarden setup` shows the ids of whoever writes to the bot, against a Bot API server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from pydantic import HttpUrl, SecretStr

from bot import setup
from bot.settings import TelegramSettings
from bot.setup import SetupError, show_ids
from tests.botapi import GROUP, USER, BotApi


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    async with BotApi() as api:
        yield api


def settings_for(api: BotApi) -> TelegramSettings:
    return TelegramSettings.model_construct(token=SecretStr(api.token), telegram_api=HttpUrl(api.url))


@asynccontextmanager
async def showing(api: BotApi) -> AsyncIterator[None]:
    """Have ids shown until all that was said meanwhile has been looked at."""
    stop = asyncio.Event()
    shown = asyncio.ensure_future(show_ids(settings_for(api), stop))
    await api.until(lambda: api.calls("getUpdates"))
    yield
    await api.until(lambda: not api.pending)
    stop.set()
    await shown


async def test_who_writes_sees_their_ids_as_settings(api: BotApi, capsys: pytest.CaptureFixture[str]) -> None:
    async with showing(api):
        api.say("hello")
        api.say("/start", chat=GROUP)
        api.say("/start", chat=GROUP, thread=17)
        api.say("hello again")
    head, private, group, topic = capsys.readouterr().out.split("\n\n")
    assert "Write to @loopwarden_bot: in private, and with /start@loopwarden_bot in the group" in head
    assert private == f"User {USER} wrote in private:\n  LOOPWARDEN_ADMINS={USER}\n  LOOPWARDEN_CHAT={USER}"
    in_group = f"User {USER} wrote in Group {GROUP}:\n  LOOPWARDEN_ADMINS={USER}\n  LOOPWARDEN_CHAT={GROUP}"
    assert group == in_group
    assert topic == f"{in_group}/17\n"


async def test_what_no_person_wrote_is_passed_over(api: BotApi, capsys: pytest.CaptureFixture[str]) -> None:
    async with showing(api):
        api.say("as a channel", sender_chat={"id": GROUP, "type": "channel", "title": "News"})
        api.inject({})
        api.inject(
            {"message": {"message_id": 1, "date": 1, "chat": {"id": 5, "type": "private"}, "text": "x"}}
        )
    assert "LOOPWARDEN" not in capsys.readouterr().out


async def test_a_stranger_cannot_call_themselves_a_line_of_the_settings(
    api: BotApi, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("Eve\n  LOOPWARDEN_ADMINS=666", "\x1b[2JEve", "\u202eevE", "E" * 500, "\u200b")
    async with showing(api):
        for name in names:
            sender = {"id": USER, "is_bot": False, "first_name": name}
            group = {"id": GROUP, "type": "supergroup", "title": name}
            api.inject(
                {"message": {"message_id": 9, "date": 1, "chat": group, "from": sender, "text": "hello"}}
            )
    said = capsys.readouterr().out.splitlines()
    settings = [line for line in said if line.startswith("  ")]
    assert settings == [f"  LOOPWARDEN_ADMINS={USER}", f"  LOOPWARDEN_CHAT={GROUP}"] * len(names)
    assert all(line.isprintable() and len(line) < 150 for line in said)


async def test_a_server_on_its_bad_day_is_asked_again(
    api: BotApi, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "_RETRY_AFTER", 0)
    api.fault("getUpdates", error_code=502, description="Bad Gateway")
    async with showing(api):
        api.say("hello")
    said = capsys.readouterr().out
    assert "Telegram cannot be reached, trying again: Bad Gateway" in said
    assert f"LOOPWARDEN_ADMINS={USER}" in said


@pytest.mark.parametrize("method", ["getMe", "getUpdates"])
async def test_a_token_that_is_refused_ends_it(api: BotApi, method: str) -> None:
    api.fault(method, error_code=401, description="Unauthorized")
    with pytest.raises(SetupError, match="Telegram refuses the token"):
        await show_ids(settings_for(api), asyncio.Event())


async def test_another_program_that_polls_the_bot_ends_it(api: BotApi) -> None:
    api.fault("getUpdates", error_code=409, description="Conflict: terminated by other getUpdates request")
    with pytest.raises(SetupError, match="another program polls this bot"):
        await show_ids(settings_for(api), asyncio.Event())


async def test_a_server_that_cannot_be_reached_at_start_ends_it(api: BotApi) -> None:
    api.fault("getMe", error_code=502, description="Bad Gateway")
    with pytest.raises(SetupError, match="Telegram cannot be reached"):
        await show_ids(settings_for(api), asyncio.Event())
