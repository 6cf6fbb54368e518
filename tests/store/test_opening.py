"""The database file: made, brought up to date, refused, closed."""

import os
import sqlite3
import subprocess
import sys
import threading
from importlib import resources
from pathlib import Path

import pytest

from jobs.store.database import open_database
from jobs.store.schema import FILE_NAME, StoreError
from tests.store.rows import a_session


async def test_what_was_written_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    async with open_database(tmp_path) as store, store.transaction() as tables:
        saved = await tables.sessions.save(a_session())
    for _ in range(2):
        async with open_database(tmp_path) as store:
            assert await store.reading.sessions.get(saved.id) == saved


async def test_each_migration_runs_once(tmp_path: Path) -> None:
    known = [entry.name for entry in resources.files("jobs.store").joinpath("migrations").iterdir()]
    schemas = []
    for _ in range(2):
        async with open_database(tmp_path):
            pass
        with sqlite3.connect(tmp_path / FILE_NAME) as connection:
            schemas.append(connection.execute("SELECT sql FROM sqlite_schema ORDER BY name").fetchall())
            version = connection.execute("PRAGMA user_version").fetchone()
        connection.close()
        assert version == (sum(name.endswith(".sql") for name in known),)
    assert schemas[0] == schemas[1]


async def test_a_folder_that_is_missing_is_made(tmp_path: Path) -> None:
    async with open_database(tmp_path / "some" / "folder"):
        assert (tmp_path / "some" / "folder" / FILE_NAME).is_file()


async def test_nobody_else_can_read_it(tmp_path: Path) -> None:
    """Whatever the umask: it tells what the agents did."""
    folder = tmp_path / "data"
    before = os.umask(0)
    try:
        async with open_database(folder) as store, store.transaction() as tables:
            await tables.sessions.save(a_session())
            files = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    finally:
        os.umask(before)
    assert len(files) > 1
    assert set(files.values()) == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700


async def test_a_database_of_a_newer_release_is_refused_and_left_alone(tmp_path: Path) -> None:
    async with open_database(tmp_path):
        pass
    path = tmp_path / FILE_NAME
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    with pytest.raises(StoreError, match="newer release"):
        async with open_database(tmp_path):
            pass
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (999,)
    connection.close()


@pytest.mark.parametrize("folder", ["taken", "taken/data"])
async def test_a_folder_that_cannot_be_one_is_refused_by_its_name(tmp_path: Path, folder: str) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(StoreError, match=f"data directory {tmp_path / folder} cannot be used"):
        async with open_database(tmp_path / folder):
            pass


async def test_closing_leaves_no_thread(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    async with open_database(tmp_path):
        own = set(threading.enumerate()) - before
    assert own
    for thread in own:
        thread.join(timeout=60)
        assert not thread.is_alive()


@pytest.mark.parametrize(("then", "code"), [("pass", 0), ("raise SystemExit(3)", 3)])
def test_a_process_that_used_it_exits(tmp_path: Path, then: str, code: int) -> None:
    """A connection left open would keep the process alive for ever."""
    script = f"""
import asyncio, pathlib, sys
from jobs.store.database import open_database

async def main():
    async with open_database(pathlib.Path(sys.argv[1])) as store:
        async with store.transaction() as tables:
            await tables.cursors.save("gateway", {{}})
        {then}

asyncio.run(main())
"""
    child = subprocess.run([sys.executable, "-c", script, tmp_path], timeout=120, check=False)  # noqa: S603 - our own
    assert child.returncode == code
