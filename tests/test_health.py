"""`loopwarden health`: red once scans or polls have stopped, and cheap."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bot.__main__ import main
from bot.health import health
from bot.pulse import FOLDER, PROBLEM, Pulse

LIMITS = {"scan": 210.0, "poll": 120.0, "handling": 120.0, "delivery": 120.0}
WHY = "another poller is running"


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
    """It names what has stopped; the others alone do not make it healthy."""
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


# ── what will not pass by itself ──────────────────────────────────────────────────────────────────


def test_a_problem_is_red_at_once_and_says_why(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """However lately that activity had worked."""
    pulse = Pulse(data_dir, LIMITS)
    pulse.beat("poll")
    pulse.fail("poll", "something else")
    pulse.fail("poll", WHY)
    assert main(["health"]) == 1
    assert capsys.readouterr().out == f"{WHY}\n"


def test_only_the_same_activity_ends_its_problem(data_dir: Path) -> None:
    """Scans go on while nothing can be polled."""
    pulse = Pulse(data_dir, LIMITS)
    pulse.fail("poll", WHY)
    pulse.beat("scan")
    assert health() == 1
    pulse.beat("poll")
    assert health() == 0
    pulse.beat("poll")
    assert health() == 0


def test_every_problem_is_told(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also that it lasts too long, and what else has stopped."""
    pulse = Pulse(data_dir, LIMITS)
    pulse.fail("poll", WHY)
    for name in LIMITS:
        _age(data_dir / FOLDER / name, 86_400)
    assert health() == 1
    told = capsys.readouterr().out.splitlines()
    assert WHY in told
    told.remove(WHY)
    expected = [f"the last {name} that worked was" for name in sorted(LIMITS)]
    assert [line.partition(" 86")[0] for line in told] == expected


def test_a_new_start_forgets_the_old_problems(data_dir: Path) -> None:
    """The token may have been mended."""
    Pulse(data_dir, LIMITS).fail("poll", WHY)
    assert health() == 1
    Pulse(data_dir, LIMITS)
    assert health() == 0


def test_a_problem_that_ends_while_it_is_looked_at_is_none(data_dir: Path) -> None:
    """As a link that leads nowhere: listed, and not there when it is read."""
    Pulse(data_dir, LIMITS)
    (data_dir / FOLDER / f"poll{PROBLEM}").symlink_to(data_dir / "gone")
    assert health() == 0


@pytest.mark.parametrize(
    ("content", "said"), [(b"", "the last poll did not work"), (b"\xff", "cannot be read")]
)
def test_a_problem_without_words_is_red(
    data_dir: Path, capsys: pytest.CaptureFixture[str], content: bytes, said: str
) -> None:
    """On a full disk a file can be made, and nothing written into it."""
    Pulse(data_dir, LIMITS)
    (data_dir / FOLDER / f"poll{PROBLEM}").write_bytes(content)
    assert health() == 1
    assert said in capsys.readouterr().out


def test_a_problem_that_cannot_be_noted_disturbs_nobody(tmp_path: Path) -> None:
    """As of a pulse that cannot be kept."""
    (tmp_path / FOLDER).write_text("in the way")
    Pulse(tmp_path, LIMITS).fail("poll", WHY)


def test_health_imports_nothing_heavy() -> None:
    """It is run every minute: neither aiogram nor pydantic nor the database library is loaded."""
    code = (
        "import sys; from bot.__main__ import main; main(['health']);"
        "print(sorted({'aiogram', 'pydantic', 'aiosqlite', 'msgspec', 'rich', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)  # noqa: S603
    assert done.stdout.splitlines()[-1] == "[]"
