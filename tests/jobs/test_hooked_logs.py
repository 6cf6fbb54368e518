"""A log and a hook that tell of the same sessions: each call counts once, in whatever order they are read."""

import asyncio
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.ports import CallSource, Watched
from jobs.sources.registry import HOOKED, build_source
from jobs.store.database import Database, open_database
from jobs.thrash.policy import OnDetection
from jobs.thrash.session import Session
from jobs.watchlist.sources import AUTO, SourceSpec
from tests.fakes import NOON, FixedWatch, ScriptedKiller
from tests.jobs.world import BEAT, World

AGENT: Final = 812
TOKENS: Final = 130


@dataclass(slots=True, kw_only=True)
class Agent:
    """A session of Claude Code, whose every third call fails."""

    folder: Path
    session: str = "s-1"
    per_call: int = 1
    """Lines of the hook for a call: of a script's commands it tells one by one."""
    has_same_ids: bool = True
    logged: int = 0
    hooked: int = 0

    @property
    def log(self) -> Path:
        return self.folder / "projects" / f"{self.session}.jsonl"

    def write_log(self, until: int) -> None:
        records = [record for number in range(self.logged, until) for record in self._records(number)]
        self.logged = max(self.logged, until)
        _append(self.log, records)

    def write_hook(self, until: int) -> None:
        told = [line for number in range(self.hooked, until) for line in self._hook_lines(number)]
        self.hooked = max(self.hooked, until)
        _append(self.folder / "hook" / "claude-code.jsonl", told)

    def _records(self, number: int) -> list[object]:
        use = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": "make"}}
        result = {
            "type": "tool_result",
            "tool_use_id": use["id"],
            "content": "x",
            "is_error": number % 3 == 0,
        }
        usage = {"input_tokens": 100, "output_tokens": 30}
        common = {"sessionId": self.session, "cwd": "/home/me/code/pages", "isSidechain": False}
        said = {"id": f"msg_{number}", "content": [use], "usage": usage, "stop_reason": "tool_use"}
        return [
            {**common, "type": "assistant", "timestamp": NOON + number - 0.5, "message": said},
            {**common, "type": "user", "timestamp": NOON + number, "message": {"content": [result]}},
        ]

    def _hook_lines(self, number: int) -> list[object]:
        line = {
            "ts": NOON + number,
            "agentId": "pages",
            "sessionId": self.session,
            "log": str(self.log),
            "callId": f"toolu_{number}" if self.has_same_ids else f"exec-{number}",
            "pid": AGENT,
            "tool": "Bash",
            "args": {"command": "make"},
            "is_error": number % 3 == 0,
        }
        return [line] * self.per_call


def _append(path: Path, records: Sequence[object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write("".join(json.dumps(record) + "\n" for record in records))


def source_of(
    folder: Path, format_name: str = "claude-code", pattern: str = "projects/*.jsonl"
) -> CallSource:
    spec = SourceSpec(name="gateway", format=format_name, path=str(folder / pattern))
    return build_source(spec, str(folder / "hook"))


def world_over(store: Database, folder: Path) -> World:
    watched = Watched(source=source_of(folder), killer=ScriptedKiller(), on_detection=OnDetection.STOP)
    return World(store=store, watch=FixedWatch(watched=[watched]))


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(folder=tmp_path)


@pytest.fixture
def world(store: Database, agent: Agent) -> World:
    return world_over(store, agent.folder)


# ── each call once ────────────────────────────────────────────────────────────────────────────────

steps = st.lists(
    st.tuples(st.sampled_from(["log", "hook", "look", "restart"]), st.integers(1, 30)), max_size=14
)


@settings(max_examples=40, deadline=None)
@given(drawn=steps, per_call=st.integers(1, 3), has_same_ids=st.booleans())
def test_once_the_log_is_read_all_is_counted_as_the_log_alone_tells_it(
    drawn: list[tuple[str, int]], per_call: int, has_same_ids: bool
) -> None:
    async def play(folder: Path) -> Session:
        agent = Agent(folder=folder, per_call=per_call, has_same_ids=has_same_ids)
        async with open_database(folder) as store:
            world = world_over(store, folder)
            for what, until in [*drawn, ("log", 30), ("hook", 30)]:
                if what == "log":
                    agent.write_log(until)
                elif what == "hook":
                    agent.write_hook(until)
                else:
                    world = world_over(store, folder) if what == "restart" else world
                    world.clock.time = NOON + 30  # a call is over before it is told
                    await world.look(beats=0)
            await world.look()
            return await world.session()

    with tempfile.TemporaryDirectory() as folder:
        session = asyncio.run(play(Path(folder)))
    assert (session.memory.calls, session.errors, session.memory.tokens) == (30, 10, 30 * TOKENS)
    assert (session.pid, session.agent) == (AGENT, "pages")
    assert len({call.number for call in session.memory.recent}) == len(session.memory.recent)


async def test_a_session_without_log_is_what_the_hook_tells(world: World, agent: Agent) -> None:
    agent.write_hook(6)
    await world.look(beats=0)
    agent.write_hook(9)
    await world.look(beats=0)
    session = await world.session()
    assert (session.memory.calls, session.errors, session.memory.tokens) == (9, 3, None)
    assert (session.pid, session.pid_since_ts, session.first_ts) == (AGENT, NOON, NOON)


async def test_calls_that_the_log_is_still_to_tell_count_once(world: World, agent: Agent) -> None:
    counts = []
    for logged, hooked in ((3, 2), (3, 5), (3, 9), (5, 9), (9, 9), (9, 12)):
        agent.write_log(logged)
        agent.write_hook(hooked)
        await world.look(beats=0)
        session = await world.session()
        counts.append((session.memory.calls, session.errors, session.memory.tokens))
    assert counts == [
        (3, 1, 3 * TOKENS),
        (5, 2, 3 * TOKENS),
        (9, 3, 3 * TOKENS),
        (5, 2, 5 * TOKENS),
        (9, 3, 9 * TOKENS),
        (12, 4, 9 * TOKENS),
    ]


async def test_a_long_call_that_is_over_is_known_by_its_id(world: World, agent: Agent) -> None:
    """The log has told it when it began, and tells its answer only after the hook."""
    began, answered = agent._records(0)
    _append(agent.log, [began])
    await world.look(beats=0)
    agent.write_hook(1)
    await world.look(beats=0)
    _append(agent.log, [answered])
    await world.look(beats=0)
    session = await world.session()
    assert (session.memory.calls, session.errors, session.pid) == (1, 1, AGENT)


# ── streaks and stops ─────────────────────────────────────────────────────────────────────────────


async def circle_on(world: World, agent: Agent, *, log: bool, hook: bool) -> None:
    until = max(agent.logged, agent.hooked) + int(BEAT)
    if log:
        agent.write_log(until)
    if hook:
        agent.write_hook(until)
    world.clock.time = NOON + until
    await world.look(beats=0)


async def test_an_agent_that_only_a_hook_tells_of_is_stopped_by_its_process(
    world: World, agent: Agent
) -> None:
    for _ in range(3):
        await circle_on(world, agent, log=False, hook=True)
    (stop,) = await world.intents()
    assert (stop.target.session, stop.target.pid, stop.target.pid_since_ts) == ("s-1", AGENT, NOON)


async def test_an_agent_that_the_log_tells_of_is_stopped_by_the_process_that_the_hook_names(
    world: World, agent: Agent
) -> None:
    for _ in range(3):
        await circle_on(world, agent, log=True, hook=True)
    (stop,) = await world.intents()
    assert (stop.target.pid, stop.target.reason) == (AGENT, "thrash_loop:10")
    assert (await world.incident()).calls == 179  # the first one repeats none


@pytest.mark.parametrize("is_deleted", [False, True])
async def test_an_agent_whose_log_stops_growing_is_stopped_by_what_its_hook_tells(
    world: World, agent: Agent, *, is_deleted: bool
) -> None:
    await circle_on(world, agent, log=True, hook=True)
    if is_deleted:
        agent.log.unlink()
    for _ in range(2):
        await circle_on(world, agent, log=False, hook=True)
    (stop,) = await world.intents()
    assert (stop.target.pid, stop.target.reason) == (AGENT, "thrash_loop:10")
    assert (await world.session()).memory.calls == 180


async def test_one_line_in_a_log_does_not_silence_a_hook(world: World, agent: Agent) -> None:
    await circle_on(world, agent, log=False, hook=True)
    agent.write_log(1)
    await world.look(beats=0)
    for _ in range(2):
        await circle_on(world, agent, log=False, hook=True)
    (stop,) = await world.intents()
    assert (stop.target.pid, (await world.session()).memory.calls) == (AGENT, 121)


async def test_what_the_hook_tells_beside_the_log_is_no_step(world: World, agent: Agent) -> None:
    for _ in range(2):
        await circle_on(world, agent, log=True, hook=False)
    agent.write_hook(agent.logged)
    await world.look(beats=0)
    assert (await world.session()).streak.steps == 2


async def test_a_log_that_comes_late_neither_ends_a_streak_nor_is_a_step(world: World, agent: Agent) -> None:
    for _ in range(2):
        await circle_on(world, agent, log=False, hook=True)
    agent.write_log(agent.hooked)
    await world.look(beats=0)
    assert (await world.session()).streak.steps == 2
    await circle_on(world, agent, log=True, hook=True)
    (stop,) = await world.intents()
    assert stop.target.pid == AGENT
    assert (await world.incident()).calls == 179  # the first one repeats none


async def test_an_incident_never_counts_less_than_what_has_led_to_it(world: World, agent: Agent) -> None:
    """Where the hook tells each command of a script, the log has fewer calls."""
    agent.per_call = 3
    await circle_on(world, agent, log=False, hook=True)
    await circle_on(world, agent, log=True, hook=True)
    assert (await world.incident()).calls >= 10


# ── ids of another kind ───────────────────────────────────────────────────────────────────────────

ROLLOUTS: Final = Path(__file__).parents[1] / "data" / "codex"


async def test_commands_of_a_script_that_hook_and_log_tell_under_different_ids_count_once(
    store: Database, tmp_path: Path
) -> None:
    """As of Codex in code mode; the process is the hook's."""
    rollout = tmp_path / "projects" / "rollout.jsonl"
    source = source_of(tmp_path, "codex")
    watched = Watched(source=source, killer=None, on_detection=OnDetection.OBSERVE)
    world = World(store=store, watch=FixedWatch(watched=[watched]))
    rollout.parent.mkdir()
    told: list[dict[str, object]] = []
    for line in (ROLLOUTS / "calls.jsonl").read_bytes().splitlines(keepends=True):
        with rollout.open("ab") as file:
            file.write(line)
        alone = [call for batch in source_alone(rollout).read_new({}, NOON) for call in batch.calls]
        hooked = [
            {
                "ts": call.ts,
                "agentId": call.agent,
                "sessionId": call.session,
                "log": str(rollout),
                "callId": f"exec-{number}",
                "pid": AGENT,
                "tool": "Bash",
                "args": json.loads(call.args),
            }
            for number, call in enumerate(alone[len(told) :], len(told))
        ]
        told += hooked
        _append(tmp_path / "hook" / "codex.jsonl", hooked)
        await world.look(beats=0)
    (session,) = await store.reading.sessions.newest(0, 10)
    assert (session.memory.calls, session.pid) == (len(told), AGENT)


def source_alone(log: Path) -> CallSource:
    return build_source(SourceSpec(name="gateway", format="codex", path=str(log)))


# ── whose they are ────────────────────────────────────────────────────────────────────────────────


def sessions_told(source: CallSource) -> set[str]:
    return {call.session for batch in source.read_new({}, NOON) for call in batch.calls if batch.is_hook}


@pytest.mark.parametrize("format_name", ["claude-code", AUTO])
def test_a_source_has_the_sessions_whose_logs_its_pattern_may_find(agent: Agent, format_name: str) -> None:
    """One hook tells of all: a source that may stop its agents must not be handed those of another."""
    agent.write_hook(1)
    replace(agent, session="s-2", hooked=0).write_hook(1)
    assert sessions_told(source_of(agent.folder, format_name)) == {"s-1", "s-2"}
    assert sessions_told(source_of(agent.folder, format_name, "projects/s-1.jsonl")) == {"s-1"}
    assert sessions_told(source_of(agent.folder, format_name, "other/*.jsonl")) == set()


def test_a_session_that_keeps_no_log_is_of_the_sources_of_its_program(tmp_path: Path) -> None:
    line = {"ts": NOON, "agentId": "a", "sessionId": "s-1", "tool": "Bash", "args": {}}
    _append(tmp_path / "hook" / "codex.jsonl", [line])
    assert sessions_told(source_of(tmp_path, "codex")) == {"s-1"}
    assert sessions_told(source_of(tmp_path, "claude-code")) == set()
    assert sessions_told(source_of(tmp_path, AUTO)) == set()


def test_a_folder_of_any_name_is_read_and_what_was_moved_away_too(tmp_path: Path) -> None:
    agent = Agent(folder=tmp_path / "[a]*?")
    agent.write_hook(2)
    hooked = agent.folder / "hook" / "claude-code.jsonl"
    hooked.rename(f"{hooked}.1")
    agent.write_hook(5)
    spec = SourceSpec(name="agents", format="claude-code", path=f"{tmp_path}/*/projects/*.jsonl")
    source = build_source(spec, str(agent.folder / "hook"))
    assert sum(len(batch.calls) for batch in source.read_new({}, NOON)) == 5
    assert source.problems() == ()


def test_other_formats_have_no_hook(tmp_path: Path) -> None:
    for name in HOOKED | {"gateway", "openclaw"}:
        is_joined = type(source_of(tmp_path, name)).__name__ == "HookedLogs"
        assert is_joined is (name in HOOKED)


def test_what_cannot_be_read_is_counted(agent: Agent) -> None:
    agent.write_hook(1)
    with (agent.folder / "hook" / "claude-code.jsonl").open("a") as file:
        file.write('{"ts": 17672\n[1]\n')
    (batch,) = source_of(agent.folder).read_new({}, NOON)
    assert (len(batch.calls), batch.cursor.unreadable) == (1, 2)
