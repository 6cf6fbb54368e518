"""The chat that alerts go to and the admins' own: may the bot write there? Shown by `typing`, never by a message."""

from collections.abc import Awaitable
from typing import Final, TypeVar, assert_never

from aiogram import Bot
from aiogram.enums import ChatAction, ChatType
from aiogram.exceptions import (
    ClientDecodeError,
    TelegramBadRequest,
    TelegramForbiddenError,
    TelegramMigrateToChat,
)
from aiogram.types import (
    ChatFullInfo,
    ChatMemberAdministrator,
    ChatMemberBanned,
    ChatMemberLeft,
    ChatMemberMember,
    ChatMemberOwner,
    ChatMemberRestricted,
    ResultChatMemberUnion,
)

from bot.checking.connection import FAILURES, PATIENCE, told
from bot.checking.finding import Finding, error, fine, foreign, warning
from bot.settings import Chat

Answer = TypeVar("Answer")

_CHAT: Final = "chat"
_ADD: Final = "add the bot to that chat"
_CORRECT: Final = "correct LOOPWARDEN_CHAT; `loopwarden setup` shows ids"
_UNKNOWN: Final = "chat not found"


async def check_chat(bot: Bot, home: Chat, admins: tuple[int, ...]) -> Finding:
    """Look whether alerts would arrive."""
    try:
        return await _approach(bot, home, admins)
    except TelegramMigrateToChat as moved:
        now = Chat(id=moved.migrate_to_chat_id, topic=home.topic)
        return error(_CHAT, f"the group {home.id} has become a supergroup", f"set LOOPWARDEN_CHAT={now}")
    except (TelegramBadRequest, TelegramForbiddenError) as refusal:
        return error(_CHAT, f"{home} cannot be written to: {told(refusal)}", _way_in(home, refusal))
    except FAILURES as failure:
        return warning(_CHAT, f"{home} cannot be checked: {told(failure)}", "run the check again later")


async def check_admin(bot: Bot, admin: int, username: str) -> Finding:
    """Look whether an admin can be answered in private."""
    subject = f"admin {admin}"
    try:
        found = await _understood(bot.get_chat(admin, request_timeout=PATIENCE))
        await bot.send_chat_action(admin, ChatAction.TYPING, request_timeout=PATIENCE)
    except (TelegramBadRequest, TelegramForbiddenError) as refusal:
        ask = f"let them write /start to @{username} in private, or correct the id in LOOPWARDEN_ADMINS"
        return warning(subject, f"cannot be written to in private: {told(refusal)}", ask)
    except FAILURES as failure:
        return warning(subject, f"cannot be checked: {told(failure)}", "run the check again later")
    return fine(subject, f"{_title(found)} can be written to in private")


async def _approach(bot: Bot, home: Chat, admins: tuple[int, ...]) -> Finding:
    found = await _understood(bot.get_chat(home.id, request_timeout=PATIENCE))
    if found and found.type == ChatType.PRIVATE:
        if home.id not in admins:
            theirs = "add that id to LOOPWARDEN_ADMINS, or correct LOOPWARDEN_CHAT"
            return warning(_CHAT, f"{home} is the private chat of nobody who may press a button", theirs)
    elif found and (obstacle := await _obstacle(bot, home, found)):
        return obstacle
    await bot.send_chat_action(
        home.id, ChatAction.TYPING, message_thread_id=home.topic, request_timeout=PATIENCE
    )
    return fine(_CHAT, f"{_title(found)} ({home}) can be written to")


async def _obstacle(bot: Bot, home: Chat, found: ChatFullInfo) -> Finding | None:
    """Return what keeps the bot from writing in a group or channel."""
    member = await _understood(bot.get_chat_member(home.id, bot.id, request_timeout=PATIENCE))
    where = f"{_title(found)} ({home})"
    if member and (bar := _bar(member, found)):
        says, mend = bar
        return error(_CHAT, f"{where} {says}", mend)
    if home.topic and not found.is_forum:
        return error(
            _CHAT, f"{where} has no topics", f"set LOOPWARDEN_CHAT={home.id}, or turn topics on there"
        )
    return None


def _bar(member: ResultChatMemberUnion, found: ChatFullInfo) -> tuple[str, str] | None:
    """Return what the bot's standing keeps it from, and what to do about that."""
    if isinstance(member, ChatMemberLeft):
        return "does not have the bot among its members", _ADD
    if isinstance(member, ChatMemberBanned):
        return "has banned the bot", f"lift the ban, then {_ADD}"
    if not _may_write(member, found):
        return "does not let the bot write", "make the bot an administrator there who may post"
    return None


def _may_write(
    member: ChatMemberOwner | ChatMemberAdministrator | ChatMemberMember | ChatMemberRestricted,
    found: ChatFullInfo,
) -> bool:
    is_channel = found.type == ChatType.CHANNEL
    match member:
        case ChatMemberOwner():
            return True
        case ChatMemberAdministrator():
            return not is_channel or bool(member.can_post_messages)
        case ChatMemberMember():
            is_muted = found.permissions is not None and found.permissions.can_send_messages is False
            return not is_channel and not is_muted
        case ChatMemberRestricted():
            return member.is_member and member.can_send_messages
        case _:
            assert_never(member)


def _way_in(home: Chat, refusal: TelegramBadRequest | TelegramForbiddenError) -> str:
    if home.id > 0:
        return f"write /start to the bot from there (and do not block it), or {_CORRECT}"
    if isinstance(refusal, TelegramForbiddenError) or _UNKNOWN in refusal.message:
        return f"{_ADD}, or {_CORRECT}"
    if home.topic:
        return f"see that the topic is there and open, or {_CORRECT}"
    return f"let the bot write there, or {_CORRECT}"


async def _understood(request: Awaitable[Answer]) -> Answer | None:
    """Return the answer; None from a Bot API server that is older than aiogram and leaves out what that insists on."""
    try:
        return await request
    except ClientDecodeError:
        return None


def _title(found: ChatFullInfo | None) -> str:
    return foreign((found and (found.title or found.first_name)) or "?", 60)
