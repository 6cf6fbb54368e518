"""What waits in the inbox: every update is acted on once, in its order, and none keeps the others from their turn."""

import asyncio
import itertools
import json
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiogram import BaseMiddleware, Bot
from aiogram.client.session.middlewares.base import BaseRequestMiddleware, NextRequestMiddlewareType
from aiogram.exceptions import (
    ClientDecodeError,
    TelegramBadRequest,
    TelegramMigrateToChat,
    TelegramNetworkError,
    TelegramRetryAfter,
)
from aiogram.methods import AnswerCallbackQuery, GetMe, Response, SendMessage, TelegramMethod
from aiogram.methods.base import TelegramType
from aiogram.types import Chat as TelegramChat
from aiogram.types import Message, TelegramObject, Update

from bot.console import PERSON, Shown
from bot.settings import Chat
from jobs.store.schema import FILE_NAME
from tests.bot.room import COLLEAGUE, GROUP, STRANGER, Room, SpawnAgent, open_room
from tests.botapi import Json
from tests.botapi_model import now
from tests.ugly_updates import ugly

UPDATE_IDS = itertools.count(1_000_000)
MINUTE = 60
NEW_GROUP = -100456
NOT_YOURS = "Only the admins of this bot may press that."
HELLO = "Loopwarden watches the agents"
FAILED = "⚠️ That failed; the log says why."
SET_ASIDE = "Updates set aside in 24 h, see the log: 1"
MOST_ASIDES = 5

UGLY = ugly("/help me", user=PERSON.id, chat=PERSON.id)
NOT_FOR_THE_PARSER = {"lone surrogate", "lone surrogate in a name", "nested novelty"}
"""Commands that are set aside: no JSON that could come over the wire, or nested more deeply than any message is."""
ANSWERED_ALL_THE_SAME = {"press on an inaccessible message": "That button no longer means anything."}


def sent(room: Room, text: str, *, ago: float, chat: int = PERSON.id, **fields: Any) -> Update:
    """A message that was under way for so many seconds when the bot receives it now."""
    kind = "private" if chat > 0 else "supergroup"
    message = Message(
        message_id=900,
        date=datetime.fromtimestamp(room.clock.time - ago, UTC),
        chat=TelegramChat(id=chat, type=kind),
        from_user=PERSON,
        text=text,
        **fields,
    )
    return Update(update_id=next(UPDATE_IDS), message=message)


def said(update_id: int, text: str, *, at: float | None = None) -> Json:
    """A message of right now, or as of `at`."""
    person, chat = (
        {"id": PERSON.id, "is_bot": False, "first_name": "You"},
        {"id": PERSON.id, "type": "private"},
    )
    message = {"message_id": update_id, "date": int(at or now()), "chat": chat, "from": person, "text": text}
    return {"update_id": update_id, "message": message}


async def receive(room: Room, *updates: Json, at: float | None = None) -> None:
    """Put updates into the inbox as they are, received right now or at another time."""
    async with room.app.handling.desk.store.transaction() as tables:
        bodies = {update["update_id"]: json.dumps(update) for update in updates}
        await tables.inbox.add(room.app.bot.id, bodies, at or now())


async def states(room: Room) -> dict[int, str]:
    """What has become of every update received."""
    sql = "SELECT update_id, state FROM inbox ORDER BY id"
    rows = await room.app.handling.desk.reading.connection.execute_fetchall(sql)
    return {update_id: f"{state}" for update_id, state in rows}


async def fetch(room: Room) -> None:
    """Let what was typed and pressed arrive in the inbox."""
    while room.console.has_updates:
        await room.app.polling.poll(0)


def refuse_answers(room: Room, where: str) -> None:
    """Let the database refuse some messages of the bot, of which `NEW` is one."""
    with closing(sqlite3.connect(room.folder / "data" / FILE_NAME)) as file, file:
        file.execute(
            f"CREATE TRIGGER refused BEFORE INSERT ON outbox WHEN {where} BEGIN SELECT RAISE(ABORT, 'no'); END"
        )


def refuse_no_more(room: Room) -> None:
    with closing(sqlite3.connect(room.folder / "data" / FILE_NAME)) as file, file:
        file.execute("DROP TRIGGER refused")


class CutShort(BaseMiddleware):
    """Keeps the first update for ever from coming to its end, once all has been done for it."""

    def __init__(self, room: Room) -> None:
        self.is_done = asyncio.Event()
        room.app.handling.dispatcher.update.outer_middleware(self)

    async def __call__(
        self,
        handler: Callable[[TelegramObject, dict[str, Any]], Awaitable[Any]],
        event: TelegramObject,
        data: dict[str, Any],
    ) -> Any:
        result = await handler(event, data)
        if not self.is_done.is_set():
            self.is_done.set()
            await asyncio.Event().wait()
        return result


async def cut_short(room: Room) -> None:
    """Let the bot do all for the next update, and be stopped before it can commit that."""
    cut = CutShort(room)
    handling = asyncio.ensure_future(room.app.handling.handle_next())
    async with asyncio.timeout(60):
        await cut.is_done.wait()
    handling.cancel()
    with suppress(asyncio.CancelledError):
        await handling
    assert handling.cancelled()


# ── updates that make no sense ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", UGLY)
async def test_an_ugly_update_is_dealt_with_and_those_around_it_are_handled(room: Room, name: str) -> None:
    """It is handled, refused or set aside, and never tried for ever."""
    strange = UGLY[name]
    await receive(room, said(1, "/start"), {"update_id": 2} | strange.update, said(3, "/start"))
    answers = await room.answers()
    is_set_aside = not strange.is_decodable or name in NOT_FOR_THE_PARSER
    assert await states(room) == {1: "handled", 2: "set_aside" if is_set_aside else "handled", 3: "handled"}
    assert answers[0].text.startswith(HELLO)
    assert answers[-1].text.startswith(HELLO)
    between = [shown.text for shown in answers[1:-1]]
    if is_set_aside:
        assert between == []
    elif strange.is_command:
        assert ["Commands" in text for text in between] == [True]
    elif name == "date before 1970":
        assert [text.startswith("Ignored, ") for text in between] == [True]
    else:
        expected = ANSWERED_ALL_THE_SAME.get(name)
        assert [text.split(" /", 1)[0] for text in between] == ([expected] if expected else [])


async def test_what_was_set_aside_is_counted_in_status_and_named_in_the_log_without_its_words(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    await receive(room, {"update_id": 901, "message": {"text": "a secret"}}, at=room.clock.time)
    status = await room.ask("/status")
    assert status.text.startswith("🟡")
    assert SET_ASIDE in status.text
    assert "update 901 is set aside: message.message_id: missing; " in caplog.text
    assert "a secret" not in caplog.text


async def test_what_was_set_aside_a_day_ago_is_no_news(room: Room) -> None:
    await receive(room, {"update_id": 901, "message": {}}, at=room.clock.time)
    room.clock.go_on(24 * 60 * MINUTE)
    assert SET_ASIDE in (await room.ask("/status")).text
    room.clock.go_on(1)
    status = await room.ask("/status")
    assert status.text.startswith("🟢")
    assert "set aside" not in status.text


async def test_what_was_set_aside_is_kept_for_who_wants_to_look_at_it(room: Room) -> None:
    await receive(room, {"update_id": 1, "message": "nonsense"}, said(2, "/start"))
    await room.answers()
    sql = "SELECT body, error FROM inbox ORDER BY id"
    found, handled = await room.app.handling.desk.reading.connection.execute_fetchall(sql)
    assert json.loads(found[0]) == {"update_id": 1, "message": "nonsense"}
    assert found[1].startswith("message: ")
    # What was in a message that was handled is nobody's business any more.
    assert tuple(handled) == ("", None)


# ── handlers that fail ────────────────────────────────────────────────────────────────────────────


async def test_a_handler_that_raises_has_handled_its_update(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    """The person is told; tried again it would fail again."""
    refuse_answers(room, "NEW.body LIKE '%/agents%'")
    await receive(room, said(1, "/help"), said(2, "/status"))
    failed, status = await room.answers()
    assert failed.text.startswith(FAILED)
    assert "set aside" not in status.text
    assert await states(room) == {1: "handled", 2: "handled"}
    assert "a handler failed" in caplog.text


async def test_a_handler_that_raises_has_done_nothing(room: Room, spawn_agent: SpawnAgent) -> None:
    """What is said of it is true: the stop is not ordered, and the button that was to order it still works."""
    agent = spawn_agent()
    room.call(pid=agent.pid)
    await room.scan()
    question = await room.ask("/kill 1")
    refuse_answers(room, "NEW.body LIKE '%stop was ordered%'")
    [failed] = await room.press(question, "Stop it")
    assert failed.text.startswith(FAILED)
    await room.run("agent_stop")
    assert agent.poll() is None
    refuse_no_more(room)
    [ordered] = await room.press(question, "Stop it")
    assert ordered.text == "⏳ The stop was ordered; the report follows."
    await room.stop_agents()
    assert agent.wait(10) == -15


async def test_where_not_even_the_failure_can_be_told_the_update_is_set_aside(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    """At the third attempt: what has kept it from being handled may have passed before."""
    refuse_answers(room, "NEW.target_message = 901")
    at = room.clock.time
    await receive(room, said(901, "/help", at=at), said(902, "/start", at=at), at=at)
    for _ in range(2):
        with pytest.raises(sqlite3.IntegrityError):
            await room.app.handling.handle_next()
        assert await states(room) == {901: "waiting", 902: "waiting"}
    [hello] = await room.answers()
    assert hello.text.startswith(HELLO)
    assert await states(room) == {901: "set_aside", 902: "handled"}
    assert SET_ASIDE in (await room.ask("/status")).text
    assert "update 901 cannot be handled" in caplog.text


async def test_a_file_that_fails_is_done_without(room: Room) -> None:
    """The update is handled in memory, and is not counted as one that makes no sense."""
    store = room.app.handling.desk.store
    await receive(room, said(1, "/status"))
    await store._opened.writer.execute("PRAGMA query_only = ON")
    standing_by = {job.name: job for job in room.app.timetable._standing_by}
    await room.app.timetable.run(standing_by["update_handling"])
    assert store.trouble
    [status] = await room.answers()
    assert "set aside" not in status.text
    assert await states(room) == {1: "handled"}


# ── once, whenever the bot is stopped ─────────────────────────────────────────────────────────────


async def test_what_was_cut_short_before_its_end_is_done_anew_and_answered_once(room: Room) -> None:
    await receive(room, said(1, "/start"), said(2, "/help"))
    await cut_short(room)
    assert await states(room) == {1: "waiting", 2: "waiting"}
    assert [shown.text.split()[0] for shown in await room.answers()] == ["Loopwarden", "Commands"]
    assert await room.answers() == []


async def test_a_stop_that_was_cut_short_is_ordered_once(room: Room, spawn_agent: SpawnAgent) -> None:
    """The second press counts when it is handled again, and only then."""
    agent = spawn_agent()
    room.call(pid=agent.pid)
    await room.scan()
    question = await room.ask("/kill 1")
    room.console.press(question, "Stop it")
    await fetch(room)
    await cut_short(room)
    await room.run("agent_stop")
    assert agent.poll() is None
    [answer] = await room.answers()
    assert answer.text == "⏳ The stop was ordered; the report follows."
    assert len(await room.stop_agents()) == 1
    assert await room.stop_agents() == []
    assert agent.wait(10) == -15


async def test_a_restart_handles_what_waits(tmp_path: Path) -> None:
    async with open_room(tmp_path) as room:
        room.console.type("/start")
        room.console.type("/help")
        await fetch(room)
    async with open_room(tmp_path, before=room) as again:
        assert [shown.text.split()[0] for shown in await again.answers()] == ["Loopwarden", "Commands"]
    async with open_room(tmp_path, before=again) as last:
        assert await last.answers() == []


async def test_what_is_delivered_once_more_is_not_answered_once_more(room: Room) -> None:
    shown = []
    for _ in range(2):
        await receive(room, said(1, "/start"))
        shown += await room.answers()
    assert len(shown) == 1


async def test_nothing_is_handled_until_it_is_known_who_the_bot_is_and_then_all_is(room: Room) -> None:
    """A command may be addressed to it by name; so with the network down at the start everything waits."""
    error = TelegramNetworkError(method=GetMe(), message="no route to host")
    tries = Intercepting(room, GetMe, [error, ClientDecodeError("not JSON", ValueError(), "<html>")])
    room.forget_introduction()
    room.console.type("/help@loopwarden_bot")
    await fetch(room)
    for _ in range(2):
        assert await room.app.polling._attempt() > 0
        assert await room.app.handling()
        assert not await room.app.handling.handle_next()
        assert await states(room) == {1: "waiting"}
    room.console.type("/start")
    assert await room.app.polling._attempt() == 0
    assert [shown.text.split()[0] for shown in await room.answers()] == ["Commands", "Loopwarden"]
    assert len(tries.calls) == 3


async def test_it_looks_again_at_once_as_long_as_something_waits(room: Room) -> None:
    await receive(room, said(1, "/start"), said(2, "good morning"))
    assert [await room.app.handling() for _ in range(3)] == [0, 0, None]


# ── presses ───────────────────────────────────────────────────────────────────────────────────────


class Intercepting(BaseRequestMiddleware):
    """Notes the calls of one method with what the database then holds, and ends the first ones with `errors`."""

    def __init__(
        self, room: Room, kind: type[TelegramMethod[Any]], errors: list[Exception] | None = None
    ) -> None:
        self.calls: list[Any] = []
        self.waiting: list[int] = []
        self._room, self._kind, self._errors = room, kind, errors or []
        room.console.middleware(self)

    async def __call__(
        self,
        make_request: NextRequestMiddlewareType[TelegramType],
        bot: Bot,
        method: TelegramMethod[TelegramType],
    ) -> Response[TelegramType]:
        if isinstance(method, self._kind):
            self.calls.append(method)
            self.waiting.append((await self._room.app.handling.desk.reading.outbox.counts(0)).waiting)
            # Whoever wants to write can.
            async with self._room.app.handling.desk.store.transaction():
                pass
            if self._errors:
                raise self._errors.pop(0)
        return await make_request(bot, method)


async def test_a_press_is_answered_before_anything_is_written(room: Room) -> None:
    [alert] = await room.thrash()
    answering = Intercepting(room, AnswerCallbackQuery)
    room.console.press(alert, "Details")
    await fetch(room)
    async with asyncio.timeout(60):
        await room.app.handling.handle_next()
    assert [
        (call.text, waiting) for call, waiting in zip(answering.calls, answering.waiting, strict=True)
    ] == [(None, 0)]
    [details] = await room.answers()
    assert "last calls of" in details.text


LATE = "Bad Request: query is too old and response timeout expired or query ID is invalid"


@pytest.mark.parametrize(
    "error",
    [
        TelegramBadRequest(method=AnswerCallbackQuery(callback_query_id="1"), message=LATE),
        TelegramNetworkError(method=AnswerCallbackQuery(callback_query_id="1"), message="no route"),
        TelegramRetryAfter(method=AnswerCallbackQuery(callback_query_id="1"), message="flood", retry_after=9),
        ClientDecodeError("not JSON", ValueError(), "<html>"),
    ],
    ids=["late", "unreachable", "flood", "not Telegram"],
)
async def test_a_press_that_cannot_be_answered_counts_and_is_not_answered_again(
    room: Room, error: Exception
) -> None:
    [alert] = await room.thrash()
    answering = Intercepting(room, AnswerCallbackQuery, [error])
    [details] = await room.press(alert, "Details")
    assert "last calls of" in details.text
    assert await room.answers() == []
    assert len(answering.calls) == 1


async def test_a_press_waits_two_seconds_for_its_answer_at_most(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything else waits with it."""
    [alert] = await room.thrash()
    waits: list[int | None] = []
    make_request = room.console.make_request

    async def noted(
        bot: Bot,
        method: TelegramMethod[TelegramType],
        timeout: int | None = None,  # noqa: ASYNC109 - aiogram's seam
    ) -> TelegramType:
        if isinstance(method, AnswerCallbackQuery):
            waits.append(timeout)
        return await make_request(bot, method, timeout)

    monkeypatch.setattr(room.console, "make_request", noted)
    await room.press(alert, "Details")
    await room.press(alert, "Details", person=STRANGER)
    assert waits == [2, 2]


# ── presses of those who may not ──────────────────────────────────────────────────────────────────


class HeldAnswers(BaseRequestMiddleware):
    """Keeps the answers to presses under way until they may go on, and notes what had become of every update."""

    def __init__(self, room: Room) -> None:
        self.seen: list[tuple[str | None, dict[int, str]]] = []
        self.may_go_on = asyncio.Event()
        self._room = room
        room.console.middleware(self)

    async def __call__(
        self,
        make_request: NextRequestMiddlewareType[TelegramType],
        bot: Bot,
        method: TelegramMethod[TelegramType],
    ) -> Response[TelegramType]:
        if isinstance(method, AnswerCallbackQuery):
            self.seen.append((method.text, await states(self._room)))
            await self.may_go_on.wait()
        return await make_request(bot, method)


async def test_who_presses_in_vain_in_the_group_is_told_that_only_admins_may(tmp_path: Path) -> None:
    """In the answer to the press, which nobody else sees."""
    async with open_room(tmp_path, chat=Chat(id=GROUP)) as room:
        [alert] = await room.thrash()
        answering = Intercepting(room, AnswerCallbackQuery)
        assert await room.press(alert, "Kill", person=STRANGER) == []
        assert [call.text for call in answering.calls] == [NOT_YOURS]
        assert "Updates refused: 1" in (await room.ask("/status")).text


async def test_a_press_that_is_refused_elsewhere_is_answered_without_a_word(tmp_path: Path) -> None:
    """The button stops spinning, and that is all: whoever presses there learns nothing of this bot."""
    async with open_room(tmp_path, chat=Chat(id=GROUP)) as room:
        [alert] = await room.thrash()
        answering = Intercepting(room, AnswerCallbackQuery)
        for chat, person in ((-100999, STRANGER), (-100999, PERSON), (STRANGER.id, STRANGER)):
            alert.chat = chat
            assert await room.press(alert, "Kill", person=person) == []
        assert [call.text for call in answering.calls] == [None] * 3
        assert "Updates refused: 3" in (await room.ask("/status")).text


async def test_strangers_who_press_hold_up_nobody(tmp_path: Path) -> None:
    """Their presses are over before they are answered, a few at a time; the rest gets no answer, and no line forms."""
    async with open_room(tmp_path, chat=Chat(id=GROUP)) as room:
        [alert] = await room.thrash()
        answers = HeldAnswers(room)
        for _ in range(MOST_ASIDES + 3):
            room.console.press(alert, "Kill", person=STRANGER)
        room.console.type("/start")
        await fetch(room)
        async with asyncio.timeout(60):
            while await room.app.handling.handle_next():
                pass
            await room.deliver()
        assert room.shown[-1].text.startswith(HELLO)
        assert set((await states(room)).values()) == {"handled"}
        answers.may_go_on.set()
        await room.answers()
        assert [text for text, _ in answers.seen] == [NOT_YOURS] * MOST_ASIDES
        assert answers.seen[0][1][2] == "handled"
        await room.press(alert, "Kill", person=STRANGER)
        assert len(answers.seen) == MOST_ASIDES + 1


async def test_a_refused_press_whose_answer_fails_is_over_all_the_same(tmp_path: Path) -> None:
    async with open_room(tmp_path, chat=Chat(id=GROUP)) as room:
        [alert] = await room.thrash()
        late = TelegramBadRequest(method=AnswerCallbackQuery(callback_query_id="1"), message=LATE)
        answering = Intercepting(room, AnswerCallbackQuery, [late])
        assert await room.press(alert, "Kill", person=STRANGER) == []
        assert await room.answers() == []
        assert len(answering.calls) == 1
        assert set((await states(room)).values()) == {"handled"}


# ── commands that were long under way ─────────────────────────────────────────────────────────────


async def test_an_old_kill_is_answered_and_does_nothing(room: Room) -> None:
    room.call()
    await room.scan()
    [answer] = await room.receive(sent(room, "/kill 1", ago=3 * MINUTE))
    assert answer.text == "Ignored, 3 min old by this machine's clock: send it again if you still want it."
    assert answer.reply_to == 900
    sql = "SELECT count(*) FROM confirmation"
    assert [*map(tuple, await room.app.handling.desk.reading.connection.execute_fetchall(sql))] == [(0,)]
    [question] = await room.receive(sent(room, "/kill 1", ago=2 * MINUTE - 1))
    assert question.text.startswith("Stop worker-3?")


async def test_an_old_question_is_answered_up_to_ten_minutes(room: Room) -> None:
    [answer] = await room.receive(sent(room, "/status", ago=11 * MINUTE))
    assert answer.text == "Ignored, 11 min old by this machine's clock: send it again if you still want it."
    room.clock.go_on(1)
    [answer] = await room.receive(sent(room, "/status", ago=9 * MINUTE))
    assert "Loopwarden, up" in answer.text


async def test_what_waited_in_the_inbox_does_not_grow_old_there(tmp_path: Path) -> None:
    """What counts is its age when it arrived: the bot itself may have been stopped since."""
    async with open_room(tmp_path) as room:
        room.call()
        await room.scan()
        room.console.type("/kill 1")
        await fetch(room)
    room.clock.go_on(3600)
    async with open_room(tmp_path, before=room) as again:
        [question] = await again.answers()
    assert question.text.startswith("Stop worker-3?")


# ── a group that becomes another one ──────────────────────────────────────────────────────────────


async def assert_moved(room: Room) -> None:
    """The new group is the configured one, in every respect."""
    [answer] = await room.type("/start", chat=NEW_GROUP)
    assert answer.chat == NEW_GROUP
    assert await room.type("/start", chat=GROUP) == []
    assert await room.type("/start", person=STRANGER, chat=NEW_GROUP) == []
    [alert] = await room.thrash(agent=f"agent-{room.clock.time}")
    assert alert.chat == NEW_GROUP
    [details] = await room.press(alert, "Details", person=COLLEAGUE)
    assert details.chat == NEW_GROUP


async def test_a_group_that_says_it_has_moved_is_followed(tmp_path: Path) -> None:
    async with open_room(tmp_path, chat=Chat(id=GROUP)) as room:
        assert await room.type("/start", chat=NEW_GROUP) == []
        assert await room.receive(sent(room, "", ago=0, chat=GROUP, migrate_to_chat_id=NEW_GROUP)) == []
        await assert_moved(room)
    async with open_room(tmp_path, chat=Chat(id=GROUP), before=room) as again:
        await assert_moved(again)


async def test_a_group_that_takes_no_message_because_it_has_moved_is_followed(tmp_path: Path) -> None:
    """The message that found out is the first in the new one."""
    async with open_room(tmp_path, chat=Chat(id=GROUP)) as room:
        to = SendMessage(chat_id=GROUP, text="an alert")
        error = TelegramMigrateToChat(method=to, message="upgraded", migrate_to_chat_id=NEW_GROUP)
        sending = Intercepting(room, SendMessage, [error])
        [alert] = await room.thrash()
        assert [call.chat_id for call in sending.calls] == [GROUP, NEW_GROUP]
        assert alert.chat == NEW_GROUP
        await assert_moved(room)


async def test_nobody_elses_group_moves_the_alerts(tmp_path: Path) -> None:
    async with open_room(tmp_path, chat=Chat(id=GROUP)) as room:
        assert await room.receive(sent(room, "", ago=0, chat=-100999, migrate_to_chat_id=NEW_GROUP)) == []
        alerts: list[Shown] = await room.thrash()
    assert [alert.chat for alert in alerts] == [GROUP]
