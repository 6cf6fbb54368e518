"""`loopwarden digest`: the text on the terminal and the picture in a file, without a bot, a token or a chat."""

import io
import json
import os
import sys
import time
from pathlib import Path

import pytest

from bot.__main__ import main
from bot.chart.picture import Picture
from bot.drawing import Drawing, DrawingError
from jobs.store.blocking import open_blocking
from jobs.store.schema import FILE_NAME
from jobs.thrash.policy import LONGEST_BEAT
from tests.botapi_model import PNG, dimensions

pytestmark = pytest.mark.usefixtures("no_settings")


@pytest.fixture
def data(no_settings: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: ARG001
    """A data directory in which a run was verified just now."""
    monkeypatch.setenv("LOOPWARDEN_DATA_DIR", str(tmp_path / "data"))
    report = {"status": "ok", "result": 42, "timestamp": time.time()}  # noqa: TID251 - as its producer dates it
    (tmp_path / "report.json").write_text(json.dumps(report))
    assert main(["verify", "nightly", str(tmp_path / "report.json")]) == 0
    return tmp_path / "data"


def test_it_prints_what_the_chat_would_be_told(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["digest"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("📊 The week so far · ")
    assert "\n1 run passed.\n" in said.out
    assert "\nnightly: 1 of 1 run passed; ✓ exists, parses, fields, fresh, status\n" in said.out
    assert said.out.count("\nIs a model in the verification path?\n") == 1
    assert said.err == ""
    assert {path.name.partition("-")[0] for path in data.iterdir()} == {FILE_NAME}


@pytest.mark.parametrize(("beats", "is_away"), [(2.9, False), (3.1, True)])
def test_what_the_longest_beat_explains_is_no_absence(
    data: Path, capsys: pytest.CaptureFixture[str], beats: float, *, is_away: bool
) -> None:
    """The beat of the bot is a setting, and those are not read."""
    looked_at = time.time() - beats * LONGEST_BEAT  # noqa: TID251 - as the command's clock
    with open_blocking(str(data)) as store:
        store.write(store.tables.presence.note(looked_at))
    capsys.readouterr()
    # Of two weeks, lest one begins just now.
    assert main(["digest", "2"]) == 0
    assert ("The bot was away for" in capsys.readouterr().out) is is_away


@pytest.mark.usefixtures("data")
def test_it_can_be_of_several_weeks(capsys: pytest.CaptureFixture[str]) -> None:
    """Of those that there were yet."""
    assert main(["digest", "12"]) == 0
    assert "📊 The week so far · " in capsys.readouterr().out


@pytest.mark.parametrize("weeks", ["0", "100", "-1", "many", "1.5"])
def test_what_is_no_number_of_weeks_is_asked_wrongly(weeks: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["digest", weeks])
    assert ended.value.code == 2
    assert "loopwarden digest: error: " in capsys.readouterr().err


@pytest.mark.usefixtures("data")
def test_the_picture_takes_the_place_of_the_last_one(tmp_path: Path) -> None:
    """At once, readable for others, and nothing else is left beside it."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    (folder / "week.png").write_text("old")
    assert main(["digest", "--png", str(folder / "week.png")]) == 0
    written = (folder / "week.png").read_bytes()
    assert written.startswith(PNG)
    assert dimensions(written)[0] == 1080
    assert [path.name for path in folder.iterdir()] == ["week.png"]
    assert (folder / "week.png").stat().st_mode & 0o777 == 0o644


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("name", "why"),
    [("nowhere/week.png", "No such file or directory"), ("pictures", "Is a directory")],
)
def test_a_picture_that_cannot_be_written_is_said_to_be_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    why: str,
) -> None:
    """After the text, and nothing is left behind."""
    (tmp_path / "pictures").mkdir()
    before = {*tmp_path.iterdir()}
    monkeypatch.setattr(Drawing, "png", lambda _, __: PNG)
    assert main(["digest", "--png", str(tmp_path / name)]) == 1
    said = capsys.readouterr()
    assert "1 run passed" in said.out
    assert said.err == f"loopwarden: there is no picture: {tmp_path / name} cannot be written: {why}\n"
    assert {*tmp_path.iterdir()} == before


@pytest.mark.usefixtures("data")
def test_a_picture_that_cannot_be_drawn_is_said_to_be_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def png(_: Drawing, __: Picture) -> bytes:
        raise DrawingError("took more than 60 s")

    monkeypatch.setattr(Drawing, "png", png)
    assert main(["digest", "--png", str(tmp_path / "week.png")]) == 1
    assert capsys.readouterr().err == "loopwarden: there is no picture: drawing it took more than 60 s\n"
    assert not (tmp_path / "week.png").exists()


def test_where_there_is_no_database_none_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOOPWARDEN_DATA_DIR", str(tmp_path / "data"))
    assert main(["digest"]) == 1
    assert f"there is no database in {tmp_path / 'data'} yet" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_a_database_that_cannot_be_used_is_said_to_be_so(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in data.iterdir():
        path.write_bytes(b"no database" * 1000)
    assert main(["digest"]) == 1
    assert "the database cannot be used" in capsys.readouterr().err


@pytest.mark.usefixtures("data")
def test_a_zone_that_is_not_known_is_asked_wrongly(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LOOPWARDEN_TZ", "Mars/Olympus")
    assert main(["digest"]) == 2
    assert "LOOPWARDEN_TZ: is no known time zone" in capsys.readouterr().err


@pytest.mark.usefixtures("data")
def test_a_terminal_may_know_no_unicode(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    assert main(["digest"]) == 0
    assert b"1 run passed." in written.getvalue()


@pytest.mark.usefixtures("data")
def test_whoever_reads_it_may_have_enough(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert main(["digest"]) == 0
    assert capsys.readouterr().err == ""
