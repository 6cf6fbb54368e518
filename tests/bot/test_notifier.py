"""Rows of the outbox become messages of a Bot API server; what it refuses becomes temporary or permanent."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
import pytest_asyncio
from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.types import InlineKeyboardButton
from aiogram.utils.formatting import Bold, Text
from aiohttp import web

from bot.notifier import TelegramNotifier
from bot.settings import Chat
from bot.views.screen import Screen, lines, screen
from jobs.alert.notice import JobFailedNotice
from jobs.alert.outgoing import Mode
from jobs.ports import NotifyError, Queued
from tests.botapi import GROUP, USER, BotApi
from tests.fakes import HandClock

# One loop and one client session for the file: aiogram takes a quarter of a second to close a session.
pytestmark = pytest.mark.asyncio(loop_scope="module")

BUTTON = InlineKeyboardButton(text="Details", callback_data="i:more:1")
SCREEN = screen(lines(Text("Agent ", Bold("🙂 main")), "is here"), [BUTTON])
OTHER = screen(Text("Something else"))


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def session() -> AsyncIterator[AiohttpSession]:
    async with AiohttpSession(timeout=10) as session:
        yield session


@pytest_asyncio.fixture(loop_scope="module")
async def api(session: AiohttpSession) -> AsyncIterator[BotApi]:
    async with BotApi() as api:
        session.api = TelegramAPIServer.from_base(api.url)
        yield api


@pytest.fixture
def notifier(api: BotApi, session: AiohttpSession) -> TelegramNotifier:
    bot = Bot(api.token, session=session)
    return TelegramNotifier(bot=bot, home=Chat(id=GROUP), clock=HandClock(), zone=ZoneInfo("UTC"))


def queued(shown: Screen = SCREEN, **fields: Any) -> Queued:
    row: dict[str, Any] = {
        "id": 1,
        "kind": "screen",
        "body": shown.body.decode(),
        "mode": Mode.SEND,
        "subject": None,
        "target_message": None,
        "chat": None,
        "silent": 0,
        "attempts": 0,
        "created_at": 0.0,
    }
    return Queued(**{**row, **fields})


async def refusal(notifier: TelegramNotifier, row: Queued) -> NotifyError:
    with pytest.raises(NotifyError) as caught:
        await notifier.send(row)
    return caught.value


# ── what works ────────────────────────────────────────────────────────────────────────────────────


async def test_a_message_arrives_with_its_entities_and_buttons(
    api: BotApi, notifier: TelegramNotifier
) -> None:
    number = await notifier.send(queued())
    [message] = api.messages
    assert (message.id, message.chat, message.text) == (number, GROUP, "Agent 🙂 main\nis here")
    assert message.entities == [{"type": "bold", "offset": 6, "length": 7}]
    assert [button["text"] for row in message.buttons for button in row] == ["Details"]
    assert (message.silent, message.reply_to, message.thread) == (False, None, None)


async def test_no_preview_of_a_link_is_shown(api: BotApi, notifier: TelegramNotifier) -> None:
    number = await notifier.send(queued())
    await notifier.send(queued(OTHER, mode=Mode.EDIT, target_message=number))
    for method in ("sendMessage", "editMessageText"):
        assert api.calls(method)[-1].params["link_preview_options"] == {"is_disabled": True}


async def test_a_notice_is_put_into_words_when_it_is_sent(api: BotApi, notifier: TelegramNotifier) -> None:
    notice = JobFailedNotice(job="thrash_scan", error="OSError: no space")
    await notifier.send(queued(kind="notice", body=msgspec.json.encode(notice).decode()))
    assert "The job thrash_scan fails" in api.messages[0].text


async def test_a_silent_message_rings_no_bell(api: BotApi, notifier: TelegramNotifier) -> None:
    await notifier.send(queued(silent=1))
    assert api.messages[0].silent


@pytest.mark.parametrize(
    ("chat", "arrives_in"),
    [(None, (GROUP, None)), (str(USER), (USER, None)), (f"{GROUP}/17", (GROUP, 17))],
)
async def test_a_message_goes_to_its_chat_and_topic(
    api: BotApi, notifier: TelegramNotifier, chat: str | None, arrives_in: tuple[int, int | None]
) -> None:
    await notifier.send(queued(chat=chat))
    assert (api.messages[0].chat, api.messages[0].thread) == arrives_in


async def test_the_configured_chat_may_be_a_topic(api: BotApi, notifier: TelegramNotifier) -> None:
    await replace(notifier, home=Chat(id=GROUP, topic=9)).send(queued())
    assert api.messages[0].thread == 9


async def test_a_reply_answers_its_message(api: BotApi, notifier: TelegramNotifier) -> None:
    number = await notifier.send(queued())
    await notifier.send(queued(OTHER, mode=Mode.REPLY, target_message=number))
    assert api.messages[1].reply_to == number


async def test_a_reply_to_a_message_that_is_gone_is_sent_all_the_same(
    api: BotApi, notifier: TelegramNotifier
) -> None:
    await notifier.send(queued(mode=Mode.REPLY, target_message=999))
    assert api.messages[0].reply_to is None


async def test_an_edit_takes_the_place_of_its_message(api: BotApi, notifier: TelegramNotifier) -> None:
    number = await notifier.send(queued())
    assert await notifier.send(queued(OTHER, mode=Mode.EDIT, target_message=number)) == number
    [message] = api.messages
    assert (message.text, message.buttons, message.edits) == ("Something else", [], 1)


async def test_an_edit_that_changes_nothing_has_worked(api: BotApi, notifier: TelegramNotifier) -> None:
    number = await notifier.send(queued())
    assert await notifier.send(queued(mode=Mode.EDIT, target_message=number)) == number
    assert api.messages[0].edits == 0


@pytest.mark.parametrize(
    "why", ["message to edit not found", "message can't be edited", "MESSAGE_ID_INVALID"]
)
async def test_an_edit_of_a_message_that_is_gone_is_sent_anew(
    api: BotApi, notifier: TelegramNotifier, why: str
) -> None:
    api.fault("editMessageText", error_code=400, description=f"Bad Request: {why}")
    number = await notifier.send(queued(mode=Mode.EDIT, target_message=999))
    [message] = api.messages
    assert message.id == number
    assert message.reply_to is None


async def test_an_edit_without_a_message_is_sent_anew(api: BotApi, notifier: TelegramNotifier) -> None:
    assert await notifier.send(queued(mode=Mode.EDIT)) == api.messages[0].id


# ── what does not ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ((400, "Bad Request: chat not found", None), (True, None)),
        ((403, "Forbidden: bot was blocked by the user", None), (True, None)),
        ((404, "Not Found", None), (True, None)),
        ((400, "Bad Request: group upgraded", {"migrate_to_chat_id": -1002}), (True, None)),
        ((429, "Too Many Requests: retry after 37", {"retry_after": 37}), (False, 37.0)),
        ((401, "Unauthorized", None), (False, None)),
        ((500, "Internal Server Error", None), (False, None)),
        ((502, "Bad Gateway", None), (False, None)),
    ],
)
@pytest.mark.parametrize("mode", [Mode.SEND, Mode.EDIT])
async def test_a_refusal_is_told_with_what_to_expect(
    api: BotApi,
    notifier: TelegramNotifier,
    mode: Mode,
    fault: tuple[int, str, dict[str, int] | None],
    expected: tuple[bool, float | None],
) -> None:
    code, why, parameters = fault
    target = await notifier.send(queued()) if mode is Mode.EDIT else None
    method = "editMessageText" if mode is Mode.EDIT else "sendMessage"
    api.fault(method, error_code=code, description=why, parameters=parameters)
    error = await refusal(notifier, queued(OTHER, mode=mode, target_message=target))
    assert (error.permanent, error.retry_after) == expected
    assert why.partition(": ")[2] in str(error)


async def test_a_server_that_cannot_be_reached_is_temporary(
    api: BotApi, notifier: TelegramNotifier, session: AiohttpSession
) -> None:
    await api.__aexit__()
    session.api = TelegramAPIServer.from_base(api.url)
    error = await refusal(notifier, queued())
    assert not error.permanent
    assert api.token not in str(error)


@asynccontextmanager
async def answering(session: AiohttpSession, status: int, body: str) -> AsyncIterator[None]:
    """A server that has the same answer to everything."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, text=body)

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        session.api = TelegramAPIServer.from_base(f"http://{host}:{port}")
        yield
    finally:
        await runner.cleanup()


async def test_an_answer_that_is_not_telegrams_is_temporary(
    notifier: TelegramNotifier, session: AiohttpSession
) -> None:
    """As from a proxy in between, on its bad day."""
    async with answering(session, 502, "<html>Bad Gateway</html>"):
        error = await refusal(notifier, queued())
    assert not error.permanent
    assert "html" not in str(error)


async def test_a_success_that_cannot_be_understood_is_not_repeated(
    notifier: TelegramNotifier, session: AiohttpSession
) -> None:
    """The message was sent; sent again and again it would be worse than lost."""
    async with answering(session, 200, '{"ok": true, "result": {"message_id": "of a later release"}}'):
        error = await refusal(notifier, queued())
    assert error.permanent
