"""The command line: exit codes, what is said on standard error, and how fast it starts."""

import asyncio
import fcntl
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import bot.__main__ as command_line
from bot import __version__
from bot.__main__ import main
from tests.bot.room import WATCHLIST
from tests.botapi import TOKEN

pytestmark = pytest.mark.usefixtures("no_settings", "logging_left_alone")

HEAVY = ("aiogram", "aiosqlite", "apscheduler", "psutil", "pydantic", "rich")


@pytest.fixture
def nobody_there() -> str:
    """The address of a server that does not answer."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


@pytest.fixture
def ready(no_settings: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nobody_there: str) -> None:  # noqa: ARG001
    """Settings and a watch list that are right; Telegram cannot be reached."""
    (tmp_path / "loopwarden.toml").write_text(WATCHLIST)
    for name, value in {
        "TOKEN": TOKEN,
        "ADMINS": "1",
        "DATA_DIR": str(tmp_path / "data"),
        "TELEGRAM_API": nobody_there,
    }.items():
        monkeypatch.setenv(f"LOOPWARDEN_{name}", value)


@contextmanager
def signal_once_logged(words: str, number: int) -> Iterator[None]:
    """Send this process a signal as soon as a line of the bot's log begins with these words."""

    class Trigger(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith(words):
                os.kill(os.getpid(), number)

    trigger, log = Trigger(), logging.getLogger("bot.polling")
    log.addHandler(trigger)
    try:
        yield
    finally:
        log.removeHandler(trigger)


# ── what it is asked ──────────────────────────────────────────────────────────────────────────────


def test_it_says_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"loopwarden {__version__}\n"


def test_its_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert all(
        f"\n    {command} " in said
        for command in ("run", "setup", "check", "sources", "replay", "verify", "hook", "health", "demo")
    )


@pytest.mark.parametrize("arguments", [[], ["stop"], ["run", "--local"], ["demo", "--fast"]])
def test_what_it_does_not_know_is_an_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: loopwarden" in capsys.readouterr().err


def test_nothing_heavy_is_imported_before_the_arguments_are_read() -> None:
    code = f"""
import sys
from bot.__main__ import main
try:
    main(["--help"])
finally:
    print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stderr == "[]\n"


def test_an_interrupted_command_ends_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "_demo", interrupted)
    assert main(["demo"]) == 130


# ── run ───────────────────────────────────────────────────────────────────────────────────────────


def test_run_without_a_token_is_an_error_and_never_a_local_mode(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run"]) == 2
    said = capsys.readouterr()
    assert said.err.splitlines()[:2] == [
        "loopwarden: the settings are wrong:",
        "LOOPWARDEN_TOKEN: not set; @BotFather gives one; put it into .env or a secret file",
    ]
    assert said.out == ""


@pytest.mark.usefixtures("ready")
def test_run_with_a_wrong_setting_names_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOOPWARDEN_ADMINS", "")
    assert main(["run"]) == 2
    assert "LOOPWARDEN_ADMINS: not set" in capsys.readouterr().err


@pytest.mark.usefixtures("ready")
def test_run_with_a_wrong_watch_list_names_the_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "loopwarden.toml").write_text(WATCHLIST.replace('"sleep 1000"', "1000"))
    assert main(["run"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "loopwarden: the watch list is wrong:",
        "killers.stopper.match: expected str, got int",
    ]


@pytest.mark.usefixtures("ready")
def test_run_beside_another_bot_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "data").mkdir()
    held = os.open(tmp_path / "data", os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert main(["run"]) == 1
    finally:
        os.close(held)
    assert "another Loopwarden is running with the data directory" in capsys.readouterr().err


@pytest.mark.usefixtures("ready")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_run_guards_without_a_chat_until_it_is_told_to_stop(
    number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with signal_once_logged("Telegram cannot be reached", number):
        assert main(["run"]) == 0
    said = capsys.readouterr().err
    assert "guarding; a scan every 60 s" in said
    assert said.splitlines()[-1].endswith("stopped")
    assert TOKEN not in said


# ── setup ─────────────────────────────────────────────────────────────────────────────────────────


def test_setup_needs_the_token_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["setup"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "loopwarden: the settings are wrong:",
        "LOOPWARDEN_TOKEN: not set; @BotFather gives one; put it into .env or a secret file",
    ]


def test_setup_that_reaches_nobody_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], nobody_there: str
) -> None:
    monkeypatch.setenv("LOOPWARDEN_TOKEN", TOKEN)
    monkeypatch.setenv("LOOPWARDEN_TELEGRAM_API", nobody_there)
    assert main(["setup"]) == 1
    said = capsys.readouterr().err
    assert "loopwarden: no ids can be shown:\nTelegram cannot be reached" in said
    assert TOKEN not in said


def test_setup_ends_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    async def told_at_once(_: object, stop: asyncio.Event) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await stop.wait()

    monkeypatch.setenv("LOOPWARDEN_TOKEN", TOKEN)
    monkeypatch.setattr("bot.setup.show_ids", told_at_once)
    assert main(["setup"]) == 0


# ── health ────────────────────────────────────────────────────────────────────────────────────────


def test_health_where_no_bot_has_run_is_bad(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOOPWARDEN_DATA_DIR", str(tmp_path))
    assert main(["health"]) == 1
    assert "no bot has run here" in capsys.readouterr().out
