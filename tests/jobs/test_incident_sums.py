"""An incident's tokens and money are those of the loop, whenever the log was found and wherever it tells them."""

import hashlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jobs.ports import Watched
from jobs.sources.registry import build_source
from jobs.store.database import Database
from jobs.thrash.policy import OnDetection
from jobs.thrash.price import Price, Prices
from jobs.watchlist.sources import SourceSpec
from tests.fakes import NOON
from tests.jobs.world import World

Json = dict[str, Any]

OLD, LOOPED = 200, 12
BEFORE, CALLS = OLD + 1, LOOPED - 1
"""The incident's first call is the first that repeats another one."""
TOKENS = 1_100
"""Of every answer."""
COST = 4_500_000
"""Of the same, in billionths."""
PRICES = Prices(models={"*": Price(input=3, output=15)})


def commands() -> Iterator[tuple[float, str]]:
    """Varied work for an hour, then the same call again and again."""
    for n in range(OLD):
        yield NOON - 3600 + 16 * n, hashlib.sha256(f"{n}".encode()).hexdigest()
    for n in range(LOOPED):
        yield NOON - LOOPED + n, "pytest -x"


def written(ts: float) -> str:
    return datetime.fromtimestamp(ts, UTC).isoformat().replace("+00:00", "Z")


def claude_code() -> Iterator[Json]:
    """A call has its tokens, its money is told beside it."""
    for n, (ts, command) in enumerate(commands()):
        block = {"type": "tool_use", "id": f"toolu_{n}", "name": "Bash", "input": {"command": command}}
        usage = {"input_tokens": 1_000, "output_tokens": 100}
        message = {"id": f"msg_{n}", "model": "claude", "content": [block], "usage": usage}
        yield {"type": "assistant", "sessionId": "s-1", "timestamp": written(ts), "message": message}


def gemini_cli() -> Iterator[Json]:
    """Tokens and money are told before the call, which is told when it has ended."""
    yield {"sessionId": "s-1", "projectHash": "75", "startTime": written(NOON - 3600), "kind": "main"}
    for n, (ts, command) in enumerate(commands()):
        tokens = {"input": 1_000, "output": 100, "cached": 0, "thoughts": 0, "tool": 0, "total": TOKENS}
        answer = {
            "id": f"m-{n}",
            "timestamp": written(ts),
            "type": "gemini",
            "content": "",
            "model": "gemini",
        }
        call = {"id": f"fc-{n}", "name": "run_shell_command", "args": {"command": command}}
        yield answer | {"tokens": tokens}
        yield answer | {"tokens": tokens, "toolCalls": [call | {"status": "success"}]}


@pytest.mark.parametrize(
    ("name", "records", "per_look"),
    [
        ("claude-code", claude_code, None),
        ("gemini-cli", gemini_cli, None),
        ("claude-code", claude_code, 60),
        ("gemini-cli", gemini_cli, 60),
        ("gemini-cli", gemini_cli, 2 * (BEFORE + 1)),
    ],
)
async def test_what_a_session_used_before_its_loop_is_not_the_incidents(
    store: Database, tmp_path: Path, name: str, records: Callable[[], Iterator[Json]], per_look: int | None
) -> None:
    """Whether the log is read at once or as it grows, be it between an answer of the model and its call."""
    log = tmp_path / "garden" / "chats" / "s-1.jsonl"
    log.parent.mkdir(parents=True)
    source = build_source(SourceSpec(name="gateway", format=name, path=str(log)))
    world = World(store=store)
    world.watch.watched = [
        Watched(source=source, killer=world.killer, on_detection=OnDetection.STOP, prices=PRICES)
    ]
    lines = [msgspec.json.encode(record) + b"\n" for record in records()]
    for start in range(0, len(lines), per_look or len(lines)):
        with log.open("ab") as file:
            file.writelines(lines[start : start + (per_look or len(lines))])
        await world.look(beats=0)
    incident, memory = await world.incident(), (await world.session()).memory
    assert (memory.calls, memory.tokens, memory.cost) == (212, 212 * TOKENS, 212 * COST)
    assert (incident.first_call, incident.calls) == (BEFORE + 1, CALLS)
    assert (incident.tokens, incident.cost) == (CALLS * TOKENS, CALLS * COST)
    assert (incident.tokens_before, incident.cost_before) == (BEFORE * TOKENS, BEFORE * COST)
