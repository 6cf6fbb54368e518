"""What is seen of the data directory: nothing is made, nothing written, nothing locked for long."""

import fcntl
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bot.app import open_app
from bot.checking.data import check_data, is_held
from bot.checking.finding import Finding, Level
from bot.console import ConsoleSession
from bot.settings import Settings, load
from jobs.store.database import open_database
from jobs.store.schema import FILE_NAME
from tests.bot.checking.conftest import NOBODY, SetUp, as_anyone

ENOUGH = 1
"""Free bytes that every machine has."""


def look(folder: Path, least_free: int = ENOUGH) -> list[Finding]:
    return list(check_data(folder, least_free))


def about(subject: str, findings: list[Finding]) -> Finding:
    [found] = [finding for finding in findings if finding.subject == subject]
    return found


async def made(folder: Path) -> Path:
    """A data directory that a bot has used and left in order."""
    data = folder / "data"
    async with open_database(data):
        pass
    return data


async def test_a_directory_that_a_bot_has_used_is_as_it_should_be(folder: Path) -> None:
    data = await made(folder)
    before = sorted(path.name for path in data.iterdir())
    findings = look(data)
    assert [finding.level for finding in findings] == [Level.OK] * 3
    assert about("data directory", findings).says == f"{data} is writable"
    assert about("database", findings).says == "sound"
    assert sorted(path.name for path in data.iterdir()) == before == [FILE_NAME]


def test_a_directory_that_is_not_there_yet_can_be_made(folder: Path) -> None:
    findings = look(folder / "a" / "b")
    assert about("data directory", findings).says == f"{folder}/a/b is made at the first start"
    assert not (folder / "a").exists()


def test_a_relative_directory_is_none_that_a_hook_finds(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs where the agent works."""
    assert not [finding for finding in look(folder) if finding.subject == "hooks"]
    monkeypatch.chdir(folder)
    found = about("hooks", look(Path("data")))
    assert (found.level, found.says.startswith("data counts from")) == (Level.WARNING, True)
    assert "LOOPWARDEN_DATA_DIR" in found.mend


@pytest.mark.parametrize("name", ["data", "data/deeper"])
def test_a_directory_that_this_user_may_not_use_is_an_error(folder: Path, name: str) -> None:
    data = folder / "data"
    data.mkdir()
    data.chmod(0o555)
    with as_anyone():
        found = about("data directory", look(folder / name))
        user = os.geteuid()
    assert found.level is Level.ERROR
    assert f"user {user}" in found.says
    assert f"{user} {folder / name}, or let LOOPWARDEN_DATA_DIR name another one" in found.mend


def test_a_link_into_a_closed_directory_is_an_error(folder: Path) -> None:
    closed = folder / "closed"
    (closed / "data").mkdir(parents=True)
    (folder / "data").symlink_to(closed / "data")
    closed.chmod(0)
    with as_anyone():
        found = about("data directory", look(folder / "data"))
    closed.chmod(0o700)
    assert found.level is Level.ERROR
    assert "is no directory that user" in found.says


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files that root alone may write")
async def test_files_of_another_user_are_an_error(folder: Path) -> None:
    """As left behind by a bot that was run as root once."""
    data = await made(folder)
    os.chown(data, NOBODY, -1)
    with as_anyone():
        findings = look(data)
    assert f"{FILE_NAME} in {data} cannot be written" in about("data directory", findings).says
    assert about("database", findings).level is Level.ERROR


async def test_a_full_disk_is_a_warning(folder: Path) -> None:
    found = about("disk", look(folder, least_free=2**62))
    assert found.level is Level.WARNING
    assert " GB free for " in found.says


@pytest.mark.parametrize(
    ("directory", "file", "says"),
    [
        (0o755, 0o644, "can read what the agents did"),
        (0o750, 0o640, "can read what the agents did"),
        (0o777, 0o600, "can replace what the agents did"),
        (0o755, 0o600, None),
        (0o700, 0o644, None),
    ],
)
async def test_a_database_that_others_can_get_at_is_a_warning(
    folder: Path, directory: int, file: int, says: str | None
) -> None:
    """What keeps them out may be the directory's mode or the file's."""
    data = await made(folder)
    data.chmod(directory)
    (data / FILE_NAME).chmod(file)
    warnings = [finding for finding in look(data) if finding.level is Level.WARNING]
    assert len(warnings) == (says is not None)
    assert all(says and says in finding.says and finding.mend == f"chmod 700 {data}" for finding in warnings)


async def test_a_database_damaged_inside_is_an_error(folder: Path) -> None:
    """The quick check finds what opening does not."""
    data = await made(folder)
    with (data / FILE_NAME).open("r+b") as file:
        file.seek(4096 * 2)
        file.write(b"\xff" * 4096)
    found = about("database", look(data))
    assert found.level is Level.ERROR
    assert found.says.startswith("damaged: ")


async def test_a_database_that_was_not_closed_is_left_to_the_next_start(folder: Path) -> None:
    """Looking at it would need the journal played back, which changes files."""
    crashed = folder / "crashed"
    async with open_database(folder / "data") as store:
        async with store.transaction() as tables:
            await tables.presence.note(1.0)
        shutil.copytree(folder / "data", crashed)
    before = {path.name: path.read_bytes() for path in crashed.iterdir()}
    assert len(before) == 3
    found = about("database", look(crashed))
    assert found.level is Level.OK
    assert "was not closed in order" in found.says
    assert {path.name: path.read_bytes() for path in crashed.iterdir()} == before


def test_a_folder_in_place_of_the_database_is_an_error(folder: Path) -> None:
    (folder / FILE_NAME).mkdir()
    found = about("database", look(folder))
    assert found.level is Level.ERROR
    assert found.says.startswith("cannot be opened: ")


async def test_an_empty_database_is_sound(folder: Path) -> None:
    """A bot that ended in its first moment left it so."""
    with closing(sqlite3.connect(folder / FILE_NAME)) as database:
        database.execute("VACUUM")
    (folder / FILE_NAME).chmod(0o600)
    assert about("database", look(folder)).says == "sound"


@pytest.mark.asyncio(loop_scope="module")
async def test_a_directory_is_held_by_a_bot_and_not_by_a_check(folder: Path, right: SetUp) -> None:
    """Two checks at a time do not take each other for a bot."""
    assert not is_held(right.data)
    async with open_app(load(Settings), session=ConsoleSession(lambda _: None)):
        assert is_held(right.data)
    assert not is_held(right.data)
    check = os.open(right.data, os.O_RDONLY)
    fcntl.flock(check, fcntl.LOCK_SH)
    assert not is_held(right.data)
    os.close(check)
    assert not is_held(folder / "calls.jsonl")
