"""What handlers work with: the jobs they may call, the tables they may read, and the way their answers go."""

from dataclasses import dataclass
from typing import Final
from zoneinfo import ZoneInfo

import msgspec
from aiogram.types import CallbackQuery, Message

from bot.gate import Refusals
from bot.polling import Trouble
from bot.views.screen import Screen
from bot.watching import WatchlistFile
from jobs.agent_stop import AgentStop
from jobs.alert.notice import Outlook
from jobs.alert.outgoing import NOTICE, Mode, Notice, Outgoing
from jobs.ports import Clock, outlook_of
from jobs.run_verification import RunVerification
from jobs.schedule import Timetable
from jobs.spec_pinning import SpecPinning
from jobs.store.database import Database, Tables
from jobs.thrash.policy import ThrashPolicy
from jobs.thrash_scan import ThrashScan
from jobs.verification.history import Waiting
from jobs.weekly_digest import WeeklyDigest

LISTED: Final = 24 * 3600
"""Seconds for which a session is listed after its last call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Handed to every handler."""

    store: Database
    watch: WatchlistFile
    scan: ThrashScan
    agent_stop: AgentStop
    pinning: SpecPinning
    verification: RunVerification
    digest: WeeklyDigest
    timetable: Timetable
    policy: ThrashPolicy
    clock: Clock
    zone: ZoneInfo
    started_at: float
    refusals: Refusals
    trouble: Trouble
    """With fetching updates."""

    @property
    def reading(self) -> Tables:
        """The tables, for questions."""
        return self.store.reading

    async def answer(self, event: Message | CallbackQuery, screen: Screen, *, urgent: bool = False) -> None:
        """Queue a reply to a message, or to the message of a pressed button."""
        await self._put(outgoing(event, screen, Mode.REPLY, urgent=urgent))

    async def replace(self, query: CallbackQuery, screen: Screen, *, urgent: bool = False) -> None:
        """Queue an edit of the message whose button was pressed."""
        await self._put(outgoing(query, screen, Mode.EDIT, urgent=urgent))

    async def tell(self, event: Message | CallbackQuery, notice: Notice) -> None:
        """Queue a reply that is put into words when it is sent."""
        place, body = waiting(event), msgspec.json.encode(notice)
        await self._put(
            Outgoing(kind=NOTICE, body=body, mode=Mode.REPLY, target_message=place.message, chat=place.chat)
        )

    async def _put(self, message: Outgoing) -> None:
        async with self.store.transaction() as tables:
            await tables.outbox.put(message, self.clock.now())

    def outlook(self, source: str) -> Outlook:
        """Say what may be done about the sessions of a source."""
        return outlook_of(self.watch.sources().get(source), self.policy)


def waiting(event: Message | CallbackQuery) -> Waiting:
    """Return where the person behind an event waits for an answer."""
    message = event if isinstance(event, Message) else event.message
    if message is None:
        raise ValueError("an inline message has no chat to answer in")
    topic = message.message_thread_id if isinstance(message, Message) and message.is_topic_message else None
    chat = f"{message.chat.id}" if topic is None else f"{message.chat.id}/{topic}"
    return Waiting(chat=chat, message=message.message_id)


def outgoing(event: Message | CallbackQuery, screen: Screen, mode: Mode, *, urgent: bool = False) -> Outgoing:
    """Return the message that answers, or takes the place of, the one behind an event."""
    place = waiting(event)
    return Outgoing(
        kind="screen",
        body=screen.body,
        mode=mode,
        target_message=place.message,
        chat=place.chat,
        urgent=urgent,
    )
