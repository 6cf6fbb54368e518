"""The gate, as a table: who may command the bot, from where, and how long ago."""

from dataclasses import replace
from typing import Any

import pytest
from aiogram.filters import Command
from aiogram.filters.command import CommandException
from aiogram.types import Update
from hypothesis import given
from hypothesis import strategies as st

from bot.commands import COMMANDS
from bot.gate import Gate, Refusals, Verdict, command_for
from tests.botapi import GROUP, USER, Json
from tests.botapi_model import chat_json, now, person
from tests.ugly_updates import OTHER_BOT, STRANGER, bot, ugly

NAME = "loopwarden_bot"
COLLEAGUE = 1002
FOREIGN_GROUP = -1009999999999
GATE = Gate(admins=frozenset({USER, COLLEAGUE}), chat=GROUP, username=NAME)

ADMITTED, REFUSED, IN_VAIN, STALE, MOVED = Verdict
MADE_AT = now()
UGLY = {name: strange for name, strange in ugly().items() if strange.is_decodable}
IN_SPITE_OF_IT = {
    # Telegram says who pressed it and where; what it was about is a matter of the button.
    "press on an inaccessible message": ADMITTED,
    "date before 1970": STALE,
}


def read(**kinds: Any) -> Update:
    return Update.model_validate({"update_id": 7, **kinds})


def written(text: str | None = "/kill 7", *, user: int = USER, chat: int = USER, **fields: Any) -> Update:
    message = {"message_id": 1, "date": now(), "chat": chat_json(chat), "from": person(user), "text": text}
    return read(message=message | fields)


def pressed(*, user: int = USER, chat: int = USER, **fields: Any) -> Update:
    message = {"message_id": 1, "date": now(), "chat": chat_json(chat), "text": "an alert"}
    query = {"id": "9", "from": person(user), "chat_instance": "1", "data": "k:7", "message": message}
    return read(callback_query=query | fields)


# ── who, and where ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("user", "chat", "to_words", "to_press"),
    [
        (USER, USER, ADMITTED, ADMITTED),
        (COLLEAGUE, COLLEAGUE, ADMITTED, ADMITTED),
        (USER, GROUP, ADMITTED, ADMITTED),
        (COLLEAGUE, GROUP, ADMITTED, ADMITTED),
        (USER, COLLEAGUE, REFUSED, REFUSED),
        (USER, FOREIGN_GROUP, REFUSED, REFUSED),
        (STRANGER, STRANGER, REFUSED, REFUSED),
        (STRANGER, USER, REFUSED, REFUSED),
        (STRANGER, FOREIGN_GROUP, REFUSED, REFUSED),
        (STRANGER, GROUP, REFUSED, IN_VAIN),
    ],
)
def test_admins_are_obeyed_in_private_and_in_the_configured_chat(
    user: int, chat: int, to_words: Verdict, to_press: Verdict
) -> None:
    """Words of others get silence; who sees a button in the configured chat is told that it is not theirs."""
    assert GATE.judge(written(user=user, chat=chat), 0) is to_words
    assert GATE.judge(written("good morning", user=user, chat=chat), 0) is to_words
    assert GATE.judge(pressed(user=user, chat=chat), 0) is to_press


@pytest.mark.parametrize("name", UGLY)
def test_what_is_not_an_admins_own_command_is_refused(name: str) -> None:
    """Whatever is forwarded, edited, automatic, hidden or written by a bot; what is only strange is not."""
    update = read(**UGLY[name].update)
    age = MADE_AT - update.message.date.timestamp() if update.message else 0
    verdict = ADMITTED if UGLY[name].is_command else IN_SPITE_OF_IT.get(name, REFUSED)
    assert GATE.judge(update, age) is verdict


@pytest.mark.parametrize("chat", [USER, GROUP])
@pytest.mark.parametrize(
    "fields",
    [
        {"is_from_offline": True},
        {"edit_date": 1},
        {"business_connection_id": "b-1"},
        {"sender_chat": chat_json(GROUP)},
        {"via_bot": bot(OTHER_BOT, "other_bot")},
        {"from": None},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_only_what_an_admin_writes_here_and_now_counts(chat: int, fields: Json) -> None:
    assert GATE.judge(written(chat=chat), 0) is ADMITTED
    assert GATE.judge(written(chat=chat, **fields), 0) is REFUSED


@pytest.mark.parametrize(
    "kind",
    [
        *("edited_message", "channel_post", "edited_channel_post", "business_message"),
        *("edited_business_message", "guest_message"),
    ],
)
def test_no_other_kind_of_message_commands(kind: str) -> None:
    message = written().model_dump(exclude_none=True, by_alias=True)["message"]
    assert GATE.judge(read(**{kind: message}), 0) is REFUSED


# ── how long ago ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_command_that_changes_something_keeps_for_two_minutes_and_a_question_for_ten(
    command: Any,
) -> None:
    limit = 120 if command.changes else 600
    for text in (f"/{command.name}", f"/{command.name} 7", f"/{command.name}@{NAME} 7"):
        assert GATE.judge(written(text), limit) is ADMITTED
        assert GATE.judge(written(text), limit + 0.1) is STALE


def test_what_stops_an_agent_or_runs_a_command_changes_something() -> None:
    assert [command.name for command in COMMANDS if command.changes] == ["kill", "verify"]


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("/kill@loopwarden_bot 7", STALE),
        ("/kill@Loopwarden_BOT 7", STALE),
        ("/kill@LOOPWARDEN_BOT", STALE),
        ("/kill\n7", STALE),
        ("/kill@other_bot 7", ADMITTED),
        ("/kill@loopwarden_bot2 7", ADMITTED),
        ("/killer 7", ADMITTED),
        ("kill 7", ADMITTED),
        ("please /kill 7", ADMITTED),
        ("good morning", ADMITTED),
        ("/", ADMITTED),
        (None, ADMITTED),
    ],
)
def test_only_a_command_to_this_bot_grows_stale(text: str | None, verdict: Verdict) -> None:
    """To other bots, and to people, anything may be said at any time: nobody answers it."""
    assert GATE.judge(written(text, chat=GROUP), 10**9) is verdict


def test_a_command_in_a_caption_grows_stale_too() -> None:
    """To a handler it is as good as any."""
    photo = [{"file_id": "1", "file_unique_id": "1", "width": 1, "height": 1}]
    update = written(None, photo=photo, caption="/kill 7")
    assert GATE.judge(update, 120) is ADMITTED
    assert GATE.judge(update, 121) is STALE


def test_age_says_nothing_to_strangers() -> None:
    assert GATE.judge(written(user=STRANGER), 10**9) is REFUSED
    assert GATE.judge(written(is_from_offline=True), 10**9) is REFUSED


@pytest.mark.parametrize("age", [-3600.0, 0.0])
def test_a_command_from_the_future_is_fresh(age: float) -> None:
    """The clocks differ, and not in its disfavour."""
    assert GATE.judge(written(), age) is ADMITTED


def test_when_a_button_was_pressed_is_not_known() -> None:
    assert GATE.judge(pressed(), 10**9) is ADMITTED


# ── a group that becomes another one ──────────────────────────────────────────────────────────────


def service(chat: int) -> Update:
    return written(None, user=STRANGER, chat=chat, migrate_to_chat_id=-1005)


def test_only_the_configured_group_moves() -> None:
    assert GATE.judge(service(GROUP), 0) is MOVED
    assert GATE.judge(service(GROUP), 10**9) is MOVED
    assert GATE.judge(service(FOREIGN_GROUP), 0) is REFUSED
    assert replace(GATE, chat=FOREIGN_GROUP).judge(service(GROUP), 0) is REFUSED


# ── whose command it is ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/status", "status"),
        ("/status@loopwarden_bot", "status"),
        ("/status@LoopWarden_Bot now", "status"),
        ("/status@", "status"),
        ("/STATUS", "STATUS"),
        ("/", ""),
        ("/status@other_bot", None),
        ("status", None),
        ("", None),
        ("  ", None),
    ],
)
def test_a_command_is_for_who_is_named_in_it(text: str, command: str | None) -> None:
    assert command_for(NAME, text) == command


pieces = st.sampled_from(
    ["/", "@", "kill", NAME, NAME.upper(), "other_bot", " ", "\n", "\0", "7", "İ", "\ud83d"]
)


@given(st.lists(pieces, max_size=8).map("".join) | st.text(max_size=10))
def test_the_gate_reads_a_command_as_the_handlers_do(text: str) -> None:
    """Else one could be handled whose age nobody has looked at."""
    try:
        handled = Command.extract_command(text)
    except CommandException:
        assert command_for(NAME, text) is None
        return
    is_own = handled.prefix == "/" and (handled.mention or NAME).lower() == NAME
    assert command_for(NAME, text) == (handled.command if is_own else None)


# ── what is left of a refusal ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", UGLY)
def test_every_refusal_counts(name: str) -> None:
    refusals = Refusals()
    for expected in (1, 2):
        refusals.note(read(**UGLY[name].update))
        assert refusals.count == expected


def test_every_sender_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    for user in (STRANGER, STRANGER, COLLEAGUE, STRANGER):
        refusals.note(written(user=user, chat=FOREIGN_GROUP))
    refusals.note(pressed(user=STRANGER, chat=GROUP))
    assert [record.getMessage() for record in caplog.records] == [
        f"refused an update of user {user} in chat {FOREIGN_GROUP}" for user in (STRANGER, COLLEAGUE)
    ]
    assert refusals.count == 5
