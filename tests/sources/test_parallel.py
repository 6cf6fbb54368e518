"""Agents may ask for hundreds of calls at once: however many of them are open, each is told once, and so is its answer."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jobs.sources.registry import FORMATS
from tests.sources import codex_lines as codex
from tests.sources.contract import Follower, Told
from tests.sources.databases import OpenClaw, OpenCode, Row

MANY = range(500)
SESSION = "d4ea0dd5-b996-4f42-a461-f175b882c7f6"
AT = "2026-11-30T09:37:44.784Z"
TIME = 1796031441000
PARTS = """
    DROP TABLE event;
    CREATE TABLE part (
        id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT
    );
    CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, data TEXT);
"""

Json = dict[str, Any]
Stage = Sequence[Json | bytes]
"""What is written between two looks."""
Program = Callable[[Path], Iterator[str]]
"""Writes a stage whenever it is asked for the pattern of its log."""


def lines(path: Path, *stages: Stage) -> Iterator[str]:
    path.parent.mkdir(parents=True, exist_ok=True)
    for stage in stages:
        written = [record if isinstance(record, bytes) else json.dumps(record).encode() for record in stage]
        with path.open("ab") as file:
            file.write(b"".join(record + b"\n" for record in written))
        yield str(path)


def claude(folder: Path) -> Iterator[str]:
    return lines(
        folder / f"{SESSION}.jsonl",
        [said({"type": "tool_use", "id": f"toolu_{n:020}", "name": "Bash", "input": {"n": n}}) for n in MANY],
        [answered(n) for n in MANY],
    )


def said(*blocks: Json, **fields: object) -> Json:
    usage = {"input_tokens": 10, "output_tokens": 5}
    message = {"id": "msg_1", "model": "m", "content": blocks, "usage": usage}
    return {"type": "assistant", "sessionId": SESSION, "timestamp": AT, "message": message} | fields


def answered(number: int) -> Json:
    block = {"type": "tool_result", "tool_use_id": f"toolu_{number:020}", "content": "", "is_error": True}
    return {"type": "user", "sessionId": SESSION, "timestamp": AT, "message": {"content": [block]}}


def codex_calls(folder: Path) -> Iterator[str]:
    return lines(
        folder / "rollout-1.jsonl",
        [codex.meta(), codex.begin(), *[codex.call(f"call_{n:020}", f'{{"n":{n}}}') for n in MANY]],
        [codex.output(f"call_{n:020}", codex.direct("", code=1)) for n in MANY],
    )


def codex_scripts(folder: Path) -> Iterator[str]:
    """Each fails by its own command."""
    sources = [f'await tools.exec_command({{cmd: "make part-{n}"}});' for n in MANY]
    return lines(
        folder / "rollout-1.jsonl",
        [codex.meta(), codex.begin(), *[codex.script(f"call_{n:020}", sources[n]) for n in MANY]],
        [codex.ended(f"exec-{n}", code=1, command=f"make part-{n}") for n in reversed(MANY)],
        [codex.scripted(f"call_{n:020}", "") for n in MANY],
    )


def gateway(folder: Path) -> Iterator[str]:
    given = {"agentId": "main", "tool": "exec", "ts": TIME, "is_error": True, "result": ""}
    return lines(folder / "calls.jsonl", [given | {"callId": f"c{n:020}", "args": {"n": n}} for n in MANY])


def gemini(folder: Path) -> Iterator[str]:
    """A message with all of them is written again as they end."""
    head = {"sessionId": "s", "projectHash": "3f", "startTime": AT, "kind": "main"}
    given = [{"id": f"c{n:020}", "name": "exec", "args": {"n": n}, "timestamp": AT} for n in MANY]
    running = [call | {"status": "executing"} for call in given]
    ended = [call | {"status": "error", "result": []} for call in given]
    message = {"id": "m-1", "timestamp": AT, "type": "gemini", "content": "", "model": "m"}
    written = [message | {"toolCalls": calls} for calls in (running, running[:250] + ended[250:], ended)]
    history: Json = {"$set": {"messages": [written[-1]]}}
    records: list[Json] = [head, *written, history]
    return lines(folder / "tmp/garden/chats/session-1.jsonl", *[[record] for record in records])


def openclaw(folder: Path) -> Iterator[str]:
    stages = [[claw("assistant", content=[claw_call(n) for n in MANY])]]
    stages += [[claw("toolResult", toolCallId=f"call_{n}", content="", isError=True) for n in MANY]]
    with closing(OpenClaw(folder / "agents/reports/agent/openclaw-agent.sqlite")) as writer:
        writer.session("s", "agent:reports:main")
        for stage in stages:
            for event in stage:
                seq = writer.database.total_changes
                writer.add(Row("s", seq, event, TIME + seq))
            yield str(writer.path)


def claw(role: str, **fields: object) -> bytes:
    return json.dumps({"type": "message", "message": {"role": role, "timestamp": TIME} | fields}).encode()


def claw_call(number: int) -> Json:
    return {"type": "toolCall", "id": f"call_{number}", "name": "exec", "arguments": {"n": number}}


def opencode_events(folder: Path) -> Iterator[str]:
    with closing(OpenCode(folder / "opencode.db")) as writer:
        writer.session("ses_1")
        for seq, status in enumerate(["running", "running", "error"]):
            for n in MANY:
                event = {"part": {"id": f"prt_{n:020}"} | part(n, status), "time": TIME + seq}
                number = seq * len(MANY) + n
                row = Row("ses_1", number, json.dumps(event).encode(), TIME + seq, "message.part.updated.1")
                writer.add(row)
            yield str(writer.path)


def opencode_parts(folder: Path) -> Iterator[str]:
    with closing(OpenCode(folder / "opencode.db")) as writer:
        writer.session("ses_1")
        writer.database.executescript(PARTS)
        for at, status in enumerate(["running", "running", "error"]):
            for n in MANY:
                values = (f"prt_{n:020}", TIME, TIME + at, json.dumps(part(n, status)))
                writer.run("INSERT OR REPLACE INTO part VALUES (?, 'm', 'ses_1', ?, ?, ?)", *values)
            yield str(writer.path)


def part(number: int, status: str) -> Json:
    state = {"status": status, "input": {"n": number}, "time": {"start": TIME, "end": TIME + 9}}
    return {"type": "tool", "tool": "bash", "callID": f"call_{number}", "state": state}


PROGRAMS: dict[str, list[Program]] = {
    "claude-code": [claude],
    "codex": [codex_calls, codex_scripts],
    "gateway": [gateway],
    "gemini-cli": [gemini],
    "openclaw": [openclaw],
    "opencode": [opencode_events, opencode_parts],
}


def read(name: str, patterns: Iterator[str]) -> Told:
    """Look after each stage, as after a restart."""
    told = Told()
    kept = b"{}"
    for pattern in patterns:
        follower = Follower(format=name, pattern=pattern, kept=kept, told=told)
        follower.look()
        kept = follower.kept
    return told


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_hundreds_of_calls_that_are_open_at_once_are_told_once(name: str, tmp_path: Path) -> None:
    """With their answers and failures."""
    for number, write in enumerate(PROGRAMS[name]):
        told = read(name, write(tmp_path / str(number)))
        assert (len(told.calls), told.errors, told.unreadable) == (len(MANY), len(MANY), 0)
        assert len({call.call_id for call in told.calls}) == len(MANY)


def test_hundreds_of_copied_calls_that_are_open_at_once_are_not_told(tmp_path: Path) -> None:
    """Nor are their answers, which do not tell that they are copies."""
    blocks = [{"type": "tool_use", "id": f"toolu_{n:020}", "name": "Bash", "input": {}} for n in MANY]
    copied = [said(block, requestSessionId="origin") for block in blocks]
    told = read("claude-code", lines(tmp_path / f"{SESSION}.jsonl", copied, [answered(n) for n in MANY]))
    assert told == Told()
