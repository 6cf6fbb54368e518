"""What a Bot API server has for the bot is in the inbox before it is confirmed there, on good days and on bad ones."""

import asyncio
import json
import logging
import os
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio
from aiogram import Bot
from aiogram.client.telegram import TelegramAPIServer

from bot.app import _introduce
from bot.health import health
from bot.polling import Polling, Trouble
from bot.pulse import FOLDER, Pulse
from bot.session import TelegramSession
from bot.settings import Chat
from jobs.ports import Received
from jobs.store.database import Database, open_database
from jobs.store.schema import FILE_NAME
from tests.bot.room import settings_for
from tests.botapi import GROUP, USER, BotApi, Json
from tests.botapi_model import SECOND_POLLER, WEBHOOK_ACTIVE
from tests.fakes import HandClock
from tests.ugly_updates import ugly

# One loop and one client session for the file: aiogram takes a quarter of a second to close a session.
pytestmark = pytest.mark.asyncio(loop_scope="module")

UGLY = ugly()
OTHER_TOKEN = "515151:" + "U" * 35
RED = "another poller is running: each gets only some of the updates"
REFUSED = "Telegram does not accept LOOPWARDEN_TOKEN"
FULL_BATCH = 100


@pytest_asyncio.fixture(loop_scope="module")
async def store(tmp_path: Path) -> AsyncIterator[Database]:
    async with open_database(tmp_path) as store:
        yield store


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


Start = Callable[[str], Polling]


@pytest.fixture
def start(
    session: TelegramSession,
    store: Database,
    clock: HandClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Start:
    """Begin to poll with a token, as after a start of the bot."""
    monkeypatch.setenv("LOOPWARDEN_DATA_DIR", str(tmp_path))
    settings = settings_for(tmp_path, chat=Chat(id=GROUP))

    def start(token: str) -> Polling:
        bot = Bot(token, session=session)
        return Polling(
            bot=bot,
            store=store,
            clock=clock,
            pulse=Pulse(tmp_path, {"poll": 120}),
            introduce=partial(_introduce, bot, store, settings),
        )

    return start


@pytest.fixture
def polling(api: BotApi, start: Start) -> Polling:
    return start(api.token)


async def kept(store: Database) -> list[int]:
    """The ids of all updates in the inbox, in the order of arrival."""
    rows = await store.reading.connection.execute_fetchall("SELECT update_id FROM inbox ORDER BY id")
    return [update_id for (update_id,) in rows]


async def waiting(store: Database, polling: Polling) -> list[Received]:
    """All updates that wait for this bot, oldest first; they are handled by being looked at."""
    found = []
    while received := await store.reading.inbox.next(polling.bot.id):
        found.append(received)
        async with store.transaction() as tables:
            await tables.inbox.mark_handled(received.id)
    return found


def ids(api: BotApi) -> list[int]:
    """What the server would deliver again."""
    return [update["update_id"] for update in api.pending]


def fail(api: BotApi, code: int, description: str, *, times: int = 1) -> None:
    api.fault("getUpdates", error_code=code, description=description, times=times)


# ── nothing is lost, and nothing is kept twice ────────────────────────────────────────────────────


async def test_every_update_is_in_the_file_before_the_next_poll_confirms_it(
    api: BotApi, polling: Polling, tmp_path: Path
) -> None:
    for text in ("/status", "/kill 7", "/agents"):
        api.say(text)
    sent = ids(api)
    await polling.poll(0)
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as file:
        rows = file.execute("SELECT update_id, body FROM inbox ORDER BY id").fetchall()
    assert [(update_id, json.loads(body)["message"]["text"]) for update_id, body in rows] == [
        *zip(sent, ("/status", "/kill 7", "/agents"), strict=True)
    ]
    assert ids(api) == sent
    await polling.poll(0)
    assert ids(api) == []


async def test_presses_are_kept_as_messages_are(api: BotApi, polling: Polling, store: Database) -> None:
    api.query(api.say("an alert"), "k:7")
    await polling.poll(0)
    message, press = await waiting(store, polling)
    assert "message" in json.loads(message.body)
    assert json.loads(press.body)["callback_query"]["data"] == "k:7"


async def test_what_is_delivered_again_is_kept_once(
    api: BotApi, start: Start, polling: Polling, store: Database
) -> None:
    """As after a restart, which knows of no offset; also what was handled by then is not new."""
    api.say("/kill 7")
    await polling.poll(0)
    assert len(await waiting(store, polling)) == 1
    api.say("/status")
    again = start(api.token)
    await again.poll(0)
    await start(api.token).poll(0)
    assert await kept(store) == ids(api)
    [received] = await waiting(store, again)
    assert json.loads(received.body)["message"]["text"] == "/status"


async def test_an_answer_that_is_lost_is_asked_for_again(
    api: BotApi, polling: Polling, store: Database
) -> None:
    """The server has confirmed what came before, and nothing more."""
    api.say("/status")
    api.drop("getUpdates", done=True)
    assert await polling._attempt() > 0
    assert await polling._attempt() == 0
    api.say("/kill 7")
    api.drop("getUpdates", done=True)
    assert await polling._attempt() > 0
    assert await polling._attempt() == 0
    texts = [json.loads(received.body)["message"]["text"] for received in await waiting(store, polling)]
    assert texts == ["/status", "/kill 7"]


async def test_a_backlog_is_fetched_in_batches(api: BotApi, polling: Polling, store: Database) -> None:
    for number in range(2 * FULL_BATCH + 1):
        api.say(f"/agent {number}")
    sent = ids(api)
    for _ in range(3):
        await polling.poll(0)
    assert await kept(store) == sent


@pytest.mark.parametrize("name", UGLY)
async def test_an_ugly_update_is_kept_and_so_are_those_around_it(
    api: BotApi, polling: Polling, store: Database, name: str
) -> None:
    api.say("/status")
    api.inject(UGLY[name].update)
    api.say("/agents")
    sent = list(api.pending)
    await polling.poll(0)
    bodies = [json.loads(received.body) for received in await waiting(store, polling)]
    assert bodies == sent
    await polling.poll(0)
    assert ids(api) == []


async def test_an_update_nested_too_deeply_to_be_written_down_is_counted_at_least(
    api: BotApi, polling: Polling, store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.polling.json.dumps", partial(_too_deep, json.dumps))
    api.say("too deep")
    api.say("/status")
    await polling.poll(0)
    assert [bool(received.body) for received in await waiting(store, polling)] == [False, True]


def _too_deep(dumps: Callable[[object], str], update: Json) -> str:
    if update["message"]["text"] == "too deep":
        raise RecursionError
    return dumps(update)


async def test_an_update_without_a_number_that_could_be_kept_keeps_no_other_out(
    api: BotApi, polling: Polling, store: Database
) -> None:
    api.inject({"update_id": 2**63})
    assert await polling._attempt() > 0
    api.say("/status")
    assert await polling._attempt() == 0
    assert await kept(store) == [min(ids(api))]


async def test_only_messages_and_presses_are_asked_for(api: BotApi, polling: Polling) -> None:
    await polling.poll(0)
    assert api.calls("getUpdates")[-1].params["allowed_updates"] == ["message", "callback_query"]


# ── ids that go back ──────────────────────────────────────────────────────────────────────────────


async def test_another_bot_with_lower_ids_is_heard(
    api: BotApi, session: TelegramSession, start: Start, polling: Polling, store: Database
) -> None:
    """As after a new token; what waits for the bot of the old one is not taken for the new one's."""
    api.say("/status")
    await polling.poll(0)
    async with BotApi(token=OTHER_TOKEN) as other:
        session.api = TelegramAPIServer.from_base(other.url)
        anew = start(OTHER_TOKEN)
        for update_id in (5, 700_000_001):
            other.inject({"update_id": update_id, "message": {}})
        await anew.poll(0)
        await anew.poll(0)
    assert [received.update_id for received in await waiting(store, anew)] == [5, 700_000_001]
    assert [received.update_id for received in await waiting(store, polling)] == [700_000_001]


async def test_a_bot_that_heard_nothing_for_a_week_hears_lower_ids(
    api: BotApi, polling: Polling, store: Database
) -> None:
    """Then Telegram begins to count anew, anywhere."""
    api.say("/status")
    await polling.poll(0)
    await polling.poll(0)
    api.inject({"update_id": 5, "message": {}})
    await polling.poll(0)
    assert await kept(store) == [700_000_001, 5]


# ── a server that says why not ────────────────────────────────────────────────────────────────────


async def test_the_time_that_telegram_asks_for_is_waited(
    api: BotApi, polling: Polling, store: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    why = "Too Many Requests: retry after 37"
    api.fault("getUpdates", error_code=429, description=why, parameters={"retry_after": 37}, times=2)
    api.say("/status")
    for _ in range(2):
        assert await polling._attempt() == 37
    assert polling.trouble == Trouble("Telegram asks to wait for 37 s")
    assert health() == 0
    assert await polling._attempt() == 0
    assert await kept(store) == ids(api)
    assert polling.trouble == Trouble()
    assert capsys.readouterr().out == "healthy\n"


async def test_no_wait_that_is_asked_for_is_longer_than_an_hour(api: BotApi, polling: Polling) -> None:
    """Asked again it costs nothing, and a mistaken number would make the bot deaf for ever."""
    why, parameters = "Too Many Requests", {"retry_after": 10_072}
    api.fault("getUpdates", error_code=429, description=why, parameters=parameters)
    assert await polling._attempt() == 3600
    assert polling.trouble == Trouble("Telegram asks to wait for 10072 s")


async def test_another_poller_is_forgotten_when_the_clock_is_set_back(
    api: BotApi, polling: Polling, clock: HandClock
) -> None:
    """Instead of being named until the clock has caught up."""
    fail(api, 409, SECOND_POLLER)
    await polling._attempt()
    assert polling.trouble == Trouble(RED)
    clock.go_on(-3600)
    api.say("/status")
    assert await polling._attempt() == 0
    assert polling.trouble == Trouble()


async def test_another_poller_is_named_wherever_one_looks_and_waited_for_longer_and_longer(
    api: BotApi,
    *,
    polling: Polling,
    store: Database,
    clock: HandClock,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two cut each other off in turn, so one poll that works does not mean that the other one is gone."""
    caplog.set_level(logging.INFO)
    fail(api, 409, SECOND_POLLER, times=4)
    api.say("/status")
    waits = [await polling._attempt() for _ in range(4)]
    assert 4 <= waits[0] <= 6
    assert waits == sorted(waits)
    assert caplog.text.count(f"{RED}. Scans and stops go on") == 1
    assert polling.trouble == Trouble(RED)
    assert health() == 1
    assert RED in capsys.readouterr().out
    assert await polling._attempt() == 0
    assert await kept(store) == ids(api)
    assert polling.trouble == Trouble(RED)
    assert health() == 1
    fail(api, 409, SECOND_POLLER)
    assert await polling._attempt() >= waits[-1]
    api.say("/agents")
    clock.go_on(90)
    assert await polling._attempt() == 0
    assert polling.trouble == Trouble()
    assert health() == 0
    assert "updates come in again" in caplog.text
    fail(api, 409, SECOND_POLLER)
    assert 4 <= await polling._attempt() <= 6


async def test_of_two_pollers_the_one_that_telegram_ends_says_so(
    api: BotApi, start: Start, polling: Polling, store: Database
) -> None:
    other = start(api.token)
    ended = asyncio.ensure_future(polling._attempt())
    await api.until(lambda: api.calls("getUpdates"))
    goes_on = asyncio.ensure_future(other._attempt())
    assert 4 <= await ended <= 6
    assert polling.trouble == Trouble(RED)
    api.say("/status")
    assert await goes_on == 0
    assert await kept(store) == ids(api)


@pytest.mark.parametrize("why", [WEBHOOK_ACTIVE, "Conflict: terminated by setWebhook request"])
async def test_a_webhook_in_the_way_is_removed(
    api: BotApi, polling: Polling, store: Database, why: str
) -> None:
    api.say("/status")
    assert await polling._attempt() == 0
    api.say("/kill 7")
    api.webhook = "https://example.org/hook"
    fail(api, 409, why)
    assert await polling._attempt() > 0
    assert polling.trouble == Trouble("a webhook is set, so nobody can poll; it is removed")
    assert not polling.introduced.is_set()
    assert health() == 0
    assert await polling._attempt() == 0
    assert api.webhook == ""
    assert polling.introduced.is_set()
    assert len(await waiting(store, polling)) == 2


@pytest.mark.parametrize("is_known", [False, True])
async def test_a_token_that_is_not_accepted_is_said_once_and_tried_rarely(
    api: BotApi,
    polling: Polling,
    store: Database,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    *,
    is_known: bool,
) -> None:
    """From the start, or as one that was taken back later."""
    api.say("/status")
    if is_known:
        assert await polling._attempt() == 0
        api.say("/kill 7")
    api.token = OTHER_TOKEN
    assert [await polling._attempt() for _ in range(3)] == [300] * 3
    [told] = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert (told.levelno, told.getMessage()) == (logging.ERROR, f"{REFUSED}. Scans and stops go on")
    assert polling.trouble == Trouble(REFUSED)
    assert health() == 1
    assert capsys.readouterr().out == f"{REFUSED}\n"
    api.token = polling.bot.token
    assert await polling._attempt() == 0
    assert len(await kept(store)) == 1 + is_known
    assert health() == 0
    assert polling.trouble == Trouble()


# ── a server, or a way to it, that is out of order ────────────────────────────────────────────────

OUTAGES: dict[str, Callable[[BotApi, int], None]] = {
    "500": lambda api, times: fail(api, 500, "Internal Server Error", times=times),
    "502": lambda api, times: fail(api, 502, "Bad Gateway", times=times),
    "400": lambda api, times: fail(api, 400, "Bad Request: who knows", times=times),
    "a proxy's page": lambda api, times: api.garble("getUpdates", times=times),
    "a proxy's page, as if all were well": lambda api, times: api.garble(
        "getUpdates", status=200, times=times
    ),
    "no JSON that Telegram writes": lambda api, times: api.garble(
        "getUpdates", page='{"message": "Bad Gateway"}', times=times
    ),
    "a page in no alphabet that it claims": lambda api, times: api.garble(
        "getUpdates", page=b"<html>\xff\xfe</html>", times=times
    ),
    "a failure without a word": lambda api, times: api.garble(
        "getUpdates", status=500, page='{"ok": false, "error_code": 500}', times=times
    ),
    "no list": lambda api, times: api.garble(
        "getUpdates", status=200, page='{"ok": true, "result": 7}', times=times
    ),
    "a success without updates": lambda api, times: api.garble(
        "getUpdates", status=200, page='{"ok": true}', times=times
    ),
    "dropped": lambda api, times: api.drop("getUpdates", times=times),
}


@pytest.mark.parametrize("outage", OUTAGES.values(), ids=OUTAGES)
async def test_an_outage_is_said_once_and_waited_for_longer_and_longer(
    api: BotApi,
    polling: Polling,
    store: Database,
    caplog: pytest.LogCaptureFixture,
    outage: Callable[[BotApi, int], None],
) -> None:
    outage(api, 4)
    api.say("/status")
    waits = [await polling._attempt() for _ in range(4)]
    assert 0.8 <= waits[0] <= 1.2
    assert waits == sorted(waits)
    [told] = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert told.getMessage().startswith("Telegram cannot be reached: ")
    assert api.token not in caplog.text
    said, _, _ = told.getMessage().partition(". Scans and stops go on")
    assert polling.trouble == Trouble(said)
    assert health() == 0
    assert await polling._attempt() == 0
    assert polling.trouble == Trouble()
    assert await kept(store) == ids(api)
    outage(api, 1)
    assert 0.8 <= await polling._attempt() <= 1.2


async def test_what_nobody_has_thought_of_is_tried_again_and_forgotten_when_it_is_over(
    api: BotApi, polling: Polling, store: Database, caplog: pytest.LogCaptureFixture
) -> None:
    introduce = polling.introduce

    async def fail_to_introduce() -> None:
        raise RuntimeError("a bug")

    polling.introduce = fail_to_introduce
    api.say("/status")
    waits = [await polling._attempt() for _ in range(3)]
    assert waits == sorted(waits)
    assert "a bug" in caplog.text
    polling.introduce = introduce
    assert await polling._attempt() == 0
    assert await kept(store) == ids(api)
    api.drop("getUpdates")
    assert 0.8 <= await polling._attempt() <= 1.2


@pytest.mark.parametrize("method", ["getMe", "deleteWebhook"])
async def test_it_is_introduced_once_telegram_has_said_who_it_is_and_that_it_may_poll(
    api: BotApi, polling: Polling, method: str
) -> None:
    """And whoever handles what it fetches may know from then on."""
    api.say("/status")
    api.fault(method, error_code=502, description="Bad Gateway")
    assert await polling._attempt() > 0
    assert not polling.introduced.is_set()
    assert api.calls("getUpdates") == []
    assert await polling._attempt() == 0
    assert polling.introduced.is_set()
    api.say("/agents")
    assert await polling._attempt() == 0
    assert len(api.calls("getMe")) == (2 if method == "getMe" else 1)


MENU_FAULTS: dict[str, Callable[[BotApi], None]] = {
    "flood": lambda api: api.fault(
        "setMyCommands", error_code=429, description="Too Many", parameters={"retry_after": 3600}, times=9
    ),
    "not found": lambda api: api.fault("setMyCommands", error_code=404, description="Not Found", times=9),
    "dropped": lambda api: api.drop("setMyCommands", times=9),
    "a proxy's page": lambda api: api.garble("setMyCommands", times=9),
}


@pytest.mark.parametrize("fault", MENU_FAULTS.values(), ids=MENU_FAULTS)
async def test_a_menu_that_cannot_be_set_delays_no_poll(
    api: BotApi, polling: Polling, store: Database, fault: Callable[[BotApi], None]
) -> None:
    fault(api)
    api.say("/status")
    assert await polling._attempt() == 0
    assert await kept(store) == ids(api)
    assert len(api.calls("setMyCommands")) == 3
    assert polling.trouble == Trouble()


async def test_only_a_poll_that_worked_is_a_sign_of_life(
    api: BotApi, polling: Polling, tmp_path: Path
) -> None:
    """So an outage that goes on turns health red by itself."""
    pulse = tmp_path / FOLDER / "poll"
    os.utime(pulse, (0, 0))
    api.drop("getUpdates")
    await polling._attempt()
    assert pulse.stat().st_mtime == 0
    assert health() == 1
    api.say("/status")
    await polling._attempt()
    assert health() == 0


# ── a database that fails ─────────────────────────────────────────────────────────────────────────


async def test_what_the_file_does_not_take_is_kept_in_memory(
    api: BotApi, polling: Polling, store: Database
) -> None:
    """It is fetched once more at once, since it was not confirmed."""
    await polling.poll(0)
    await store._opened.writer.execute("PRAGMA query_only = ON")
    api.say("/kill 7")
    sent = ids(api)
    assert await polling._attempt() == 0
    assert store.trouble
    assert ids(api) == sent
    assert await polling._attempt() == 0
    assert await kept(store) == sent
    assert ids(api) == sent
    assert await store.recover()
    await polling.poll(0)
    assert ids(api) == []
    assert len(await waiting(store, polling)) == 1


async def test_what_the_database_refuses_is_not_confirmed(
    api: BotApi, polling: Polling, store: Database
) -> None:
    """For whatever other reason."""
    await store._opened.writer.execute("ALTER TABLE inbox RENAME TO away")
    api.say("/kill 7", user=USER)
    sent = ids(api)
    for _ in range(2):
        assert await polling._attempt() > 0
        assert ids(api) == sent
    await store._opened.writer.execute("ALTER TABLE away RENAME TO inbox")
    assert await polling._attempt() == 0
    assert await kept(store) == sent
