"""The Bot API server: can it be reached, does it accept the token, who else polls, what time is it there?"""

from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.exceptions import (
    ClientDecodeError,
    TelegramAPIError,
    TelegramConflictError,
    TelegramNetworkError,
    TelegramNotFound,
    TelegramUnauthorizedError,
)
from aiohttp import ClientError, ClientTimeout

from bot.checking.finding import Finding, error, fine, foreign, warning

FAILURES: Final = (TelegramAPIError, ClientDecodeError)
"""How a request can fail."""
PATIENCE: Final = 10
"""Seconds for one answer."""

_TOKEN: Final = "token"  # noqa: S105 - the name of a point
_SERVER: Final = "Bot API server"
_POLLING: Final = "polling"
_LATER: Final = "run the check again later"


class Introduction(NamedTuple):
    """What became of the first request."""

    finding: Finding
    username: str | None
    """The bot's; None if nothing else can be asked."""


def told(failure: TelegramAPIError | ClientDecodeError) -> str:
    """Return what went wrong, in Telegram's words if they are known."""
    if isinstance(failure, ClientDecodeError):
        return "the answer cannot be understood"
    return foreign(failure.message)


async def check_token(bot: Bot, server: str) -> Introduction:
    """Ask the server who the bot is."""
    try:
        me = await bot.get_me(request_timeout=PATIENCE)
    except FAILURES as failure:
        return Introduction(_refusal(failure, server), None)
    name = me.username or f"{me.id}"
    return Introduction(fine(_TOKEN, f"accepted: the bot is @{name}"), name)


async def check_polling(bot: Bot, listen: int, *, is_running: bool) -> Finding:
    """Look for others who take the bot's updates, for at most `listen` seconds. Confirms no update."""
    try:
        hook = await bot.get_webhook_info(request_timeout=PATIENCE)
        if hook.url:
            host = foreign(urlsplit(hook.url).hostname or "somewhere")
            removed = (
                "`loopwarden run` removes it; if another program needs it, make a bot of its own for that"
            )
            return warning(_POLLING, f"a webhook to {host} is set, so nobody can poll", removed)
        if is_running:
            return fine(_POLLING, "not tried: a bot runs with this data directory, and polls itself")
        # Whoever polls already is cut off, and ends this poll in turn when trying again: so that takes a while.
        # Without an offset nothing is confirmed, and without a list of kinds the one in force stays.
        await bot.get_updates(limit=1, timeout=listen, request_timeout=listen + PATIENCE)
    except TelegramConflictError:
        return error(
            _POLLING,
            "another program polls this bot, and each would get only some of the messages",
            "stop that program (another Loopwarden, `loopwarden setup`?), or make a bot of its own for each",
        )
    except FAILURES as failure:
        return warning(_POLLING, f"cannot be checked: {told(failure)}", _LATER)
    return fine(_POLLING, "nobody else polls this bot")


async def server_time(session: AiohttpSession, server: str) -> float | None:
    """Return the server's clock, in epoch seconds; None if it does not tell."""
    client = await session.create_session()
    try:
        # The address alone, without the token: any answer carries the date.
        patience = ClientTimeout(total=PATIENCE)
        async with client.head(server, allow_redirects=False, timeout=patience) as answer:
            return parsedate_to_datetime(answer.headers["Date"]).timestamp()
    except (ClientError, TimeoutError, LookupError, ValueError):
        return None


def _refusal(failure: TelegramAPIError | ClientDecodeError, server: str) -> Finding:
    where = foreign(server)
    match failure:
        case TelegramUnauthorizedError():
            anew = "copy the token that @BotFather shows under /mybots into LOOPWARDEN_TOKEN"
            return error(_TOKEN, f"{where} does not accept it", anew)
        case TelegramNotFound():
            either = "copy the token from @BotFather anew, or correct LOOPWARDEN_TELEGRAM_API"
            return error(_TOKEN, f"{where} knows no bot with it", either)
        case TelegramNetworkError():
            network = "see to network, DNS and proxy, or correct LOOPWARDEN_TELEGRAM_API"
            return error(_SERVER, f"{where} cannot be reached ({told(failure)})", network)
        case ClientDecodeError():
            address = "correct LOOPWARDEN_TELEGRAM_API; without it https://api.telegram.org is asked"
            return error(_SERVER, f"what answers at {where} is none", address)
        case _:
            return error(_SERVER, f"{where} fails: {told(failure)}", _LATER)
