"""The whole product as its user runs it: `loopwarden run` beside real agents, and a chat on the loopback interface.

Most bots are forked from a process that has imported them already; those of `new_bot` start as a user's do.
"""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web

from tests.botapi import GROUP, TOKEN, USER, BotApi, Message

TESTS = Path(__file__).parent
PATIENCE = 120.0
"""Seconds for what is to come; on an idle machine it comes in a twentieth of that."""
LAST_WORDS = 5.0
"""Seconds that the bot may take to end after SIGTERM."""
TOPIC = 17

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
        reader, writer = await asyncio.open_unix_connection(self.preloaded)
        self.stack.callback(writer.close)
        log = self._next_log()
        order = {"environment": self.environment(**settings), "folder": str(self.folder), "log": str(log)}
        writer.write(json.dumps(order).encode() + b"\n")
        pid = int(await reader.readline())
        return self._started(pid, log, asyncio.ensure_future(_number(reader)))

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


@pytest.fixture(scope="module", autouse=True)
def preloaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where bots can be ordered. What forks them imports for seconds; meanwhile the first test begins."""
    path = tmp_path_factory.mktemp("preloaded") / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        command = (sys.executable, str(TESTS / "preloaded.py"), f"{listener.fileno()}")
        process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[listener.fileno()])  # noqa: S603 - ours
    with process:
        yield path


@pytest.fixture
async def stage(tmp_path: Path, preloaded: Path) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(BotApi())
        stage = Stage(api=api, folder=tmp_path, preloaded=preloaded, stack=stack)
        stage.log.touch()
        yield stage


# What a user sees


async def test_a_person_stops_an_agent(stage: Stage) -> None:
    """An alert appears in the topic; Kill and its confirmation end the process; the report answers the alert."""
    stage.watch(SOURCE, PROCESS_KILLER.format(name="stopper", grace=10))
    stuck = await stage.agent("stuck", "stuck")
    bot = await stage.new_bot(CHAT=f"{GROUP}/{TOPIC}", THRASH__ON_DETECTION="observe")
    alert = await stage.shown("stuck is going round in circles")
    stage.api.press(alert, "Kill")
    question = await stage.shown("Stop stuck?")
    # The chat shows a question a moment before the bot knows as which message.
    await bot.has_logged("sent (reply screen)")
    assert stuck.returncode is None
    stage.api.press(question, "Stop it")
    assert await ending_of(stuck) == -signal.SIGTERM
    report = await stage.shown(f"process {stuck.pid} has exited")
    assert report.reply_to == alert.id
    assert f"ordered by user {USER}" in report.text
    await stage.shown("stuck was stopped")
    assert alert.edits
    assert "The stop was ordered" in question.text
    assert {message.thread for message in stage.api.messages} == {TOPIC}
    assert await bot.terminate() == 0


async def test_three_scans_stop_an_agent_once(stage: Stage) -> None:
    """Nobody presses: the stuck agent ends, the healthy one lives; a restart repeats nothing and forgets nothing."""
    stage.watch(SOURCE, PROCESS_KILLER.format(name="stopper", grace=10))
    stuck, busy = await stage.agent("stuck", "stuck"), await stage.agent("busy", "busy")
    bot = await stage.bot()
    alert = await stage.shown("stuck", "at 3 it is stopped")
    assert await ending_of(stuck) == -signal.SIGTERM
    report = await stage.shown(f"process {stuck.pid} has exited")
    assert report.reply_to == alert.id
    assert "by the scan" in report.text
    stage.log_calls("other", 8)
    other = await stage.shown("other", "Scan 1 in a row")
    assert await bot.terminate() == 0
    assert alert.text.startswith("🛑 stuck was stopped")
    sent, edits = len(stage.api.calls("sendMessage")), alert.edits
    assert sent == 3
    bot = await stage.bot()
    stage.log_calls("other", 1)
    await stage.shown("other", "Scan 2 in a row")
    assert (len(stage.api.calls("sendMessage")), alert.edits, other.edits) == (sent, edits, 1)
    stage.api.say("/agents", chat=GROUP)
    answer = await stage.shown("Sessions of the last 24 hours", "stuck", "busy")
    assert "9 calls, 🔁 streak 2" in answer.text
    assert await bot.terminate() == 0
    assert busy.returncode is None


@pytest.mark.parametrize(
    ("end", "exit_code"),
    [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 0)],
    ids=["killed", "asked to end"],
)
async def test_a_stop_that_was_cut_short_is_finished(
    stage: Stage, end: signal.Signals, exit_code: int
) -> None:
    """A bot that ends while it waits for an agent to go finishes that stop when it starts, and reports it."""
    stage.watch(SOURCE, PROCESS_KILLER.format(name="stopper", grace=300))
    stuck = await stage.agent("stuck", "stuck", "ignores-sigterm")
    bot = await stage.bot(THRASH__KILL_AFTER="1")
    alert = await stage.shown("stuck is being stopped")
    assert await said_by(stuck) == "SIGTERM ignored"
    # Killed between sending and noting that, it would send the alert again, rather than lose one.
    await bot.has_logged("message 1 sent")
    bot.signal(end)
    assert await bot.exit_code(LAST_WORDS) == exit_code
    assert stuck.returncode is None
    stage.watch(SOURCE, PROCESS_KILLER.format(name="stopper", grace=0.5))
    bot = await stage.bot(THRASH__KILL_AFTER="1")
    assert await ending_of(stuck) == -signal.SIGKILL
    report = await stage.shown(f"process {stuck.pid} has exited, after SIGKILL")
    assert report.reply_to == alert.id
    await stage.shown("stuck was stopped")
    assert stage.api.messages == [alert, report]
    assert await bot.terminate() == 0


async def test_a_stop_that_does_not_hold_is_escalated_once(stage: Stage) -> None:
    """A command that stops nothing is found out: the chat is told, and the next killer ends the agent."""
    command = 'kind = "command"\nargv = ["true"]\nthen = "harder"\n'
    killers = "[killers.stopper]\n", command, PROCESS_KILLER.format(name="harder", grace=10)
    stage.watch(SOURCE, *killers)
    stuck = await stage.agent("stuck", "stuck")
    bot = await stage.bot(THRASH__KILL_AFTER="1")
    first = await stage.shown("Stopped: stuck", "exit code 0")
    warning = await stage.shown("stuck is still running", f"Process {stuck.pid} still lives")
    assert await ending_of(stuck) == -signal.SIGTERM
    second = await stage.shown(f"process {stuck.pid} has exited", "second attempt")
    alert = await stage.shown("stuck was stopped")
    assert stage.api.messages == [alert, first, warning, second]
    assert {message.reply_to for message in (first, warning, second)} == {alert.id}
    assert await bot.terminate() == 0


# Bad days


@asynccontextmanager
async def unreachable(api: BotApi) -> AsyncIterator[None]:
    """Nothing listens where the server was."""
    runner = api._runner
    (site,) = runner.sites
    port = runner.addresses[0][1]
    await site.stop()
    yield
    await web.TCPSite(runner, "127.0.0.1", port).start()


@asynccontextmanager
async def unauthorized(api: BotApi) -> AsyncIterator[None]:
    """The token is not known to the server."""
    api.token = "424242:" + "W" * 35
    yield
    api.token = TOKEN


@pytest.mark.parametrize(
    ("trouble", "logged"),
    [(unreachable, "Telegram cannot be reached"), (unauthorized, "does not accept LOOPWARDEN_TOKEN")],
    ids=["unreachable", "unauthorized"],
)
async def test_a_chat_in_trouble_keeps_nobody_from_guarding(
    stage: Stage, trouble: Callable[[BotApi], AbstractAsyncContextManager[None]], logged: str
) -> None:
    """An agent is stopped while Telegram cannot be talked to; all is told once it can."""
    stage.watch(SOURCE, PROCESS_KILLER.format(name="stopper", grace=10))
    async with trouble(stage.api):
        bot = await stage.bot(THRASH__KILL_AFTER="1")
        await bot.has_logged(logged)
        stuck = await stage.agent("stuck", "stuck")
        assert await ending_of(stuck) == -signal.SIGTERM
        assert not stage.api.messages
    alert = await stage.shown("stuck was stopped")
    report = await stage.shown(f"process {stuck.pid} has exited")
    assert report.reply_to == alert.id
    assert stage.api.messages == [alert, report]
    assert await bot.terminate() == 0


async def test_a_server_that_never_answers_delays_no_ending(stage: Stage) -> None:
    """SIGTERM ends the bot in time also while requests are under way to which no answer comes."""
    stage.watch(SOURCE, PROCESS_KILLER.format(name="stopper", grace=10))
    stage.log_calls("other", 8)
    asked: asyncio.Queue[bytes] = asyncio.Queue()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.put_nowait(await reader.readline())
        await reader.read()
        writer.close()

    async with await asyncio.start_server(listen, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        bot = await stage.bot(TELEGRAM_API=f"http://{host}:{port}")
        requests = [await asyncio.wait_for(asked.get(), PATIENCE) for _ in range(2)]
        assert {line.split()[1].rpartition(b"/")[2] for line in requests} == {b"getMe", b"sendMessage"}
        assert await bot.terminate() == 0


# What is refused


@pytest.mark.parametrize("name", ["TOKEN", "ADMINS"])
async def test_a_missing_setting_is_named(stage: Stage, name: str) -> None:
    """Without a token, or without anybody to obey, nothing runs: exit code 2, and the message says what is missing."""
    bot = await stage.new_bot(**{name: ""})
    assert await bot.exit_code(PATIENCE) == 2
    assert f"LOOPWARDEN_{name}: not set" in bot.log.read_text()


async def test_wrong_settings_are_named_and_never_shown(stage: Stage) -> None:
    """Every wrong or unknown setting is named at once, none with its value."""
    wrong = {
        "TOKEN": "wrong-1",
        "ADMINS": "wrong-2",
        "CHAT": "wrong-3",
        "TELEGRAM_API": "wrong-4",
        "TZ": "wrong-5",
        "THRASH__EVERY": "wrong-6",
        "THRASH__ON_DETECTION": "wrong-7",
        "TOKN": "wrong-8",
    }
    bot = await stage.bot(**wrong)
    assert await bot.exit_code(PATIENCE) == 2
    complaint = bot.log.read_text()
    assert [name for name in wrong if f"LOOPWARDEN_{name}:" not in complaint] == []
    assert "wrong-" not in complaint
    assert "did you mean LOOPWARDEN_TOKEN?" in complaint


async def test_a_wrong_watch_list_is_refused(stage: Stage) -> None:
    """A watch list that names no killer of its own keeps the bot from starting: exit code 2, and the place."""
    stage.watch(SOURCE)
    bot = await stage.bot()
    assert await bot.exit_code(PATIENCE) == 2
    assert "sources.gateway.killer" in bot.log.read_text()


async def test_one_data_directory_has_one_bot(stage: Stage) -> None:
    """A second bot with the same data directory refuses to start: exit code 1; the first one goes on."""
    stage.watch(SOURCE, PROCESS_KILLER.format(name="stopper", grace=10))
    first = await stage.bot()
    await first.has_logged("guarding")
    second = await stage.bot()
    assert await second.exit_code(PATIENCE) == 1
    assert "another Loopwarden is running" in second.log.read_text()
    stage.api.say("/help")
    await stage.shown("/kill ID")
    assert await first.terminate() == 0
