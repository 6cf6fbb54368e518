"""The second press: a one-time nonce, for one person, in one message, for one target, for a minute."""

import secrets
from dataclasses import dataclass
from typing import Final

from aiogram.types import CallbackQuery, Message

from bot.desk import LISTED, Desk, outgoing
from bot.views import stop
from bot.views.screen import Screen
from bot.views.stop import Refusal
from jobs.agent_stop import Order
from jobs.alert.outgoing import Mode
from jobs.ports import Confirmation
from jobs.starters import starter_of
from jobs.store.outbox import Sent
from jobs.thrash.session import Session

VALID_FOR: Final = 60
"""Seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Press:
    """Who pressed, and where."""

    user_id: int
    chat_id: int
    message_id: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said to a press."""

    screen: Screen
    is_aside: bool = False
    """Said beside the question, whose text and buttons stay as they are."""


def reason_to_refuse(
    confirmation: Confirmation | None, press: Press, sent: Sent | None, now: float
) -> Refusal | None:
    """Judge a press; `sent` is the message that carries the confirmation, whose time begins with it."""
    if confirmation is None:
        return Refusal.UNKNOWN
    if (press.user_id, press.chat_id) != (confirmation.user_id, confirmation.chat_id):
        return Refusal.FOREIGN
    if sent is None:
        return Refusal.EARLY
    if press.message_id != sent.message:
        return Refusal.ELSEWHERE
    if confirmation.used_at is not None:
        return Refusal.USED
    return Refusal.EXPIRED if now > max(confirmation.expires_at, sent.at + VALID_FOR) else None


async def ask(desk: Desk, event: Message | CallbackQuery, session: Session) -> None:
    """Show the confirmation of a stop to the person behind `event`."""
    message = event if isinstance(event, Message) else event.message
    if message is None or event.from_user is None:
        return
    now = desk.clock.now()
    nonce = secrets.token_urlsafe(12)
    sessions = desk.reading.sessions
    is_stopped = bool(await desk.agent_stop.stopped_among([session]))
    shown = stop.confirmation(
        session,
        nonce,
        VALID_FOR,
        now,
        desk.zone,
        is_stopped=is_stopped,
        is_dry_run=desk.outlook(session.source).is_dry_run,
        starter=await starter_of(sessions, session.id),
        beside=await sessions.sharing_process(session, now - LISTED),
    )
    question = outgoing(event, shown, Mode.REPLY, urgent=True)
    async with desk.store.transaction() as tables:
        confirmation = Confirmation(
            nonce=nonce,
            session_id=session.id,
            pid=session.pid,
            user_id=event.from_user.id,
            chat_id=message.chat.id,
            outgoing_id=await tables.outbox.put(question, now),
            expires_at=now + VALID_FOR,
        )
        await tables.confirmations.add(confirmation)


async def answer(desk: Desk, nonce: str, press: Press, *, is_yes: bool) -> Answer:
    """Take the answer to a confirmation: order the stop, or do nothing."""
    now = desk.clock.now()
    confirmation = await desk.reading.confirmations.get(nonce)
    sent = None if confirmation is None else await desk.reading.outbox.sent(confirmation.outgoing_id)
    refusal = reason_to_refuse(confirmation, press, sent, now)
    if confirmation is None or refusal is not None:
        # Somebody else cannot take the question away; of two taps in a row the answer to the first one stays.
        is_aside = refusal is not Refusal.EXPIRED
        return Answer(stop.refused(refusal or Refusal.UNKNOWN), is_aside=is_aside)
    async with desk.store.transaction() as tables:
        order = await _order(desk, confirmation) if is_yes else None
        await tables.confirmations.mark_used(nonce, now)
    return Answer(stop.cancelled() if order is None else stop.ordered(order))


async def _order(desk: Desk, confirmation: Confirmation) -> Order:
    return await desk.agent_stop.order(confirmation.session_id, pid=confirmation.pid, by=confirmation.user_id)
