"""A chat with the bot in which nothing happens but what the test says: no beat, no clock of the machine.

The log, the watch list, the database and the processes are real; the chat is the console.
"""

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from aiogram import Bot
from aiogram.client.session.middlewares.base import BaseRequestMiddleware, NextRequestMiddlewareType
from aiogram.methods import Response, TelegramMethod
from aiogram.methods.base import TelegramType
from aiogram.types import Update, User
from pydantic import SecretStr

from bot.app import App, open_app
from bot.console import PERSON, ConsoleSession, Shown
from bot.settings import Chat, Settings, ThrashSettings
from tests.fakes import HandClock

Agent = subprocess.Popen[bytes]
SpawnAgent = Callable[[], Agent]

NOON: Final = datetime(2100, 5, 1, 12, tzinfo=UTC).timestamp()
"""When every story begins: late enough for any process of the test to have been started before."""
COLLEAGUE: Final = User(id=2, is_bot=False, first_name="Colleague")
STRANGER: Final = User(id=666, is_bot=False, first_name="Mallory")
GROUP: Final = -100123
AGENT: Final = "worker-3"
STUCK: Final = {"path": "notes/todo.md"}

WATCHLIST: Final = """
[[sources]]
name = "gateway"
format = "gateway"
path = "calls.jsonl"
killer = "stopper"

[killers.stopper]
kind = "process"
match = "sleep 1000"
grace = 2
"""


@dataclass(slots=True, kw_only=True)
class Room:
    """The bot, the person in front of it and the agents beside it. What the bot shows is returned, oldest first."""

    folder: Path
    app: App
    console: ConsoleSession
    clock: HandClock
    shown: list[Shown] = field(default_factory=list)
    """Everything the bot has shown; a message that was edited stands there once more."""

    # ── the person ────────────────────────────────────────────────────────────────────────────────

    async def type(self, text: str, *, person: User = PERSON, chat: int | None = None) -> list[Shown]:
        self.console.type(text, person=person, chat=chat)
        return await self.answers()

    async def press(self, shown: Shown, label: str, *, person: User = PERSON) -> list[Shown]:
        self.console.press(shown, label, person=person)
        return await self.answers()

    async def receive(self, update: Update) -> list[Shown]:
        self.console.deliver(update)
        return await self.answers()

    async def ask(self, text: str) -> Shown:
        """Type what has one answer, and return it."""
        [answer] = await self.type(text)
        return answer

    # ── the agents ────────────────────────────────────────────────────────────────────────────────

    def log(self, *lines: str) -> None:
        """Append lines to the gateway's log."""
        with (self.folder / "calls.jsonl").open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def call(self, agent: str = AGENT, times: int = 1, **fields: Any) -> None:
        """Log calls of an agent, one second apart, the newest now; alike unless `fields` say otherwise."""
        for number in range(times):
            call = {"ts": self.clock.time - times + 1 + number, "agentId": agent, "tool": "read_file"}
            self.log(json.dumps(call | {"args": STUCK} | fields))

    # ── the workflows ─────────────────────────────────────────────────────────────────────────────

    def leave(self, name: str = "report.json", **fields: Any) -> None:
        """Write what a run leaves behind, now: a good report but for `fields`."""
        path = self.folder / name
        path.write_text(json.dumps({"status": "ok", "result": 42, "timestamp": self.clock.time} | fields))
        os.utime(path, (self.clock.time, self.clock.time))

    async def verify(self) -> list[Shown]:
        """Let the bot verify what was reported, and what it has to say arrive."""
        before = len(self.shown)
        while await self.app.handling.desk.verification() is not None:
            pass
        await self.deliver()
        return self.shown[before:]

    async def rewrite(self, watchlist: str) -> None:
        """Edit the watch list, and approve all that this changes."""
        (self.folder / "loopwarden.toml").write_text(watchlist)
        await self.look_at_watchlist()
        desk = self.app.handling.desk
        for proposal in await desk.reading.proposals.newest():
            await desk.pinning.approve(proposal.id, PERSON.id)
        await desk.pinning.enforce()
        await self.deliver()

    async def check(self, workflow: str = "nightly") -> list[Shown]:
        """Have a workflow verified from the chat; return what came after the first answer."""
        await self.type(f"/verify {workflow}")
        return await self.verify()

    # ── the bot ───────────────────────────────────────────────────────────────────────────────────

    async def scan(self) -> list[Shown]:
        """Let the scan's beat come, and what it has to say arrive."""
        return await self.beat("thrash_scan")

    async def stop_agents(self) -> list[Shown]:
        return await self.beat("agent_stop")

    async def thrash(self, scans: int = 1, **fields: Any) -> list[Shown]:
        """Let an agent go round in circles for so many scans; return what the last one showed."""
        shown: list[Shown] = []
        for _ in range(scans):
            self.clock.go_on(60)
            self.call(times=8, **fields)
            shown = await self.scan()
        return shown

    async def look_at_watchlist(self) -> list[Shown]:
        """Look as often as it takes for what is new to count."""
        return [*await self.beat("spec_pinning"), *await self.beat("spec_pinning")]

    async def beat(self, job: str) -> list[Shown]:
        before = len(self.shown)
        await self.run(job)
        await self.deliver()
        return self.shown[before:]

    async def run(self, job: str) -> None:
        """Run a job as its beat does; what it has to say stays in the outbox."""
        timed = {timed.name: timed for timed in self.app.timetable._jobs}
        await self.app.timetable.run(timed[job])

    async def answers(self) -> list[Shown]:
        """Let the bot handle what it has received, and its answers arrive."""
        before = len(self.shown)
        while self.console.has_updates:
            await self.app.polling.poll(0)
        while await self.app.handling.handle_next():
            pass
        await asyncio.gather(*self.app.handling.asides)
        await self.deliver()
        return self.shown[before:]

    def forget_introduction(self) -> None:
        """As at a start: the bot has yet to find out who it is."""
        self.app.polling.introduced.clear()

    async def deliver(self) -> None:
        while await self.app.delivery.send_next():
            pass


class Intercepted(BaseRequestMiddleware):
    """Notes what the bot asks of Telegram by one method; the first so many `times` that ends with an `error`."""

    def __init__(
        self, room: Room, kind: type[TelegramMethod[Any]], error: Exception | None = None, *, times: int = 1
    ) -> None:
        self.calls: list[Any] = []
        self.begun = asyncio.Event()
        self._kind, self._error, self._times = kind, error, times
        room.console.middleware(self)

    async def __call__(
        self,
        make_request: NextRequestMiddlewareType[TelegramType],
        bot: Bot,
        method: TelegramMethod[TelegramType],
    ) -> Response[TelegramType]:
        if isinstance(method, self._kind):
            self.calls.append(method)
            self.begun.set()
            if self._error and len(self.calls) <= self._times:
                raise self._error
        return await make_request(bot, method)


@asynccontextmanager
async def open_room(
    folder: Path,
    *,
    watchlist: str = WATCHLIST,
    chat: Chat | None = None,
    thrash: ThrashSettings | None = None,
    before: Room | None = None,
) -> AsyncIterator[Room]:
    """Put the bot together over a folder. A restart: the room `before` is closed, chat and clock go on."""
    (folder / "loopwarden.toml").write_text(watchlist)
    shown: list[Shown] = before.shown if before else []
    clock = before.clock if before else HandClock(NOON)
    console = before.console if before else ConsoleSession(shown.append, clock)
    settings = settings_for(folder, chat=chat, thrash=thrash)
    async with open_app(settings, session=console, clock=clock) as app:
        app.polling.introduced.set()
        room = Room(folder=folder, app=app, console=console, clock=clock, shown=shown)
        if before is None:
            # What it has pinned at first sight is told before the story begins.
            await room.deliver()
        yield room


def settings_for(folder: Path, *, chat: Chat | None = None, thrash: ThrashSettings | None = None) -> Settings:
    """Return settings that nothing in the environment has a say in."""
    return Settings.model_construct(
        token=SecretStr("424242:made-up"),
        admins=(PERSON.id, COLLEAGUE.id),
        chat=chat,
        data_dir=folder / "data",
        watchlist=folder / "loopwarden.toml",
        tz="UTC",
        thrash=thrash or ThrashSettings(),
    )
