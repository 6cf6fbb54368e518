"""The loopback Bot API server, asked by a real aiogram bot."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import (
    TelegramAPIError,
    TelegramBadRequest,
    TelegramConflictError,
    TelegramForbiddenError,
    TelegramMigrateToChat,
    TelegramNotFound,
    TelegramRetryAfter,
    TelegramServerError,
    TelegramUnauthorizedError,
)
from aiogram.types import (
    BotCommand,
    BotCommandScopeChat,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    MessageEntity,
    ReplyParameters,
    Update,
)
from aiogram.utils.formatting import Bold, Text

from tests.botapi import GROUP, TOKEN, USER, BotApi

# One loop and one client session for the file: aiogram takes a quarter of a second to close a session.
pytestmark = pytest.mark.asyncio(loop_scope="module")

WRONG_TOKEN = "424242:" + "W" * 35
LONG = 600
"""Seconds of a poll that ends for another reason; the client itself gives up after 10."""


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
def bot(api: BotApi, session: AiohttpSession) -> Bot:
    return Bot(api.token, session=session)


def keyboard(**data_by_label: str) -> InlineKeyboardMarkup:
    row = [InlineKeyboardButton(text=label, callback_data=data) for label, data in data_by_label.items()]
    return InlineKeyboardMarkup(inline_keyboard=[row])


def texts(updates: list[Update]) -> list[str | None]:
    return [update.message.text if update.message else None for update in updates]


async def refusal(request: Awaitable[object]) -> TelegramAPIError:
    with pytest.raises(TelegramAPIError) as caught:
        await request
    return caught.value


# Who asks, and what for


async def test_a_bot_learns_who_it_is(bot: Bot) -> None:
    """GetMe tells a bot account with the id that the token begins with."""
    me = await bot.get_me()
    assert me.is_bot
    assert me.id == bot.id


async def test_another_token_is_unauthorized(api: BotApi, bot: Bot, session: AiohttpSession) -> None:
    """A token is refused if the server does not know it, also one that it knew a moment ago."""
    with pytest.raises(TelegramUnauthorizedError, match="Unauthorized"):
        await Bot(WRONG_TOKEN, session=session).get_me()
    await bot.get_me()
    api.token = WRONG_TOKEN
    with pytest.raises(TelegramUnauthorizedError):
        await bot.get_me()


async def test_an_unknown_method_is_not_found(bot: Bot) -> None:
    """A method that the server does not have is refused like one that the Bot API does not have."""
    with pytest.raises(TelegramNotFound):
        await bot.send_dice(USER)


async def test_any_kind_of_request_is_understood(api: BotApi) -> None:
    """Parameters may come in the query, in a form of either kind, and as JSON; all read the same."""
    wanted = {"chat_id": USER, "text": "17", "disable_notification": True}
    fields = {"chat_id": str(USER), "text": "17", "disable_notification": "true"}
    url = f"{api.url}/bot{TOKEN}/sendMessage"
    multipart = aiohttp.FormData(fields, default_to_multipart=True)
    sendings: list[dict[str, Any]] = [
        {"params": fields},
        {"data": fields},
        {"data": multipart},
        {"json": wanted},
    ]
    async with aiohttp.ClientSession() as client:
        for sending in sendings:
            async with client.post(url, **sending) as answer:
                assert (await answer.json())["ok"]
    assert [call.params for call in api.journal] == [wanted] * 4
    assert [message.text for message in api.messages] == ["17"] * 4


async def test_the_journal_lists_every_call_in_order_of_time(api: BotApi, bot: Bot) -> None:
    """A refused call is in the journal too."""
    await bot.send_message(USER, "hello")
    await refusal(bot.send_message(USER, ""))
    await bot.get_me()
    assert [call.method for call in api.journal] == ["sendMessage", "sendMessage", "getMe"]
    assert [call.at for call in api.journal] == sorted(call.at for call in api.journal)
    assert api.calls("sendMessage")[0].params["text"] == "hello"


async def test_chats(bot: Bot) -> None:
    """A positive id is a private chat, a negative one a group with topics; other chats are not found."""
    assert (await bot.get_chat(USER)).type == "private"
    assert (await bot.get_chat(GROUP)).is_forum
    with pytest.raises(TelegramBadRequest, match="chat not found"):
        await bot.get_chat(999)


async def test_a_chat_tells_what_the_test_lays_over_it(api: BotApi, bot: Bot) -> None:
    """Any field of a chat can be another one."""
    api.about[GROUP] = {"is_forum": False, "permissions": {"can_send_messages": False}}
    group = await bot.get_chat(GROUP)
    assert group.is_forum is False
    assert group.permissions is not None
    assert group.permissions.can_send_messages is False
    assert (await bot.get_chat(USER)).type == "private"


async def test_members(api: BotApi, bot: Bot) -> None:
    """Everybody is a member; of the bot itself the test may say otherwise."""
    assert (await bot.get_chat_member(GROUP, USER)).user.id == USER
    assert (await bot.get_chat_member(GROUP, bot.id)).status == "member"
    api.standing[GROUP] = {"status": "left"}
    left = await bot.get_chat_member(GROUP, bot.id)
    assert (left.status, left.user.is_bot) == ("left", True)
    assert (await bot.get_chat_member(GROUP, USER)).status == "member"
    with pytest.raises(TelegramBadRequest, match="chat not found"):
        await bot.get_chat_member(999, bot.id)


async def test_a_chat_action_shows_no_message(api: BotApi, bot: Bot) -> None:
    """It needs a chat that the bot may write to, and leaves nothing behind."""
    assert await bot.send_chat_action(GROUP, "typing", message_thread_id=7)
    assert api.messages == []
    assert api.calls("sendChatAction")[0].params["message_thread_id"] == 7
    with pytest.raises(TelegramBadRequest, match="chat not found"):
        await bot.send_chat_action(999, "typing")
    with pytest.raises(TelegramBadRequest, match="wrong parameter action"):
        await bot.send_chat_action(GROUP, "")
    api.standing[GROUP] = {"status": "left"}
    with pytest.raises(TelegramForbiddenError, match="not a member"):
        await bot.send_chat_action(GROUP, "typing")


async def test_commands_are_kept_by_scope_and_language(bot: Bot) -> None:
    """A menu set for one chat is not the menu of the others."""
    menu = [BotCommand(command="status", description="What is running")]
    scope = BotCommandScopeChat(chat_id=USER)
    await bot.set_my_commands(menu, scope=scope)
    assert [(kept.command, kept.description) for kept in await bot.get_my_commands(scope=scope)] == [
        ("status", "What is running")
    ]
    assert await bot.get_my_commands() == []
    assert await bot.get_my_commands(scope=scope, language_code="de") == []


# What the bot writes


async def test_a_message_is_kept_and_shown(api: BotApi, bot: Bot) -> None:
    """What the bot sends is what the chat shows, and what aiogram reads in the answer."""
    asked = api.say("/status", chat=GROUP, thread=7)
    answer = await bot.send_message(
        GROUP,
        **Text("All ", Bold("well")).as_kwargs(),
        message_thread_id=7,
        reply_parameters=ReplyParameters(message_id=asked.id),
        reply_markup=keyboard(Details="d:1"),
        disable_notification=True,
    )
    [shown] = api.messages
    assert (shown.chat, shown.id, shown.thread, shown.reply_to) == (GROUP, asked.id + 1, 7, asked.id)
    assert (shown.text, shown.silent, shown.edits) == ("All well", True, 0)
    assert shown.entities == [{"type": "bold", "offset": 4, "length": 4}]
    assert shown.buttons == [[{"text": "Details", "callback_data": "d:1"}]]
    assert (answer.message_id, answer.chat.id, answer.message_thread_id) == (shown.id, GROUP, 7)
    assert answer.date.timestamp() == shown.date
    assert answer.reply_to_message is not None
    assert answer.reply_to_message.text == "/status"
    assert answer.reply_markup is not None
    assert answer.reply_markup.inline_keyboard[0][0].callback_data == "d:1"


async def test_every_chat_counts_its_own_messages(bot: Bot) -> None:
    """A message id alone names no message: the chat belongs to it."""
    private, group = await bot.send_message(USER, "a"), await bot.send_message(GROUP, "b")
    assert private.message_id == group.message_id


@pytest.mark.parametrize("text", ["x" * 4096, "\N{FIRE}" * 2048])
async def test_the_longest_text_is_accepted(bot: Bot, text: str) -> None:
    """A text may have 4096 UTF-16 units; an emoji has two."""
    assert (await bot.send_message(USER, text)).text == text


@pytest.mark.parametrize("text", ["x" * 4097, "\N{FIRE}" * 2048 + "x"])
async def test_a_longer_text_is_refused(api: BotApi, bot: Bot, text: str) -> None:
    """One unit more is too long, in the words of sending and in those of editing."""
    with pytest.raises(TelegramBadRequest, match="message is too long"):
        await bot.send_message(USER, text)
    assert api.messages == []
    sent = await bot.send_message(USER, "short")
    with pytest.raises(TelegramBadRequest, match="MESSAGE_TOO_LONG"):
        await bot.edit_message_text(text, chat_id=USER, message_id=sent.message_id)


@pytest.mark.parametrize("text", ["", " \n"])
async def test_an_empty_text_is_refused(bot: Bot, text: str) -> None:
    """White space is no text."""
    with pytest.raises(TelegramBadRequest, match="message text is empty"):
        await bot.send_message(USER, text)


async def test_markup_is_refused(bot: Bot) -> None:
    """The server reads entities, not markup: it would show the tags."""
    with pytest.raises(TelegramBadRequest, match="unsupported parse_mode"):
        await bot.send_message(USER, "<b>x</b>", parse_mode="HTML")


@pytest.mark.parametrize(
    ("offset", "length", "why"),
    [
        (0, 4, "entity beginning at UTF-16 offset 0 ends after the end of the text at UTF-16 offset 4"),
        (3, 1, "after the end of the text"),
        (0, 2, "in a middle of a UTF-16 symbol"),
        (2, 1, "in a middle of a UTF-16 symbol"),
    ],
)
async def test_an_entity_must_fit_the_text(bot: Bot, offset: int, length: int, why: str) -> None:
    """An entity ends with the text at the latest, and splits no character."""
    entity = MessageEntity(type="bold", offset=offset, length=length)
    with pytest.raises(TelegramBadRequest, match=why):
        await bot.send_message(USER, "x\N{FIRE}", entities=[entity])


async def test_callback_data_has_64_bytes_at_most(bot: Bot) -> None:
    """Bytes are counted, not characters."""
    await bot.send_message(USER, "x", reply_markup=keyboard(Kill="\u00e4" * 32))
    with pytest.raises(TelegramBadRequest, match="BUTTON_DATA_INVALID"):
        await bot.send_message(USER, "x", reply_markup=keyboard(Kill="\u00e4" * 32 + "a"))


async def test_a_button_must_do_something(bot: Bot) -> None:
    """A button with nothing but a label and looks is refused."""
    button = InlineKeyboardButton(text="Kill", style="danger")
    with pytest.raises(TelegramBadRequest, match="Text buttons are unallowed"):
        await bot.send_message(USER, "x", reply_markup=InlineKeyboardMarkup(inline_keyboard=[[button]]))


async def test_a_reply_needs_its_message_unless_it_may_do_without(api: BotApi, bot: Bot) -> None:
    """A reply to a message that is gone is refused, or sent as no reply."""
    with pytest.raises(TelegramBadRequest, match="message to be replied not found"):
        await bot.send_message(USER, "x", reply_parameters=ReplyParameters(message_id=99))
    lenient = ReplyParameters(message_id=99, allow_sending_without_reply=True)
    await bot.send_message(USER, "x", reply_parameters=lenient)
    assert [message.reply_to for message in api.messages] == [None]


async def test_an_edit_replaces_text_and_buttons(api: BotApi, bot: Bot) -> None:
    """An edit keeps the message's place; without buttons of its own it takes the buttons away."""
    sent = await bot.send_message(USER, "before", reply_markup=keyboard(Kill="k"))
    edited = await sent.edit_text("after")
    [shown] = api.messages
    assert (shown.id, shown.text, shown.buttons, shown.edits) == (sent.message_id, "after", [], 1)
    assert not isinstance(edited, bool)
    assert edited.edit_date


async def test_buttons_can_be_edited_alone(api: BotApi, bot: Bot) -> None:
    """The text stays as it is."""
    sent = await bot.send_message(USER, "text", reply_markup=keyboard(Kill="k"))
    await sent.edit_reply_markup(reply_markup=keyboard(Sure="s"))
    [shown] = api.messages
    assert (shown.text, shown.buttons) == ("text", [[{"text": "Sure", "callback_data": "s"}]])
    with pytest.raises(TelegramBadRequest, match="message is not modified"):
        await sent.edit_reply_markup(reply_markup=keyboard(Sure="s"))


async def test_an_edit_that_changes_nothing_is_refused(api: BotApi, bot: Bot) -> None:
    """Text, entities and buttons are compared; one of them must differ."""
    bold = Bold("text").as_kwargs()
    sent = await bot.send_message(USER, **bold, reply_markup=keyboard(Kill="k"))
    with pytest.raises(TelegramBadRequest, match="message is not modified"):
        await sent.edit_text(**bold, reply_markup=keyboard(Kill="k"))
    await sent.edit_text("text", reply_markup=keyboard(Kill="k"))
    assert [message.edits for message in api.messages] == [1]


async def test_only_the_bots_own_messages_can_be_edited(api: BotApi, bot: Bot) -> None:
    """Messages of others and messages that do not exist are refused."""
    theirs = api.say("hello")
    with pytest.raises(TelegramBadRequest, match="message can't be edited"):
        await bot.edit_message_text("x", chat_id=USER, message_id=theirs.id)
    with pytest.raises(TelegramBadRequest, match="message to edit not found"):
        await bot.edit_message_text("x", chat_id=USER, message_id=99)


async def test_a_deleted_message_is_gone(api: BotApi, bot: Bot) -> None:
    """It is not shown, not found for an edit, and cannot be deleted again."""
    sent = await bot.send_message(USER, "x")
    await sent.delete()
    assert api.messages == []
    with pytest.raises(TelegramBadRequest, match="message to edit not found"):
        await sent.edit_text("y")
    with pytest.raises(TelegramBadRequest, match="message to delete not found"):
        await sent.delete()


# What the bot hears


async def test_what_people_say_arrives_as_a_message(api: BotApi, bot: Bot) -> None:
    """The update names sender, chat and topic; a stranger's private chat opens by their first word."""
    said = api.say("hello", user=7, chat=GROUP, thread=3, date=1_700_000_000)
    api.say("let me in", user=8)
    [first, second] = [update.message for update in await bot.get_updates()]
    assert first is not None
    assert first.from_user is not None
    assert (first.from_user.id, first.chat.id, first.message_thread_id) == (7, GROUP, 3)
    assert (first.message_id, first.date.timestamp()) == (said.id, 1_700_000_000)
    assert second is not None
    assert second.chat.id == 8
    assert (await bot.send_message(8, "no")).chat.type == "private"


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("/kill run-7", ["/kill"]),
        ("/kill@loopwarden_bot 7", ["/kill@loopwarden_bot"]),
        ("\N{FIRE} /help, please", ["/help"]),
        ("see /var/log and a/b", []),
    ],
)
async def test_commands_are_marked_as_entities(api: BotApi, bot: Bot, text: str, commands: list[str]) -> None:
    """As Telegram does, the server finds the commands in a text; a path is none."""
    api.say(text)
    [update] = await bot.get_updates()
    assert update.message is not None
    marked = update.message.entities or []
    assert [entity.type for entity in marked] == ["bot_command"] * len(commands)
    assert [entity.extract_from(text) for entity in marked] == commands


async def test_a_message_may_have_further_fields(api: BotApi, bot: Bot) -> None:
    """Whatever else the Bot API knows of a message can be laid over it."""
    api.say("/kill", sender_chat={"id": GROUP, "type": "supergroup", "title": "Anonymous"})
    [update] = await bot.get_updates()
    assert update.message is not None
    assert update.message.sender_chat is not None
    assert update.message.sender_chat.id == GROUP


async def test_an_injected_update_arrives_as_it_is(api: BotApi, bot: Bot) -> None:
    """An update of any shape goes through, with an id of its own or a given one."""
    update_id = api.inject({"nonsense": 1})
    assert api.inject({"update_id": update_id + 10, "more": 2}) == update_id + 10
    assert [update.update_id for update in await bot.get_updates()] == [update_id, update_id + 10]


async def test_a_poll_waits_for_the_next_update(api: BotApi, bot: Bot) -> None:
    """A poll under way returns when there is something to tell."""
    async with asyncio.TaskGroup() as tasks:
        poll = tasks.create_task(bot.get_updates(timeout=LONG))
        await api.until(lambda: api.calls("getUpdates"))
        api.say("at last")
    assert texts(poll.result()) == ["at last"]


async def test_a_poll_that_hears_nothing_ends_in_time(bot: Bot) -> None:
    """An empty answer after `timeout` seconds, at once if there is none."""
    assert await bot.get_updates() == []
    assert await bot.get_updates(timeout=1) == []


async def test_updates_come_again_until_confirmed(api: BotApi, bot: Bot) -> None:
    """Only an offset above its id makes an update stay away."""
    for text in "abc":
        api.say(text)
    updates = await bot.get_updates()
    assert texts(updates) == texts(await bot.get_updates()) == ["a", "b", "c"]
    assert texts(await bot.get_updates(offset=updates[1].update_id)) == ["b", "c"]
    assert await bot.get_updates(offset=updates[2].update_id + 1) == []
    assert api.pending == []


async def test_limit_and_negative_offset(api: BotApi, bot: Bot) -> None:
    """A limit cuts the batch; a negative offset counts from the end and forgets what is before it."""
    for text in "abc":
        api.say(text)
    assert texts(await bot.get_updates(limit=1)) == ["a"]
    assert texts(await bot.get_updates(offset=-1)) == ["c"]
    assert texts(await bot.get_updates()) == ["c"]


async def test_a_batch_has_a_hundred_updates_at_most(api: BotApi, bot: Bot) -> None:
    """More than that comes with the next poll."""
    for number in range(101):
        api.say(str(number))
    batch = await bot.get_updates()
    assert len(batch) == 100
    assert texts(await bot.get_updates(offset=batch[-1].update_id + 1)) == ["100"]


async def test_kinds_that_were_not_asked_for_stay_away(api: BotApi, bot: Bot) -> None:
    """The choice holds for later polls too, but not for what was queued before it or is injected."""
    api.say("queued")
    await bot.get_updates(allowed_updates=["callback_query"])
    api.say("unheard")
    api.inject({"message": api.say("injected").as_json()})
    assert texts(await bot.get_updates()) == ["queued", "injected"]
    api.say("still unheard")
    assert texts(await bot.get_updates()) == ["queued", "injected"]
    await bot.get_updates(allowed_updates=[])
    api.say("heard")
    assert texts(await bot.get_updates()) == ["queued", "injected", "heard"]


async def test_a_second_poller_ends_the_first(api: BotApi, bot: Bot) -> None:
    """Of two polls the older one is refused with 409; the newer one gets the updates."""
    async with asyncio.TaskGroup() as tasks:
        older = tasks.create_task(refusal(bot.get_updates(timeout=LONG)))
        await api.until(lambda: api.calls("getUpdates"))
        newer = tasks.create_task(bot.get_updates(timeout=LONG))
        refused = await older
        api.say("hello")
    assert isinstance(refused, TelegramConflictError)
    assert "terminated by other getUpdates request" in str(refused)
    assert texts(newer.result()) == ["hello"]


async def test_pending_updates_can_be_dropped(api: BotApi, bot: Bot) -> None:
    """DeleteWebhook drops them if told to, and only then."""
    api.say("hello")
    await bot.delete_webhook()
    assert len(api.pending) == 1
    await bot.delete_webhook(drop_pending_updates=True)
    assert await bot.get_updates() == []


async def test_a_webhook_keeps_everybody_from_polling(api: BotApi, bot: Bot) -> None:
    """Until it is deleted; it can be asked for."""
    api.say("hello")
    assert (await bot.get_webhook_info()).url == ""
    api.webhook = "https://example.org/hook"
    hook = await bot.get_webhook_info()
    assert (hook.url, hook.pending_update_count) == ("https://example.org/hook", 1)
    with pytest.raises(TelegramConflictError, match="webhook is active"):
        await bot.get_updates()
    await bot.delete_webhook()
    assert (await bot.get_webhook_info()).url == ""
    assert texts(await bot.get_updates()) == ["hello"]


# Buttons


@pytest.mark.parametrize("which", ["Kill", "Kill run", "kill:7"])
async def test_a_press_arrives_as_a_callback_query(api: BotApi, bot: Bot, which: str) -> None:
    """The button is found by a part of its label or by its data; the query carries data and message."""
    row = keyboard(**{"\N{FIRE} Kill run": "kill:7", "Snooze": "snooze:7"})
    await bot.send_message(GROUP, "thrashing", reply_markup=row)
    query_id = api.press(await api.wait_for(lambda message: message.text == "thrashing"), which, user=5)
    [update] = await bot.get_updates()
    query = update.callback_query
    assert query is not None
    assert (query.id, query.from_user.id, query.data) == (query_id, 5, "kill:7")
    assert query.message is not None
    assert query.message.chat.id == GROUP
    assert await query.answer("Done", request_timeout=5).as_(bot)
    assert api.calls("answerCallbackQuery")[0].params["text"] == "Done"


async def test_a_press_needs_one_button(api: BotApi, bot: Bot) -> None:
    """No button, two of them, or one that calls nothing back: an error of the test."""
    link = InlineKeyboardButton(text="Log", url="https://example.org")
    rows = [*keyboard(Kill="k", Skill="s").inline_keyboard, [link]]
    await bot.send_message(USER, "x", reply_markup=InlineKeyboardMarkup(inline_keyboard=rows))
    for which in ("Raise", "ill", "Log"):
        with pytest.raises(LookupError, match="not one button to press"):
            api.press(api.messages[0], which)
    assert api.pending == []


async def test_a_query_may_carry_any_data(api: BotApi, bot: Bot) -> None:
    """A client can send what no button says."""
    await bot.send_message(USER, "x")
    api.query(api.messages[0], "forged")
    [update] = await bot.get_updates()
    assert update.callback_query is not None
    assert update.callback_query.data == "forged"


async def test_an_answer_needs_its_query_and_has_200_characters_at_most(api: BotApi, bot: Bot) -> None:
    """An unknown query is one that is too old."""
    with pytest.raises(TelegramBadRequest, match="query is too old"):
        await bot.answer_callback_query("1")
    await bot.send_message(USER, "x")
    query_id = api.query(api.messages[0], "d")
    with pytest.raises(TelegramBadRequest, match="MESSAGE_TOO_LONG"):
        await bot.answer_callback_query(query_id, "x" * 201)
    await bot.answer_callback_query(query_id, "x" * 200)


# Bad days


async def test_a_fault_refuses_the_next_calls_of_a_method(api: BotApi, bot: Bot) -> None:
    """They have no effect; other methods work, and so does the call after them."""
    flood = {"retry_after": 3}
    api.fault("sendMessage", error_code=429, description="Too Many Requests", parameters=flood, times=2)
    for _ in range(2):
        with pytest.raises(TelegramRetryAfter) as caught:
            await bot.send_message(USER, "x")
        assert caught.value.retry_after == 3
        await bot.get_me()
    assert api.messages == []
    await bot.send_message(USER, "x")
    assert len(api.messages) == 1


async def test_faults_come_in_the_order_they_were_set(api: BotApi, bot: Bot) -> None:
    """Any error of the Bot API can be set."""
    moved = {"migrate_to_chat_id": -1002}
    api.fault("sendMessage", error_code=502, description="Bad Gateway")
    api.fault("sendMessage", error_code=400, description="Bad Request: upgraded", parameters=moved)
    with pytest.raises(TelegramServerError):
        await bot.send_message(USER, "x")
    with pytest.raises(TelegramMigrateToChat):
        await bot.send_message(USER, "x")


async def test_closing_ends_the_polls(session: AiohttpSession) -> None:
    """A poll under way is told that the server restarts, and closing waits for nothing else."""
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks, BotApi() as api:
        session.api = TelegramAPIServer.from_base(api.url)
        bot = Bot(api.token, session=session)
        poll = tasks.create_task(refusal(bot.get_updates(timeout=LONG)))
        await api.until(lambda: api.calls("getUpdates"))
    assert "restart" in str(poll.result())


# Waiting


async def test_waiting_sees_what_is_there_what_comes_and_what_changes(api: BotApi, bot: Bot) -> None:
    """A message is found whether it satisfied the predicate before, is sent later or is edited."""
    async with asyncio.TaskGroup() as tasks:
        later = tasks.create_task(api.wait_for(lambda message: message.text == "sent"))
        edited = tasks.create_task(api.wait_for(lambda message: message.edits == 1))
        sent = await bot.send_message(USER, "sent")
        assert (await later).id == sent.message_id
        assert (await api.wait_for(lambda message: message.text == "sent")) is later.result()
        await sent.edit_text("edited")
    assert edited.result().text == "edited"


async def test_people_are_not_waited_for(api: BotApi, bot: Bot) -> None:
    """What a person wrote is no message of the bot."""
    api.say("/status")
    await bot.send_message(USER, "status: well")
    assert (await api.wait_for(lambda message: "status" in message.text)).text == "status: well"


async def test_waiting_in_vain_tells_what_there_was(api: BotApi, bot: Bot) -> None:
    """The error shows messages and calls, so that a failed test explains itself."""
    await bot.send_message(USER, "something else")
    with pytest.raises(TimeoutError, match="something else"):
        await api.wait_for(lambda message: message.text == "awaited", timeout=0)
