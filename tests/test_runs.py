"""Runs as users have them verified: a bot that watches, a command at the end of a cron line, and what the chat hears."""

import asyncio
import json
import sqlite3
import sys

import pytest

from tests.botapi import GROUP
from tests.crash_scene import Database, said_in
from tests.pinned import pinned
from tests.stage import PATIENCE, Stage

WORKFLOW = """
[workflows.nightly]
output = "report.json"
required = ["status", "total"]
settle = "1s"
"""


def write(stage: Stage, **report: object) -> None:
    """Write an output beside its place, and move it there."""
    new = stage.folder / "report.json.new"
    new.write_text(json.dumps(report))
    new.rename(stage.folder / "report.json")


async def verify(stage: Stage, *arguments: str) -> tuple[int, str]:
    """Run the command; return its exit code and what it says."""
    command = (sys.executable, "-m", "bot", "verify", *arguments)
    environment = stage.environment(TOKEN="", ADMINS="")
    process = await asyncio.create_subprocess_exec(
        *command, cwd=stage.folder, env=environment, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert process.returncode is not None
    return process.returncode, output.decode()


async def watching(stage: Stage) -> Database:
    """Start a bot, and wait until it knows the workflow."""
    stage.watch(WORKFLOW)
    await pinned(stage.folder)
    await stage.bot()
    database = Database(stage)
    async with asyncio.timeout(PATIENCE):
        # There is no event to wait for.
        while not _is_watched(database):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return database


def _is_watched(database: Database) -> bool:
    try:
        return bool(database("SELECT 1 FROM workflow WHERE judged_until > 0"))
    except sqlite3.OperationalError:  # it is not there yet
        return False


@pytest.mark.prove
async def test_an_output_that_is_no_good_is_told_and_a_good_one_closes_it(stage: Stage) -> None:
    await watching(stage)
    write(stage, status="ok", total=None)
    alert = await stage.shown("nightly", "fields")
    write(stage, status="ok", total=3)
    closed = await stage.shown("nightly", "delivers again")
    assert closed.id == alert.id


async def test_what_a_command_finds_is_told_by_the_bot_that_runs_beside_it(stage: Stage) -> None:
    """Once, though the bot sees the output, too."""
    database = await watching(stage)
    write(stage, status="ok", total="n/a")
    code, output = await verify(stage, "nightly")
    assert code == 1
    assert [line.split()[1] for line in output.splitlines()] == ["pass", "pass", "FAIL", "not"]
    await stage.shown("nightly", "fields")
    write(stage, status="ok", total=3)
    assert (await verify(stage, "nightly"))[0] == 0
    await stage.shown("nightly", "delivers again")
    await database.settled()
    assert len(said_in(stage, GROUP)) == 1


async def test_what_a_command_finds_while_no_bot_runs_is_told_at_the_next_start(stage: Stage) -> None:
    stage.watch(WORKFLOW)
    write(stage, status="ok", total="n/a")
    assert (await verify(stage, "nightly"))[0] == 1
    await stage.bot()
    await stage.shown("nightly", "fields")
