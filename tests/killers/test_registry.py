"""A spec becomes the killer it describes, and `then` its harder step."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from jobs.killers.command import CommandKiller
from jobs.killers.dry_run import DryRunKiller
from jobs.killers.process import ProcessKiller
from jobs.killers.registry import Escalating, killers_of
from jobs.ports import Killer, Outcome, Stopped, Target
from jobs.watchlist.killers import CommandSpec, DryRunSpec, KillerSpec, ProcessSpec
from tests.killers.conftest import TARGET, TargetOf


@dataclass
class RecordingKiller:
    """Remembers how it was asked."""

    alive: bool | None = None
    asked: list[bool] = field(default_factory=list)

    async def stop(self, target: Target, *, harder: bool) -> Stopped:
        self.asked.append(harder)
        return Stopped(outcome=Outcome.STOPPED, detail=f"stopped {target.session}")

    async def is_alive(self, target: Target) -> bool | None:  # noqa: ARG002 - the port's
        return self.alive


def test_every_spec_becomes_its_killer() -> None:
    killers = killers_of(
        {
            "cli": CommandSpec(argv=("stop", "{session}"), timeout=5),
            "signal": ProcessSpec(match="agent", pid_file="/run/agent.pid", grace=3),
            "bare": ProcessSpec(match="agent"),
            "rehearsal": DryRunSpec(),
        }
    )
    assert killers == {
        "cli": CommandKiller(argv=("stop", "{session}"), timeout=5),
        "signal": ProcessKiller(match=re.compile("agent"), pid_file=Path("/run/agent.pid"), grace=3),
        "bare": ProcessKiller(match=re.compile("agent"), pid_file=None, grace=10),
        "rehearsal": DryRunKiller(),
    }


def test_then_is_the_harder_step() -> None:
    killers = killers_of(
        {
            "cli": CommandSpec(argv=("stop",), then="signal"),
            "signal": ProcessSpec(match="agent", then="rehearsal"),
            "rehearsal": DryRunSpec(),
        }
    )
    signal = ProcessKiller(match=re.compile("agent"))
    assert killers["cli"] == Escalating(
        first=CommandKiller(argv=("stop",)), then=Escalating(first=signal, then=DryRunKiller())
    )


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        ({"cli": CommandSpec(argv=("stop",), then="gone")}, {"cli": CommandKiller(argv=("stop",))}),
        (
            {"a": CommandSpec(argv=("a",), then="b"), "b": CommandSpec(argv=("b",), then="a")},
            {
                "a": Escalating(first=CommandKiller(argv=("a",)), then=CommandKiller(argv=("b",))),
                "b": Escalating(first=CommandKiller(argv=("b",)), then=CommandKiller(argv=("a",))),
            },
        ),
        ({"a": CommandSpec(argv=("a",), then="a")}, {"a": CommandKiller(argv=("a",))}),
    ],
    ids=["not in force", "leads back", "leads to itself"],
)
def test_a_harder_step_that_leads_nowhere_is_left_out(
    specs: dict[str, KillerSpec], expected: dict[str, Killer]
) -> None:
    """Entries are approved one by one: together they may say what no watch list could."""
    assert killers_of(specs) == expected


def test_the_folder_and_the_contents_of_a_command_go_with_it() -> None:
    bound: dict[str, Any] = {"argv": ("/bin/stop",), "folder": "/w", "files": {"/bin/stop": "ab" * 32}}
    assert killers_of({"cli": CommandSpec(**bound)}) == {"cli": CommandKiller(**bound)}


async def test_what_is_refused_is_left_to_the_harder_step(tmp_path: Path) -> None:
    program = tmp_path / "stop"
    program.write_text("planted")
    killers = killers_of(
        {
            "cli": CommandSpec(argv=(f"{program}",), files={f"{program}": "0" * 64}, then="hard"),
            "hard": CommandSpec(argv=("echo", "{session}", "is gone"), files={}),
        }
    )
    assert (await killers["cli"].stop(TARGET, harder=False)).outcome is Outcome.REFUSED
    stopped = await killers["cli"].stop(TARGET, harder=True)
    assert stopped == Stopped(
        outcome=Outcome.STOPPED, detail="the command ended with exit code 0: s-1 is gone"
    )


async def test_the_harder_step_is_itself_not_harder() -> None:
    first, then = RecordingKiller(), RecordingKiller()
    killer: Killer = Escalating(first=first, then=then)
    await killer.stop(TARGET, harder=False)
    assert (first.asked, then.asked) == ([False], [])
    await killer.stop(TARGET, harder=True)
    assert (first.asked, then.asked) == ([False], [False])


@pytest.mark.parametrize(
    ("first", "then", "expected"),
    [
        (None, None, None),
        (None, True, True),
        (True, None, True),
        (None, False, False),
        (False, None, False),
        (False, True, True),
        (True, False, True),
    ],
)
async def test_whoever_can_tell_is_asked(
    *, first: bool | None, then: bool | None, expected: bool | None
) -> None:
    killer = Escalating(first=RecordingKiller(alive=first), then=RecordingKiller(alive=then))
    assert await killer.is_alive(TARGET) is expected


@pytest.mark.parametrize("fields", [{}, {"pid": 1}, {"pid": -7}, {"pid": 10**30}, {"session": "\ud800\0-"}])
@pytest.mark.parametrize(
    "killer",
    [
        DryRunKiller(),
        CommandKiller(argv=("/nonexistent/program", "{session}")),
        ProcessKiller(match=re.compile("no such process")),
        Escalating(first=DryRunKiller(), then=DryRunKiller()),
    ],
    ids=lambda killer: type(killer).__name__,
)
@pytest.mark.parametrize("harder", [False, True])
async def test_no_killer_ever_raises_for_a_target(
    killer: Killer, fields: dict[str, object], target_of: TargetOf, *, harder: bool
) -> None:
    """The contract of the port, for every adapter: an outcome, a storable sentence, an honest is_alive."""
    target = target_of(**fields)
    stopped = await killer.stop(target, harder=harder)
    assert stopped.outcome in Outcome
    assert stopped.detail.encode()
    assert await killer.is_alive(target) in {True, False, None}
