"""/digest [WEEKS], and the buttons that turn its pages."""

import msgspec
from aiogram import Router
from aiogram.filters import Command, CommandObject
from aiogram.types import CallbackQuery, Message

from bot.callbacks import DigestButton
from bot.commands import MOST_WEEKS
from bot.desk import Desk
from bot.views import digest as view
from jobs.digest.digest import Digest


def build_router() -> Router:
    """Return the router of this area, new for every dispatcher."""
    router = Router(name="digest")
    router.message.register(digest, Command("digest"))
    router.callback_query.register(turn, DigestButton.filter())
    return router


async def digest(message: Message, command: CommandObject, desk: Desk) -> None:
    weeks = (command.args or "1").strip()
    is_number = weeks.isascii() and weeks.isdigit() and len(weeks) <= len(f"{MOST_WEEKS}")
    if is_number and 0 < int(weeks) <= MOST_WEEKS:
        await desk.tell(message, await desk.digest.on_request(int(weeks)))
    else:
        await desk.answer(message, view.how_many(MOST_WEEKS))


async def turn(query: CallbackQuery, callback_data: DigestButton, desk: Desk) -> None:
    told = await desk.reading.digests.get(callback_data.digest)
    if told is None or told.body is None:
        await desk.answer(query, view.gone())
        return
    body = msgspec.json.decode(told.body, type=Digest)
    # Of a message that is too old Telegram does not say when it was sent.
    at = query.message.date.timestamp() if isinstance(query.message, Message) else body.until
    await desk.replace(query, view.page(told.id, body, callback_data.page, desk.zone, at))
