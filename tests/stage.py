"""Where the whole product is tested: bots and agents that run, and a chat on the loopback interface."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.botapi import GROUP, TOKEN, USER, BotApi, Message
from tests.crashing import Crash

TESTS = Path(__file__).parent
PATIENCE = 120.0
"""Seconds for what is to come; on an idle machine it comes in a twentieth of that."""
LAST_WORDS = 5.0
"""Seconds that the bot may take to end after SIGTERM."""

SOURCE = """
[[sources]]
name = "gateway"
format = "gateway"
path = "calls.jsonl"
killer = "stopper"
"""
PROCESS_KILLER = """
[killers.{name}]
kind = "process"
match = "agent[.]py"
grace = {grace}
"""


# What runs: agents and bots


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningBot:
    """A bot process; `ended` comes with its exit code, negative for a signal."""

    pid: int
    log: Path
    ended: asyncio.Future[int]

    def signal(self, number: signal.Signals) -> None:
        if not self.ended.done():
            os.kill(self.pid, number)

    async def exit_code(self, within: float) -> int:
        return await asyncio.wait_for(asyncio.shield(self.ended), within)

    async def terminate(self) -> int:
        """Return the exit code after SIGTERM, for which the bot has so much time and no more."""
        self.signal(signal.SIGTERM)
        return await self.exit_code(LAST_WORDS)

    async def has_logged(self, words: str) -> None:
        async with asyncio.timeout(PATIENCE):
            # Another process writes the log: there is no event to wait for.
            while words not in self.log.read_text():  # noqa: ASYNC110
                await asyncio.sleep(0.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A folder with a watch list and a log, a chat, and whatever is started beside them."""

    api: BotApi
    folder: Path
    preloaded: Path
    stack: AsyncExitStack

    @property
    def log(self) -> Path:
        return self.folder / "calls.jsonl"

    def watch(self, *tables: str) -> None:
        (self.folder / "loopwarden.toml").write_text("".join(tables))

    async def agent(self, *arguments: str) -> asyncio.subprocess.Process:
        """Start an agent, and wait until it has made enough calls to tell how it fares."""
        # -S, because a stranger's program is not measured, and starts the sooner.
        command = (sys.executable, "-S", str(TESTS / "agent.py"), str(self.log), *arguments)
        agent = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        self.stack.push_async_callback(_end_agent, agent)
        assert await said_by(agent) == "working"
        return agent

    async def bot(self, **settings: str) -> RunningBot:
        """Start a bot from the process that has imported it already."""
        return await self._forked(None, settings)

    async def doomed_bot(self, crash: Crash) -> RunningBot:
        """Start one that will die there."""
        return await self._forked(crash, {})

    async def new_bot(self, **settings: str) -> RunningBot:
        """Start a bot as a user does."""
        log = self._next_log()
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "bot", "run"),
                cwd=self.folder,
                env=self.environment(**settings),
                stdout=output,
                stderr=output,
            )
        return self._started(process.pid, log, asyncio.ensure_future(process.wait()))

    def environment(self, **settings: str) -> dict[str, str]:
        """What a bot is told: the settings of this stage, `settings` laid over them; an empty one is not set."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("LOOPWARDEN_")}
        given = {
            "TOKEN": TOKEN,
            "ADMINS": f"{USER}",
            "CHAT": f"{GROUP}",
            "DATA_DIR": str(self.folder / "data"),
            "WATCHLIST": "loopwarden.toml",
            "TELEGRAM_API": self.api.url,
            "THRASH__EVERY": "1",
        }
        return own | {f"LOOPWARDEN_{name}": value for name, value in (given | settings).items() if value}

    async def shown(self, *words: str) -> Message:
        """Wait for a message of the bot that holds all these words, as it is now or after an edit."""
        return await self.api.wait_for(
            lambda message: all(w in message.text for w in words), timeout=PATIENCE
        )

    def log_calls(self, agent: str, count: int) -> None:
        """Write the same call so many times, as an agent of which nothing but its log is known."""
        ts = time.time()  # noqa: TID251 - a foreign program
        line = {"ts": ts, "agentId": agent, "tool": "search", "args": {"query": "retry policy"}}
        with self.log.open("a") as file:
            file.write((json.dumps(line) + "\n") * count)

    async def _forked(self, crash: Crash | None, settings: Mapping[str, str]) -> RunningBot:
        reader, writer = await asyncio.open_unix_connection(self.preloaded)
        self.stack.callback(writer.close)
        log = self._next_log()
        order = {
            "environment": self.environment(**settings),
            "folder": str(self.folder),
            "log": str(log),
            "crash": crash,
        }
        writer.write(json.dumps(order).encode() + b"\n")
        pid = int(await reader.readline())
        return self._started(pid, log, asyncio.ensure_future(_number(reader)))

    def _next_log(self) -> Path:
        log = self.folder / f"bot-{len(list(self.folder.glob('bot-*.log')))}.log"
        log.touch()
        return log

    def _started(self, pid: int, log: Path, ended: asyncio.Future[int]) -> RunningBot:
        bot = RunningBot(pid=pid, log=log, ended=ended)
        self.stack.push_async_callback(_end_bot, bot)
        return bot


async def _number(reader: asyncio.StreamReader) -> int:
    return int(await reader.readline())


async def _end_bot(bot: RunningBot) -> None:
    with suppress(ProcessLookupError):
        bot.signal(signal.SIGKILL)
    await bot.ended
    # For whoever reads why a test has failed.
    sys.stdout.write(f"{bot.log.name}:\n{bot.log.read_text()}\n")


async def _end_agent(agent: asyncio.subprocess.Process) -> None:
    if agent.returncode is None:
        agent.kill()
    await agent.wait()


async def said_by(agent: asyncio.subprocess.Process) -> str:
    assert agent.stdout
    line = await asyncio.wait_for(agent.stdout.readline(), PATIENCE)
    return line.decode().strip()


async def ending_of(agent: asyncio.subprocess.Process) -> int:
    """Wait for an agent that is to end; its exit code, negative for a signal."""
    return await asyncio.wait_for(agent.wait(), PATIENCE)
