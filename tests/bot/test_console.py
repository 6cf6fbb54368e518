"""The console: a Bot API of its own, as strict as handlers need it, and what a terminal makes of it."""

import asyncio
import io
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from aiogram import Bot
from aiogram.exceptions import TelegramBadRequest
from aiogram.types import (
    BufferedInputFile,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    Message,
    MessageEntity,
    ReplyParameters,
)

from bot.console import ConsoleSession, Shown
from bot.polling import GetRawUpdates
from bot.terminal import Terminal, typed_lines

BUTTONS = InlineKeyboardMarkup(
    inline_keyboard=[
        [InlineKeyboardButton(text="Kill", callback_data="i:kill:1")],
        [InlineKeyboardButton(text="Details", callback_data="i:more:1")],
    ]
)


@pytest.fixture
def console() -> ConsoleSession:
    return ConsoleSession()


@pytest.fixture
async def bot(console: ConsoleSession) -> AsyncIterator[Bot]:
    bot = Bot("42:made-up", session=console)
    yield bot
    await bot.session.close()


async def poll(bot: Bot) -> list[Any]:
    """What waits for the bot, as it comes over the wire."""
    return await bot(GetRawUpdates(offset=None, limit=100, timeout=0, allowed_updates=[]))


# ── the bot's side ────────────────────────────────────────────────────────────────────────────────


async def test_what_was_typed_and_pressed_is_polled_in_order(bot: Bot, console: ConsoleSession) -> None:
    await bot.send_message(1, "alert", reply_markup=BUTTONS)
    console.type("/help")
    console.press(console.messages[1], "Details")
    [typed] = await poll(bot)
    [pressed] = await poll(bot)
    assert typed["message"]["text"] == "/help"
    assert pressed["callback_query"]["data"] == "i:more:1"
    assert await poll(bot) == []


async def test_a_picture_is_kept_with_the_line_below_it(bot: Bot, console: ConsoleSession) -> None:
    sent = await bot.send_photo(1, BufferedInputFile(b"png", "digest.png"), caption="Week 48")
    shown = console.messages[sent.message_id]
    assert (shown.picture, shown.text) == (b"png", "Week 48")


async def test_an_edit_changes_the_message_in_place(bot: Bot, console: ConsoleSession) -> None:
    sent = await bot.send_message(1, "alert", reply_markup=BUTTONS)
    await bot.edit_message_text("stopped", chat_id=1, message_id=sent.message_id)
    shown = console.messages[sent.message_id]
    assert (shown.text, shown.buttons, shown.edits) == ("stopped", {}, 1)


async def test_an_edit_that_changes_nothing_is_refused(bot: Bot) -> None:
    await bot.send_message(1, "alert")
    with pytest.raises(TelegramBadRequest, match="message is not modified"):
        await bot.edit_message_text("alert", chat_id=1, message_id=1)


async def test_an_edit_of_nothing_is_refused(bot: Bot) -> None:
    with pytest.raises(TelegramBadRequest, match="message to edit not found"):
        await bot.edit_message_text("alert", chat_id=1, message_id=7)


async def test_what_the_console_cannot_do_is_refused(bot: Bot) -> None:
    with pytest.raises(TelegramBadRequest, match="does not know this method"):
        await bot.get_chat(1)
    with pytest.raises(NotImplementedError):
        bot.session.stream_content("https://example.org")


def test_a_button_that_is_not_there_cannot_be_pressed(console: ConsoleSession) -> None:
    with pytest.raises(KeyError):
        console.press(Shown(id=1, chat=1, at=datetime.fromtimestamp(0, UTC), text="alert"), "Kill")


async def test_waiting_ends_with_the_message_waited_for(bot: Bot, console: ConsoleSession) -> None:
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(console.wait_for(lambda shown: shown.text == "second"))
        await bot.send_message(1, "first")
        await bot.send_message(1, "second")
    assert waiting.result().id == 2


async def test_waiting_for_what_never_comes_ends(console: ConsoleSession) -> None:
    with pytest.raises(TimeoutError):
        await console.wait_for(lambda _: True, seconds=0)


# ── the terminal ──────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


async def show(terminal: Terminal, text: str, **fields: object) -> Message:
    fields = {"chat_id": 1, "text": text, **fields}
    message: Message = await Bot("42:made-up", session=terminal.session).send_message(**fields)  # type: ignore[arg-type]
    return message


async def polled(terminal: Terminal) -> list[str]:
    """What the bot receives of what was entered."""
    bot = Bot("42:made-up", session=terminal.session)
    found = []
    while updates := await poll(bot):
        [update] = updates
        query = update.get("callback_query")
        found.append(query["data"] if query else update["message"]["text"])
    return found


async def test_a_message_is_shown_with_its_number_and_its_buttons(
    terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    await show(terminal, "first")
    await show(terminal, "an alert", reply_markup=BUTTONS, reply_parameters=ReplyParameters(message_id=1))
    said = capsys.readouterr().out
    assert "Loopwarden · message 1" in said
    assert "Loopwarden · message 2, answering 1" in said
    assert "an alert" in said
    assert "[1] Kill   [2] Details" in said


async def test_an_edit_is_shown_as_one(terminal: Terminal, capsys: pytest.CaptureFixture[str]) -> None:
    message = await show(terminal, "an alert")
    bot = Bot("42:made-up", session=terminal.session)
    await bot.edit_message_text("it goes on", chat_id=1, message_id=message.message_id)
    assert "message 1 (edited)" in capsys.readouterr().out


async def test_a_number_presses_its_button_and_words_are_written(terminal: Terminal) -> None:
    await show(terminal, "an alert", reply_markup=BUTTONS)
    for line in ("2", "1", "/help", "7 up", "²"):
        terminal.enter(line)
    assert await polled(terminal) == ["i:more:1", "i:kill:1", "/help", "7 up", "²"]


@pytest.mark.parametrize("number", ["0", "3", "99999999999999999999"])
async def test_a_number_without_a_button_is_said_to_have_none(
    terminal: Terminal, capsys: pytest.CaptureFixture[str], number: str
) -> None:
    await show(terminal, "an alert", reply_markup=BUTTONS)
    terminal.enter(number)
    assert f"There is no button {number}." in capsys.readouterr().out
    assert await polled(terminal) == []


async def test_a_button_that_an_edit_took_away_is_gone(
    terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    await show(terminal, "an alert", reply_markup=BUTTONS)
    bot = Bot("42:made-up", session=terminal.session)
    await bot.edit_message_text("over", chat_id=1, message_id=1)
    terminal.enter("1")
    assert "That button is gone." in capsys.readouterr().out
    assert await polled(terminal) == []


async def test_what_the_demo_types_and_presses_is_shown(
    terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    await show(terminal, "an alert", reply_markup=BUTTONS)
    terminal.type("/status [/bold] [red]")
    terminal.press(terminal.session.messages[1], "Details")
    terminal.note("a note in [brackets]")
    said = capsys.readouterr().out
    assert "/status [/bold] [red]" in said
    assert "You press [Details] under message 1" in said
    assert "a note in [brackets]" in said
    assert await polled(terminal) == ["/status [/bold] [red]", "i:more:1"]


async def test_entities_are_styled_where_telegram_would(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They count in UTF-16 units; a terminal counts characters."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    colourful = Terminal()
    entities = [
        MessageEntity(type="bold", offset=3, length=4),
        MessageEntity(type="code", offset=8, length=3),
        MessageEntity(type="underline", offset=0, length=2),
    ]
    await show(colourful, "🙂 bold 🙂x plain", entities=entities)
    said = capsys.readouterr().out
    assert "\x1b[1mbold\x1b[0m" in said
    assert "\x1b[36m🙂x\x1b[0m" in said


async def test_a_terminal_says_that_there_is_a_picture(
    terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    photo = BufferedInputFile(b"png", "digest.png")
    await Bot("42:made-up", session=terminal.session).send_photo(1, photo, caption="Week 48: all passed")
    said = capsys.readouterr().out
    assert "message 1, a picture, which a terminal cannot show" in said
    assert "Week 48: all passed" in said


async def test_lines_are_read_until_the_input_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("/help\n  1  \n\n/quit"))
    assert [line async for line in typed_lines()] == ["/help", "1", "", "/quit"]
