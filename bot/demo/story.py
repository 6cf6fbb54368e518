"""The demo itself: starts the agents and the bot, and plays the person if nobody is there."""

import asyncio
import json
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from bot.app import open_app
from bot.console import PERSON, Shown
from bot.settings import Settings, ThrashSettings
from bot.terminal import Terminal, typed_lines

_WATCHLIST: Final = """
[[sources]]
name = "toys"
format = "gateway"
path = "calls.jsonl"
killer = "terminate"

[killers.terminate]
kind = "process"
match = "bot.demo.toy_agent"
grace = 2

[workflows.report]
output = "report.json"
required = ["status", "result"]
status = { field = "status" }
"""
_REPORT: Final = {"status": "ok", "result": "n/a", "summary": "completed successfully"}
_PATIENCE: Final = 60
"""Seconds until the unattended demo gives up on what should come next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What the demo runs on."""

    log: Path
    stuck: asyncio.subprocess.Process
    busy: asyncio.subprocess.Process
    terminal: Terminal

    def calls_of(self, agent: str) -> int:
        """Return how many calls an agent has logged."""
        return self.log.read_text().count(f'"{agent}"')


async def play(*, unattended: bool) -> int:
    """Run the demo; return the exit code."""
    if not unattended and not sys.stdin.isatty():
        unattended = True
    if task := asyncio.current_task():
        # So that nothing is left behind then either.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with _stage() as stage:
        if unattended:
            return await _play_alone(stage)
        await _play_along(stage)
        return 0


@asynccontextmanager
async def _stage() -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="loopwarden-demo-")))
        log = folder / "calls.jsonl"
        log.touch()
        (folder / "loopwarden.toml").write_text(_WATCHLIST)
        (folder / "report.json").write_text(json.dumps(_REPORT))
        terminal = Terminal()
        app = await stack.enter_async_context(open_app(_settings(folder), session=terminal.session))
        stuck = await stack.enter_async_context(_agent("stuck", log))
        busy = await stack.enter_async_context(_agent("busy", log))
        terminal.note(
            f"stuck-agent is process {stuck.pid}, busy-agent is process {busy.pid}; a look every 2 s."
        )
        stop = asyncio.Event()
        running = asyncio.ensure_future(app.run(stop))
        stack.push_async_callback(_end, running, stop)
        yield Stage(log=log, stuck=stuck, busy=busy, terminal=terminal)


async def _end(running: "asyncio.Future[None]", stop: asyncio.Event) -> None:
    stop.set()
    await running


@asynccontextmanager
async def _agent(kind: str, log: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    # In a session of its own: Ctrl-C in this terminal is meant for the demo.
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bot.demo.toy_agent", kind, str(log), start_new_session=True
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def _settings(folder: Path) -> Settings:
    # Nothing is read from the environment: the demo is the same everywhere.
    return Settings.model_construct(
        token=SecretStr("42:demo"),
        admins=(PERSON.id,),
        chat=None,
        data_dir=folder / "data",
        watchlist=folder / "loopwarden.toml",
        tz="UTC",
        thrash=ThrashSettings(every=2),
    )


async def _play_along(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.note(
        "Type commands as in Telegram (/help), or a number to press that button. /quit ends the demo."
    )
    closing_words = asyncio.ensure_future(_say_how_it_ended(stage))
    try:
        async for line in typed_lines():
            if line == "/quit":
                return
            if line:
                terminal.enter(line)
    finally:
        closing_words.cancel()


async def _say_how_it_ended(stage: Stage) -> None:
    await stage.stuck.wait()
    calls = stage.calls_of("busy-agent")
    await _shown(stage.terminal, f"process {stage.stuck.pid} has exited")
    await _judge(stage, calls)
    stage.terminal.note(
        "That was the story. Look around: /incidents, /agents, /status. /verify report checks what a run has left that"
        " calls itself completed. /quit ends the demo."
    )


async def _play_alone(stage: Stage) -> int:
    try:
        return await _play_story(stage)
    except TimeoutError:
        stage.terminal.note(f"Nothing came for {_PATIENCE} s: the demo has failed.")
        return 1


async def _play_story(stage: Stage) -> int:
    terminal = stage.terminal
    alert = await _shown(terminal, "going round in circles")
    terminal.press(alert, "Details")
    await _shown(terminal, "last calls of")
    terminal.type("/agents")
    await _shown(terminal, "Sessions of")
    await _shown(terminal, f"process {stage.stuck.pid} has exited")
    calls = stage.calls_of("busy-agent")
    for command, answer in (
        ("/incidents", "Latest incidents"),
        ("/status", "Last scan"),
        ("/verify report", "report failed: fields"),
    ):
        terminal.type(command)
        await _shown(terminal, answer)
    return await _judge(stage, calls)


async def _judge(stage: Stage, calls: int) -> int:
    """Look at the processes themselves: the stuck one must be gone, the busy one must go on working."""
    async with asyncio.timeout(_PATIENCE):
        await stage.stuck.wait()
        # Another process writes the log: there is no event to wait for.
        while stage.calls_of("busy-agent") <= calls and stage.busy.returncode is None:  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    is_alive = stage.busy.returncode is None
    stage.terminal.note(f"Process {stage.stuck.pid} (stuck-agent) is gone.")
    stage.terminal.note(
        f"Process {stage.busy.pid} (busy-agent) {'works on, untouched' if is_alive else 'has died'}."
    )
    return 0 if is_alive else 1


async def _shown(terminal: Terminal, words: str) -> Shown:
    return await terminal.session.wait_for(lambda shown: words in shown.text, seconds=_PATIENCE)
