"""Self-tests as the chat sees them: the verifier is the real one, or one made lenient."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from bot.console import Shown
from jobs.artifacts import trial
from tests.bot.room import WATCHLIST, Room, open_room

NIGHTLY: Final = """
[workflows.nightly]
output = "report.json"
required = ["status"]
timestamp = "timestamp"
status = { allowed = ["ok", "failed"] }
"""
LENIENT: Final = (
    "from jobs.artifacts import trial_child\n"
    "from jobs.verification import checks\n"
    "from jobs.verification.wording import UnmetError\n"
    "status = checks.status\n"
    "def lenient(document, spec):\n"
    "    try: return status(document, spec)\n"
    "    except UnmetError as unmet:\n"
    "        if 'missing' in str(unmet): return 'seems fine'\n"
    "        raise\n"
    "checks.status = lenient\n"
    "trial_child.main()"
)


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with open_room(tmp_path, watchlist=WATCHLIST + NIGHTLY) as room:
        await room.answers()  # what was pinned
        yield room


def lines(shown: Shown) -> list[str]:
    return shown.text.splitlines()


async def test_what_survives_is_an_alert_that_names_check_and_mutant(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "_ARGV", (sys.executable, "-c", LENIENT))
    [alert] = await room.beat("verifier_selftest")
    title, about, survivor, ending = lines(alert)
    assert title == "🧪 The verifier does not notice every bad output"
    assert about.startswith("Workflow nightly: of an output made up for it, ")
    assert about.endswith(" bad ones were made on purpose, and 1 not detected.")
    assert survivor == "• status removed, which the check status should have caught: it passes: seems fine"
    assert ending.startswith("Until that is mended, ")
    assert "⚠️ self-test " in (await room.ask("/workflows")).text


async def test_where_all_is_detected_there_is_no_news(room: Room) -> None:
    """Only the list of workflows says so."""
    assert await room.beat("verifier_selftest") == []
    [_, head, facts, _] = lines(await room.ask("/workflows"))
    assert head == "▫️ nightly has not run yet"
    words = facts.split()
    assert words[0] == "self-test"
    assert words[1] == words[3] != "0"


async def test_where_nothing_could_be_tried_it_is_said_why(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "_ARGV", ("/nowhere",))
    await room.beat("verifier_selftest")
    assert lines(await room.ask("/workflows"))[2] == (
        "    ⚠️ self-test not possible: no process can be started: No such file or directory"
    )
