"""A digest is a picture and a text: what may keep the picture from being sent never keeps the text."""

import logging
import threading
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from aiogram import Bot

from bot import picturing
from bot.chart.picture import Picture
from bot.drawing import DrawingError
from bot.notifier import TelegramNotifier
from bot.picturing import Picturing
from bot.session import TelegramSession
from bot.views.digest import caption
from jobs.alert.digest_notice import DigestNotice
from jobs.alert.notice import JobFailedNotice
from jobs.alert.outgoing import Mode, Notice, Queued
from jobs.ports import NotifyError
from tests.botapi import GROUP, BotApi, FloodLimits
from tests.botapi_model import PNG
from tests.digests import a_digest
from tests.fakes import HandClock

# One loop and one client session for the file: aiogram takes a quarter of a second to close a session.
pytestmark = pytest.mark.asyncio(loop_scope="module")

UTC_ZONE = ZoneInfo("UTC")
A_PICTURE = PNG + bytes(8) + bytes([0, 0, 4, 0, 0, 0, 4, 0])
DIGEST = DigestNotice(digest=1, body=a_digest())


@pytest.fixture
def bot(api: BotApi, session: TelegramSession) -> Bot:
    return Bot(api.token, session=session)


def notifier(
    bot: Bot, draw: Callable[[Picture], bytes] = lambda _: A_PICTURE, *, gap: float = 0
) -> TelegramNotifier:
    pictures = Picturing(bot=bot, draw=draw, zone=UTC_ZONE, gap=gap)
    return TelegramNotifier(bot=bot, clock=HandClock(), zone=UTC_ZONE, picturing=pictures)


def queued(notice: Notice = DIGEST, **fields: Any) -> Queued:
    row: dict[str, Any] = {
        "id": 1,
        "kind": "notice",
        "body": msgspec.json.encode(notice).decode(),
        "mode": Mode.SEND,
        "subject": "digest:2026-W48",
        "target_message": None,
        "chat": f"{GROUP}",
        "silent": 0,
        "urgent": 0,
        "attempts": 0,
        "error": None,
        "created_at": 0.0,
    }
    return Queued(**{**row, **fields})


def kinds(api: BotApi) -> list[str]:
    return ["picture" if message.photo else "text" for message in api.messages]


async def test_a_digest_is_a_picture_and_then_its_text(api: BotApi, bot: Bot) -> None:
    """The text is the message that is known from then on, whose pages are turned."""
    number = await notifier(bot).send(queued())
    first, second = api.messages
    assert (first.photo, first.text) == (A_PICTURE, caption(DIGEST.body, UTC_ZONE))
    assert second.text.startswith("📊 Week 48")
    assert (number, first.silent, second.silent) == (second.id, False, False)


async def test_the_picture_goes_where_the_text_goes(api: BotApi, bot: Bot) -> None:
    """Into the same topic, in answer to the same message, as silent."""
    asked = api.say("/digest", chat=GROUP, thread=17)
    await notifier(bot).send(queued(chat=f"{GROUP}/17", mode=Mode.REPLY, target_message=asked.id, silent=1))
    assert kinds(api) == ["picture", "text"]
    assert [(each.thread, each.reply_to, each.silent) for each in api.messages] == [(17, asked.id, True)] * 2


async def test_other_notices_have_no_picture(api: BotApi, bot: Bot) -> None:
    await notifier(bot).send(queued(JobFailedNotice(job="thrash_scan", error="x")))
    assert kinds(api) == ["text"]


def _fails(error: Exception) -> Callable[[Picture], bytes]:
    def draw(_: Picture) -> bytes:
        raise error

    return draw


@pytest.mark.parametrize(
    "draw",
    [
        _fails(DrawingError("took more than 60 s")),
        _fails(RuntimeError("can't start new thread")),
        _fails(ValueError()),
        lambda _: b"no picture",
        lambda _: PNG + bytes(8) + bytes([0, 0, 0xFF, 0, 0, 0, 0, 1]),
    ],
    ids=["overdue", "no threads", "a mistake", "no picture", "out of proportion"],
)
async def test_a_picture_that_cannot_be_had_is_left_out(
    api: BotApi, bot: Bot, caplog: pytest.LogCaptureFixture, draw: Callable[[Picture], bytes]
) -> None:
    """A line in the log says why."""
    await notifier(bot, draw).send(queued())
    assert kinds(api) == ["text"]
    [line] = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "message 1 is sent without its picture: " in line.getMessage()


async def test_a_picture_that_never_comes_is_not_waited_for(
    api: BotApi, bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a data directory that hangs."""
    monkeypatch.setattr(picturing, "_PATIENCE", 0.05)
    never = threading.Event()

    def draw(_: Picture) -> bytes:
        never.wait()
        return A_PICTURE

    await notifier(bot, draw).send(queued())
    never.set()
    assert kinds(api) == ["text"]


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (400, "Bad Request: not enough rights to send photos to the chat"),
        (400, "Bad Request: CHAT_SEND_PHOTOS_FORBIDDEN"),
        (413, "Request Entity Too Large"),
    ],
)
async def test_a_picture_that_telegram_refuses_is_left_out(
    api: BotApi, bot: Bot, caplog: pytest.LogCaptureFixture, code: int, why: str
) -> None:
    """Also for a reason that would mean the whole chat, said of a text."""
    api.fault("sendPhoto", error_code=code, description=why)
    await notifier(bot).send(queued())
    assert kinds(api) == ["text"]
    assert "message 1 is sent without its picture" in caplog.text
    assert api.token not in caplog.text


def _server_error(api: BotApi) -> None:
    api.fault("sendPhoto", error_code=502, description="Bad Gateway", times=3)


def _broken_way(api: BotApi) -> None:
    for _ in range(3):
        api.drop("sendPhoto")


@pytest.mark.parametrize("fails", [_server_error, _broken_way])
@pytest.mark.parametrize("attempts", [0, 1])
async def test_what_may_pass_is_waited_for(
    api: BotApi, bot: Bot, fails: Callable[[BotApi], None], attempts: int
) -> None:
    """By the text as well: the picture comes before it."""
    fails(api)
    with pytest.raises(NotifyError) as caught:
        await notifier(bot).send(queued(attempts=attempts))
    assert caught.value.retry_after
    assert not api.messages


@pytest.mark.parametrize("fails", [_server_error, _broken_way])
async def test_what_does_not_pass_soon_costs_the_picture(
    api: BotApi, bot: Bot, caplog: pytest.LogCaptureFixture, fails: Callable[[BotApi], None]
) -> None:
    """The third attempt is the last that is made at it."""
    fails(api)
    await notifier(bot).send(queued(attempts=2))
    assert kinds(api) == ["text"]
    assert "message 1 is sent without its picture" in caplog.text


WAITS = {
    "flood": (429, "Too Many Requests", {"retry_after": 37}, (37.0, None, False)),
    "blocked": (403, "Forbidden: bot was blocked by the user", None, (None, None, True)),
    "upgraded": (400, "Bad Request: group upgraded", {"migrate_to_chat_id": -1002}, (None, -1002, False)),
}


@pytest.mark.parametrize("fault", WAITS)
async def test_what_telegram_would_say_to_the_text_it_has_said(api: BotApi, bot: Bot, fault: str) -> None:
    """Nothing is sent; both come when the message is tried again."""
    code, why, parameters, expected = WAITS[fault]
    api.fault("sendPhoto", error_code=code, description=why, parameters=parameters)
    sending = notifier(bot)
    with pytest.raises(NotifyError) as caught:
        await sending.send(queued())
    error = caught.value
    assert (error.retry_after, error.moved_to, error.is_chat_lost) == expected
    assert not api.messages
    await sending.send(queued())
    assert kinds(api) == ["picture", "text"]


async def test_a_text_that_is_tried_again_has_its_picture_already(api: BotApi, bot: Bot) -> None:
    """But not after a restart: once too often is better than never."""
    api.fault(
        "sendMessage", error_code=429, description="Too Many Requests", parameters={"retry_after": 1}, times=2
    )
    sending = notifier(bot)
    for _ in range(2):
        with pytest.raises(NotifyError):
            await sending.send(queued())
    await sending.send(queued())
    assert kinds(api) == ["picture", "text"]
    await sending.send(queued(id=2))
    await notifier(bot).send(queued(id=2))
    assert kinds(api) == ["picture", "text"] * 3


async def test_a_chat_that_takes_no_pictures_and_no_texts_is_lost(api: BotApi, bot: Bot) -> None:
    api.chats.remove(GROUP)
    with pytest.raises(NotifyError) as caught:
        await notifier(bot).send(queued())
    assert caught.value.is_chat_lost


async def test_where_a_topic_is_gone_both_go_to_the_chat(api: BotApi, bot: Bot) -> None:
    api.deleted_topics.add((GROUP, 17))
    await notifier(bot).send(queued(chat=f"{GROUP}/17"))
    assert kinds(api) == ["picture", "text"]
    assert [message.thread for message in api.messages] == [None, None]


async def test_the_text_keeps_the_pace_of_the_chat(api: BotApi, bot: Bot) -> None:
    """A picture and a text are two messages, and Telegram counts both."""
    api.flood = FloodLimits(gap=0.3, tolerance=0.0)
    await notifier(bot, gap=0.3).send(queued())
    assert kinds(api) == ["picture", "text"]
