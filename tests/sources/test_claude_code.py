"""Claude Code's logs: what its records tell, and what they must not tell twice."""

import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.sources.claude_code import ClaudeCodeLines, reader
from jobs.sources.line_reader import LineReader
from jobs.thrash.call import Answer, Entry, ToolCall, Usage
from tests.sources.contract import SHARED, Told, read_at_once

OWN = Path(__file__).parents[1] / "data" / "claude-code"
SHOP = OWN / "projects"
ROOT = "7d0c2f6e-3c1b-4b0e-9a55-1f0a6a1b2c3d"
SAMPLES = SHARED / "agents" / "claude" / ".claude" / "projects"
LABELS = SHARED / "agents" / "labels.json"
NOON = 1767268800.0

with_samples = pytest.mark.skipif(
    not SHARED.exists(), reason="the logs that the real program has written are not here"
)


def labelled() -> dict[Path, dict[str, Any]]:
    """The labels of every sample of Claude Code by its path."""
    if not LABELS.exists():
        return {}
    runs = json.loads(LABELS.read_text())
    return {
        SAMPLES.parents[1] / file: label
        for name, run in runs.items()
        if name.startswith("claude/")
        for file, label in run["files"].items()
    }


# ── records ───────────────────────────────────────────────────────────────────────────────────────


NAMED = "d4ea0dd5-b996-4f42-a461-f175b882c7f6"


def record(kind: str, content: object, message: dict[str, object] | None = None, **fields: Any) -> bytes:
    """A record of the main session at noon, but for what is given."""
    given = {"role": kind, "content": content} | (message or {})
    own = {
        "sessionId": "s",
        "timestamp": "2026-01-01T12:00:00Z",
        "isSidechain": False,
        "cwd": "/home/op/shop",
    }
    return json.dumps({"message": given, "type": kind} | own | fields).encode()


def use(call_id: object = "toolu_01", tool: object = "Bash", args: object = None) -> dict[str, object]:
    return {"type": "tool_use", "id": call_id, "name": tool, "input": {} if args is None else args}


def said(*blocks: object, message: str = "msg_01", used: object = None, stop: str | None = None) -> bytes:
    usage = {"input_tokens": 10, "output_tokens": 5} if used is None else used
    return record(
        "assistant", blocks, {"id": message, "model": "sonnet", "stop_reason": stop, "usage": usage}
    )


def result(call_id: object, content: object, **fields: object) -> dict[str, object]:
    return {"tool_use_id": call_id, "type": "tool_result", "content": content} | fields


TEXT = {"type": "text", "text": "Let me see."}
THINKING = {"type": "thinking", "thinking": "hm", "signature": ""}


def read(*lines: bytes, lines_of: LineReader | None = None) -> list[Entry]:
    own = lines_of or reader("/logs/s.jsonl", "")
    told: list[Entry] = []
    for line in lines:
        entries = own.read(line)
        assert entries is not None, line
        told += entries
    return told


def calls(entries: list[Entry]) -> list[ToolCall]:
    return [entry for entry in entries if isinstance(entry, ToolCall)]


def answers(entries: list[Entry]) -> list[Answer]:
    return [entry for entry in entries if isinstance(entry, Answer)]


def usages(entries: list[Entry]) -> list[Usage]:
    return [entry for entry in entries if isinstance(entry, Usage)]


def answer_to(content: object, **fields: object) -> Answer:
    (answer,) = answers(read(record("user", [result("toolu_01", content, **fields)])))
    return answer


def test_a_call_is_told_as_soon_as_its_record_is_there() -> None:
    line = said(use(args={"command": "ls"}), stop="tool_use", used={"input_tokens": 7, "output_tokens": 3})
    assert read(line) == [
        Usage(session="s", ts=NOON, model="sonnet", input=7, output=3, cached=0, has_call=True),
        ToolCall(
            session="s",
            agent="shop",
            ts=NOON,
            tool="Bash",
            call_id="toolu_01",
            args=b'{"command": "ls"}',
            tokens=10,
        ),
    ]


def test_its_answer_is_told_when_that_is_there() -> None:
    (answer,) = read(record("user", [result("toolu_01", "a.csv", is_error=False)]))
    assert isinstance(answer, Answer)
    assert (answer.session, answer.call_id, answer.ts, answer.is_error) == ("s", "toolu_01", NOON, False)


@pytest.mark.parametrize(
    "line",
    [
        record("user", "Count the rows."),
        record("user", "<task-notification><task-id>a1</task-id></task-notification>"),
        record("user", [{"type": "text", "text": "[Request interrupted by user for tool use]"}]),
        record("user", "This session is being continued.", isCompactSummary=True),
    ],
    ids=["prompt", "notification", "interrupt", "compacted"],
)
def test_what_a_user_says_tells_nothing(line: bytes) -> None:
    assert read(line) == []


def test_a_record_without_time_is_of_the_time_of_the_one_before() -> None:
    first, second = calls(read(said(use("a")), record("assistant", [use("b")], timestamp=None)))
    assert first.ts == second.ts == NOON


# ── split messages and usage ──────────────────────────────────────────────────────────────────────


def test_usage_is_told_once_for_a_message_of_several_lines() -> None:
    """The tokens are with the first of its calls only."""
    told = read(said(use("a")), said(use("b")), said(use("c")))
    assert [call.tokens for call in calls(told)] == [15, None, None]
    assert [(usage.tokens, usage.has_call) for usage in usages(told)] == [(15, True)]


def test_usage_that_comes_with_a_text_waits_for_the_call_that_is_announced() -> None:
    told = read(said(THINKING, stop="tool_use"), said(TEXT, stop="tool_use"))
    assert told == []
    told = read(*[said(block, stop="tool_use") for block in (THINKING, TEXT, use("a"), use("b"))])
    assert [call.tokens for call in calls(told)] == [15, None]
    assert [usage.has_call for usage in usages(told)] == [True]


@pytest.mark.parametrize(
    "after",
    [said(TEXT, message="msg_02", stop="end_turn"), record("user", "Go on.")],
    ids=["message", "prompt"],
)
def test_usage_is_told_without_its_call_when_that_never_came(after: bytes) -> None:
    told = usages(read(said(TEXT, stop="tool_use"), after))
    assert (told[0].tokens, told[0].has_call) == (15, False)


@pytest.mark.parametrize("stop", ["end_turn", "max_tokens", None])
def test_usage_of_a_message_that_announces_no_call_is_told_at_once(stop: str | None) -> None:
    """Older releases leave open whether a call follows; then its tokens are not told again with it."""
    lines = reader("/logs/s.jsonl", "")
    assert [usage.has_call for usage in usages(read(said(TEXT, stop=stop), lines_of=lines))] == [False]
    told = read(said(use(), stop=stop), lines_of=lines)
    assert usages(told) == []
    assert [call.tokens for call in calls(told)] == [None]


def test_usage_is_told_once_also_if_the_bot_restarts_within_a_message() -> None:
    before = reader("/logs/s.jsonl", "")
    read(said(use("a")), lines_of=before)
    after = reader("/logs/s.jsonl", before.state())
    told = read(said(use("b")), lines_of=after)
    assert [type(entry) for entry in told] == [ToolCall]
    assert calls(told)[0].tokens is None


def test_usage_held_for_a_call_outlives_a_restart() -> None:
    before = reader("/logs/s.jsonl", "")
    read(said(TEXT, stop="tool_use"), lines_of=before)
    told = read(said(use("a"), stop="tool_use"), lines_of=reader("/logs/s.jsonl", before.state()))
    assert [call.tokens for call in calls(told)] == [15]


def test_a_synthetic_message_has_used_nothing() -> None:
    """The program puts one in after an error or an interrupt; no model was called."""
    line = record("assistant", [TEXT], {"id": "m", "model": "<synthetic>", "usage": {"input_tokens": 0}})
    assert read(line) == []


def test_tokens_of_the_cache_are_apart() -> None:
    used = {
        "input_tokens": 1,
        "output_tokens": 2,
        "cache_creation_input_tokens": 4,
        "cache_read_input_tokens": 8,
    }
    (usage,) = usages(read(said(TEXT, used=used)))
    assert (usage.input, usage.output, usage.cached, usage.tokens) == (1, 2, 12, 15)
    assert usage.written == 4


def test_several_calls_in_one_record_are_all_told() -> None:
    told = read(said(TEXT, use("a"), use("b"), stop="tool_use"))
    assert [(call.call_id, call.tokens) for call in calls(told)] == [("a", 15), ("b", None)]


def test_what_a_resumed_log_repeats_is_told_once() -> None:
    lines = (said(use(), stop="tool_use"), record("user", [result("toolu_01", "a.csv")]))
    before = reader("/logs/s.jsonl", "")
    assert len(read(*lines, lines_of=before)) == 3
    assert read(*lines, lines_of=reader("/logs/s.jsonl", before.state())) == []


def test_a_resumed_log_goes_on_after_a_call_whose_outcome_is_unknown() -> None:
    """After a kill the program answers the open call itself, and puts in a message of its own."""
    told = read(
        said(use("a"), stop="tool_use"),
        record("user", [result("a", "[Tool call interrupted: its outcome is unknown]", is_error=True)]),
        record("assistant", [TEXT], {"id": "x", "model": "<synthetic>", "usage": {"input_tokens": 0}}),
        record("user", "Go on."),
        said(use("b"), message="msg_02", stop="tool_use"),
    )
    assert [call.call_id for call in calls(told)] == ["a", "b"]
    assert [answer.is_error for answer in answers(told)] == [True]
    assert sum(usage.tokens for usage in usages(told)) == 30


def test_what_a_fork_has_copied_is_its_origins() -> None:
    """A fork's log begins with a copy of the other one, under its own id; only the model's records tell whose they are."""
    fields: dict[str, object] = {"id": "m1", "stop_reason": "tool_use", "usage": {"output_tokens": 5}}
    copied = [
        record("assistant", [TEXT], fields, requestSessionId="origin"),
        record("assistant", [use("a")], fields, requestSessionId="origin"),
        record("user", [result("a", "x", is_error=True)]),
    ]
    own = [
        record("assistant", [use("b")], fields | {"id": "m2"}, requestSessionId="s"),
        record("user", [result("b", "y")]),
    ]
    assert read(*copied) == []
    assert read(*copied, *own) == read(*own)


def test_calls_go_on_after_a_compaction() -> None:
    told = read(
        said(use("a"), message="msg_01"),
        b'{"type":"system","subtype":"compact_boundary","timestamp":"2026-01-01T12:00:00Z","sessionId":"s"}',
        record("user", "This session is being continued.", isCompactSummary=True),
        said(use("b"), message="msg_02"),
    )
    assert [call.tokens for call in calls(told)] == [15, 15]


# ── errors ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fields", "expected"),
    [({"is_error": True}, True), ({"is_error": False}, False), ({"is_error": None}, False), ({}, False)],
)
def test_a_failure_is_what_the_log_flags(fields: dict[str, object], expected: bool) -> None:
    assert answer_to("Exit code 1", **fields).is_error is expected


@pytest.mark.parametrize(
    "cancelled",
    [
        "<tool_use_error>Sibling tool call errored</tool_use_error>",
        "Sibling tool call errored",
        "<tool_use_error>Cancelled: parallel tool call Bash(cd x\n ls…) errored</tool_use_error>",
        [{"type": "text", "text": "<tool_use_error>Sibling tool call errored</tool_use_error>"}],
    ],
    ids=str,
)
def test_a_failed_parallel_batch_is_one_error(cancelled: object) -> None:
    """The others of the batch are cancelled for the one that failed."""
    batch = [result("a", "Exit code 1", is_error=True), result("b", cancelled, is_error=True)]
    assert [answer.is_error for answer in answers(read(record("user", batch)))] == [True, False]


# ── digests ───────────────────────────────────────────────────────────────────────────────────────


def handed_back(agent: str, report: str, ms: int) -> list[dict[str, str]]:
    text = (
        f"[Subagent hand-back] The report follows:\n  {report}\nagentId: {agent} (use SendMessage with"
        f" to: '{agent}')\n<usage>subagent_tokens: {ms}\ntool_uses: 5\nduration_ms: {ms}</usage>"
    )
    return [{"type": "text", "text": text}]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("pending", [{"type": "text", "text": "pending"}]),
        ("Ran 3 tests in 0.001s\n\nOK", "Ran 3 tests in 12.4s\n\nOK"),
        ("== 1 failed, 2 passed in 0.12s ==", "== 1 failed, 2 passed in 1.30s =="),
        ("Time:        1.234 s", "Time:        2.1 s"),
        (
            "--- FAIL: TestDates (0.00s)\nFAIL\tshop/dates\t0.012s",
            "--- FAIL: TestDates (0.01s)\nFAIL\tshop/dates\t0.3s",
        ),
        ("BUILD FAILED in 2s", "BUILD FAILED in 1m 3s"),
        ("x" * 50_000 + "\nRan 3 tests in 0.001s", "x" * 50_000 + "\nRan 3 tests in 10.001s"),
        (handed_back("a1", "120 rows", 13685), handed_back("b2", "120 rows", 991)),
        (
            "Command running in background with ID: b20. Output is being written to: /tmp/b20.output",
            "Command running in background with ID: c31. Output is being written to: /tmp/c31.output",
        ),
        (
            "Async agent launched successfully.\nagentId: a1 (internal ID)\noutput_file: /tmp/a1.output\nGo on.",
            "Async agent launched successfully.\nagentId: b2 (internal ID)\noutput_file: /tmp/b2.output\nGo on.",
        ),
    ],
    ids=["list", "unittest", "pytest", "jest", "go", "gradle", "long", "agent", "background", "async"],
)
def test_answers_that_say_the_same_have_equal_digests(one: object, other: object) -> None:
    assert answer_to(one).digest == answer_to(other).digest


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("pending", "ready"),
        ("12 rows", "13 rows"),
        ("next try in 30 s", "next try in 20 s"),
        ("x" * 50_000, "x" * 49_999),
        ("x" * 20_000 + "a" + "x" * 20_000, "x" * 20_000 + "b" + "x" * 20_000),
        ("agentId: 5", "agentId: 6"),
        (handed_back("a1", "120 rows", 1), handed_back("a1", "119 rows", 1)),
        ([{"type": "image", "source": {"data": "aa"}}], [{"type": "image", "source": {"data": "bb"}}]),
    ],
    ids=["text", "count", "wait", "length", "middle", "id", "agent", "image"],
)
def test_answers_that_say_something_else_have_different_digests(one: object, other: object) -> None:
    assert answer_to(one).digest != answer_to(other).digest


# ── sub-agents ────────────────────────────────────────────────────────────────────────────────────


def test_a_session_is_named_by_its_folder_and_a_sub_agent_by_its_task() -> None:
    """Without a description by its kind, which older releases tell only in its records."""
    told = read_at_once("claude-code", SHOP / "**" / "*.jsonl")
    assert {call.session: call.agent for call in told.calls} == {
        ROOT: "shop",
        "a1b": "Count the rows",
        "a2b": "Watch the report",
        "a3b": "Read one file",
        "a4b": "workflow",
        "a5b": "general-purpose",
    }


@pytest.mark.parametrize(
    ("path", "session", "is_agents"),
    [
        (f"/logs/{NAMED}.jsonl", NAMED, False),
        (f"/logs/{NAMED}/subagents/agent-a1.jsonl", "a1", True),
        (f"/logs/{NAMED}.jsonl.1", NAMED, False),
        ("/logs/agent-.jsonl", "agent-", True),
    ],
)
def test_a_line_speaks_for_no_session_but_its_files_own(path: str, session: str, is_agents: bool) -> None:
    """Whatever it names: the records that a resumed or forked session has copied bear the other one's id."""
    lines = [
        record("assistant", [use("a")], {"id": "m1", "usage": {"output_tokens": 5}}, sessionId="victim"),
        record("user", [result("a", "x")], sessionId="victim", isSidechain=True, agentId="victim"),
    ]
    told = read(*lines, lines_of=reader(path, ""))
    assert [(type(each), each.session) for each in told] == [
        (Usage, session),
        (ToolCall, session),
        (Answer, session),
    ]
    assert calls(told)[0].parent == ("victim" if is_agents else None)


@pytest.mark.parametrize("name", ["saved.log", "run 7.jsonl", ".jsonl", "\udcff.jsonl"])
def test_a_log_that_was_given_another_name_is_of_the_session_that_its_first_record_names(name: str) -> None:
    lines = [
        record("assistant", [use("a")], sessionId="first"),
        record("assistant", [use("b")], sessionId="other"),
    ]
    told = calls(read(*lines, lines_of=reader(f"/logs/{name}", "")))
    assert [call.session for call in told] == ["first", "first"]


def test_a_session_keeps_its_name_when_its_log_is_renamed() -> None:
    before = reader(f"/logs/{NAMED}.jsonl", "")
    read(said(use("a")), lines_of=before)
    after = reader("/logs/d4ea-2026.jsonl", before.state())
    assert [call.session for call in calls(read(said(use("b"), message="msg_02"), lines_of=after))] == [NAMED]


def test_a_session_keeps_its_name_when_it_moves_to_another_folder() -> None:
    told = calls(read(said(use("a")), record("assistant", [use("b")], cwd="/home/op/shop/tests")))
    assert [call.agent for call in told] == ["shop", "shop"]


def agent_line(*blocks: object, agent: str = "a1") -> bytes:
    return record("assistant", blocks, isSidechain=True, agentId=agent)


def place(folder: Path, depth: object = 2, call: object = "toolu_up") -> Path:
    (folder / "agent-a1.meta.json").write_text(json.dumps({"toolUseId": call, "spawnDepth": depth}))
    return folder / "agent-a1.jsonl"


def parent_in(log: Path, agent: str = "a1") -> str | None:
    (call,) = calls(read(agent_line(use(), agent=agent), lines_of=reader(str(log), "")))
    return call.parent


def test_the_parent_of_a_deep_sub_agent_is_the_root_unless_another_is_sure(tmp_path: Path) -> None:
    log, first, second = place(tmp_path), tmp_path / "agent-b2.jsonl", tmp_path / "agent-c3.jsonl"
    assert parent_in(log) == "s"
    first.write_bytes(b"toolu_up\n" + agent_line({"type": "text", "text": "toolu_up"}, agent="b2") + b"\n")
    assert parent_in(log) == "s"
    with first.open("ab") as file:
        file.write(agent_line(use("toolu_up", "Agent"), agent="b2") + b"\n")
    assert parent_in(log) == "b2"
    second.write_bytes(agent_line(use("toolu_up", "Agent"), agent="c3") + b"\n")
    assert parent_in(log) == "s"


@pytest.mark.parametrize(
    ("caller", "called"),
    [
        ("subagents", "subagents/workflows/wf_x"),
        ("subagents/workflows/wf_x", "subagents"),
        ("subagents/workflows/wf_x", "subagents/workflows/wf_y"),
        ("subagents/workflows/wf_x", "subagents/workflows/wf_x"),
    ],
)
def test_a_sub_agents_parent_may_lie_in_another_folder_of_the_session(
    caller: str, called: str, tmp_path: Path
) -> None:
    """Those of a workflow have one of their own. Another session's are no parents."""
    for folder in (tmp_path / caller, tmp_path / called, tmp_path / "other" / caller):
        folder.mkdir(parents=True, exist_ok=True)
    log, line = place(tmp_path / called), agent_line(use("toolu_up", "Agent"), agent="b2") + b"\n"
    (tmp_path / "other" / caller / "agent-b2.jsonl").write_bytes(line)
    assert parent_in(log) == "s"
    (tmp_path / caller / "agent-b2.jsonl").write_bytes(line)
    assert parent_in(log) == "b2"


def test_a_sub_agent_knows_its_neighbours_however_many_there_are_elsewhere(tmp_path: Path) -> None:
    """More are not looked through than can be."""
    tree = tmp_path / "subagents"
    (tree / "workflows/wf_x").mkdir(parents=True)
    log, line = place(tree / "workflows/wf_x"), agent_line(use("toolu_up", "Agent"), agent="b2") + b"\n"
    for number in range(501):
        (tree / f"agent-n{number}.jsonl").touch()
    (tree / "agent-b2.jsonl").write_bytes(line)
    assert parent_in(log) == "s"
    (log.parent / "agent-b2.jsonl").write_bytes(line)
    assert parent_in(log) == "b2"


def test_a_sub_agent_is_never_its_own_parent(tmp_path: Path) -> None:
    (tmp_path / "agent-copy.jsonl").write_bytes(agent_line(use("toolu_up", "Agent")) + b"\n")
    assert parent_in(place(tmp_path)) == "s"


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="nothing counts what is read here")
def test_what_hundreds_of_sub_agents_ask_of_each_others_logs_is_read_once(tmp_path: Path) -> None:
    """However many of them name a call at depth 2, found or not, and while all logs grow."""
    line = agent_line(use("toolu_other", "Agent"), TEXT | {"text": "x" * 10_000}, agent="a1") + b"\n"
    logs = [tmp_path / f"agent-a{number}.jsonl" for number in range(100)]
    for log in logs:
        log.write_bytes(line * 10)
    meta = {"toolUseId": "toolu_up", "spawnDepth": 2}
    read_before, size = bytes_read(), 100 * 10 * len(line)
    for log in logs:
        log.with_name(f"{log.stem}.meta.json").write_text(json.dumps(meta))
        assert parent_in(log, agent=log.stem.removeprefix("agent-")) == "s"
        with log.open("ab") as file:
            file.write(line)
    assert bytes_read() - read_before < 2 * size


def bytes_read() -> int:
    """By this process so far."""
    return int(Path("/proc/self/io").read_text().split()[1])


def test_a_log_that_was_rewritten_is_looked_through_again(tmp_path: Path) -> None:
    log, other = place(tmp_path), tmp_path / "agent-b2.jsonl"
    other.write_bytes(agent_line(use("toolu_first", "Agent"), agent="b2") + b"\n")
    assert parent_in(log) == "s"
    other.write_bytes(b"\n" * 2000 + agent_line(use("toolu_up", "Agent"), agent="b2") + b"\n")
    parent_in(log)
    assert parent_in(log) == "b2"


def test_what_lies_beside_a_log_is_looked_for_once(tmp_path: Path) -> None:
    log = place(tmp_path, depth=1)
    first = reader(str(log), "")
    assert calls(read(agent_line(use("a")), lines_of=first))[0].parent == "s"
    (tmp_path / "agent-a1.meta.json").unlink()
    assert reader(str(log), first.state()).state() == first.state()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda meta: meta.write_bytes(b'{"spawnDepth": 2, "toolUse'),
        lambda meta: meta.write_bytes(b"[" * 100_000),
        lambda meta: meta.write_bytes(b'{"description": 5}'),
        lambda meta: meta.write_bytes(b"\xff" * (1 << 20)),
        lambda meta: meta.mkdir(),
        os.mkfifo,
    ],
    ids=["cut", "deep", "odd", "long", "folder", "pipe"],
)
def test_whatever_lies_beside_a_log_is_no_exception(spoil: Callable[[Path], object], tmp_path: Path) -> None:
    spoil(tmp_path / "agent-a1.meta.json")
    assert parent_in(tmp_path / "agent-a1.jsonl") == "s"


def test_other_logs_that_cannot_be_read_leave_the_root(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "agent-b2.jsonl")
    (tmp_path / "agent-c3.jsonl").symlink_to("nowhere")
    assert parent_in(place(tmp_path)) == "s"
    (tmp_path / "agent-c3.jsonl").unlink()
    with (tmp_path / "agent-d4.jsonl").open("wb") as file:
        file.truncate(1 << 40)
    assert parent_in(place(tmp_path)) == "s"


def test_a_workflows_journal_tells_nothing() -> None:
    told = read_at_once("claude-code", SHOP / "**" / "journal.jsonl")
    assert (told.calls, told.unreadable) == ([], 0)


# ── what a hostile log may hold ───────────────────────────────────────────────────────────────────


def test_names_are_cut_and_still_tell_things_apart() -> None:
    one, other = (
        calls(
            read(
                record("assistant", [use("i" * 10**6 + end, "t" * 10**6)], sessionId="s" * 10**6 + end),
                lines_of=reader("/logs/saved.jsonl", ""),
            )
        )[0]
        for end in "ab"
    )
    assert {len(name or "") for name in (one.session, one.tool, one.call_id)} < set(range(201))
    assert one.session != other.session
    assert one.call_id != other.call_id


def test_an_answer_to_a_call_with_a_long_id_bears_its_id() -> None:
    long = "i" * 1000
    told = read(said(use(long)), record("user", [result(long, "a.csv")]))
    assert calls(told)[0].call_id == answers(told)[0].call_id


@pytest.mark.parametrize(
    "used",
    [
        {"input_tokens": -1},
        {"input_tokens": 10**13},
        {"output_tokens": 10**400},
        {"input_tokens": "many"},
        [],
        5,
    ],
    ids=lambda used: str(used)[:30],
)
def test_usage_out_of_range_does_not_hide_a_call(used: object) -> None:
    assert [call.tokens for call in calls(read(said(use(), used=used)))] == [0]


def test_half_a_character_does_not_hide_a_call() -> None:
    (call,) = calls(read(said(use(args={"text": "bat \ud83e"}))))
    assert msgspec.json.decode(call.args) == {"text": "bat \ufffd"}


def test_bytes_that_are_no_text_do_not_hide_a_call_or_an_answer() -> None:
    (call,) = calls(read(said(use(args={"text": "bat"})).replace(b"bat", b"\xff")))
    assert msgspec.json.decode(call.args) == {"text": "\ufffd"}
    lines = record("user", [result("toolu_01", "bat")])
    assert len(answers(read(lines.replace(b"bat", b"\xff")))) == 1


@pytest.mark.parametrize(
    "line", [b"[" * 10**5, said(use(args=1)).replace(b"1}", b"[" * 10**5 + b"]" * 10**5 + b"}")]
)
def test_deep_nesting_is_unreadable(line: bytes) -> None:
    assert reader("/logs/s.jsonl", "").read(line) is None


@pytest.mark.parametrize(
    "when", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "1969-12-31T23:59:59Z"]
)
def test_a_time_out_of_range_is_unreadable(when: str) -> None:
    assert reader("/logs/s.jsonl", "").read(record("user", "Hi.", timestamp=when)) is None


def test_the_state_is_bounded() -> None:
    lines = reader("/logs/s.jsonl", "")
    for number in range(1000):
        call = f"{'i' * 500}{number}"
        read(said(use(call), message=call), record("user", [result(call, "")]), lines_of=lines)
    assert len(lines.state()) < 5000


@pytest.mark.parametrize("state", ["", "{", "[]", "5", '{"calls": 7}', '{"held": {}}', "\x00", "[" * 10**5])
def test_an_unknown_state_is_none(state: str) -> None:
    lines = reader("/logs/s.jsonl", state)
    assert isinstance(lines, ClaudeCodeLines)
    assert lines.state() == reader("/logs/s.jsonl", "").state()


def test_a_usage_whose_message_is_forgotten_is_told() -> None:
    lines = reader("/logs/s.jsonl", "")
    read(said(TEXT, stop="tool_use"), lines_of=lines)
    state = json.loads(lines.state())
    del state["tokens"]["messages"]
    told = usages(read(record("user", "Hi."), lines_of=reader("/logs/s.jsonl", json.dumps(state))))
    assert [usage.tokens for usage in told] == [15]


@pytest.mark.parametrize("piece", [b"{},", b"0,", b'{"type":""},', b"[],"])
def test_a_line_of_nothing_but_parts_takes_little_memory(piece: bytes) -> None:
    line = said("x", used={}).replace(b'"x"', piece * (10**6 // len(piece)) + b'"x"')
    lines = reader("/logs/s.jsonl", "")
    tracemalloc.start()
    try:
        lines.read(line)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 12 * len(line)


@given(st.lists(st.binary(max_size=50) | st.sampled_from([said(use()), said(TEXT), b"{}"])))
def test_no_bytes_are_an_exception(lines: list[bytes]) -> None:
    own = reader("/logs/s.jsonl", "")
    for line in lines:
        own.read(line)
        own = reader("/logs/s.jsonl", own.state())


# ── whole logs ────────────────────────────────────────────────────────────────────────────────────


def tokens_in(log: Path) -> int:
    """The tokens of each message of a model, once."""
    used = {}
    for line in log.read_text().splitlines():
        message = json.loads(line or "{}").get("message")
        if isinstance(message, dict) and message.get("usage") and message["model"] != "<synthetic>":
            names = (
                "input_tokens",
                "output_tokens",
                "cache_creation_input_tokens",
                "cache_read_input_tokens",
            )
            used[message["id"]] = sum(message["usage"][name] for name in names)
    return sum(used.values())


def counted_by_a_scan(told: Told) -> int:
    of_calls = sum(call.tokens or 0 for call in told.calls)
    return of_calls + sum(usage.tokens for usage in told.usages if not usage.has_call)


def test_a_log_of_everything() -> None:
    told = read_at_once("claude-code", OWN / "calls.jsonl")
    assert [call.tool for call in told.calls] == ["Bash", "Bash", "Read", "Read", "Read", "Edit"]
    assert (len(told.answers), told.errors, told.unreadable) == (6, 2, 0)
    assert told.tokens == counted_by_a_scan(told) == tokens_in(OWN / "calls.jsonl") == 1600


@with_samples
@pytest.mark.parametrize(("log", "label"), labelled().items(), ids=lambda given: getattr(given, "stem", ""))
def test_a_real_log_tells_its_errors_and_tokens(log: Path, label: dict[str, Any]) -> None:
    told = read_at_once("claude-code", log)
    assert told.errors == label["errors"]
    assert told.tokens == counted_by_a_scan(told) == tokens_in(log)


@with_samples
def test_real_sub_agents_are_named_by_their_tasks() -> None:
    told = read_at_once("claude-code", SAMPLES / "**" / "*.jsonl")
    assert {call.agent for call in told.calls if call.parent} == {"Count the rows", "Watch the report"}
