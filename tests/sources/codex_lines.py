"""Lines of Codex's rollouts, for tests, and a reader that is restarted after each."""

import json
from collections.abc import Iterable, Mapping

from jobs.sources.codex import Rollout
from jobs.thrash.call import Answer, Entry, Usage
from tests.sources.contract import Told

THREAD = "01a30000-1000-7000-8000-000000000001"
OLDER_THREAD = "01a20000-1000-7000-8000-000000000001"
TURN = "01a30000-2000-7000-8000-0000000000a1"
OLDER_TURN = "01a20000-2000-7000-8000-0000000000a1"


def record(kind: str, payload: object, **others: object) -> bytes:
    line = {"timestamp": "2026-11-30T09:37:44.784Z", "type": kind, "payload": payload} | others
    return json.dumps(line, ensure_ascii=False).encode()


def item(kind: str, **payload: object) -> bytes:
    return record("response_item", {"type": kind, **payload})


def event(kind: str, **payload: object) -> bytes:
    return record("event_msg", {"type": kind, **payload})


def meta(thread: str = THREAD, **payload: object) -> bytes:
    return record("session_meta", {"id": thread, "cwd": "/home/op/code/reports", **payload})


def begin(turn: str = TURN) -> bytes:
    return event("task_started", turn_id=turn)


def call(call_id: str, arguments: str = "{}", name: str = "exec_command", **payload: object) -> bytes:
    return item("function_call", name=name, arguments=arguments, call_id=call_id, **payload)


def output(call_id: str, text: object) -> bytes:
    return item("function_call_output", call_id=call_id, output=text)


def direct(text: str, *, code: int = 0, chunk: str = "85f3fb", wall: str = "0.0000") -> str:
    return f"Chunk ID: {chunk}\nWall time: {wall} seconds\nProcess exited with code {code}\nOriginal token count: 3\nOutput:\n{text}"


def script(call_id: str, source: str = "text(1);") -> bytes:
    return item("custom_tool_call", call_id=call_id, name="exec", namespace="functions", input=source)


def scripted(call_id: str, text: str, *, status: str = "completed", wall: float = 0.1) -> bytes:
    head = f"Script {status}\nWall time {wall} seconds\nOutput:\n"
    texts = [{"type": "input_text", "text": head}, {"type": "input_text", "text": text}]
    return item("custom_tool_call_output", call_id=call_id, output=texts)


def ended(item_id: str, *, code: int = 0, command: str = "make", kind: str = "CommandExecution") -> bytes:
    status = "failed" if code else "completed"
    what = {"type": kind, "id": item_id, "command": ["bash", "-lc", command], "status": status}
    return event("item_completed", item=what | {"exit_code": code})


def sum_of(given: int, output: int, cached: int = 0, written: int = 0) -> dict[str, int]:
    return {
        "input_tokens": given,
        "cached_input_tokens": cached,
        "cache_write_input_tokens": written,
        "output_tokens": output,
        "total_tokens": given + output,
    }


def used(response: str, usage: Mapping[str, object], thread: str = THREAD) -> bytes:
    return record("token_usage_record", {"thread_id": thread, "response_id": response, "usage": usage})


def counted(total: Mapping[str, object], last: Mapping[str, object], percent: int = 1) -> bytes:
    info = {"total_token_usage": total, "last_token_usage": last}
    return event("token_count", info=info, rate_limits={"used_percent": percent})


def read(lines: Iterable[bytes], path: str = "rollout.jsonl") -> Told:
    """Read lines, each with a reader of its own, as if the bot were restarted after every record."""
    told, state = Told(), ""
    for line in lines:
        reader = Rollout(path, state)
        entries = reader.read(line)
        told.unreadable += entries is None
        take(told, entries or ())
        state = reader.state()
    return told


def take(told: Told, entries: Iterable[Entry]) -> None:
    for entry in entries:
        if isinstance(entry, Answer):
            told.answers.append(entry)
        elif isinstance(entry, Usage):
            told.usages.append(entry)
        else:
            told.calls.append(entry)


def digest_of(*lines: bytes) -> str:
    [answer] = read([meta(), *lines]).answers
    return answer.digest
