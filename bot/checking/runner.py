"""Every point that `loopwarden run` depends on, one after the other."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Final, TextIO
from zoneinfo import ZoneInfo

from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession

from bot.checking.chats import check_admin, check_chat
from bot.checking.clock import check_clock, check_zone
from bot.checking.configuration import (
    Configuration,
    LenientSettings,
    check_settings,
    expanded,
    read_configuration,
)
from bot.checking.connection import check_polling, check_token, server_time
from bot.checking.data import check_data, is_held
from bot.checking.finding import Finding, error, warning
from bot.checking.killers import check_killer
from bot.checking.pins import check_pins, in_order_of_approval
from bot.checking.port import check_port
from bot.checking.report import Report
from bot.checking.watched import check_overlaps, check_source, read_for_check
from bot.checking.workflows import check_workflow
from bot.clock import SystemClock
from bot.hook import FOLDER as HOOKS
from bot.session import session_for
from bot.watching import WatchlistFile
from jobs.ports import Clock

LISTEN: Final = 5
"""Seconds to wait for another poller to show itself; one that was cut off tries again within about three."""
_NO_HOME: Final = "no home folder is known for ~"


async def check(
    out: TextIO, *, session: AiohttpSession | None = None, clock: Clock | None = None, listen: int = LISTEN
) -> int:
    """Print one line for every point; return 1 if something would not work, else 0.

    Changes nothing: no message, no update confirmed, no file. `session` takes the place of one of its own.
    """
    clock, report = clock or SystemClock(), Report(out)
    configuration = read_configuration()
    settings = configuration.settings
    for finding in check_settings(configuration):
        report.show(finding)
    if settings is None:
        return report.close()
    report.hide(settings.token.get_secret_value())
    if settings.report_secret:
        report.hide(settings.report_secret.get_secret_value())
    for finding in _on_this_machine(settings, clock.now()):
        report.show(finding)
    async for finding in _in_telegram(configuration, settings, session, clock, listen):
        report.show(finding)
    return report.close()


def _on_this_machine(settings: LenientSettings, now: float) -> Iterator[Finding]:
    zone = ZoneInfo(settings.tz)
    yield check_zone(zone, now)
    folder = expanded(settings.data_dir)
    if settings.report_port is not None:
        yield check_port(settings.report_port, is_running=folder is not None and is_held(folder))
    if folder:
        yield from check_data(folder)
    else:
        yield error("data directory", _NO_HOME, "set LOOPWARDEN_DATA_DIR to an absolute path")
    if path := expanded(settings.watchlist):
        watchlist, finding = read_for_check(path)
    else:
        mend = "set LOOPWARDEN_WATCHLIST to an absolute path"
        watchlist, finding = None, error("watch list", _NO_HOME, mend)
    yield finding
    if watchlist is None:
        return
    for source in watchlist.sources:
        hooks = str(folder / HOOKS) if folder else None
        yield from check_source(source, watchlist, settings.thrash.on_detection, now, zone, hooks=hooks)
    yield from check_overlaps(
        in_order_of_approval(folder, watchlist.sources) if folder else watchlist.sources
    )
    for name, killer in watchlist.killers.items():
        yield from check_killer(name, killer, now)
    for workflow in watchlist.workflows.values():
        yield from check_workflow(workflow, now, zone)
    if folder and path:
        on_detection = settings.thrash.on_detection
        yield from check_pins(folder, WatchlistFile(path, on_detection), on_detection, now)


async def _in_telegram(
    configuration: Configuration,
    settings: LenientSettings,
    session: AiohttpSession | None,
    clock: Clock,
    listen: int,
) -> AsyncIterator[Finding]:
    if not configuration.knows("TOKEN", "TELEGRAM_API"):
        yield warning("Telegram", "not asked anything", "mend the settings first, then run the check again")
        return
    server = str(settings.telegram_api).rstrip("/")
    async with _connected(settings, session) as (bot, connection):
        introduction = await check_token(bot, server)
        yield introduction.finding
        if introduction.username is None:
            return
        server_now = await server_time(connection, server)
        yield check_clock(clock.now(), server_now)
        if configuration.knows("CHAT") and settings.admins:
            yield await check_chat(bot, settings.home, settings.admins)
        for admin in settings.admins:
            yield await check_admin(bot, admin, introduction.username)
        folder = expanded(settings.data_dir)
        is_running = folder is not None and is_held(folder)
        yield await check_polling(bot, listen, is_running=is_running)


@asynccontextmanager
async def _connected(
    settings: LenientSettings, session: AiohttpSession | None
) -> AsyncIterator[tuple[Bot, AiohttpSession]]:
    connection = session or session_for(settings)
    try:
        yield Bot(settings.token.get_secret_value(), session=connection), connection
    finally:
        if session is None:
            await connection.close()
