"""Whom the bot obeys, and from where; everyone else gets silence, for commands and for buttons."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiogram.methods import SendMessage
from aiogram.types import CallbackQuery, InaccessibleMessage, Message, MessageOriginHiddenUser, Update, User
from aiogram.types import Chat as TelegramChat

from bot.console import PERSON
from bot.gate import Refusals
from bot.settings import Chat
from tests.bot.room import COLLEAGUE, GROUP, STRANGER, Agent, Intercepted, Room, SpawnAgent, open_room

FOREIGN_GROUP = -100999
DATE = datetime(2100, 5, 1, tzinfo=UTC)
OTHER_BOT = User(id=777001, is_bot=True, first_name="Other")
NOT_OWN_WORDS = {
    "written as a chat": {"sender_chat": TelegramChat(id=GROUP, type="supergroup")},
    "forwarded": {"forward_origin": MessageOriginHiddenUser(date=DATE, sender_user_name="somebody")},
    "forwarded by a channel": {"is_automatic_forward": True},
    "via another bot": {"via_bot": OTHER_BOT},
    "via a business account": {"business_connection_id": "b-1"},
    "by a bot": {"from_user": PERSON.model_copy(update={"is_bot": True})},
    "by nobody": {"from_user": None},
}


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with open_room(tmp_path, chat=Chat(id=GROUP)) as room:
        yield room


def written(person: User = PERSON, chat: int = PERSON.id, **fields: Any) -> Message:
    kind = "private" if chat > 0 else "supergroup"
    about = {"message_id": 900, "date": DATE, "chat": TelegramChat(id=chat, type=kind), "from_user": person}
    return Message(**{**about, "text": "/status", **fields})


def update(**event: Any) -> Update:
    return Update(update_id=900, **event)


# ── who is let in ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("person", "chat"), [(PERSON, PERSON.id), (COLLEAGUE, COLLEAGUE.id), (PERSON, GROUP), (COLLEAGUE, GROUP)]
)
async def test_admins_are_answered_in_their_private_chat_and_in_the_configured_one(
    room: Room, person: User, chat: int
) -> None:
    [answer] = await room.type("/status", person=person, chat=chat)
    assert answer.chat == chat


async def test_a_topic_is_answered_in_that_topic(room: Room) -> None:
    sent = Intercepted(room, SendMessage)
    await room.receive(update(message=written(chat=GROUP, message_thread_id=17, is_topic_message=True)))
    assert [(call.chat_id, call.message_thread_id) for call in sent.calls] == [(GROUP, 17)]


# ── who is not ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("person", "chat"),
    [
        (STRANGER, STRANGER.id),
        (STRANGER, GROUP),
        (STRANGER, PERSON.id),
        (STRANGER, FOREIGN_GROUP),
        (PERSON, FOREIGN_GROUP),
        (PERSON, COLLEAGUE.id),
    ],
)
async def test_strangers_and_foreign_chats_get_silence(room: Room, person: User, chat: int) -> None:
    room.call()
    await room.scan()
    for text in ("/status", "/start", "/kill 1", "good morning"):
        assert await room.type(text, person=person, chat=chat) == []


@pytest.mark.parametrize("fields", NOT_OWN_WORDS.values(), ids=NOT_OWN_WORDS)
async def test_words_that_an_admin_did_not_type_here_and_now_get_silence(
    room: Room, fields: dict[str, Any]
) -> None:
    assert await room.receive(update(message=written(**fields))) == []


async def test_other_kinds_of_updates_get_silence(room: Room) -> None:
    for kind in ("edited_message", "channel_post", "edited_channel_post", "business_message"):
        assert await room.receive(update(**{kind: written()})) == []


async def test_an_update_of_a_kind_that_is_not_known_gets_silence(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    assert await room.receive(update()) == []
    assert "a handler failed" not in caplog.text


# ── the same for buttons ──────────────────────────────────────────────────────────────────────────


async def test_strangers_press_in_vain(room: Room) -> None:
    [alert] = await room.thrash()
    for label in ("Kill", "Snooze 15 m", "Snooze 1 h", "Details"):
        assert await room.press(alert, label, person=STRANGER) == []
        assert await room.press(replace(alert, chat=FOREIGN_GROUP), label) == []


async def test_a_forged_press_is_refused_before_it_is_looked_at(room: Room, spawn_agent: SpawnAgent) -> None:
    agent: Agent = spawn_agent()
    room.call(pid=agent.pid)
    await room.scan()
    [question] = await room.type("/kill 1", chat=GROUP)
    assert await room.press(question, "Stop it", person=STRANGER) == []
    for data in ("k:1", "i:kill:1", "c:AAAAAAAAAAAAAAAA:1"):
        question.buttons["Forged"] = data
        assert await room.press(question, "Forged", person=STRANGER) == []
    await room.stop_agents()
    assert agent.poll() is None


async def test_a_press_in_a_message_that_nobody_can_see_gets_silence(room: Room) -> None:
    """An inline message belongs to no chat that could be checked."""
    query = CallbackQuery(id="1", from_user=PERSON, chat_instance="1", inline_message_id="x", data="k:1")
    assert await room.receive(update(callback_query=query)) == []


async def test_a_press_under_a_message_too_old_to_be_seen_is_answered(room: Room) -> None:
    """Telegram then tells no more than where it is."""
    old = InaccessibleMessage(chat=TelegramChat(id=GROUP, type="supergroup"), message_id=7, date=0)
    query = CallbackQuery(id="1", from_user=PERSON, chat_instance="1", message=old, data="i:more:99")
    [answer] = await room.receive(update(callback_query=query))
    assert "no longer means anything" in answer.text


# ── the chat of a group ───────────────────────────────────────────────────────────────────────────


async def test_what_people_say_to_each_other_in_the_group_is_not_answered(room: Room) -> None:
    assert await room.type("good morning", chat=GROUP) == []


async def test_a_command_for_another_bot_of_the_group_is_not_answered(room: Room) -> None:
    assert await room.type("/weather@other_bot", chat=GROUP) == []
    assert await room.type("/kill@other_bot 1", chat=GROUP) == []


@pytest.mark.parametrize("command", ["/weather", "/weather@loopwarden_bot"])
async def test_an_unknown_command_in_the_group_is_answered(room: Room, command: str) -> None:
    [answer] = await room.type(command, chat=GROUP)
    assert answer.text.startswith("That is no command of mine.")


@pytest.mark.parametrize("chat", [PERSON.id, GROUP])
async def test_a_message_without_text_is_not_answered(room: Room, chat: int) -> None:
    assert await room.receive(update(message=written(chat=chat, text=None))) == []


# ── what is left of a refusal ─────────────────────────────────────────────────────────────────────


async def test_refusals_are_counted_in_status(room: Room) -> None:
    assert "refused" not in (await room.ask("/status")).text
    await room.type("/status", person=STRANGER)
    await room.type("/status", chat=FOREIGN_GROUP)
    assert "Updates refused: 2" in (await room.ask("/status")).text


async def test_a_sender_is_logged_once(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        await room.type("/status", person=STRANGER)
    assert caplog.text.count("refused an update of user 666 in chat 666") == 1


async def test_the_memory_of_senders_is_bounded(
    room: Room, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Refusals, "SENDERS_KEPT", 2)
    for user in range(100, 105):
        await room.type("/status", person=User(id=user, is_bot=False, first_name="x"))
    assert caplog.text.count("refused an update") == 2
    assert "Updates refused: 5" in (await room.ask("/status")).text
