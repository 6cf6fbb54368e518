"""Composition root: settings -> store, watch list, jobs, dispatcher; the order of start and stop."""

import asyncio
import fcntl
import logging
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from aiogram import Bot, Dispatcher
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.session.base import BaseSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import TelegramAPIError, TelegramBadRequest, TelegramUnauthorizedError
from aiogram.types import BotCommand, BotCommandScopeChat

from bot.clock import SystemClock
from bot.commands import COMMANDS
from bot.desk import Desk, Refusals
from bot.handlers import agents, errors, incidents, overview
from bot.middlewares.access import AccessMiddleware, Gate
from bot.middlewares.answer import AnswerFirst
from bot.middlewares.poll_pulse import PollPulse
from bot.notifier import TelegramNotifier
from bot.pulse import Pulse
from bot.settings import Settings, TelegramSettings, expanded
from bot.watching import WatchlistFile
from jobs.agent_stop import AgentStop
from jobs.alert_delivery import AlertDelivery
from jobs.ports import Clock
from jobs.retention import Retention
from jobs.return_report import ReturnReport
from jobs.schedule import Timed, Timetable
from jobs.storage_watch import StorageWatch
from jobs.store.database import Database, open_database
from jobs.store.opening import StoreError
from jobs.thrash_scan import ThrashScan

_STOP_EVERY: Final = 0.5
"""Seconds between two looks at the intents to stop."""
_STOPS_AT_ONCE: Final = 20
_HEAD_START: Final = 15
"""Seconds that open stops get before the first scan; what takes longer goes on beside it."""
_SCANS_AT_ONCE: Final = 10
"""A source that takes longer than a beat is left out of the next ones, and the others are not."""
_DELIVER_EVERY: Final = 0.25
_SLACK: Final = 30
_LONGEST_SILENCE: Final = 120
"""Seconds without an answered poll, or a look at the outbox, after which health turns red."""
_STORAGE_EVERY: Final = 20
_DAY: Final = 86_400
_REQUEST_TIMEOUT: Final = 30
_POLL_TIMEOUT: Final = 10
_RECONNECT_AFTER: Final = 15
"""Seconds."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """The program, put together and not yet started."""

    bot: Bot
    dispatcher: Dispatcher
    timetable: Timetable
    agent_stop: AgentStop
    delivery: AlertDelivery
    return_report: ReturnReport
    settings: Settings

    async def run(self, stop: asyncio.Event) -> None:
        """Guard and talk until `stop` is set."""
        await self.delivery.recover()
        await self.return_report()
        await self._finish_open_stops(stop)
        self.timetable.start()
        _log.info("guarding; a scan every %g s", self.settings.thrash.every)
        talking = asyncio.ensure_future(self._talk())
        try:
            await stop.wait()
        finally:
            await self._hang_up(talking)
            await self.timetable.stop()
            _log.info("stopped")

    async def _finish_open_stops(self, stop: asyncio.Event) -> None:
        """Carry out what a crash has left open, before anything new."""
        finishing = asyncio.ensure_future(self.timetable.run_now("agent_stop"))
        stopping = asyncio.ensure_future(stop.wait())
        await asyncio.wait({finishing, stopping}, timeout=_HEAD_START, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()

    async def _talk(self) -> None:
        """Poll for ever. A chat that cannot be reached never keeps the guard from guarding."""
        while True:
            try:
                await self._introduce()
                # Not as tasks: an update is confirmed only after its handler, which just writes to the database.
                await self.dispatcher.start_polling(
                    self.bot,
                    handle_signals=False,
                    handle_as_tasks=False,
                    close_bot_session=False,
                    polling_timeout=_POLL_TIMEOUT,
                    allowed_updates=["message", "callback_query"],
                )
            except TelegramUnauthorizedError:
                _log.error("Telegram does not accept LOOPWARDEN_TOKEN. Scans and stops go on without a chat")
            except TelegramAPIError as error:
                _log.warning("Telegram cannot be reached, scans and stops go on: %s", error.message)
            except Exception:  # noqa: BLE001 - whatever the chat does, the guard goes on and the chat is tried again
                _log.exception("talking to the chat failed; scans and stops go on")
            await asyncio.sleep(_RECONNECT_AFTER)

    async def _introduce(self) -> None:
        me = await self.bot.me()
        _log.info("talking as @%s", me.username)
        await self.bot.delete_webhook(drop_pending_updates=False)
        menu = [BotCommand(command=command.name, description=command.does) for command in COMMANDS]
        for chat in {self.settings.home.id, *self.settings.admins}:
            # An admin who has never written to the bot has no chat with it yet.
            with suppress(TelegramBadRequest):
                await self.bot.set_my_commands(menu, scope=BotCommandScopeChat(chat_id=chat))

    async def _hang_up(self, talking: "asyncio.Future[None]") -> None:
        # Cancelling the poll would leave its inner tasks behind; before the first poll there is nothing to stop.
        with suppress(RuntimeError):
            await self.dispatcher.stop_polling()
        talking.cancel()
        with suppress(asyncio.CancelledError):
            await talking


@asynccontextmanager
async def open_app(
    settings: Settings, *, session: BaseSession | None = None, clock: Clock | None = None
) -> AsyncIterator[App]:
    """Put the program together; `session` takes Telegram's place.

    Raises `StoreError`, `WatchlistError` or `SettingsError` if the database or the watch list cannot be used.
    """
    clock = clock or SystemClock()
    policy = settings.thrash.policy()
    watch = WatchlistFile(expanded(settings.watchlist, "LOOPWARDEN_WATCHLIST"), policy.on_detection)
    folder = expanded(settings.data_dir, "LOOPWARDEN_DATA_DIR")
    with _exclusively(folder):
        async with open_database(folder) as store:
            bot = Bot(settings.token.get_secret_value(), session=session or session_for(settings))
            try:
                yield _wire(settings, store, watch, bot, clock)
            finally:
                await bot.session.close()


def session_for(settings: TelegramSettings) -> AiohttpSession:
    """Return the connection to the configured Bot API server."""
    server = TelegramAPIServer.from_base(str(settings.telegram_api).rstrip("/"))
    return AiohttpSession(api=server, timeout=_REQUEST_TIMEOUT)


def _wire(settings: Settings, store: Database, watch: WatchlistFile, bot: Bot, clock: Clock) -> App:
    policy, zone = settings.thrash.policy(), ZoneInfo(settings.tz)
    scan = ThrashScan(store=store, watch=watch, policy=policy, clock=clock)
    agent_stop = AgentStop(store=store, watch=watch, policy=policy, clock=clock)
    pulse = Pulse(
        settings.data_dir.expanduser(),
        {"scan": 3 * policy.every + _SLACK, "poll": _LONGEST_SILENCE, "delivery": _LONGEST_SILENCE},
    )

    retention = Retention(store=store, clock=clock, days=settings.retention_days)
    notifier = TelegramNotifier(bot=bot, home=settings.home, clock=clock, zone=zone)
    delivery = AlertDelivery(store=store, notifier=notifier, clock=clock)
    timetable = Timetable(
        (
            Timed(name="agent_stop", job=agent_stop, every=_STOP_EVERY, overlapping=_STOPS_AT_ONCE),
            Timed(
                name="thrash_scan",
                job=scan,
                every=policy.every,
                overlapping=_SCANS_AT_ONCE,
                worked=partial(pulse.beat, "scan"),
            ),
            Timed(name="storage_watch", job=StorageWatch(store=store, clock=clock), every=_STORAGE_EVERY),
            Timed(name="retention", job=retention, every=_DAY),
            Timed(
                name="alert_delivery",
                job=delivery,
                every=_DELIVER_EVERY,
                is_told=False,
                worked=partial(pulse.beat, "delivery"),
            ),
        ),
        store,
        clock,
    )
    bot.session.middleware(PollPulse(pulse))
    desk = Desk(
        store=store,
        watch=watch,
        scan=scan,
        agent_stop=agent_stop,
        timetable=timetable,
        policy=policy,
        clock=clock,
        zone=zone,
        started_at=clock.now(),
        refusals=Refusals(),
    )
    return App(
        bot=bot,
        dispatcher=_dispatcher(desk, settings),
        timetable=timetable,
        agent_stop=agent_stop,
        delivery=delivery,
        return_report=ReturnReport(store=store, policy=policy, clock=clock),
        settings=settings,
    )


def _dispatcher(desk: Desk, settings: Settings) -> Dispatcher:
    dispatcher = Dispatcher(desk=desk)
    gate = Gate(admins=frozenset(settings.admins), chat=settings.home.id)
    dispatcher.update.outer_middleware(AccessMiddleware(gate, desk.refusals))
    dispatcher.callback_query.outer_middleware(AnswerFirst())
    for module in (overview, agents, incidents, errors):
        dispatcher.include_router(module.build_router())
    return dispatcher


@contextmanager
def _exclusively(folder: Path) -> Iterator[None]:
    """Hold the data directory: two bots over one database would stop every agent twice."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # The folder itself is locked: that works on a full disk too, and leaves nothing behind.
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise StoreError(f"the data directory {folder} cannot be used: {error.strerror}") from error
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(held)
        raise StoreError(f"another Loopwarden is running with the data directory {folder}") from error
    try:
        yield
    finally:
        os.close(held)
