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
    ClientDecodeError,
    TelegramAPIError,
    TelegramBadRequest,
    TelegramConflictError,
    TelegramForbiddenError,
    TelegramMigrateToChat,
    TelegramNetworkError,
    TelegramNotFound,
    TelegramRetryAfter,
    TelegramServerError,
    TelegramUnauthorizedError,
)
from aiogram.types import (
    BotCommand,
    BotCommandScopeChat,
    BufferedInputFile,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    MessageEntity,
    ReplyParameters,
    Update,
)
from aiogram.utils.formatting import Bold, Text

from tests.botapi import GROUP, TOKEN, USER, BotApi, FloodLimits
from tests.botapi_model import PNG
from tests.ugly_updates import ugly

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


async def failure(request: Awaitable[object]) -> Exception:
    with pytest.raises((TelegramAPIError, ClientDecodeError)) as caught:
        await request
    return caught.value


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


async def test_a_photo_arrives_with_its_caption(api: BotApi, bot: Bot) -> None:
    """As a file of the form; what is no picture, or one out of all proportion, is refused, and its text cannot be edited."""
    picture, tall = (PNG + bytes(8) + side.to_bytes(4) + bytes([0, 0, 1, 0]) for side in (256, 1))
    sent = await bot.send_photo(USER, BufferedInputFile(picture, "p.png"), caption="below")
    [message] = api.messages
    assert (message.photo, message.text, message.id) == (picture, "below", sent.message_id)
    assert sent.photo
    assert (sent.caption, sent.photo[0].width, sent.photo[0].height) == ("below", 256, 256)
    for wrong, why in ((b"GIF89a", "IMAGE_PROCESS_FAILED"), (tall, "PHOTO_INVALID_DIMENSIONS")):
        assert why in str(await refusal(bot.send_photo(USER, BufferedInputFile(wrong, "p.png"))))
    photo = BufferedInputFile(picture, "p.png")
    assert "too long" in str(await refusal(bot.send_photo(USER, photo, caption="x" * 1025)))
    assert "no photo" in str(await refusal(bot.send_photo(USER, "https://x.example/p.png")))
    assert "no text" in str(await refusal(sent.edit_text("other")))


async def test_the_journal_lists_every_call_in_order_of_time(api: BotApi, bot: Bot) -> None:
    """A refused call is in the journal too."""
    await bot.send_message(USER, "hello")
    await refusal(bot.send_message(USER, ""))
    await bot.get_me()
    assert [call.method for call in api.journal] == ["sendMessage", "sendMessage", "getMe"]
    assert [call.at for call in api.journal] == sorted(call.at for call in api.journal)
    assert api.calls("sendMessage")[0].params["text"] == "hello"


async def test_the_journal_tells_what_was_answered(api: BotApi, bot: Bot, session: AiohttpSession) -> None:
    """The HTTP status, also of refusals; none while a call is open or if its connection was dropped."""
    await bot.get_me()
    await refusal(bot.send_message(999, "x"))
    await refusal(bot.send_dice(USER))
    await refusal(Bot(WRONG_TOKEN, session=session).get_me())
    api.drop("getMe")
    api.garble("getMe", status=503)
    for _ in range(2):
        await failure(bot.get_me())
    held = api.hold("getMe")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(bot.get_me())
        await held.arrived()
        assert [call.code for call in api.journal] == [200, 400, 404, 401, None, 503, None]
        held.release()
    assert api.journal[-1].code == 200


async def test_the_time_of_a_call_is_that_of_its_arrival(api: BotApi, bot: Bot) -> None:
    """However long its answer takes."""
    held = api.hold("getMe")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(bot.get_me())
        await held.arrived()
        released_at = asyncio.get_running_loop().time()
        held.release()
    assert api.journal[0].at <= released_at


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


async def test_a_group_without_topics_has_a_shorter_id(api: BotApi, bot: Bot) -> None:
    """Only ids that begin with -100 are those of supergroups."""
    api.chats.add(-4711)
    group = await bot.get_chat(-4711)
    assert (group.type, group.is_forum) == ("group", None)


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


async def test_a_short_poll_ends_nobody(api: BotApi, bot: Bot) -> None:
    """Only a poll that waits takes the place of one that waits; the updates go to both."""
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(bot.get_updates(timeout=LONG))
        await api.until(lambda: api.calls("getUpdates"))
        assert await bot.get_updates() == []
        api.say("hello")
        assert texts(await bot.get_updates()) == ["hello"]
    assert texts(waiting.result()) == ["hello"]


async def test_a_poll_whose_client_is_gone_loses_nothing(api: BotApi, bot: Bot) -> None:
    """An update that was given to nobody comes again; the poll before it has no answer."""
    async with aiohttp.ClientSession() as client, asyncio.TaskGroup() as tasks:
        url = f"{api.url}/bot{TOKEN}/getUpdates"
        killed = tasks.create_task(client.post(url, data={"timeout": LONG}))
        await api.until(lambda: api.calls("getUpdates"))
        killed.cancel()
    await bot.get_me()  # by then the server has seen the end of the other connection
    api.say("hello")
    assert texts(await bot.get_updates(timeout=LONG)) == ["hello"]
    assert [call.code for call in api.calls("getUpdates")] == [None, 200]


@pytest.mark.parametrize(("limit", "many"), [(0, 1), (-5, 1), (2, 2), (500, 100)])
async def test_a_limit_is_brought_into_its_bounds(api: BotApi, bot: Bot, limit: int, many: int) -> None:
    """One update at least, a hundred at most."""
    for number in range(101):
        api.say(str(number))
    assert len(await bot.get_updates(limit=limit)) == many


async def test_a_negative_offset_beyond_the_first_update_forgets_nothing(api: BotApi, bot: Bot) -> None:
    """There are no more than there are."""
    api.say("a")
    assert texts(await bot.get_updates(offset=-5)) == ["a"]


async def test_an_offset_above_all_updates_forgets_them(api: BotApi, bot: Bot) -> None:
    """Whoever keeps the offset of another bot does not hear what was said before."""
    api.say("a")
    assert await bot.get_updates(offset=api.pending[0]["update_id"] + 1_000_000) == []
    assert api.pending == []


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


async def test_a_fault_for_one_chat_waits_for_that_chat(api: BotApi, bot: Bot) -> None:
    """Calls for other chats pass it, and meet what was set behind it."""
    api.fault("sendMessage", error_code=500, description="first", chat=GROUP)
    api.fault("sendMessage", error_code=500, description="second")
    assert "second" in str(await refusal(bot.send_message(USER, "x")))
    await bot.send_message(USER, "x")
    assert "first" in str(await refusal(bot.send_message(GROUP, "x")))
    await bot.send_message(GROUP, "x")


async def test_a_dropped_connection_leaves_nothing_done(api: BotApi, bot: Bot) -> None:
    """The client hears no answer, the chat no message; the next call goes well."""
    api.drop("sendMessage")
    assert isinstance(await refusal(bot.send_message(USER, "x")), TelegramNetworkError)
    assert api.messages == []
    await bot.send_message(USER, "x")
    assert [call.code for call in api.journal] == [None, 200]


async def test_an_answer_may_be_lost_after_the_work_is_done(api: BotApi, bot: Bot) -> None:
    """So that whoever sends again sends twice."""
    api.drop("sendMessage", done=True, times=2)
    for _ in range(2):
        assert isinstance(await refusal(bot.send_message(USER, "x")), TelegramNetworkError)
    await bot.send_message(USER, "x")
    assert len(api.messages) == 3


async def test_a_batch_of_updates_may_be_lost(api: BotApi, bot: Bot) -> None:
    """What a lost answer carried comes again; what its offset confirmed is confirmed."""
    for text in "ab":
        api.say(text)
    [first, _] = await bot.get_updates()
    api.drop("getUpdates", done=True)
    await refusal(bot.get_updates(offset=first.update_id + 1))
    assert texts(await bot.get_updates()) == ["b"]


async def test_a_dropped_poll_confirms_nothing(api: BotApi, bot: Bot) -> None:
    """It never came."""
    api.say("a")
    api.drop("getUpdates")
    await refusal(bot.get_updates(offset=-1))
    assert texts(await bot.get_updates()) == ["a"]


@pytest.mark.parametrize("done", [False, True])
async def test_a_proxy_does_not_answer_in_json(api: BotApi, bot: Bot, done: bool) -> None:
    """A page, with a status of its own; the call did or did not reach the server."""
    api.garble("sendMessage", status=504, page="<html>Gateway Timeout</html>", done=done)
    url = f"{api.url}/bot{TOKEN}/sendMessage"
    wanted = {"chat_id": USER, "text": "x"}
    async with aiohttp.ClientSession() as client, client.post(url, json=wanted) as answer:
        assert (answer.status, answer.content_type) == (504, "text/html")
        assert await answer.text() == "<html>Gateway Timeout</html>"
    assert len(api.messages) == done
    api.garble("sendMessage", status=200)
    assert isinstance(await failure(bot.send_message(USER, "x")), ClientDecodeError)


async def test_a_held_call_has_its_effect_and_waits_for_its_answer(api: BotApi, bot: Bot) -> None:
    """The test decides when it is answered, and what happens until then."""
    held = api.hold("sendMessage")
    async with asyncio.TaskGroup() as tasks:
        sending = tasks.create_task(bot.send_message(USER, "x"))
        await held.arrived()
        [shown] = api.messages
        await bot.send_message(USER, "meanwhile")
        assert not sending.done()
        held.release()
    assert sending.result().message_id == shown.id


async def test_a_call_may_be_held_undone(api: BotApi, bot: Bot) -> None:
    """As a request that is long under way: what comes later is done earlier."""
    held = api.hold("sendMessage", done=False, chat=USER)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(bot.send_message(USER, "first"))
        await held.arrived()
        await bot.send_message(GROUP, "second")
        assert [message.text for message in api.messages] == ["second"]
        held.release()
    assert [message.text for message in api.messages] == ["second", "first"]


async def test_who_is_killed_while_held_has_done_it(api: BotApi, bot: Bot) -> None:
    """The message is there, the answer went to nobody."""
    held = api.hold("sendMessage")
    async with aiohttp.ClientSession() as client, asyncio.TaskGroup() as tasks:
        url = f"{api.url}/bot{TOKEN}/sendMessage"
        killed = tasks.create_task(client.post(url, json={"chat_id": USER, "text": "x"}))
        await held.arrived()
        killed.cancel()
    await bot.get_me()  # by then the server has seen the end of the other connection
    held.release()
    await bot.get_me()  # and by now it has tried to answer
    assert [message.text for message in api.messages] == ["x"]
    assert [call.code for call in api.journal] == [None, 200, 200]


async def test_waiting_for_a_call_that_never_comes_ends(api: BotApi) -> None:
    """A test does not wait for ever."""
    with pytest.raises(TimeoutError):
        await api.hold("sendMessage").arrived(timeout=0)


async def test_an_answer_may_be_late(api: BotApi, bot: Bot) -> None:
    """The message is there before its sender hears of it; a client that is impatient never does."""
    api.delay("sendMessage", seconds=LONG)
    async with asyncio.TaskGroup() as tasks:
        sending = tasks.create_task(bot.send_message(USER, "x"))
        await api.wait_for(lambda message: message.text == "x")
        assert not sending.done()
        sending.cancel()
    api.delay("sendMessage", seconds=0.01)
    assert (await bot.send_message(USER, "y")).text == "y"


async def test_no_delay_is_a_call_that_goes_well(api: BotApi, bot: Bot) -> None:
    """So a test can draw the fate of every call of a method beforehand."""
    api.delay("sendMessage", seconds=0)
    api.fault("sendMessage", error_code=500, description="drawn")
    await bot.send_message(USER, "x")
    await refusal(bot.send_message(USER, "x"))


async def test_polls_can_be_told_to_wait(api: BotApi, bot: Bot) -> None:
    """A flood limit for getUpdates leaves the updates where they are."""
    api.say("hello")
    api.fault("getUpdates", error_code=429, description="Too Many Requests", parameters={"retry_after": 30})
    refused = await refusal(bot.get_updates())
    assert isinstance(refused, TelegramRetryAfter)
    assert refused.retry_after == 30
    assert texts(await bot.get_updates()) == ["hello"]


async def test_closing_ends_the_polls(session: AiohttpSession) -> None:
    """A poll under way is told that the server restarts, and closing waits for nothing else."""
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks, BotApi() as api:
        session.api = TelegramAPIServer.from_base(api.url)
        bot = Bot(api.token, session=session)
        poll = tasks.create_task(refusal(bot.get_updates(timeout=LONG)))
        await api.until(lambda: api.calls("getUpdates"))
    assert "restart" in str(poll.result())


async def test_closing_ends_what_is_kept_waiting(session: AiohttpSession) -> None:
    """Held and late calls are answered when the server goes."""
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks, BotApi() as api:
        session.api = TelegramAPIServer.from_base(api.url)
        bot = Bot(api.token, session=session)
        held = api.hold("getMe")
        api.delay("sendMessage", seconds=LONG)
        tasks.create_task(bot.get_me())
        tasks.create_task(bot.send_message(USER, "x"))
        await held.arrived()
        await api.wait_for(lambda message: message.text == "x")


# Chats in trouble


async def test_who_blocked_the_bot_hears_nothing(api: BotApi, bot: Bot) -> None:
    """Sends and edits are refused as long as that lasts; other chats are not concerned."""
    sent = await bot.send_message(USER, "x")
    api.blocked.add(USER)
    for request in (bot.send_message(USER, "y"), sent.edit_text("y"), bot.send_chat_action(USER, "typing")):
        refused = await refusal(request)
        assert isinstance(refused, TelegramForbiddenError)
        assert "bot was blocked by the user" in str(refused)
    await bot.send_message(GROUP, "y")
    api.blocked.clear()
    await sent.edit_text("y")


async def test_a_bot_that_was_put_out_of_a_group_cannot_write_there(api: BotApi, bot: Bot) -> None:
    """As its standing in that chat has it."""
    api.standing[GROUP] = {"status": "kicked", "until_date": 0}
    with pytest.raises(TelegramForbiddenError, match="not a member"):
        await bot.send_message(GROUP, "x")


OLD_GROUP = -4711
NEW_GROUP = -1001000004711


async def test_an_upgraded_group_refuses_and_tells_its_new_id(api: BotApi, bot: Bot) -> None:
    """Sends and edits name the new chat, where message ids begin anew and the old messages are unknown."""
    api.chats.add(OLD_GROUP)
    for text in "ab":
        sent = await bot.send_message(OLD_GROUP, text)
    api.migrate(OLD_GROUP, NEW_GROUP)
    for request in (bot.send_message(OLD_GROUP, "c"), sent.edit_text("c")):
        refused = await refusal(request)
        assert isinstance(refused, TelegramMigrateToChat)
        assert refused.migrate_to_chat_id == NEW_GROUP
        assert "group chat was upgraded to a supergroup chat" in str(refused)
    moved = await bot.send_message(NEW_GROUP, "c")
    assert (moved.message_id, moved.chat.type) == (1, "supergroup")
    with pytest.raises(TelegramBadRequest, match="message to edit not found"):
        await bot.edit_message_text("d", chat_id=NEW_GROUP, message_id=sent.message_id)


@pytest.mark.parametrize("told", [True, False])
async def test_an_upgrade_may_be_told_as_an_update(api: BotApi, bot: Bot, told: bool) -> None:
    """A service message in the old chat, which has no text; or nothing at all."""
    api.migrate(OLD_GROUP, NEW_GROUP, told=told)
    heard = [update.message for update in await bot.get_updates()]
    assert len(heard) == told
    for message in heard:
        assert message is not None
        assert (message.chat.id, message.migrate_to_chat_id) == (OLD_GROUP, NEW_GROUP)
        assert message.text is None


async def test_a_deleted_topic_is_not_found(api: BotApi, bot: Bot) -> None:
    """Nor are its messages; the chat itself and its other topics are."""
    sent = await bot.send_message(GROUP, "x", message_thread_id=7)
    api.deleted_topics.add((GROUP, 7))
    with pytest.raises(TelegramBadRequest, match="message thread not found"):
        await bot.send_message(GROUP, "y", message_thread_id=7)
    with pytest.raises(TelegramBadRequest, match="message to edit not found"):
        await sent.edit_text("y")
    await bot.send_message(GROUP, "y", message_thread_id=8)
    await bot.send_message(GROUP, "y")


# The pace of a chat

SLOW = FloodLimits(gap=1000)
"""No test waits this long; a wait of 1000 s is told as 1000 s, less what passed before it."""


async def told_to_wait(request: Awaitable[object]) -> int:
    refused = await refusal(request)
    assert isinstance(refused, TelegramRetryAfter)
    assert f"Too Many Requests: retry after {refused.retry_after}" in refused.message
    return refused.retry_after


async def test_without_limits_a_chat_hears_everything(api: BotApi, bot: Bot) -> None:
    """Limits are there for the tests that ask for them."""
    for number in range(30):
        await bot.send_message(GROUP, str(number))
    assert len(api.messages) == 30


async def test_a_chat_that_was_told_something_is_full(api: BotApi, bot: Bot) -> None:
    """New messages and new texts both count; what is refused has no effect. Other chats go on."""
    sent = await bot.send_message(USER, "x")
    api.flood = SLOW
    assert 0 < await told_to_wait(bot.send_message(USER, "y")) <= 1000
    assert 0 < await told_to_wait(sent.edit_text("y")) <= 1000
    await bot.send_message(GROUP, "y")
    assert [(message.chat, message.text) for message in api.messages] == [(USER, "x"), (GROUP, "y")]
    api.flood = None
    await sent.edit_text("z")


async def test_a_group_hears_only_so_much_in_a_while(api: BotApi, bot: Bot) -> None:
    """However far apart; a private chat may hear more."""
    api.flood = FloodLimits(gap=0, most=2, window=1000)
    for chat in (USER, GROUP):
        for number in range(2):
            await bot.send_message(chat, str(number))
    await bot.send_message(USER, "2")
    assert 0 < await told_to_wait(bot.send_message(GROUP, "2")) <= 1000
    assert [len(api.accepted(chat)) for chat in (USER, GROUP)] == [3, 2]


async def test_other_calls_have_no_pace(api: BotApi, bot: Bot) -> None:
    """Presses are answered, and buttons taken away, at any time."""
    sent = await bot.send_message(USER, "x", reply_markup=keyboard(Kill="k"))
    api.flood = SLOW
    query = api.press(api.messages[0], "Kill")
    assert await bot.answer_callback_query(query)
    await sent.edit_reply_markup(reply_markup=None)
    assert len(api.accepted(USER)) == 1


async def test_who_was_told_to_wait_waits(api: BotApi, bot: Bot) -> None:
    """A whole second at least; until it is over every call is refused, though the gap itself be past."""
    api.flood = FloodLimits(gap=0.5, tolerance=0)
    await bot.send_message(USER, "x")
    assert await told_to_wait(bot.send_message(USER, "y")) == 1
    api.flood = FloodLimits(gap=0, tolerance=0)
    assert await told_to_wait(bot.send_message(USER, "y")) == 1


@pytest.mark.parametrize(
    ("chat", "accepted", "now", "wait"),
    [
        (USER, [], 100.0, 0.0),
        (USER, [100.0], 100.25, 0.75),
        (USER, [90.0, 100.0], 101.0, 0.0),
        (USER, [float(second) for second in range(20)], 20.0, 0.0),
        (GROUP, [float(second) for second in range(19)], 20.0, -1.0),
        (GROUP, [float(second) for second in range(20)], 20.0, 40.0),
        (GROUP, [float(second) for second in range(20)], 60.5, -0.5),
        (GROUP, [0.0, *(float(second) for second in range(40, 60))], 60.0, 40.0),
    ],
)
async def test_the_limits_of_a_chat(chat: int, accepted: list[float], now: float, wait: float) -> None:
    """A second between messages; in a group besides no more than 20 in any 60 seconds."""
    assert FloodLimits().wait(chat, accepted, now) == wait


async def test_it_is_kept_when_a_chat_was_told_something(api: BotApi, bot: Bot) -> None:
    """By chat and in order, with the times of the effects; refused and useless calls are not among them."""
    loop = asyncio.get_running_loop()
    before = loop.time()
    sent = await bot.send_message(USER, "x")
    between = loop.time()
    api.drop("editMessageText", done=True)
    await refusal(sent.edit_text("y"))
    await refusal(sent.edit_text("y"))
    api.fault("sendMessage", error_code=500, description="")
    await refusal(bot.send_message(USER, "z"))
    first, second = api.accepted(USER)
    assert before <= first <= between <= second <= loop.time()
    assert api.accepted(GROUP) == []


# Ugly updates


@pytest.mark.parametrize("name", ugly())
async def test_an_ugly_update_arrives(api: BotApi, bot: Bot, name: str) -> None:
    """Whatever it is, the server hands it out; aiogram reads it, or refuses the whole batch."""
    case = ugly()[name]
    api.say("before")
    update_id = api.inject(case.update)
    if not case.is_decodable:
        assert isinstance(await failure(bot.get_updates()), ClientDecodeError)
        return
    assert [update.update_id for update in await bot.get_updates()] == [update_id - 1, update_id]


async def test_ugly_updates_say_what_they_are_told_to() -> None:
    """Who says what where, and what a button carries, is the choice of the test."""
    cases = ugly("/raise 7", user=5, chat=6, data="raise:7")
    edited = cases["edited"].update["edited_message"]
    assert (edited["text"], edited["from"]["id"], edited["chat"]["id"]) == ("/raise 7", 5, 6)
    assert cases["press on an inline message"].update["callback_query"]["data"] == "raise:7"
    assert cases["NUL"].is_command
    assert not cases["forwarded"].is_command


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
