"""Workflows are looked at: where their outputs will lie, their programs and schemas; nothing is judged or run."""

import os
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from bot.checking.finding import Finding, Level
from bot.checking.workflows import check_workflow
from jobs.verification.spec import WorkflowSpec
from jobs.watchlist.reading import parse_watchlist
from tests.bot.checking.conftest import as_anyone

NOW = datetime(2026, 11, 30, 23, 30, tzinfo=UTC).timestamp()


def look(folder: Path, lines: str = "", output: str = "out/report-{date}.json") -> list[Finding]:
    text = f'[workflows.nightly]\noutput = "{output}"\n{lines}'
    spec: WorkflowSpec = parse_watchlist(text, folder, ()).workflows["nightly"]
    return list(check_workflow(spec, NOW, ZoneInfo("Europe/Berlin")))


def write(path: Path, text: str = "x", age: float = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (NOW - age, NOW - age))


def test_the_newest_output_is_shown(folder: Path) -> None:
    """Of the day that it is in the zone of the settings."""
    write(folder / "out/report-2026-12-01.json", "12345", age=125)
    [found] = look(folder)
    assert found.level is Level.OK
    assert found.says == f"newest output {folder}/out/report-2026-12-01.json, 5 bytes, 2 min 5 s old"


def test_no_output_yet_is_fine(folder: Path) -> None:
    write(folder / "out/report-2026-11-30.json")
    [found] = look(folder)
    assert (found.level, found.says) == (Level.OK, f"no output in {folder}/out yet")


@pytest.mark.parametrize("output", ["out/*/x.json", "out/{run}/x.json", "out/x?.json", "out/**/y[0-9].json"])
def test_the_folder_is_where_the_pattern_begins(folder: Path, output: str) -> None:
    (folder / "out").mkdir()
    [found] = look(folder, output=output)
    assert found.says == f"no output in {folder}/out yet"


def test_a_folder_may_be_named_like_a_pattern(folder: Path) -> None:
    strange = folder / "[a]*{date}"
    write(strange / "x.json", age=1)
    [found] = look(strange, output="x.json")
    assert found.says == f"newest output {strange}/x.json, 1 bytes, 1 s old"


def test_a_folder_that_is_not_there_may_be_made_by_the_first_run(folder: Path) -> None:
    [found] = look(folder)
    assert (found.level, found.says) == (Level.WARNING, f"its output's folder {folder}/out is not there")


def test_a_file_in_the_place_of_the_folder_is_an_error(folder: Path) -> None:
    write(folder / "out")
    [found] = look(folder)
    assert (found.level, found.says) == (Level.ERROR, f"its output's folder {folder}/out is none")


def test_what_this_user_may_not_read_is_an_error(folder: Path) -> None:
    """The folder, or the output in it."""
    write(folder / "out/report-2026-12-01.json")
    (folder / "out/report-2026-12-01.json").chmod(0)
    (folder / "out").chmod(0o755)
    with as_anyone():
        [closed_file] = look(folder)
    (folder / "out").chmod(0)
    with as_anyone():
        [closed_folder] = look(folder)
    (folder / "out").chmod(0o755)
    assert (closed_file.level, closed_folder.level) == (Level.ERROR, Level.ERROR)
    assert closed_file.says.endswith("report-2026-12-01.json may not be read by this user")
    assert closed_folder.says == f"its output's folder {folder}/out is closed to this user"


@pytest.mark.parametrize(
    ("written", "says"),
    [
        (None, "the schema cannot be used: {path} does not exist, expected a regular file"),
        ("{", "the schema cannot be used: {path} is no JSON"),
        ("[]", "the schema cannot be used: {path} is neither a table nor a truth value"),
        (
            '{"type": 1}',
            "the schema {path} is wrong at $.type: 1 is not valid under any of the given schemas",
        ),
    ],
)
def test_a_schema_that_cannot_be_used_is_an_error(folder: Path, written: str | None, says: str) -> None:
    (folder / "out").mkdir()
    if written is not None:
        (folder / "s.json").write_text(written)
    [_, found] = look(folder, "schema = 's.json'")
    assert (found.level, found.says) == (Level.ERROR, says.format(path=folder / "s.json"))


def test_a_schema_and_a_command_that_can_be_used_are_no_news(folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "s.json").write_text('{"type": "object"}')
    assert len(look(folder, "schema = 's.json'\ncommand = { argv = ['true', '{path}'] }")) == 1


def test_a_command_that_cannot_be_started_is_an_error(folder: Path) -> None:
    (folder / "out").mkdir()
    [_, found] = look(folder, "command = { argv = ['./check', '{path}'] }")
    assert (found.level, found.says) == (Level.ERROR, f"{folder}/check is not there for this user")
