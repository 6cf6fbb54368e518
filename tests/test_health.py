"""`loopwarden health`: red once scans or polls have stopped, and cheap."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bot.__main__ import main
from bot.health import health
from bot.pulse import FOLDER, Pulse

LIMITS = {"scan": 210.0, "poll": 120.0}


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOOPWARDEN_DATA_DIR", str(tmp_path))
    return tmp_path


def _age(file: Path, seconds: float) -> None:
    then = file.stat().st_mtime - seconds
    os.utime(file, (then, then))


def test_no_bot_has_run(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without any sign of life it is red, and says where it has looked."""
    assert health() == 1
    assert str(data_dir) in capsys.readouterr().out


def test_a_bot_that_just_started_is_healthy(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first scan has its time."""
    Pulse(data_dir, LIMITS)
    assert main(["health"]) == 0
    assert capsys.readouterr().out == "healthy\n"


@pytest.mark.parametrize("stopped", LIMITS)
def test_it_is_red_once_one_has_stopped(
    stopped: str, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names what has stopped; the other one alone does not make it healthy."""
    pulse = Pulse(data_dir, LIMITS)
    _age(data_dir / FOLDER / stopped, LIMITS[stopped] + 5)
    assert health() == 1
    assert f"the last {stopped} that worked was" in capsys.readouterr().out
    pulse.beat(stopped)
    assert health() == 0


def test_a_new_start_forgets_the_old_signs(data_dir: Path) -> None:
    """A bot that was away for a day is not red when it comes back."""
    Pulse(data_dir, LIMITS)
    for name in LIMITS:
        _age(data_dir / FOLDER / name, 86_400)
    assert health() == 1
    Pulse(data_dir, LIMITS)
    assert health() == 0


def test_a_file_that_makes_no_sense_is_red(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing that lies there raises."""
    Pulse(data_dir, LIMITS)
    (data_dir / FOLDER / "scan").write_text("soon")
    assert health() == 1
    assert "cannot be read" in capsys.readouterr().out


def test_a_pulse_that_cannot_be_kept_disturbs_nobody(tmp_path: Path) -> None:
    """The guard goes on without; health turns red by itself."""
    (tmp_path / FOLDER).write_text("in the way")
    Pulse(tmp_path, LIMITS).beat("scan")


def test_health_imports_nothing_heavy() -> None:
    """It is run every minute: neither aiogram nor pydantic nor the database library is loaded."""
    code = (
        "import sys; from bot.__main__ import main; main(['health']);"
        "print(sorted({'aiogram', 'pydantic', 'aiosqlite', 'msgspec', 'rich', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)  # noqa: S603
    assert done.stdout.splitlines()[-1] == "[]"
