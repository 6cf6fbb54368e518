"""The database as a command uses it: no event loop, the same tables, beside a bot that runs."""

import asyncio
import os
import resource
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib import resources
from pathlib import Path

import pytest

from bot.app import _exclusively
from jobs.alert.outgoing import Outgoing
from jobs.store.blocking import BlockingStore, open_blocking, run
from jobs.store.database import open_database
from jobs.store.schema import FILE_NAME, StoreError
from jobs.verification.history import RecordedVerdict
from tests.fakes import HOME, NOON
from tests.verdicts import a_report, a_run, a_verdict, passing

SCHEMA = sum(
    entry.name.endswith(".sql") for entry in resources.files("jobs.store").joinpath("migrations").iterdir()
)


async def _write(store: BlockingStore) -> RecordedVerdict:
    put = await store.tables.runs.put(a_run())
    await store.tables.outbox.put(Outgoing(kind="screen", body=b"{}", subject="run:1"), NOON)
    return await store.tables.verdicts.add(a_verdict(passing(), put.id))


def _version(folder: Path, version: int | None = None) -> int:
    """The schema that a database says it has; a `version` is written first."""
    connection = sqlite3.connect(folder / FILE_NAME)
    try:
        if version is not None:
            connection.execute(f"PRAGMA user_version = {version}")
        [found] = connection.execute("PRAGMA user_version").fetchone()
        return int(found)
    finally:
        connection.close()


async def test_what_a_command_writes_the_bot_reads(tmp_path: Path) -> None:
    with open_blocking(str(tmp_path)) as store:
        verdict = store.write(_write(store))
        assert store.read(store.tables.verdicts.newest_of(verdict.run_id)) == verdict
    async with open_database(tmp_path) as database:
        assert await database.reading.verdicts.page(None, None, None, 9) == [verdict]
        assert await database.reading.outbox.due(NOON, HOME)
        assert await database.reading.outbox.told_at("run:1")
        assert await database.reading.outbox.told_at("run:2") is None


async def test_what_the_bot_writes_a_command_reads(tmp_path: Path) -> None:
    async with open_database(tmp_path) as database:
        async with database.transaction() as tables:
            report = await tables.reports.add(a_report())
        with open_blocking(str(tmp_path)) as store:
            assert store.read(store.tables.reports.waiting()) == [report]


def test_what_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    """All of a write, or none of it."""

    async def fail(store: BlockingStore) -> None:
        await _write(store)
        raise ZeroDivisionError

    with open_blocking(str(tmp_path)) as store:
        with pytest.raises(ZeroDivisionError):
            store.write(fail(store))
        assert store.read(store.tables.runs.get(1)) is None
        assert store.write(_write(store)).id == 1


def test_what_has_to_wait_needs_an_event_loop() -> None:
    async def wait() -> None:
        await asyncio.sleep(0)

    with closing(wait()) as waiting, pytest.raises(RuntimeError, match="needs an event loop"):
        run(waiting)


# ── the file ──────────────────────────────────────────────────────────────────────────────────────


def test_a_database_that_is_missing_is_made_as_the_bot_makes_it(tmp_path: Path) -> None:
    """Whatever the umask, nobody else can read it."""
    folder = tmp_path / "some" / "folder"
    before = os.umask(0)
    try:
        with open_blocking(str(folder)) as store:
            store.write(_write(store))
            files = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    finally:
        os.umask(before)
    assert set(files.values()) == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
    connection = sqlite3.connect(folder / FILE_NAME)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
    assert _version(folder) == SCHEMA


def test_a_database_of_a_newer_release_is_refused_and_left_alone(tmp_path: Path) -> None:
    with open_blocking(str(tmp_path)):
        pass
    _version(tmp_path, 999)
    with pytest.raises(StoreError, match="newer release"), open_blocking(str(tmp_path)):
        pass
    assert _version(tmp_path) == 999


def _older(folder: Path, schema: int) -> None:
    """Make a database as an older release has left it, with a session in it."""
    connection = sqlite3.connect(folder / FILE_NAME)
    scripts = resources.files("jobs.store").joinpath("migrations").iterdir()
    for script in sorted(scripts, key=lambda script: script.name)[:schema]:
        connection.executescript(script.read_text())
    connection.execute("INSERT INTO presence (id, at) VALUES (1, 7)")
    connection.execute(f"PRAGMA user_version = {schema}")
    connection.commit()
    connection.close()


async def test_a_database_of_an_older_release_is_brought_up_to_date(tmp_path: Path) -> None:
    """What is in it stays."""
    _older(tmp_path, 3)
    with open_blocking(str(tmp_path)) as store:
        store.write(_write(store))
    assert _version(tmp_path) == SCHEMA
    async with open_database(tmp_path) as database:
        assert database.trouble is None
        assert await database.reading.presence.last() == 7


async def test_the_bot_brings_it_up_to_date_as_well(tmp_path: Path) -> None:
    _older(tmp_path, 3)
    async with open_database(tmp_path) as database:
        assert database.trouble is None
        assert await database.reading.presence.last() == 7
        assert await database.reading.verdicts.page(None, None, None, 9) == []
    assert _version(tmp_path) == SCHEMA


def test_while_a_bot_of_the_older_release_runs_its_database_is_left_alone(tmp_path: Path) -> None:
    """It would not know what it finds; restarted, it does that itself."""
    _older(tmp_path, 3)
    with _exclusively(tmp_path):
        with pytest.raises(StoreError, match="restart it"), open_blocking(str(tmp_path)):
            pass
        assert _version(tmp_path) == 3


def test_a_bot_of_this_release_keeps_no_command_out(tmp_path: Path) -> None:
    with open_blocking(str(tmp_path)):
        pass
    with _exclusively(tmp_path), open_blocking(str(tmp_path)) as store:
        assert store.write(_write(store)).id == 1


def test_commands_that_begin_at_once_make_one_database(tmp_path: Path) -> None:
    script = """
import sys
from jobs.store.blocking import open_blocking
from tests.verdicts import a_run, a_verdict, passing

async def write(tables):
    run = await tables.runs.put(a_run())
    await tables.verdicts.add(a_verdict(passing(), run.id))

sys.stdin.read()
with open_blocking(sys.argv[1]) as store:
    for _ in range(5):
        store.write(write(store.tables))
"""
    command = [sys.executable, "-c", script, str(tmp_path)]
    children = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(4)]  # noqa: S603 - our own
    for child in children:
        child.communicate(b"", timeout=120)
    assert [child.returncode for child in children] == [0] * 4
    with open_blocking(str(tmp_path)) as store:
        assert len(store.read(store.tables.verdicts.page(None, None, None, 99))) == 20


# ── what cannot be used ───────────────────────────────────────────────────────────────────────────


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    """A table that it wants to make is there already: nothing of it is made."""
    _older(tmp_path, 3)
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    connection.execute("CREATE TABLE verdict (id INTEGER)")
    connection.close()
    with pytest.raises(StoreError, match="already exists"), open_blocking(str(tmp_path)):
        pass
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE name = 'workflow'").fetchall()
    connection.close()
    assert (tables, _version(tmp_path)) == ([], 3)


def test_a_migration_for_which_there_is_no_room_says_so(tmp_path: Path) -> None:
    """And not that there is nothing left to undo."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
    try:
        with pytest.raises(StoreError, match="disk I/O error"), open_blocking(str(tmp_path)):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("how", ["no database", "a folder", "no folder"])
def test_what_cannot_be_used_is_said_in_one_sentence(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "data"
    match how:
        case "no database":
            folder.mkdir()
            (folder / FILE_NAME).write_bytes(b"no database" * 1000)
        case "a folder":
            (folder / FILE_NAME).mkdir(parents=True)
        case _:
            folder.touch()
    with (
        pytest.raises(StoreError, match=r"^the database cannot be used: "),
        open_blocking(str(folder)),
    ):
        pass


def test_a_database_that_another_process_holds_is_waited_for_and_not_for_ever(tmp_path: Path) -> None:
    with open_blocking(str(tmp_path)) as store:
        store._connection._connection.execute("PRAGMA busy_timeout = 10")
        other = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked"):
            store.write(_write(store))
        other.close()
        assert store.write(_write(store)).id == 1


def test_a_file_that_cannot_grow_keeps_what_was_in_it(tmp_path: Path) -> None:
    async def write_much(store: BlockingStore) -> None:
        for _ in range(100):
            await store.tables.outbox.put(Outgoing(kind="screen", body=b"0" * 4000), NOON)

    with open_blocking(str(tmp_path)) as store:
        verdict = store.write(_write(store))
        store._connection._connection.execute("PRAGMA max_page_count = 1")
        with pytest.raises(StoreError, match="full"):
            store.write(write_much(store))
        assert store.read(store.tables.verdicts.newest_of(verdict.run_id)) == verdict


# ── how quickly it is there ───────────────────────────────────────────────────────────────────────


def test_it_needs_no_event_loop_and_none_of_what_takes_long_to_import() -> None:
    """A command that runs at the end of every job must not be felt."""
    script = """
import sys
import jobs.recording
import jobs.store.blocking

heavy = {"asyncio", "aiosqlite", "jobs.ports", "pathlib", "importlib.resources", "cronsim", "zoneinfo", "logging"}
print(*sorted(heavy & sys.modules.keys()))
"""
    command = [sys.executable, "-I", "-S", "-c", _path() + script]
    done = subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our own
    assert done.stdout.split() == []


def _path() -> str:
    return f"import sys; sys.path[:0] = {[path for path in sys.path if path]!r}\n"
