"""The whole product as its user runs it: `loopwarden run` beside real agents, and a chat on the loopback interface.

Most bots are forked from a process that has imported them already; those of `new_bot` start as a user's do.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from aiohttp import web

from tests.botapi import GROUP, TOKEN, USER, BotApi
from tests.pinned import pinned
from tests.stage import LAST_WORDS, PATIENCE, PROCESS_KILLER, SOURCE, Stage, ending_of, said_by

TOPIC = 17


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
    await pinned(stage.folder)
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
    await pinned(stage.folder)
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
    await pinned(stage.folder)
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
    await pinned(stage.folder)
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


async def test_an_edited_watch_list_counts_once_it_is_approved(stage: Stage) -> None:
    """The killer that somebody has disarmed in the file stops the agent all the same, until a person agrees."""
    disarmed = '[killers.stopper]\nkind = "dry_run"\n'
    stage.watch(SOURCE, PROCESS_KILLER.format(name="stopper", grace=10))
    bot = await stage.bot(THRASH__KILL_AFTER="1")
    await stage.shown("Pinned as they were found: 2 entries")
    stage.watch(SOURCE, disarmed)
    asked = await stage.shown("The file differs: killer stopper", "looser")
    stuck = await stage.agent("stuck", "stuck")
    assert await ending_of(stuck) == -signal.SIGTERM
    stage.api.press(asked, "Approve")
    await stage.shown(f"Approved: killer stopper by user {USER}")
    other = await stage.agent("other", "stuck")
    await stage.shown("other", "dry run")
    assert other.returncode is None
    assert await bot.terminate() == 0


# Bad days


async def test_a_database_that_was_removed_is_written_anew_before_the_bot_ends(stage: Stage) -> None:
    """Or the next start would know nothing of what was approved."""
    stage.watch(SOURCE, PROCESS_KILLER.format(name="stopper", grace=10))
    bot = await stage.bot()
    await stage.shown("Pinned as they were found: 2 entries")
    await bot.has_logged("guarding")
    for file in (stage.folder / "data").glob("loopwarden.sqlite3*"):
        file.unlink()
    assert await bot.terminate() == 0
    stage.watch(SOURCE, '[killers.stopper]\nkind = "dry_run"\n')
    bot = await stage.bot()
    await stage.shown("The file differs: killer stopper", "looser")
    assert await bot.terminate() == 0


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
    await pinned(stage.folder)
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
