"""Edited scripts, seen from the chat: what was approved is run, and said to be."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.bot.room import Room, open_room

WATCHLIST = """
[[sources]]
name = "gateway"
format = "gateway"
path = "calls.jsonl"
killer = "stopper"

[killers.stopper]
kind = "command"
argv = ["./tool.sh", "{session}"]

[workflows.nightly]
output = "report.json"
command = { argv = ["sh", "tool.sh", "{workflow}"] }
"""
NOTE = "ran the approved copy of tool.sh, whose file has changed"


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    """A bot whose killer and workflow run the same script, which was edited since."""
    save(tmp_path, "exit 0")
    async with open_room(tmp_path, watchlist=WATCHLIST) as room:
        save(tmp_path, "exit 1")
        yield room


def save(folder: Path, text: str) -> None:
    script = folder / "tool.sh"
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o755)


async def test_an_edited_script_does_not_keep_an_agent_from_being_stopped(room: Room) -> None:
    await room.thrash(3)
    [*_, report] = await room.stop_agents()
    assert f"{NOTE}; the command ended with exit code 0" in report.text


async def test_nor_does_it_judge_a_run(room: Room) -> None:
    room.leave()
    [*_, verdict] = await room.check()
    assert f"{NOTE}; exit code 0 after" in verdict.text
