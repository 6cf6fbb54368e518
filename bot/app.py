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
from aiogram.client.session.base import BaseSession
from aiogram.exceptions import ClientDecodeError, TelegramAPIError
from aiogram.types import BotCommand, BotCommandScopeChat

from bot.clock import SystemClock
from bot.commands import COMMANDS
from bot.desk import Desk
from bot.drawing import Drawing
from bot.gate import Refusals
from bot.handlers import agents, digest, errors, incidents, overview, pins, runs
from bot.handling import AllOrNothing, UpdateHandling
from bot.hook import FOLDER as HOOKS
from bot.notifier import TelegramNotifier
from bot.picturing import Picturing
from bot.polling import Polling
from bot.pulse import Pulse
from bot.reporting import taking_reports
from bot.session import session_for
from bot.settings import Settings, expanded
from bot.watching import WatchlistFile
from jobs.agent_stop import AgentStop
from jobs.alert.pace import TELEGRAM_PACE, UNPACED, PacePolicy
from jobs.alert_delivery import AlertDelivery
from jobs.approved_copies import ApprovedCopies, copies_in
from jobs.artifacts.copying import FileCopier
from jobs.artifacts.find import FoundOutputs
from jobs.artifacts.judge import ArtifactJudge
from jobs.artifacts.trial import ApartTester
from jobs.copying import Copying
from jobs.killers.living import LivingProcesses
from jobs.opening import keep_away_from
from jobs.ports import Clock
from jobs.retention import Retention
from jobs.return_report import ReturnReport
from jobs.run_verification import RunVerification
from jobs.run_watch import RunWatch
from jobs.runners.command import ProcessRunner
from jobs.schedule import StandingBy, Timed, Timetable
from jobs.spec_pinning import SpecPinning
from jobs.storage_watch import StorageWatch
from jobs.store.database import Database, open_database
from jobs.store.schema import FILE_NAME, StoreError
from jobs.thrash_scan import ThrashScan
from jobs.verifier_selftest import VerifierSelftest
from jobs.weekly_digest import WeeklyDigest

_STOP_EVERY: Final = 0.5
"""Seconds between two looks at the intents to stop."""
_STOPS_AT_ONCE: Final = 20
_HEAD_START: Final = 15
"""Seconds that open stops get before the first scan; what takes longer goes on beside it."""
_SCANS_AT_ONCE: Final = 10
"""A source that takes longer than a beat is left out of the next ones, and the others are not."""
_CHATS_AT_ONCE: Final = 4
"""Messages on their way at the same time: where one takes long, the other chats do not wait."""
_SLACK: Final = 30
_LONGEST_SILENCE: Final = 120
"""Seconds without an answered poll, or a look at the inbox or outbox, after which health turns red."""
_STORAGE_EVERY: Final = 20
_LAST_LOOK: Final = 1.5
"""Seconds for the database at the end."""
_PINS_EVERY: Final = 5
"""Seconds between two looks at the watch list."""
_RUNS_EVERY: Final = 5
"""Seconds between two looks at the outputs of workflows."""
_RUN_LOOKS_AT_ONCE: Final = 10
"""An output that cannot be looked at takes until the look is given up; the others are looked at meanwhile."""
_RUNS_AT_ONCE: Final = 4
"""Runs verified at the same time: where one takes long, the others do not wait."""
_SELFTEST_EVERY: Final = 30
_DIGEST_EVERY: Final = 60
_DAY: Final = 86_400

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """The program, put together and not yet started."""

    bot: Bot
    timetable: Timetable
    polling: Polling
    handling: UpdateHandling
    delivery: AlertDelivery
    return_report: ReturnReport
    run_watch: RunWatch
    settings: Settings

    async def run(self, stop: asyncio.Event) -> None:
        """Guard and talk until `stop` is set."""
        await self.delivery.recover()
        await self.return_report()
        await self.run_watch.take_up()
        await self._finish_open_stops(stop)
        self.timetable.start()
        _log.info("guarding; a scan every %g s", self.settings.thrash.every)
        polling = asyncio.ensure_future(self.polling())
        try:
            await stop.wait()
        finally:
            polling.cancel()
            with suppress(asyncio.CancelledError):
                await polling
            await self.timetable.stop()
            # A file that was removed would be begun anew at the next start, with nothing in it that was approved.
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_LOOK):
                    await self.timetable.run_now("storage_watch")
            _log.info("stopped")

    async def _finish_open_stops(self, stop: asyncio.Event) -> None:
        """Carry out what a crash has left open, before anything new."""
        finishing = asyncio.ensure_future(self.timetable.run_now("agent_stop"))
        stopping = asyncio.ensure_future(stop.wait())
        await asyncio.wait({finishing, stopping}, timeout=_HEAD_START, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()


@asynccontextmanager
async def open_app(
    settings: Settings, *, session: BaseSession | None = None, clock: Clock | None = None
) -> AsyncIterator[App]:
    """Put the program together; `session` takes Telegram's place.

    Raises `StoreError`, `WatchlistError` or `SettingsError` if the database or the watch list cannot be used.
    """
    clock = clock or SystemClock()
    policy = settings.thrash.policy()
    folder = expanded(settings.data_dir, "LOOPWARDEN_DATA_DIR")
    watchlist = expanded(settings.watchlist, "LOOPWARDEN_WATCHLIST")
    copies = copies_in(folder)
    watch = WatchlistFile(watchlist, policy.on_detection, folder / HOOKS, copies)
    keep_away_from(folder / FILE_NAME)
    with _exclusively(folder):
        async with open_database(folder) as store:
            pinning = SpecPinning(
                store=store,
                watch=watch,
                clock=clock,
                on_detection=policy.on_detection,
                copying=Copying(copies=copies),
            )
            await pinning.begin()
            bot = Bot(settings.token.get_secret_value(), session=session or session_for(settings))
            try:
                # A terminal, or a test, can be written to at any pace.
                pace = UNPACED if session else TELEGRAM_PACE
                app = _wire(settings, store, watch, bot, clock, pinning=pinning, copies=copies, pace=pace)
                async with taking_reports(settings, store, watch, clock):
                    yield app
            finally:
                await bot.session.close()


def _wire(
    settings: Settings,
    store: Database,
    watch: WatchlistFile,
    bot: Bot,
    clock: Clock,
    *,
    pinning: SpecPinning,
    copies: ApprovedCopies,
    pace: PacePolicy,
) -> App:
    policy, zone = settings.thrash.policy(), ZoneInfo(settings.tz)
    scan = ThrashScan(store=store, watch=watch, policy=policy, clock=clock)
    agent_stop = AgentStop(store=store, watch=watch, policy=policy, clock=clock)
    pulse = Pulse(
        settings.data_dir.expanduser(),
        {
            "scan": 3 * policy.every + _SLACK,
            **dict.fromkeys(("poll", "handling", "delivery"), _LONGEST_SILENCE),
        },
    )
    retention = Retention(store=store, clock=clock, days=settings.retention_days)
    outputs = FoundOutputs()
    run_watch = RunWatch(
        store=store, watch=watch, outputs=outputs, processes=LivingProcesses(), clock=clock, zone=zone
    )
    selftest = VerifierSelftest(store=store, watch=watch, tester=ApartTester(), clock=clock, zone=zone)
    weekly_digest = WeeklyDigest(
        store=store, clock=clock, zone=zone, every=policy.every, selftest=selftest.up_to
    )
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
            Timed(name="run_watch", job=run_watch, every=_RUNS_EVERY, overlapping=_RUN_LOOKS_AT_ONCE),
            Timed(name="spec_pinning", job=pinning, every=_PINS_EVERY),
            Timed(name="storage_watch", job=StorageWatch(store=store, clock=clock), every=_STORAGE_EVERY),
            Timed(name="verifier_selftest", job=selftest, every=_SELFTEST_EVERY),
            Timed(name="weekly_digest", job=weekly_digest, every=_DIGEST_EVERY),
            Timed(name="retention", job=retention, every=_DAY),
        ),
        store,
        clock,
    )
    delivery = AlertDelivery(
        store=store,
        notifier=TelegramNotifier(
            bot=bot,
            clock=clock,
            zone=zone,
            picturing=Picturing(
                bot=bot, draw=Drawing(data_dir=settings.data_dir.expanduser()).png, zone=zone, gap=pace.gap
            ),
        ),
        clock=clock,
        home=f"{settings.home}",
        others=tuple(f"{admin}" for admin in settings.admins),
        pace=pace,
    )
    polling = Polling(
        bot=bot, store=store, clock=clock, pulse=pulse, introduce=partial(_introduce, bot, store, settings)
    )
    verification = RunVerification(
        store=store,
        watch=watch,
        outputs=outputs,
        judge=ArtifactJudge(ProcessRunner(copies)),
        copier=FileCopier(),
        clock=clock,
        zone=zone,
    )
    desk = Desk(
        store=store,
        watch=watch,
        scan=scan,
        agent_stop=agent_stop,
        pinning=pinning,
        verification=verification,
        digest=weekly_digest,
        timetable=timetable,
        policy=policy,
        clock=clock,
        zone=zone,
        started_at=clock.now(),
        refusals=Refusals(),
        trouble=polling.trouble,
    )
    handling = UpdateHandling(
        bot=bot,
        dispatcher=_dispatcher(desk),
        desk=desk,
        delivery=delivery,
        admins=frozenset(settings.admins),
        home=settings.home,
        introduced=polling.introduced,
    )
    timetable.stand_by(StandingBy(name="pins_in_force", job=pinning.enforce))
    timetable.stand_by(StandingBy(name="run_verification", job=verification, at_once=_RUNS_AT_ONCE))
    timetable.stand_by(
        StandingBy(name="update_handling", job=handling, worked=partial(pulse.beat, "handling"))
    )
    timetable.stand_by(
        StandingBy(
            name="alert_delivery",
            job=delivery,
            at_once=_CHATS_AT_ONCE,
            is_told=False,
            worked=partial(pulse.beat, "delivery"),
        )
    )
    return App(
        bot=bot,
        timetable=timetable,
        polling=polling,
        handling=handling,
        delivery=delivery,
        return_report=ReturnReport(store=store, policy=policy, clock=clock),
        run_watch=run_watch,
        settings=settings,
    )


async def _introduce(bot: Bot, store: Database, settings: Settings) -> None:
    """Make sure that polling is possible, and show the commands where they are obeyed."""
    me = await bot.me()
    _log.info("talking as @%s", me.username)
    await bot.delete_webhook(drop_pending_updates=False)
    menu = [BotCommand(command=command.name, description=command.does) for command in COMMANDS]
    home = await store.reading.chats.current(f"{settings.home.id}")
    for chat in {int(home), *settings.admins}:
        try:
            await bot.set_my_commands(menu, scope=BotCommandScopeChat(chat_id=chat))
        except (TelegramAPIError, ClientDecodeError) as error:
            # An admin may never have written to the bot or may have blocked it. A menu is worth no delay.
            _log.info("no menu in chat %d: %s", chat, error.message)


def _dispatcher(desk: Desk) -> Dispatcher:
    dispatcher = Dispatcher(desk=desk)
    for observer in (dispatcher.message, dispatcher.callback_query):
        observer.middleware(AllOrNothing(desk.store))
    for module in (overview, agents, incidents, runs, pins, digest, errors):
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
