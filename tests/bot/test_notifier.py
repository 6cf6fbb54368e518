"""Rows of the outbox become messages of a Bot API server; what it refuses becomes temporary, permanent or another chat."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from aiogram import Bot
from aiogram.client.telegram import TelegramAPIServer
from aiogram.filters.callback_data import CallbackData
from aiogram.types import InlineKeyboardButton, MessageEntity
from aiogram.utils.formatting import Bold, Text
from aiohttp import web

from bot.callbacks import IncidentButton, IncidentVerb, PinButton, PinVerb
from bot.notifier import TelegramNotifier
from bot.picturing import Picturing
from bot.session import TelegramSession
from bot.views.screen import Screen, lines, screen
from jobs.alert.notice import JobFailedNotice
from jobs.alert.outgoing import Mode, Queued
from jobs.ports import NotifyError
from tests.botapi import GROUP, USER, BotApi
from tests.botapi_model import utf16_length
from tests.fakes import HandClock

# One loop and one client session for the file: aiogram takes a quarter of a second to close a session.
pytestmark = pytest.mark.asyncio(loop_scope="module")

Expected = tuple[object, int | None, bool]
"""The seconds after which to try again, the chat to try instead, and whether the chat takes no other message, either."""

SOON = pytest.approx(1, rel=0.201)
"""Not to the moment, lest all that waits comes back together."""

BUTTON = InlineKeyboardButton(text="Details", callback_data="i:more:1")
SCREEN = screen(lines(Text("Agent ", Bold("🙂 main")), "is here"), [BUTTON])
OTHER = screen(Text("Something else"))


@pytest.fixture
def notifier(api: BotApi, session: TelegramSession) -> TelegramNotifier:
    bot, zone = Bot(api.token, session=session), ZoneInfo("UTC")
    picturing = Picturing(bot=bot, draw=lambda _: b"", zone=zone)
    return TelegramNotifier(bot=bot, clock=HandClock(), zone=zone, picturing=picturing)


def queued(shown: Screen = SCREEN, **fields: Any) -> Queued:
    row: dict[str, Any] = {
        "id": 1,
        "kind": "screen",
        "body": shown.body.decode(),
        "mode": Mode.SEND,
        "subject": None,
        "target_message": None,
        "chat": f"{GROUP}",
        "silent": 0,
        "urgent": 0,
        "attempts": 0,
        "error": None,
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
    [(str(GROUP), (GROUP, None)), (str(USER), (USER, None)), (f"{GROUP}/17", (GROUP, 17))],
)
async def test_a_message_goes_to_its_chat_and_topic(
    api: BotApi, notifier: TelegramNotifier, chat: str, arrives_in: tuple[int, int | None]
) -> None:
    await notifier.send(queued(chat=chat))
    assert (api.messages[0].chat, api.messages[0].thread) == arrives_in


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


FAULTS: dict[str, tuple[int, str, dict[str, int] | None, Expected]] = {
    "unknown chat": (400, "Bad Request: chat not found", None, (None, None, True)),
    "blocked": (403, "Forbidden: bot was blocked by the user", None, (None, None, True)),
    "kicked": (403, "Forbidden: bot was kicked from the supergroup chat", None, (None, None, True)),
    "not found": (404, "Not Found", None, (SOON, None, False)),
    "too large": (413, "Request Entity Too Large", None, (None, None, False)),
    "upgraded": (400, "Bad Request: group upgraded", {"migrate_to_chat_id": -1002}, (None, -1002, False)),
    "flood": (429, "Too Many Requests: retry after 37", {"retry_after": 37}, (37.0, None, False)),
    "flood of hours": (429, "Too Many Requests", {"retry_after": 10_072}, (10_072.0, None, False)),
    "token": (401, "Unauthorized", None, (SOON, None, False)),
    "conflict": (409, "Conflict", None, (SOON, None, False)),
    "500": (500, "Internal Server Error", None, (SOON, None, False)),
    "502": (502, "Bad Gateway", None, (SOON, None, False)),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("mode", [Mode.SEND, Mode.EDIT, Mode.REPLY])
async def test_a_refusal_is_told_with_what_to_expect(
    api: BotApi, notifier: TelegramNotifier, mode: Mode, fault: str
) -> None:
    """Useless, for this message or for all of its chat; or again after so many seconds, soon if the server does not say when.

    Or in another chat. What passes through a wrong way to the server, as a 404 does, is never useless.
    """
    code, why, parameters, expected = FAULTS[fault]
    target = None if mode is Mode.SEND else await notifier.send(queued())
    method = "editMessageText" if mode is Mode.EDIT else "sendMessage"
    api.fault(method, error_code=code, description=why, parameters=parameters)
    error = await refusal(notifier, queued(OTHER, mode=mode, target_message=target))
    assert (error.retry_after, error.moved_to, error.is_chat_lost) == expected
    assert why.partition(": ")[2] in str(error)
    assert len(api.calls(method)) == (2 if mode is Mode.REPLY else 1)


async def test_a_server_that_cannot_be_reached_is_temporary(
    api: BotApi, notifier: TelegramNotifier, session: TelegramSession
) -> None:
    await api.__aexit__()
    session.api = TelegramAPIServer.from_base(api.url)
    error = await refusal(notifier, queued())
    assert error.retry_after == SOON
    assert api.token not in str(error)


@pytest.mark.parametrize("done", [False, True])
async def test_a_connection_that_breaks_is_temporary(
    api: BotApi, notifier: TelegramNotifier, *, done: bool
) -> None:
    """Whether the message arrived nobody knows: a second one is better than none."""
    api.drop("sendMessage", done=done)
    assert (await refusal(notifier, queued())).retry_after == SOON
    await notifier.send(queued())
    assert len(api.messages) == 1 + done


@asynccontextmanager
async def answering(session: TelegramSession, status: int, body: str | bytes) -> AsyncIterator[None]:
    """A server that has the same answer to everything."""

    async def answer(_: web.Request) -> web.Response:
        written = body.encode() if isinstance(body, str) else body
        return web.Response(status=status, body=written, content_type="text/plain", charset="utf-8")

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


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (502, "<html>Bad Gateway</html>"),
        (200, "<html>Log in first</html>"),
        (502, '{"message": "html"}'),
        (500, "7"),
        (500, '{"ok": false, "error_code": 500}'),
        (502, '{"ok": false, "error_code": 502, "parameters": "html"}'),
        (502, b"<html>\xff\xfe</html>"),
        (200, b"<html>\xff\xfe</html>"),
    ],
)
async def test_an_answer_that_is_not_telegrams_is_temporary(
    notifier: TelegramNotifier, session: TelegramSession, status: int, body: str | bytes
) -> None:
    """As from a proxy in between, on its bad day."""
    async with answering(session, status, body):
        error = await refusal(notifier, queued())
    assert error.retry_after == SOON
    assert "html" not in str(error)


@pytest.mark.parametrize(
    ("result", "number"),
    [
        ({"message_id": 77, "chat": "of a later release"}, 77),
        ({"message_id": "of a later release"}, None),
        ({"message_id": 2**63}, None),
        ({"message_id": 0}, None),
        ({"message_id": None}, None),
        ([77], None),
        (None, None),
    ],
)
@pytest.mark.parametrize("mode", [Mode.SEND, Mode.REPLY])
async def test_a_success_that_cannot_be_understood_is_one(
    notifier: TelegramNotifier,
    session: TelegramSession,
    caplog: pytest.LogCaptureFixture,
    *,
    mode: Mode,
    result: object,
    number: int | None,
) -> None:
    """The message was sent: neither is it sent again and again, nor given up. Its id is known if it can be read."""
    body = msgspec.json.encode({"ok": True, "result": result}).decode()
    async with answering(session, 200, body):
        assert await notifier.send(queued(mode=mode)) == number
    assert "message 1 is sent; what Telegram says of it is not understood" in caplog.text


# ── how long to wait where nobody says ────────────────────────────────────────────────────────────


async def waits(api: BotApi, notifier: TelegramNotifier, times: int, chat: int = GROUP) -> list[float]:
    """Fail so many times at one chat."""
    api.fault("sendMessage", error_code=502, description="Bad Gateway", chat=chat, times=times)
    errors = [await refusal(notifier, queued(chat=f"{chat}")) for _ in range(times)]
    return [error.retry_after or 0 for error in errors]


async def test_every_failure_in_a_row_is_waited_for_about_twice_as_long_up_to_half_a_minute(
    api: BotApi, notifier: TelegramNotifier
) -> None:
    seen = await waits(api, notifier, 12)
    twice = [min(2.0**n, 30) for n in range(12)]
    assert seen == pytest.approx(twice, rel=0.5)
    # Not to the moment, lest all that waits comes back together.
    assert seen[0] != 1
    assert len({*seen[-5:]}) == 5


async def test_a_chat_waits_for_its_own_failures(api: BotApi, notifier: TelegramNotifier) -> None:
    await waits(api, notifier, 3)
    assert await waits(api, notifier, 1, USER) == [SOON]
    await notifier.send(queued(chat=f"{USER}"))
    assert (await waits(api, notifier, 1))[0] > 4


async def test_a_success_ends_the_row(api: BotApi, notifier: TelegramNotifier) -> None:
    """In whichever topic of the chat."""
    await waits(api, notifier, 3)
    await notifier.send(queued(chat=f"{GROUP}/17"))
    assert await waits(api, notifier, 1) == [SOON]


# ── what is rejected and still arrives ────────────────────────────────────────────────────────────

REJECTED = {
    "entities": "Bad Request: entity beginning at UTF-16 offset 7 ends in a middle of a UTF-16 symbol",
    "buttons": "Bad Request: BUTTON_DATA_INVALID",
    "length": "Bad Request: message is too long",
    "anything": "Bad Request: of a later release",
}
WRONG_ENTITY = MessageEntity(type="bold", offset=7, length=1)
WRONG_BUTTON = InlineKeyboardButton(text="Details", callback_data="x" * 65)


@pytest.mark.parametrize("why", REJECTED.values(), ids=REJECTED)
@pytest.mark.parametrize("mode", [Mode.SEND, Mode.EDIT, Mode.REPLY])
@pytest.mark.parametrize("times", [1, 2])
async def test_what_is_rejected_is_sent_once_more_as_plain_text(
    api: BotApi,
    notifier: TelegramNotifier,
    caplog: pytest.LogCaptureFixture,
    *,
    mode: Mode,
    why: str,
    times: int,
) -> None:
    """With its buttons, by which an agent is stopped; without them only if that is rejected, too."""
    target = None if mode is Mode.SEND else await notifier.send(queued(OTHER))
    method = "editMessageText" if mode is Mode.EDIT else "sendMessage"
    api.fault(method, error_code=400, description=why, times=times)
    number = await notifier.send(queued(mode=mode, target_message=target))
    message = api.messages[-1]
    assert (message.id, message.text, message.entities) == (number, SCREEN.text, [])
    assert [button["text"] for row in message.buttons for button in row] == ["Details"] * (2 - times)
    assert (number == target) == (mode is Mode.EDIT)
    assert message.reply_to == (target if mode is Mode.REPLY else None)
    assert f"message 1 is tried as plain text: {why}" in caplog.text


@pytest.mark.parametrize(
    ("shown", "buttons"),
    [
        (Screen(text=SCREEN.text, entities=[WRONG_ENTITY], keyboard=SCREEN.keyboard), 1),
        (Screen(text=SCREEN.text, entities=[WRONG_ENTITY]), 0),
        (screen(Text(SCREEN.text), [WRONG_BUTTON]), 0),
        (screen(lines(Text("Agent ", Bold("🙂 main")), "is here"), [WRONG_BUTTON]), 0),
    ],
    ids=["entities", "no buttons", "buttons", "both"],
)
async def test_the_server_takes_the_plain_text_of_what_it_rejects(
    api: BotApi, notifier: TelegramNotifier, shown: Screen, buttons: int
) -> None:
    await notifier.send(queued(shown))
    [message] = api.messages
    assert (message.text, len(message.buttons)) == (SCREEN.text, buttons)
    assert len(api.calls("sendMessage")) <= 3


@pytest.mark.parametrize(
    "why",
    [
        *("chat not found", "PEER_ID_INVALID", "CHAT_WRITE_FORBIDDEN", "CHAT_RESTRICTED"),
        "not enough rights to send text messages to the chat",
        *("group chat was deactivated", "have no rights to send a message"),
    ],
)
async def test_a_chat_that_takes_nothing_is_not_tried_with_plain_text(
    api: BotApi, notifier: TelegramNotifier, why: str
) -> None:
    api.fault("sendMessage", error_code=400, description=f"Bad Request: {why}")
    error = await refusal(notifier, queued())
    assert (error.retry_after, error.moved_to, error.is_chat_lost) == (None, None, True)
    assert len(api.calls("sendMessage")) == 1


async def test_a_text_that_is_too_long_is_cut_to_what_surely_fits(
    api: BotApi, notifier: TelegramNotifier
) -> None:
    await notifier.send(queued(Screen(text="🙂" * 3000, entities=[])))
    [message] = api.messages
    assert utf16_length(message.text) in {999, 1000}
    assert message.text == "🙂" * 499 + "…"


@pytest.mark.parametrize(
    ("button", "length", "is_kept"),
    [
        (PinButton(verb=PinVerb.APPROVE, proposal=1), 1001, False),
        (PinButton(verb=PinVerb.PAGE, proposal=1, page=1), 1001, False),
        (PinButton(verb=PinVerb.APPROVE, proposal=1), 1000, True),
        (IncidentButton(verb=IncidentVerb.KILL, incident=1), 1001, True),
    ],
    ids=["cut", "a page of it", "whole", "an agent"],
)
async def test_what_was_cut_off_a_proposal_cannot_be_approved(
    api: BotApi, notifier: TelegramNotifier, button: CallbackData, length: int, *, is_kept: bool
) -> None:
    """Nor its next page be turned to. An agent can be stopped, whatever is said of it."""
    api.fault("sendMessage", error_code=400, description="Bad Request: of a later release")
    shown = screen(Text("x" * length), [InlineKeyboardButton(text="A button", callback_data=button.pack())])
    await notifier.send(queued(shown))
    [message] = api.messages
    assert bool(message.buttons) is is_kept


async def test_what_is_rejected_as_plain_text_too_is_given_up(
    api: BotApi, notifier: TelegramNotifier
) -> None:
    """It alone: the chat takes others."""
    api.fault("sendMessage", error_code=400, description="Bad Request: of a later release", times=9)
    bold = screen(Text(Bold("x")))
    for shown, calls in ((SCREEN, 3), (bold, 2), (OTHER, 1)):
        before = len(api.calls("sendMessage"))
        error = await refusal(notifier, queued(shown))
        assert (error.retry_after, error.moved_to, error.is_chat_lost) == (None, None, False)
        assert len(api.calls("sendMessage")) - before == calls


@pytest.mark.parametrize("rejections", [1, 2])
async def test_a_plain_text_that_fails_on_its_way_is_tried_again_later(
    api: BotApi, notifier: TelegramNotifier, rejections: int
) -> None:
    """Each further attempt has its own luck."""
    api.fault("sendMessage", error_code=400, description="Bad Request: BUTTON_DATA_INVALID", times=rejections)
    api.fault("sendMessage", error_code=429, description="Too Many", parameters={"retry_after": 7})
    assert (await refusal(notifier, queued())).retry_after == 7


@pytest.mark.parametrize("mode", [Mode.SEND, Mode.REPLY, Mode.EDIT])
async def test_what_was_meant_for_a_deleted_topic_goes_to_the_chat(
    api: BotApi, notifier: TelegramNotifier, caplog: pytest.LogCaptureFixture, mode: Mode
) -> None:
    """With all that belongs to it; what it would have answered or edited is gone with the topic."""
    topic = f"{GROUP}/17"
    target = None if mode is Mode.SEND else await notifier.send(queued(OTHER, chat=topic))
    api.deleted_topics.add((GROUP, 17))
    number = await notifier.send(queued(mode=mode, chat=topic, target_message=target, silent=1))
    message = api.messages[-1]
    assert (message.id, message.chat, message.thread) == (number, GROUP, None)
    assert number != target
    assert (message.text, message.silent) == (SCREEN.text, True)
    assert message.entities
    assert message.buttons
    assert f"topic {topic} is gone" in caplog.text


@pytest.mark.parametrize("why", ["message thread not found", "TOPIC_DELETED", "TOPIC_CLOSED"])
async def test_a_topic_that_takes_nothing_is_as_good_as_deleted(
    api: BotApi, notifier: TelegramNotifier, why: str
) -> None:
    api.fault("sendMessage", error_code=400, description=f"Bad Request: {why}")
    await notifier.send(queued(chat=f"{GROUP}/17"))
    assert (api.messages[0].chat, api.messages[0].thread) == (GROUP, None)


async def test_a_rejected_message_for_a_deleted_topic_arrives_as_well(
    api: BotApi, notifier: TelegramNotifier
) -> None:
    """One misfortune does not come alone."""
    api.deleted_topics.add((GROUP, 17))
    await notifier.send(queued(screen(Text("x"), [WRONG_BUTTON]), chat=f"{GROUP}/17"))
    assert [(message.text, message.thread) for message in api.messages] == [("x", None)]


async def test_a_group_that_has_moved_says_where_to(api: BotApi, notifier: TelegramNotifier) -> None:
    api.migrate(GROUP, -1001000000002, told=False)
    error = await refusal(notifier, queued())
    assert (error.retry_after, error.moved_to) == (None, -1001000000002)
    await notifier.send(queued(chat=f"{error.moved_to}"))
    assert api.messages[0].chat == -1001000000002


async def test_who_has_blocked_the_bot_is_not_tried_again(api: BotApi, notifier: TelegramNotifier) -> None:
    api.blocked.add(USER)
    error = await refusal(notifier, queued(chat=f"{USER}"))
    assert (error.retry_after, error.moved_to) == (None, None)
    assert "blocked by the user" in str(error)
    assert len(api.calls("sendMessage")) == 1
