"""A pin and what the chat is told of it are there together or not at all, whoever dies of writing them."""

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jobs.store.schema import FILE_NAME
from tests.crashing import Crash
from tests.jobs.pins import LAX, LAXER, STRICT
from tests.pinner import pin

PATIENCE = 120
PIN, PROPOSE, SAVE, TELL = STEPS = [
    f"jobs.store.{step}"
    for step in (
        "pins:SqlPins.add",
        "pins:SqlProposals.add",
        "pins:SqlProposals.save",
        "outbox:SqlOutbox.put",
    )
]
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Pinner:
    """A folder, and who pins what lies in it; who dies of it is a process."""

    folder: Path

    def works(self, role: str, watchlist: str | None = None) -> None:
        self._write(watchlist)
        asyncio.run(pin(role, self.folder))

    def dies(self, role: str, step: str, watchlist: str | None = None) -> None:
        self._write(watchlist)
        crash = json.dumps(Crash(when="after", step=step, time=1))
        script = Path(__file__).parent / "pinner.py"
        command = [sys.executable, str(script), role, str(self.folder), crash]
        died = subprocess.run(command, check=False, timeout=PATIENCE)  # noqa: S603 - our own
        assert died.returncode == -signal.SIGKILL

    def _write(self, watchlist: str | None) -> None:
        if watchlist is not None:
            (self.folder / "loopwarden.toml").write_text(watchlist)

    def stands(self) -> tuple[list[Row], list[Row], list[Row]]:
        """Return the pins, where the proposals stand, and what the chat is told of it."""
        with closing(sqlite3.connect(self.folder / FILE_NAME)) as database:
            pins = database.execute("SELECT entry ->> 'max_age', how FROM pin ORDER BY id").fetchall()
            proposals = database.execute("SELECT entry ->> 'max_age', state FROM proposal ORDER BY id")
            told = database.execute(
                "SELECT body ->> 'notice', body ->> 'proposal', body ->> 'state' FROM outbox ORDER BY id"
            )
            return pins, proposals.fetchall(), told.fetchall()


FIRST = (1800.0, "first use")
FIRST_TOLD = ("FirstUseNotice", None, None)
NOTHING: tuple[list[Row], list[Row], list[Row]] = ([], [], [])


def asked(*, proposal: int, state: str) -> Row:
    return ("ProposalNotice", proposal, state)


@pytest.fixture
def pinner(tmp_path: Path) -> Pinner:
    return Pinner(tmp_path)


@pytest.mark.parametrize("step", [PIN, TELL], ids=["pin", "tell"])
def test_a_death_at_first_sight_leaves_nothing(pinner: Pinner, step: str) -> None:
    pinner.dies("look", step, STRICT)
    assert pinner.stands() == NOTHING
    pinner.works("look")
    assert pinner.stands() == ([FIRST], [], [FIRST_TOLD])


@pytest.mark.parametrize("step", [PROPOSE, TELL], ids=["propose", "tell"])
def test_a_change_that_nobody_was_asked_about_is_found_again(pinner: Pinner, step: str) -> None:
    pinner.works("look", STRICT)
    before = pinner.stands()
    pinner.dies("look", step, LAX)
    assert pinner.stands() == before
    for _ in range(2):
        pinner.works("look")
        told = [FIRST_TOLD, asked(proposal=1, state="open")]
        assert pinner.stands() == ([FIRST], [(86400.0, "open")], told)


@pytest.mark.parametrize("step", [SAVE, PROPOSE, TELL], ids=["save", "propose", "tell"])
def test_a_death_while_a_proposal_is_replaced_leaves_the_old_one_with_its_message(
    pinner: Pinner, step: str
) -> None:
    pinner.works("look", STRICT)
    pinner.works("look", LAX)
    before = pinner.stands()
    pinner.dies("look", step, LAXER)
    assert pinner.stands() == before
    pinner.works("look")
    proposals = [(86400.0, "withdrawn"), (172800.0, "open")]
    assert pinner.stands() == ([FIRST], proposals, [FIRST_TOLD, asked(proposal=2, state="open")])


@pytest.mark.parametrize("step", [PIN, SAVE, TELL], ids=["pin", "save", "tell"])
def test_a_death_while_it_is_approved_leaves_the_old_pin_with_its_question(pinner: Pinner, step: str) -> None:
    """The press is handled again, and then the new one is in force."""
    pinner.works("look", STRICT)
    pinner.works("look", LAX)
    before = pinner.stands()
    pinner.dies("approve", step)
    assert pinner.stands() == before
    pinner.works("approve")
    assert pinner.stands() == _approved()


def test_what_was_approved_survives_a_death_right_after(pinner: Pinner) -> None:
    pinner.works("look", STRICT)
    pinner.works("look", LAX)
    pinner.dies("approve", "jobs.spec_pinning:SpecPinning._decide")
    assert pinner.stands() == _approved()


def _approved() -> tuple[list[Row], list[Row], list[Row]]:
    told = [FIRST_TOLD, asked(proposal=1, state="approved")]
    return [FIRST, (86400.0, "approved")], [(86400.0, "approved")], told
