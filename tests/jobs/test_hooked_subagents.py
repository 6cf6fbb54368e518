"""A hook that does not tell a sub-agent's calls from its parent's, or not its place among others."""

import asyncio
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.ports import Watched
from jobs.sources.registry import build_source
from jobs.store.database import Database, open_database
from jobs.thrash.policy import OnDetection
from jobs.thrash.session import Session
from jobs.watchlist.sources import SourceSpec
from tests.fakes import NOON, FixedWatch, ScriptedKiller
from tests.jobs.world import BEAT, World

AGENT: Final = 812
MAIN: Final = "1f1e2d3c-main"
SUB: Final = "2a2b3c4d-sub"


def iso(ts: float) -> str:
    return datetime.fromtimestamp(ts, UTC).isoformat()


def append(path: Path, *records: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write("".join(json.dumps(record) + "\n" for record in records))


@dataclass(slots=True, kw_only=True)
class Gemini:
    """A session of Gemini CLI that waits for its sub-agent, and both of whose calls the hook tells as the session's."""

    folder: Path
    hooked: int = 0
    logged: int = 0

    @property
    def chats(self) -> Path:
        return self.folder / "tmp" / "pages" / "chats"

    @property
    def log(self) -> Path:
        return self.chats / "session-2027-01-15T08-00-1f1e2d3c.jsonl"

    def ask(self, calls: int) -> None:
        """Let the parent make some calls of its own, which log and hook tell."""
        append(self.log, {"sessionId": MAIN, "projectHash": "x", "kind": "main"})
        for number in range(-calls, 0):
            self._hook(number, f"{number}" * 40)
            append(self.log, self._message(number, f"{number}" * 40))

    def delegate(self, until: int, *, logged: int | None = None) -> None:
        """Let the sub-agent go on; its log, where only so much is `logged`, lags behind the hook."""
        for number in range(self.hooked, until):
            self._hook(number, "cat status.txt")
        self.hooked = max(self.hooked, until)
        told = until if logged is None else logged
        log = self.chats / MAIN / f"{SUB}.jsonl"
        if told and not log.exists():
            append(log, {"sessionId": SUB, "projectHash": "x", "kind": "subagent"})
        append(log, *(self._message(number, "cat status.txt") for number in range(self.logged, told)))
        self.logged = max(self.logged, told)

    def hook_alone(self, first: int, until: int) -> None:
        """Let the parent make calls that its log does not tell any more."""
        for number in range(first, until):
            self._hook(number, "make")

    def _hook(self, number: int, command: str) -> None:
        line = {
            "ts": NOON + number + 0.1,
            "agentId": "pages",
            "sessionId": MAIN,
            "log": str(self.log),
            "pid": AGENT,
            "tool": "run_shell_command",
            "args": {"command": command},
        }
        append(self.folder / "hook" / "gemini-cli.jsonl", line)

    def _message(self, number: int, command: str) -> Mapping[str, object]:
        at = iso(NOON + number)
        call = {
            "id": f"call-{number}",
            "name": "run_shell_command",
            "args": {"command": command},
            "result": [],
            "status": "success",
            "timestamp": iso(NOON + number + 0.2),
        }
        return {"id": f"m-{number}", "timestamp": at, "type": "gemini", "content": "", "toolCalls": [call]}


def world_over(store: Database, folder: Path, format_name: str, pattern: str) -> World:
    spec = SourceSpec(name="gateway", format=format_name, path=str(folder / pattern))
    source = build_source(spec, str(folder / "hook"))
    watched = Watched(source=source, killer=ScriptedKiller(), on_detection=OnDetection.STOP)
    return World(store=store, watch=FixedWatch(watched=[watched]))


async def sessions_in(world: World) -> Mapping[str, Session]:
    return await world.store.reading.sessions.of_source("gateway", [MAIN, SUB])


@pytest.fixture
def gemini(tmp_path: Path) -> Gemini:
    return Gemini(folder=tmp_path)


@pytest.fixture
def world(store: Database, gemini: Gemini) -> World:
    return world_over(store, gemini.folder, "gemini-cli", "tmp/*/chats/**/*.jsonl")


# ── whose calls they are ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("asked", [0, 3])
async def test_a_subagent_in_circles_is_stopped_and_its_waiting_parent_is_not(
    world: World, gemini: Gemini, *, asked: int
) -> None:
    """The hook tells the process of both under the parent's name, be the sub-agent its first call or a later one."""
    gemini.ask(asked)
    for beat in range(1, 5):
        gemini.delegate(beat * int(BEAT))
        world.clock.time = NOON + beat * BEAT
        await world.look(beats=0)
    (stop,) = await world.intents()
    assert (stop.target.session, stop.target.pid) == (SUB, AGENT)
    assert [incident.agent for incident in await world.incidents()] == ["pages/subagent"]
    told = await sessions_in(world)
    assert (told[MAIN].memory.calls, told[SUB].memory.calls) == (asked, 4 * BEAT)
    assert (told[MAIN].agent, told[MAIN].pid, told[SUB].parent) == ("pages", AGENT, MAIN)


steps = st.lists(
    st.tuples(st.sampled_from(["hook", "log", "look", "restart"]), st.integers(1, 30)), max_size=14
)


@settings(max_examples=40, deadline=None)
@given(drawn=steps, asked=st.integers(0, 3))
def test_whenever_one_looks_a_subagents_calls_count_once(
    drawn: Sequence[tuple[str, int]], asked: int
) -> None:
    async def play(folder: Path) -> Mapping[str, Session]:
        gemini, pattern = Gemini(folder=folder), "tmp/*/chats/**/*.jsonl"
        gemini.ask(asked)
        async with open_database(folder) as store:
            world = world_over(store, folder, "gemini-cli", pattern)
            for what, until in [*drawn, ("log", 30)]:
                if what in {"hook", "log"}:
                    gemini.delegate(
                        max(until, gemini.hooked), logged=gemini.logged if what == "hook" else until
                    )
                else:
                    world = world_over(store, folder, "gemini-cli", pattern) if what == "restart" else world
                    world.clock.time = NOON + 30  # a call is over before it is told
                    await world.look(beats=0)
            await world.look()
            return await sessions_in(world)

    with tempfile.TemporaryDirectory() as folder:
        told = asyncio.run(play(Path(folder)))
    counted = {name: session.memory.calls for name, session in told.items() if session.memory.calls}
    assert counted == ({MAIN: asked, SUB: 30} if asked else {SUB: 30})


async def test_a_parent_whose_log_stops_growing_is_guarded_once_its_subagent_is_done(
    world: World, gemini: Gemini
) -> None:
    gemini.ask(3)
    gemini.delegate(int(BEAT))
    world.clock.time = NOON + BEAT
    await world.look(beats=0)
    for beat in range(1, 4):
        gemini.hook_alone(beat * int(BEAT) + 1, (beat + 1) * int(BEAT))
        world.clock.time = NOON + (beat + 1) * BEAT
        await world.look(beats=0)
    assert [(stop.target.session, stop.target.pid) for stop in await world.intents()] == [(MAIN, AGENT)]


# ── their place ───────────────────────────────────────────────────────────────────────────────────


async def test_what_the_log_tells_of_a_subagents_parent_and_name_wins(
    store: Database, tmp_path: Path
) -> None:
    """The hook of Claude Code names the root as the parent of each, and tells its type instead of its task."""
    outer, inner = "a1111111111111111", "a2222222222222222"
    below = tmp_path / "projects" / "p" / "root-1" / "subagents"
    hook, main = tmp_path / "hook" / "claude-code.jsonl", below.parent.with_suffix(".jsonl")
    world = world_over(store, tmp_path, "claude-code", "projects/**/*.jsonl")
    for number, (log, agent, call_id) in enumerate(
        (
            (main, None, "toolu_root"),
            (below / f"agent-{outer}.jsonl", outer, "toolu_outer"),
            (below / f"agent-{inner}.jsonl", inner, "toolu_inner"),
        )
    ):
        use = {"type": "tool_use", "id": call_id, "name": "Agent", "input": {"prompt": call_id}}
        message = {"id": f"msg_{number}", "content": [use]}
        append(
            log,
            {
                "type": "assistant",
                "sessionId": "root-1",
                "agentId": agent,
                "timestamp": iso(NOON + number),
                "message": message,
            },
        )
    for depth, (agent, asked_by) in enumerate(((outer, "toolu_root"), (inner, "toolu_outer")), 1):
        meta = {
            "agentType": "general-purpose",
            "description": f"task {depth}",
            "toolUseId": asked_by,
            "spawnDepth": depth,
        }
        (below / f"agent-{agent}.meta.json").write_text(json.dumps(meta))
    await world.look()
    told = {
        "ts": NOON + 9,
        "agentId": "general-purpose",
        "sessionId": inner,
        "parentId": "root-1",
        "log": str(main),
        "pid": AGENT,
        "tool": "Bash",
        "args": {"command": "make"},
    }
    append(hook, told)
    await world.look()
    session = (await store.reading.sessions.of_source("gateway", [inner]))[inner]
    assert (session.memory.calls, session.pid) == (2, AGENT)
    assert (session.agent, session.parent) == ("task 2", outer)
