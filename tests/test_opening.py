"""The bot's own database is never opened as something that agents write: closing it would give up its locks on it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jobs import opening
from jobs.artifacts.snapshot import take_snapshot
from jobs.opening import keep_away_from, opened_to_read
from jobs.ports import CallSource
from jobs.sources.registry import FORMATS, build_source
from jobs.store.database import open_database
from jobs.store.schema import FILE_NAME
from jobs.watchlist.sources import AUTO, SourceSpec

WRITE = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
database.execute("BEGIN IMMEDIATE")
"""


def can_another_process_write(database: Path) -> bool:
    command = [sys.executable, "-c", WRITE, str(database)]
    return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0  # noqa: S603 - ours


def source(format_name: str, pattern: Path) -> CallSource:
    return build_source(SourceSpec(name="agents", format=format_name, path=str(pattern)))


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(opening, "_own", set())
    folder = tmp_path / "data"
    keep_away_from(folder / FILE_NAME)
    return folder / FILE_NAME


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("format_name", [AUTO, *FORMATS])
async def test_a_link_to_the_bots_database_costs_it_no_lock(format_name: str, own: Path, logs: Path) -> None:
    """Whatever the link is called, and whether it is a symbolic one. It is a problem."""
    async with open_database(own.parent) as store, store.transaction():
        for end in ("", "-wal", "-shm"):
            (logs / f"soft{end}.link").symlink_to(f"{own}{end}")
            os.link(f"{own}{end}", logs / f"hard{end}.link")
        reader = source(format_name, logs / "*")
        read = list(reader.read_new({}, now=0))
        assert not can_another_process_write(own)
    assert read == []
    assert "cannot be read: it is the bot's own database." in "".join(reader.problems())
    assert can_another_process_write(own)


@pytest.mark.parametrize("is_soft", [True, False])
async def test_an_output_that_is_a_link_to_it_costs_it_no_lock(own: Path, logs: Path, is_soft: bool) -> None:
    """It is no output."""
    async with open_database(own.parent) as store, store.transaction():
        output = logs / "report.json"
        output.symlink_to(own) if is_soft else os.link(own, output)
        snapshot = take_snapshot(str(output), 1 << 30)
        assert not can_another_process_write(own)
    assert snapshot.data == b""
    assert snapshot.problem is not None
    assert snapshot.problem.endswith("report.json is the bot's own database, expected an output")


def test_a_link_that_is_turned_to_it_is_not_followed(own: Path, logs: Path) -> None:
    own.parent.mkdir()
    own.touch()
    (logs / "log").symlink_to(own)
    with pytest.raises(PermissionError, match="the bot's own database"):
        opened_to_read(str(logs / "log"))


def test_its_files_need_not_be_there(own: Path, logs: Path) -> None:
    """SQLite makes and deletes those beside it as it needs them."""
    assert not own.exists()
    (logs / "log").write_text("text\n")
    os.close(opened_to_read(str(logs / "log")))
