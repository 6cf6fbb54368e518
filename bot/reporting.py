"""`POST /runs/NAME`: a program on this machine says that a run has ended.

What it says is a row in the database before it is answered; the run is verified afterwards.
"""

import asyncio
import hmac
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from bot.accepting import accepting
from bot.logs import seldom
from bot.reported import Reported, ReportError, reported_in
from bot.settings import Settings, SettingsError
from jobs.ports import Clock, Store, Watch
from jobs.verification.history import Report, Trigger

HOST: Final = "127.0.0.1"
_LARGEST_BODY: Final = 1 << 20
_PATIENCE: Final = 10.0
"""Seconds from the beginning of a connection to the end of its headers, and from there to the end of its body."""
_MOST_WAITING: Final = 1000
"""Reports that are not yet dealt with."""
_LINGERING: Final = 2.0
"""Seconds for which the rest of a body is taken off the line, so that the answer to it is read."""
_FAREWELL: Final = 1.0
"""Seconds for what is being answered when the bot stops."""

_log = logging.getLogger(__name__)
_http_log = logging.getLogger(f"{__name__}.http")

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporting:
    """Takes reports from this machine alone, and from who knows the secret."""

    store: Store
    watch: Watch
    clock: Clock
    secret: str
    patience: float = _PATIENCE

    @asynccontextmanager
    async def listening(self, port: int) -> AsyncIterator[int]:
        """Listen while the block runs; yield the port, which the system chooses for 0.

        Raises `SettingsError` if it cannot be listened on.
        """
        application = web.Application(middlewares=[self._guarded], client_max_size=_LARGEST_BODY)
        application.router.add_post("/runs/{workflow}", self._report)
        runner = web.AppRunner(
            application,
            access_log=None,
            logger=_http_log,
            auto_decompress=False,
            keepalive_timeout=self.patience,
            lingering_time=_LINGERING,
            shutdown_timeout=_FAREWELL,
        )
        with seldom(_http_log):
            await runner.setup()
            try:
                listener = _listener(port)
                async with accepting(listener, _server_of(runner), _http_log):
                    yield listener.getsockname()[1]
            finally:
                await runner.cleanup()

    @web.middleware
    async def _guarded(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Whoever does not know the secret is told nothing, not even what exists."""
        if not self._knows_secret(request):
            return _answer(
                401, error="the secret is missing or wrong", headers={"WWW-Authenticate": "Bearer"}
            )
        try:
            return await handler(request)
        except web.HTTPException as refused:
            allow = {"Allow": refused.headers["Allow"]} if "Allow" in refused.headers else None
            return _answer(refused.status, error=refused.reason, headers=allow)

    def _knows_secret(self, request: web.Request) -> bool:
        kind, _, given = request.headers.get("Authorization", "").partition(" ")
        known = hmac.compare_digest(given.strip().encode(errors="replace"), self.secret.encode())
        return known and kind.lower() == "bearer"

    async def _report(self, request: web.Request) -> web.Response:
        if refusal := self._refusal(request):
            return refusal
        try:
            async with asyncio.timeout(self.patience):
                body = await request.read()
            reported = reported_in(body)
        except TimeoutError:
            return _answer(408, error=f"the body took longer than {self.patience:g} s")
        except ReportError as error:
            return _answer(400, error=f"{error}")
        except (web.RequestPayloadError, ConnectionError):
            return _answer(400, error="the body did not come as a whole")
        if reported is None:
            return _answer(200, report=None)
        return await self._kept(request.match_info["workflow"], reported)

    def _refusal(self, request: web.Request) -> web.Response | None:
        """Answer what need not be read."""
        if request.match_info["workflow"] not in self.watch.workflows():
            return _answer(404, error="no workflow of that name")
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            return _answer(415, error="the body must not be compressed")
        if (request.content_length or 0) > _LARGEST_BODY:
            return _answer(413, error=f"larger than {_LARGEST_BODY:,} bytes")
        return None

    async def _kept(self, workflow: str, reported: Reported) -> web.Response:
        report = Report(
            workflow=workflow,
            by=Trigger.REPORT,
            at=self.clock.now(),
            reported=reported.run,
            said=reported.said,
        )
        try:
            async with self.store.transaction() as tables:
                if await tables.reports.count() >= _MOST_WAITING:
                    return _answer(429, error="too many reports wait; try again later")
                kept = await tables.reports.add(report)
        except Exception as error:  # noqa: BLE001 - whatever happens to the row, the reporter must hear of it
            if not await self.store.endure(error):
                _log.exception("a report of workflow %s could not be kept", workflow)
            return _answer(503, error="the report could not be kept; try again later")
        if self.store.trouble:
            # It will be verified, if the bot lives so long: a promise that only the file could keep.
            return _answer(503, error="the report is kept in memory only; try again later")
        return _answer(202, report=kept.id)


def _server_of(runner: web.AppRunner) -> web.Server:
    if runner.server is None:
        raise AssertionError("the runner was set up")
    return runner.server


def _listener(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        # Not the whole of it: its words name the address once more.
        why = os.strerror(error.errno) if error.errno else str(error)
        raise SettingsError(f"LOOPWARDEN_REPORT_PORT: port {port} cannot be listened on: {why}") from error


@asynccontextmanager
async def taking_reports(settings: Settings, store: Store, watch: Watch, clock: Clock) -> AsyncIterator[None]:
    """Take reports while the block runs, if the settings say so."""
    if settings.report_port is None or settings.report_secret is None:
        yield
        return
    secret = settings.report_secret.get_secret_value()
    async with Reporting(store=store, watch=watch, clock=clock, secret=secret).listening(
        settings.report_port
    ) as port:
        _log.info("taking reports of runs on http://%s:%d/runs/", HOST, port)
        yield


def _answer(status: int, *, headers: dict[str, str] | None = None, **body: object) -> web.Response:
    answer = web.json_response(body, status=status, headers=headers)
    # One request for each connection: they are few, and none is kept for nothing.
    answer.force_close()
    return answer
