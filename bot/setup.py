"""`loopwarden setup`: shows the ids of whoever writes to the bot, as lines for the settings."""

import asyncio
import sys

from aiogram import Bot
from aiogram.exceptions import (
    ClientDecodeError,
    TelegramAPIError,
    TelegramConflictError,
    TelegramUnauthorizedError,
)
from aiogram.types import Message, Update

from bot.session import session_for
from bot.settings import TelegramSettings
from bot.views.cleaning import one_line

_POLL_TIMEOUT = 10
_RETRY_AFTER = 3
"""Seconds."""
_UNREACHABLE = (TelegramAPIError, ClientDecodeError)
"""The second is an answer of something in between."""


class SetupError(Exception):
    """The ids cannot be shown; the message says what to do."""


async def show_ids(settings: TelegramSettings, stop: asyncio.Event) -> None:
    """Print the ids of everyone who writes, until `stop` is set. Raises `SetupError`."""
    bot = Bot(settings.token.get_secret_value(), session=session_for(settings))
    try:
        listening = asyncio.ensure_future(_listen(bot))
        stopping = asyncio.ensure_future(stop.wait())
        done, waiting = await asyncio.wait({listening, stopping}, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        for task in done:
            task.result()
    finally:
        await bot.session.close()


async def _listen(bot: Bot) -> None:
    try:
        me = await bot.me()
        await bot.delete_webhook(drop_pending_updates=False)
        _say(
            f"Write to @{me.username}: in private, and with /start@{me.username} in the group that alerts shall go to."
        )
        _say("Ctrl-C ends this.")
        await _print_senders(bot)
    except TelegramUnauthorizedError as error:
        raise SetupError("Telegram refuses the token: check LOOPWARDEN_TOKEN") from error
    except _UNREACHABLE as error:
        raise SetupError(f"Telegram cannot be reached: {error.message}") from error


async def _print_senders(bot: Bot) -> None:
    offset, seen = None, set[str]()
    while True:
        try:
            updates = await bot.get_updates(offset=offset, timeout=_POLL_TIMEOUT, allowed_updates=["message"])
        except TelegramConflictError as error:
            raise SetupError(
                "another program polls this bot: stop it first, for instance `loopwarden run`"
            ) from error
        except TelegramUnauthorizedError:
            raise
        except _UNREACHABLE as error:
            _say(f"Telegram cannot be reached, trying again: {error.message}")
            await asyncio.sleep(_RETRY_AFTER)
            continue
        for update in updates:
            offset = update.update_id + 1
            if (text := describe(update)) and text not in seen:
                seen.add(text)
                _say(text)


def describe(update: Update) -> str | None:
    """Return who wrote and where, as lines for the settings; None for anything but a person's message."""
    message = update.message
    if message is None or message.from_user is None or message.sender_chat is not None:
        return None
    # In one line each: a name with a line end in it could pass for a line of the settings.
    who = one_line(message.from_user.full_name, 40)
    group = one_line(message.chat.title or "a group", 40)
    where = "in private" if message.chat.type == "private" else f"in {group}"
    return f"\n{who} wrote {where}:\n  LOOPWARDEN_ADMINS={message.from_user.id}\n  LOOPWARDEN_CHAT={_place(message)}"


def _place(message: Message) -> str:
    topic = f"/{message.message_thread_id}" if message.is_topic_message else ""
    return f"{message.chat.id}{topic}"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
