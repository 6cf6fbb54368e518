"""`loopwarden demo`: the real bot, two real processes, and a terminal as the chat."""

import asyncio
import io
import itertools
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil
import pytest

from bot.demo import story, toy_agent
from bot.terminal import Terminal
from jobs.sources import gateway
from jobs.thrash.call import ToolCall
from jobs.thrash.finding import Finding
from jobs.thrash.locality import NOTHING_SEEN, detect_locality
from jobs.thrash.policy import ThrashPolicy


class Keyboard(io.StringIO):
    """Standard input, typed by a person."""

    def isatty(self) -> bool:
        return True


# ── the toy agents ────────────────────────────────────────────────────────────────────────────────


def findings(calls: Iterable[tuple[str, dict[str, object], str]]) -> list[Finding | None]:
    """What a look after every third of the first 300 calls finds."""
    found, state, seen = [], NOTHING_SEEN, list(itertools.islice(calls, 300))
    for number in range(0, 300, 3):
        new = [
            ToolCall(
                session="toy", agent="toy", ts=at * toy_agent._PACE, tool=tool, args=json.dumps(args).encode()
            )
            for at, (tool, args, _) in enumerate(seen[number : number + 3], start=number)
        ]
        state, finding = detect_locality(state, new, ThrashPolicy(), 0)
        found.append(finding)
    return found


def test_the_stuck_agent_is_found_as_soon_as_there_are_enough_calls() -> None:
    first, second, *rest = findings(toy_agent._stuck())
    assert first is second is None
    assert all(rest)


def test_the_busy_agent_is_never_found() -> None:
    assert not any(findings(toy_agent._busy()))


@pytest.mark.parametrize("kind", ["stuck", "busy"])
def test_a_toy_agent_logs_as_a_gateway_does_until_its_parent_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    parents = iter([1, 1, 1, 2])
    monkeypatch.setattr(toy_agent, "_PACE", 0)
    monkeypatch.setattr(os, "getppid", lambda: next(parents))
    toy_agent.main(kind, tmp_path / "calls.jsonl")
    lines = (tmp_path / "calls.jsonl").read_bytes().splitlines()
    calls = [call for line in lines for call in gateway.parse(line) or ()]
    assert [(call.agent, call.pid) for call in calls] == [(f"{kind}-agent", os.getpid())] * 3


# ── played in this process ────────────────────────────────────────────────────────────────────────


@pytest.fixture
def children() -> Iterator[None]:
    """Whatever a demo starts is gone when it ends."""
    before = set(psutil.Process().children())
    yield
    assert set(psutil.Process().children()) == before


@pytest.mark.usefixtures("children")
async def test_a_person_may_talk_to_it_and_end_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Keyboard("99\n\n/quit\n/help\n"))
    assert await story.play(unattended=False) == 0
    said = capsys.readouterr().out
    assert "Type commands as in Telegram" in said
    assert "There is no button 99." in said


@pytest.mark.usefixtures("children")
async def test_the_end_of_the_input_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Keyboard(""))
    assert await story.play(unattended=False) == 0


@pytest.mark.usefixtures("children")
async def test_without_a_keyboard_it_plays_alone_and_fails_if_nothing_comes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setattr(story, "_PATIENCE", 0)
    assert await story.play(unattended=False) == 1
    assert "the demo has failed" in capsys.readouterr().out


async def test_it_has_failed_if_the_healthy_agent_has_died(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dead = await asyncio.create_subprocess_exec("/bin/true")
    await dead.wait()
    log = tmp_path / "calls.jsonl"
    log.touch()
    stage = story.Stage(log=log, stuck=dead, busy=dead, terminal=Terminal())
    assert await story._judge(stage, calls=0) == 1
    assert f"Process {dead.pid} (busy-agent) has died." in capsys.readouterr().out
