"""A set-up in which everything is right, for tests to break one thing in."""

import io
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer

from bot.checking.runner import check
from bot.clock import SystemClock
from jobs.ports import Clock
from tests.botapi import GROUP, TOKEN, USER, BotApi

NOBODY = 65534
TOPIC = 17

SOURCE = """
[[sources]]
name = "gateway"
format = "gateway"
path = "calls.jsonl"
killer = "terminate"
"""
KILLERS = """
[killers.terminate]
kind = "process"
match = "agent-of-{mark}$"

[killers.abort]
kind = "command"
argv = ["true", "--session={{session}}", "--reason={{reason}}"]

[killers.rehearsal]
kind = "dry_run"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a check has printed, and its exit code."""

    lines: list[str]
    code: int

    def about(self, subject: str) -> str:
        """The one line about a point."""
        [line] = [line for line in self.lines if line[8:].startswith(f"{subject}: ")]
        return line

    @property
    def not_fine(self) -> list[str]:
        return [line for line in self.lines[:-1] if not line.startswith("ok ")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUp:
    """A folder with settings, watch list, log and a running agent, and a Bot API server."""

    api: BotApi
    session: AiohttpSession
    folder: Path
    patch: pytest.MonkeyPatch
    agent: "subprocess.Popen[bytes]"

    @property
    def log(self) -> Path:
        return self.folder / "calls.jsonl"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def set(self, **settings: str) -> None:
        """Change settings; an empty one is not set."""
        for name, value in settings.items():
            self.patch.setenv(f"LOOPWARDEN_{name}", value)

    def watch(self, *parts: str) -> None:
        (self.folder / "loopwarden.toml").write_text("".join(parts).replace("{mark}", self.folder.name))

    def log_call(self, **fields: object) -> None:
        line = {"ts": SystemClock().now(), "agentId": "coder", "tool": "exec", "args": {}} | fields
        with self.log.open("a") as file:
            file.write(json.dumps(line) + "\n")

    async def check(self, *, listen: int = 0, clock: Clock | None = None) -> Checked:
        out = io.StringIO()
        code = await check(out, session=self.session, clock=clock, listen=listen)
        return Checked(lines=out.getvalue().splitlines(), code=code)

    def listing(self) -> list[tuple[str, int, int, int]]:
        """Everything in the folder: name, size, mode and time."""
        found = [(path, path.lstat()) for path in sorted(self.folder.rglob("*"))]
        return [(str(path), seen.st_size, seen.st_mode, seen.st_mtime_ns) for path, seen in found]


@contextmanager
def as_anyone() -> Iterator[None]:
    """Root is denied nothing, so root becomes another user meanwhile."""
    if os.geteuid():
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def session() -> AsyncIterator[AiohttpSession]:
    """One for each file of tests: aiogram takes a quarter of a second to close it."""
    async with AiohttpSession(timeout=30) as session:
        yield session


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users can enter."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def agent(folder: Path) -> "Iterator[subprocess.Popen[bytes]]":
    """A process that does nothing until it is ended, and can be told by its command line."""
    agent = start_agent(folder.name)
    with agent:
        yield agent


def start_agent(name: str, user: int | None = None) -> "subprocess.Popen[bytes]":
    """Start a process that does nothing until its input ends; it has its command line when this returns."""
    command = ["/bin/sh", "-c", "echo && read line", f"agent-of-{name}"]
    agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, user=user)  # noqa: S603 - ours
    # For a moment after the start the kernel shows none; what the process writes comes later than that.
    assert agent.stdout is not None
    agent.stdout.readline()
    return agent


@pytest_asyncio.fixture(loop_scope="module")
async def right(
    folder: Path,
    agent: "subprocess.Popen[bytes]",
    session: AiohttpSession,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[SetUp]:
    for name in [name for name in os.environ if name.startswith("LOOPWARDEN_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(folder)
    async with BotApi() as api:
        session.api = TelegramAPIServer.from_base(api.url)
        right = SetUp(api=api, session=session, folder=folder, patch=monkeypatch, agent=agent)
        right.set(TOKEN=TOKEN, ADMINS=f"{USER}", CHAT=f"{GROUP}/{TOPIC}", DATA_DIR=str(right.data))
        right.set(TELEGRAM_API=api.url, TZ="Europe/Berlin")
        right.watch(SOURCE, KILLERS)
        right.log_call(pid=agent.pid)
        yield right
