"""Nobody disarms the guard by editing what a killer runs: the copy of what was approved is run then."""

import logging
from pathlib import Path

import pytest

from jobs.pinning.kind import ProposalState
from jobs.ports import Outcome
from jobs.store.database import Database
from tests.jobs.pins import SOURCE, PinWorld, proposed
from tests.killers.conftest import TARGET

KILLER = """
[killers.stopper]
kind = "command"
argv = ["./stop.sh", "{session}"]
"""
NOTE = "ran the approved copy of stop.sh, whose file has changed; "


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "stop.sh"
    path.write_text("#!/bin/sh\necho one")
    path.chmod(0o755)
    return path


@pytest.fixture
async def world(store: Database, script: Path) -> PinWorld:
    world = PinWorld(folder=script.parent, store=store)
    await world.first_used(SOURCE, KILLER)
    return world


def edit(script: Path, word: str) -> None:
    script.write_text(f"#!/bin/sh\necho {word}")


def copies(world: PinWorld) -> list[str]:
    return sorted(copy.read_text() for copy in (world.folder / "approved").iterdir())


async def stop(world: PinWorld) -> str:
    killer = world.watch.sources()["gateway"].killer
    assert killer is not None
    stopped = await killer.stop(TARGET, harder=False)
    if stopped.outcome is Outcome.REFUSED:
        return "refused"
    return stopped.detail.replace("the command ended with exit code 0: ", "")


async def test_what_a_killer_runs_is_what_was_approved_though_its_file_is_edited(
    world: PinWorld, script: Path
) -> None:
    """From the first look on, whether the chat has answered or not, and after a restart."""
    assert await stop(world) == "one"
    edit(script, "two")
    assert await stop(world) == f"{NOTE}one"
    [asked] = await world.look()
    assert proposed(asked).state is ProposalState.OPEN
    assert await stop(world) == f"{NOTE}one"
    world = await world.restarted()
    assert await stop(world) == f"{NOTE}one"


async def test_once_the_edit_is_approved_that_is_run_and_nothing_is_left_of_the_other(
    world: PinWorld, script: Path
) -> None:
    edit(script, "two")
    await world.look()
    await world.approve("stopper")
    assert await stop(world) == "two"
    edit(script, "three")
    assert await stop(world) == f"{NOTE}two"
    assert copies(world) == ["#!/bin/sh\necho two"]


async def test_a_file_that_was_edited_once_more_before_it_was_approved_is_copied_when_it_returns(
    world: PinWorld, script: Path
) -> None:
    edit(script, "two")
    await world.look()
    edit(script, "three")
    await world.approve("stopper")
    assert await stop(world) == "refused"
    edit(script, "two")
    await world.look()
    edit(script, "three")
    assert await stop(world) == f"{NOTE}two"


async def test_while_the_database_cannot_be_used_no_copy_is_removed(world: PinWorld) -> None:
    """What was approved may be more than is known by then."""
    (world.folder / "approved" / "of-another").touch()
    await world.look()
    assert len(copies(world)) == 1
    (world.folder / "approved" / "of-another").touch()
    world.store.trouble = "disk I/O error"
    await world.look()
    assert len(copies(world)) == 2


async def test_copies_that_cannot_be_kept_are_logged_once_and_hold_up_nothing(
    tmp_path: Path, store: Database, script: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "approved").touch()
    world = PinWorld(folder=tmp_path, store=store)
    with caplog.at_level(logging.WARNING, "jobs.copying"):
        await world.first_used(SOURCE, KILLER)
        await world.look()
    [line] = [record.message for record in caplog.records]
    assert line.startswith("what was approved cannot be copied: ")
    assert await stop(world) == "one"
    edit(script, "two")
    assert await stop(world) == "refused"
