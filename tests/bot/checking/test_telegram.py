"""What is asked of Telegram, and what its answers mean."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest
from aiogram import Bot
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import TelegramConflictError

from bot.checking.clock import check_clock
from bot.checking.connection import server_time
from bot.clock import SystemClock
from tests.bot.checking.conftest import SetUp
from tests.botapi import GROUP, TOKEN, USER
from tests.fakes import HandClock

pytestmark = pytest.mark.asyncio(loop_scope="module")

LONG = 600
"""Seconds of a poll that ends for another reason."""


def _point_at(right: SetUp, port: int) -> None:
    url = f"http://127.0.0.1:{port}"
    right.set(TELEGRAM_API=url)
    right.session.api = TelegramAPIServer.from_base(url)


@contextmanager
def closed_port() -> Iterator[int]:
    """A port at which nothing listens, for as long as the context is open."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@asynccontextmanager
async def another_server(answer: bytes) -> AsyncIterator[int]:
    """The port of a server that gives the same answer to whatever it is asked."""

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(respond, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


# ── the server and the token ──────────────────────────────────────────────────────────────────────


async def test_a_server_that_cannot_be_reached_is_no_wrong_token(right: SetUp) -> None:
    """It has its own sentence, and nothing else is asked."""
    with closed_port() as port:
        _point_at(right, port)
        checked = await right.check()
    line = checked.about("Bot API server")
    assert f"http://127.0.0.1:{port} cannot be reached (ClientConnectorError: " in line
    assert "see to network, DNS and proxy" in line
    assert checked.not_fine == [line]
    assert checked.code == 1


async def test_a_server_of_another_kind_is_named(right: SetUp) -> None:
    """What answers in something else than the Bot API's JSON is none."""
    async with another_server(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello") as port:
        _point_at(right, port)
        checked = await right.check()
    assert f"what answers at http://127.0.0.1:{port} is none" in checked.about("Bot API server")
    assert checked.code == 1


async def test_the_token_is_never_shown(right: SetUp) -> None:
    """Also one of a shape that nothing else would recognize, in whatever text it comes."""
    right.set(TOKEN="7:secret")
    right.api.token = "7:secret"
    refusal = "Bad Request: no access with 7:secret or " + TOKEN
    right.api.fault("getChat", error_code=400, description=refusal)
    checked = await right.check()
    assert "Bad Request: no access with *** or ***" in checked.about("chat")
    assert not any("secret" in line or TOKEN in line for line in checked.lines)


# ── the chats ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("about", "standing"),
    [
        ({}, {"status": "creator", "is_anonymous": False}),
        ({"permissions": {"can_send_messages": True}}, {}),
        ({"type": "channel"}, {"status": "administrator", "can_post_messages": True}),
        ({"permissions": {"can_send_messages": False}}, {"status": "administrator"}),
    ],
)
async def test_a_bot_that_may_write_is_let_through(
    right: SetUp, about: dict[str, object], standing: dict[str, object]
) -> None:
    """Owner, administrator or a member where members write."""
    rights = "be_edited manage_chat delete_messages manage_video_chats restrict_members promote_members"
    rights += " change_info invite_users post_stories edit_stories delete_stories send_welcome_messages"
    may = {f"can_{right}": True for right in rights.split()} | {"is_anonymous": False}
    right.api.about[GROUP] = about
    right.api.standing[GROUP] = may | standing
    checked = await right.check()
    assert f"({GROUP}/17) can be written to" in checked.about("chat")
    assert checked.code == 0


async def test_a_server_older_than_aiogram_is_made_do_with(right: SetUp) -> None:
    """It leaves out fields that aiogram insists on; whether the bot may write shows all the same."""
    right.api.about[GROUP] = {"accent_color_id": None}
    assert f"? ({GROUP}/17) can be written to" in (await right.check()).about("chat")
    right.api.about.clear()
    right.api.standing[GROUP] = {"status": "administrator"}
    right.api.about[USER] = {"accent_color_id": None}
    checked = await right.check()
    assert f"({GROUP}/17) can be written to" in checked.about("chat")
    assert checked.about(f"admin {USER}").startswith("ok ")
    assert checked.code == 0


async def test_without_a_chat_of_its_own_the_first_admin_gets_the_alerts(right: SetUp) -> None:
    right.set(CHAT="")
    checked = await right.check()
    assert checked.about("chat") == f"ok      chat: User {USER} ({USER}) can be written to"
    assert right.api.calls("getChatMember") == []


async def test_the_private_chat_of_someone_who_may_not_command_is_a_warning(right: SetUp) -> None:
    right.api.chats.add(55)
    right.set(CHAT="55")
    checked = await right.check()
    assert "is the private chat of nobody who may press a button" in checked.about("chat")
    assert checked.code == 0


@pytest.mark.parametrize(("is_known", "says"), [(False, "chat not found"), (True, "Forbidden: ")])
async def test_an_admin_who_has_never_written_to_the_bot_is_a_warning(
    right: SetUp, is_known: bool, says: str
) -> None:
    """Whether Telegram knows the person from elsewhere or not; the other admins are looked at all the same."""
    right.set(ADMINS=f"77,{USER}")
    if is_known:
        right.api.chats.add(77)
        right.api.standing[77] = {"status": "left"}
    checked = await right.check()
    line = checked.about("admin 77")
    assert line.startswith("warning admin 77: cannot be written to in private: ")
    assert says in line
    assert "let them write /start to @loopwarden_bot" in line
    assert checked.about(f"admin {USER}").startswith("ok ")
    assert checked.code == 0


async def test_a_server_that_fails_now_and_then_is_no_error(right: SetUp) -> None:
    """What could not be asked is a warning: the bot itself tries again."""
    right.api.fault("getChat", error_code=502, description="Bad Gateway", times=2)
    right.api.fault("getWebhookInfo", error_code=429, description="Too Many Requests: retry after 3")
    checked = await right.check()
    assert [line[:8] for line in checked.not_fine] == ["warning "] * 3
    assert all("cannot be checked: " in line and "run the check again" in line for line in checked.not_fine)
    assert checked.code == 0


# ── who polls ─────────────────────────────────────────────────────────────────────────────────────


async def test_another_poller_is_found_by_its_coming_back(right: SetUp) -> None:
    """A program that polls already is cut off by the check, and cuts the check off when it tries again."""
    bot, has_polled = Bot(TOKEN, session=right.session), asyncio.Event()

    async def poll() -> None:
        while True:
            has_polled.set()
            try:
                await bot.get_updates(timeout=LONG, request_timeout=LONG)
            except TelegramConflictError:
                continue

    async with asyncio.TaskGroup() as tasks:
        poller = tasks.create_task(poll())
        await has_polled.wait()
        await right.api.until(lambda: right.api.calls("getUpdates"))
        checked = await right.check(listen=30)
        poller.cancel()
    assert "another program polls this bot" in checked.about("polling")
    assert checked.code == 1


async def test_a_webhook_is_a_warning_that_does_not_show_its_address(right: SetUp) -> None:
    """The address may hold a secret; its host tells whose it is."""
    right.api.webhook = "https://hooks.example.org/secret-path"
    checked = await right.check()
    line = checked.about("polling")
    assert line.startswith("warning polling: a webhook to hooks.example.org is set")
    assert "`loopwarden run` removes it" in line
    assert "secret-path" not in line
    assert right.api.webhook
    assert checked.code == 0


# ── the clock ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("off", "where"), [(95, "ahead of"), (-95, "behind")])
async def test_a_clock_that_is_off_is_a_warning_with_the_seconds(right: SetUp, off: int, where: str) -> None:
    checked = await right.check(clock=HandClock(SystemClock().now() + off))
    line = checked.about("clock")
    seconds = int(line.split()[2])
    # The answer is stamped in whole seconds, and this may be a busy machine.
    assert abs(seconds - 95) < 60
    assert line.startswith("warning clock: ")
    assert f" s {where} the Bot API server's" in line
    assert checked.code == 0


@pytest.mark.parametrize(("ahead", "is_fine"), [(30, True), (-30, True), (31, False), (-31, False)])
async def test_half_a_minute_is_tolerated(ahead: float, is_fine: bool) -> None:
    assert (check_clock(1000 + ahead, 1000).mend == "") is is_fine


@pytest.mark.parametrize("header", [b"", b"Date: yesterday\r\n"])
async def test_a_server_without_a_date_is_not_compared_with(right: SetUp, header: bytes) -> None:
    answer = b"HTTP/1.1 404 Not Found\r\n" + header + b"Content-Length: 0\r\n\r\n"
    async with another_server(answer) as port:
        server_now = await server_time(right.session, f"http://127.0.0.1:{port}")
    assert server_now is None
    assert "cannot be compared" in check_clock(1000, server_now).says


async def test_what_cannot_be_asked_is_said_to_be_left_out(right: SetUp) -> None:
    """With a wrong address nothing is sent to the default one, which is another server."""
    right.set(TELEGRAM_API="localhost:8081")
    checked = await right.check()
    assert "not asked anything" in checked.about("Telegram")
    assert right.api.journal == []
