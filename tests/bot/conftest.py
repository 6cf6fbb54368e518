"""A room to talk to the bot in, processes for it to stop, and a process of our own that is left as it was."""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio
from aiogram.client.telegram import TelegramAPIServer

from bot.session import TelegramSession
from tests.bot.room import Agent, Room, SpawnAgent, open_room
from tests.botapi import BotApi


@pytest.fixture(scope="session", autouse=True)
def unattended_demo(request: pytest.FixtureRequest) -> Iterator["subprocess.Popen[str] | None"]:
    """The demo in a session of its own, begun before all tests of this folder: it plays while they run."""
    if not any(item.name == "test_unattended_demo" for item in request.session.items):
        yield None
        return
    command = [sys.executable, "-m", "bot", "demo", "--unattended"]
    with subprocess.Popen(  # noqa: S603 - our own program
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as demo:
        yield demo
        with suppress(ProcessLookupError):
            os.killpg(demo.pid, signal.SIGKILL)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def session() -> AsyncIterator[TelegramSession]:
    """One for a file that runs in one loop: aiogram takes a quarter of a second to close it."""
    async with TelegramSession(timeout=10) as session:
        yield session


@pytest_asyncio.fixture(loop_scope="module")
async def api(session: TelegramSession) -> AsyncIterator[BotApi]:
    async with BotApi() as api:
        session.api = TelegramAPIServer.from_base(api.url)
        yield api


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with open_room(tmp_path) as room:
        yield room


@pytest.fixture
def spawn_agent() -> Iterator[SpawnAgent]:
    """Start a process that does nothing until it is stopped; the watch list's killer knows it by its command line."""
    agents: list[Agent] = []

    def spawn() -> Agent:
        agents.append(subprocess.Popen(["/bin/sleep", "1000"]))
        return agents[-1]

    yield spawn
    for agent in agents:
        agent.kill()
        agent.wait()


@pytest.fixture
def no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is set, wherever the tests run, and there is no `.env`."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.upper().startswith("LOOPWARDEN_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)


@pytest.fixture
def logging_left_alone() -> Iterator[None]:
    """Put back what a test that configures logging changes for the whole process."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    # Configuring closes the handlers it finds, and these are pytest's.
    root.handlers[:] = []
    yield
    root.handlers[:], root.level = handlers, level
    for name in ("aiogram.event", "apscheduler"):
        logging.getLogger(name).setLevel(logging.NOTSET)
