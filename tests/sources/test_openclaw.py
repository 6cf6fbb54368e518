"""OpenClaw's transcripts, in databases and in files: samples of its record shapes, and logs it has really written."""

import json
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.sources.openclaw import begin
from jobs.thrash.call import Answer, ToolCall, Usage
from tests.sources.contract import SHARED, Follower, Told, read_at_once
from tests.sources.databases import DATA, OpenClaw, Row, Writer, in_parts, openclaw_rows, rows_of

SAMPLE = DATA / "openclaw" / "calls.jsonl"
REAL = SHARED / "openclaw"
REAL_DATABASE = REAL / "worker-openclaw-agent.sqlite"
with_real_logs = pytest.mark.skipif(not REAL.exists(), reason="real logs are not part of a clone")
TIME = 1796028034000

Json = dict[str, Any]


def told_of(*events: Json) -> Told:
    told = Told()
    lines = begin("/home/op/.openclaw/agents/main/sessions/s-1.jsonl", "")
    for event in events:
        found = lines.read(json.dumps(event).encode())
        if found is None:
            told.unreadable += 1
        for entry in found or ():
            match entry:
                case Answer():
                    told.answers.append(entry)
                case Usage():
                    told.usages.append(entry)
                case _:
                    told.calls.append(entry)
    return told


def message(role: str, **fields: object) -> Json:
    return {"type": "message", "message": {"role": role, "timestamp": TIME, **fields}}


def tool_call(name: str, arguments: object, call_id: str = "c-1") -> Json:
    return {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}


def result(text: object, *, is_error: bool = False, **details: Any) -> Json:
    content = [{"type": "text", "text": text}]
    return message("toolResult", toolCallId="c-1", content=content, isError=is_error, details=details)


def answer_to(event: Json) -> Answer:
    (answer,) = told_of(event).answers
    return answer


def digest(text: str, **details: Any) -> str:
    return answer_to(result(text, **details)).digest


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[OpenClaw]:
    opened = OpenClaw(tmp_path / "agents/main/agent/openclaw-agent.sqlite", packed_from=400)
    yield opened
    opened.close()


# ── what a record tells ───────────────────────────────────────────────────────────────────────────


def test_the_sample_tells_all_there_is() -> None:
    told = read_at_once("openclaw", SAMPLE)
    calls = [(c.tool, c.call_id, c.args, c.tokens) for c in told.calls]
    assert calls == [
        ("exec", "call_1", b'{"command":"cat status.txt"}', 135),
        ("exec", "call_2", b'{"command":"make test"}', 135),
        ("read", "call_3", b'{"path":"missing.txt"}', None),
        ("sessions_spawn", "call_4", b'{"task":"Count the rows.","label":"counter"}', 135),
        ("exec", "call_5", b'{"command":"cat status.txt"}', 135),
        ("exec", "call_6", b'{"command":"sleep 600"}', 135),
    ]
    assert [(a.call_id, a.is_error) for a in told.answers] == [
        ("call_1", False),
        ("call_2", True),
        ("call_3", True),
        ("call_4", False),
        ("call_5", False),
    ]
    assert {(c.session, c.agent, c.parent) for c in told.calls} == {
        ("5f0f6d0e-0000-4000-8000-000000000001", "reports", None)
    }
    assert [usage.has_call for usage in told.usages] == [True] * 5 + [False]
    assert sum(usage.cost or 0 for usage in told.usages) == pytest.approx(0.006)


def test_a_command_that_exits_non_zero_is_an_error() -> None:
    """Its result has `isError: false`."""
    assert answer_to(result("x", status="completed", exitCode=1)).is_error
    assert not answer_to(result("x", status="completed", exitCode=0)).is_error
    assert not answer_to(result("x")).is_error


@pytest.mark.parametrize("status", ["error", "blocked"])
def test_a_refused_or_failed_call_is_an_error(status: str) -> None:
    """OpenClaw's own loop detection blocks calls."""
    assert answer_to(result("x", status=status, deniedReason="tool-loop")).is_error
    assert answer_to(result("x", is_error=True)).is_error


def test_tokens_written_to_the_cache_are_told_apart_from_those_read() -> None:
    usage = {"input": 1, "output": 2, "cacheRead": 8, "cacheWrite": 4}
    [found] = told_of(message("assistant", content=[], usage=usage)).usages
    assert (found.input, found.cached, found.written, found.tokens) == (1, 12, 4, 15)


def test_details_that_change_on_every_call_do_not_tell_answers_apart() -> None:
    """Durations and process ids; the text of a command that goes on in the background names them, too."""
    assert digest("a", durationMs=1, pid=7) == digest("a", durationMs=2, pid=8)
    running = "Command still running (session {}, pid {}). Use process (list/poll) for follow-up."
    assert digest(running.format("calm-reef", 812)) == digest(running.format("swift-harbor", 90))
    assert digest("1 failed in 0.12s") == digest("1 failed in 0.31s")
    assert digest("a") != digest("b")


def test_output_is_taken_from_the_details_if_there_is_no_text() -> None:
    assert digest("", aggregated="a") != digest("", aggregated="b")
    assert digest("", aggregated="a") == digest("a", aggregated="b")
    assert digest("", aggregated=1) == digest(""), "what is no text is none"


def test_notes_of_the_loop_detection_do_not_tell_answers_apart() -> None:
    """They are parts of their own and count up."""
    notes = [f"[System note: Tool-loop warning: exec has been called {n} times]" for n in (10, 11)]
    noted = [result("pending") for _ in notes]
    for event, note in zip(noted, notes, strict=True):
        event["message"]["content"].append({"type": "text", "text": note})
    digests = {answer_to(event).digest for event in (result("pending"), *noted)}
    assert len(digests) == 1


def test_images_tell_answers_apart() -> None:
    events = [message("toolResult", toolCallId="c", content=[{"type": "image", "data": d}]) for d in "ab"]
    assert answer_to(events[0]).digest != answer_to(events[1]).digest


def test_sub_agents_started_alike_are_answered_alike() -> None:
    """The answer names the new session."""
    text = '{{"childSessionKey": "agent:main:subagent:6f4f3476-e800-4e51-977a-bd51e0737e{}"}}'
    assert digest(text.format("2f")) == digest(text.format("30"))
    assert digest("6f4f3476-e800-4e51-977a-bd51e0737e2f") != digest("6f4f3476-e800-4e51-977a-bd51e0737e30")


def test_a_wrapped_call_is_the_call_in_it() -> None:
    """A tool outside the direct list is called through `tool_call {id, args}`."""
    wrapped = [
        tool_call("tool_call", {"id": "sessions_spawn", "args": {"task": "Count."}}),
        tool_call("tool_call", {"id": "session_status"}),
        tool_call("tool_call", {"args": {}}),
        tool_call("tool_call", "?"),
    ]
    calls = told_of(message("assistant", content=wrapped)).calls
    assert [(c.tool, c.args) for c in calls] == [
        ("sessions_spawn", b'{"task": "Count."}'),
        ("session_status", b"{}"),
        ("tool_call", b'{"args": {}}'),
        ("tool_call", b'"?"'),
    ]


def test_answers_that_openclaw_writes_itself_are_not_the_models() -> None:
    usage = {"input": 1, "output": 1}
    told = told_of(
        message("assistant", content=[], model="gateway-injected", usage=usage),
        message("assistant", content=[], model="m", usage=usage, openclawAbort={"aborted": True}),
        message("user", content="[OpenClaw session event]", provenance={"kind": "internal_system"}),
        message("custom", content="?"),
    )
    assert (told.calls, told.usages, told.unreadable) == ([], [], 0)


def test_an_odd_field_hides_nothing_else() -> None:
    odd = message(
        "assistant",
        content=[
            7,
            {"type": "text", "text": None},
            tool_call("exec", {"command": "ls\ud800"}),
            tool_call("", {}),
        ],
        usage={"input": -5, "output": "many", "cacheRead": 10**30, "cost": {"total": "free"}},
        model=["m"],
    )
    told = told_of(odd)
    assert [(c.tool, c.tokens) for c in told.calls] == [("exec", 0)]
    assert told.usages[0].cost is None
    odd = result("x", exitCode="one", status=5)
    odd["message"]["isError"] = "no"
    assert not answer_to(odd).is_error
    odd["message"]["details"] = [1]
    assert not answer_to(odd).is_error


def test_a_call_without_time_has_its_events() -> None:
    event = message("assistant", content=[tool_call("exec", {})], timestamp=None)
    event["timestamp"] = "2026-11-30T08:40:34.5Z"
    assert [c.ts for c in told_of(event).calls] == [1796028034.5]


def test_long_names_are_cut_and_deep_nesting_is_no_exception() -> None:
    long = "x" * 1_000_000
    (call,) = told_of(message("assistant", content=[tool_call(long, {}, long)], model=long, usage={})).calls
    assert isinstance(call, ToolCall)
    assert max(len(call.tool), len(call.call_id or "")) <= 200
    lines = begin(f"/{long}.jsonl", "")
    assert lines.read(b'{"type":"message","message":' + b"[" * 200_000) is None
    lines.read(json.dumps({"type": "session", "id": long, "cwd": long, "parentSession": long}).encode())
    assert len(lines.state()) < 1000


def test_a_file_without_its_first_record_has_its_name_for_a_session() -> None:
    """And the agent is in its path."""
    (call,) = told_of(message("assistant", content=[tool_call("exec", {})])).calls
    assert (call.session, call.agent) == ("s-1", "main")


def test_a_file_names_its_parent() -> None:
    start = {"type": "session", "id": "s-2", "cwd": "/", "parentSession": "/home/op/sessions/s-1.jsonl"}
    told = told_of(start, message("assistant", content=[tool_call("exec", {})]))
    assert told.parents == {"s-2": "s-1"}


def in_files(folder: Path, agent: str, *sessions: str) -> Path:
    """Write files with one call each, as older releases do; return their folder."""
    home = folder / f"agents/{agent}/sessions"
    home.mkdir(parents=True, exist_ok=True)
    for session in sessions:
        (home / f"{session}.jsonl").write_bytes(with_call(session).event + b"\n")
    return home


def test_the_index_beside_files_tells_who_has_started_a_session(tmp_path: Path) -> None:
    """It names sessions by their keys, also those of other agents."""
    home = in_files(tmp_path, "main", "root", "child", "second", "far", "lost", "own", "plain")
    boss = in_files(tmp_path, "boss", "chief")
    entries = {
        "agent:main:main": {"sessionId": "root", "updatedAt": 1796028034000},
        "agent:main:subagent:1": {"sessionId": "child", "spawnedBy": "agent:main:main"},
        "agent:main:subagent:2": {"sessionId": "second", "parentSessionKey": "agent:main:subagent:1"},
        "agent:main:subagent:3": {"sessionId": "far", "spawnedBy": "agent:boss:main"},
        "agent:main:subagent:4": {"sessionId": "lost", "spawnedBy": "agent:..:main"},
        "agent:main:own": {"sessionId": "own", "spawnedBy": "agent:main:own"},
    }
    (home / "sessions.json").write_text(json.dumps(entries))
    (boss / "sessions.json").write_text(json.dumps({"agent:boss:main": {"sessionId": "chief"}}))
    assert read_at_once("openclaw", tmp_path / "agents/*/sessions/*.jsonl").parents == {
        "root": None,
        "child": "root",
        "second": "child",
        "far": "chief",
        "lost": None,
        "own": None,
        "plain": None,
        "chief": None,
    }


@pytest.mark.parametrize("content", ["", "[]", '{"agent:main:main": 1}', "[" * 100_000])
def test_an_index_that_cannot_be_read_names_no_parent(tmp_path: Path, content: str) -> None:
    home = in_files(tmp_path, "main", "s-1")
    (home / "sessions.json").write_text(content)
    assert read_at_once("openclaw", home / "*.jsonl").parents == {"s-1": None}


def test_a_parent_named_by_its_key_is_the_session_that_the_key_names(tmp_path: Path) -> None:
    home = in_files(tmp_path, "main")
    (home / "sessions.json").write_text(json.dumps({"agent:main:main": {"sessionId": "root"}}))
    for session, key in (("known", "agent:main:main"), ("unknown", "agent:main:gone")):
        start = {"type": "session", "id": session, "version": 3, "parentSession": key}
        lines = json.dumps(start).encode() + b"\n" + with_call(session).event + b"\n"
        (home / f"{session}.jsonl").write_bytes(lines)
    assert read_at_once("openclaw", home / "*.jsonl").parents == {"known": "root", "unknown": None}


# ── databases ─────────────────────────────────────────────────────────────────────────────────────


def test_a_database_tells_what_a_file_does(writer: OpenClaw) -> None:
    """Whether its rows are plain or packed."""
    writer.session("s-1", "agent:reports:main")
    for row in openclaw_rows():
        writer.add(row)
    of_file, of_rows = read_at_once("openclaw", SAMPLE), read_at_once("openclaw", writer.path)
    session = of_file.calls[0].session
    frames = writer.database.execute("SELECT count(event_json), count(event_zstd) FROM transcript_events")
    assert min(frames.fetchone()) > 3
    assert [c.agent for c in of_rows.calls] == [c.agent for c in of_file.calls]
    assert of_rows.signatures == of_file.signatures
    assert of_rows.tokens == of_file.tokens
    assert {call.session for call in of_file.calls} == {session}


def test_both_kinds_are_told_apart_by_what_they_are(writer: OpenClaw, tmp_path: Path) -> None:
    """Under one pattern and whatever they are called."""
    for row in openclaw_rows():
        writer.add(row)
    writer.close()
    writer.path.rename(tmp_path / "agents/main/agent/transcripts.jsonl")
    (tmp_path / "agents/main/agent/s-2.sqlite").write_bytes(SAMPLE.read_bytes())
    (tmp_path / "agents/main/agent/empty").touch()
    follower = Follower(format="openclaw", pattern=str(tmp_path / "agents/**"))
    follower.look()
    follower.look()
    assert len(follower.told.calls) == 12
    OpenClaw(tmp_path / "agents/main/agent/empty").close()
    follower.look()
    assert len(follower.told.calls) == 12


def test_a_file_that_cannot_be_read_is_one_problem(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder").mkdir()
    source = Follower(format="openclaw", pattern=str(tmp_path / "[lf]*")).source()
    assert list(source.read_new({}, now=0)) == []
    assert len(source.problems()) == 2


def with_call(session: str) -> Row:
    event = message("assistant", content=[tool_call("exec", {})])
    return Row(session, 0, json.dumps(event).encode())


def test_the_tree_of_sessions(writer: OpenClaw) -> None:
    """A key names a session that may have been reset since: the parent is the one that was there then."""
    writer.session("root", "agent:main:main", at=10)
    writer.session("child", "agent:main:subagent:1", spawned_by="agent:main:main", at=20)
    writer.session("reset", "agent:main:main", at=30)
    writer.session("second", "agent:main:subagent:2", spawned_by="agent:main:main", at=40)
    writer.session("late", "agent:main:subagent:3", spawned_by="agent:main:subagent:1", at=5)
    writer.session("orphan", "agent:main:subagent:4", spawned_by="agent:main:gone", at=50)
    writer.session("own", "agent:main:own", spawned_by="agent:main:own", at=60)
    sessions = ("root", "child", "second", "late", "orphan", "own", "unknown")
    for session in sessions:
        writer.add(with_call(session))
    told = read_at_once("openclaw", writer.path)
    assert told.parents == {
        "root": None,
        "child": "root",
        "second": "reset",
        "late": "child",
        "orphan": None,
        "own": None,
        "unknown": None,
    }
    assert {call.agent for call in told.calls} == {"main"}


def test_a_session_that_another_agent_started(writer: OpenClaw, tmp_path: Path) -> None:
    """Its parent is in that agent's database."""
    other = OpenClaw(tmp_path / "agents/boss/agent/openclaw-agent.sqlite")
    other.session("root", "agent:boss:main", at=10)
    other.close()
    for name, key in [("child", "agent:boss:main"), ("far", "agent:gone:main"), ("bad", "agent:../..:main")]:
        writer.session(name, f"agent:main:subagent:{name}", spawned_by=key, at=20)
        writer.add(with_call(name))
    assert read_at_once("openclaw", writer.path).parents == {"child": "root", "far": None, "bad": None}
    other.path.write_bytes(b"SQLite format 3\0" + b"?" * 5000)
    assert read_at_once("openclaw", writer.path).parents["child"] is None


def test_releases_with_fewer_columns_are_read(writer: OpenClaw) -> None:
    writer.run("DROP TABLE session_windows")
    writer.run("DROP TABLE session_nodes")
    writer.add(with_call("s-1"))
    (call,) = read_at_once("openclaw", writer.path).calls
    assert (call.agent, call.parent) == ("main", None)


@settings(max_examples=5)
@given(cuts=st.lists(st.floats(0, 1), max_size=8))
def test_rows_that_come_in_any_parts_give_the_same(cuts: list[float]) -> None:
    rows = [row for pair in zip(openclaw_rows("s-1"), openclaw_rows("s-2"), strict=True) for row in pair]
    with tempfile.TemporaryDirectory() as folder:
        whole = OpenClaw(Path(folder, "whole.sqlite"))
        growing = OpenClaw(Path(folder, "growing.sqlite"), packed_from=400)
        follower = Follower(format="openclaw", pattern=str(growing.path))
        for part in in_parts(rows, cuts):
            for row in part:
                whole.add(row)
                growing.add(row)
            follower.look()
        assert follower.told.in_any_order() == read_at_once("openclaw", whole.path).in_any_order()
        whole.close()
        growing.close()


# ── what OpenClaw has really written ──────────────────────────────────────────────────────────────


def labels() -> dict[str, Json]:
    found: dict[str, Json] = json.loads((REAL / "labels.json").read_bytes()) if REAL.exists() else {}
    return found


def tokens_in(events: list[bytes]) -> int:
    messages = [json.loads(event).get("message", {}) for event in events]
    return sum(
        told["usage"]["totalTokens"]
        for told in messages
        if told.get("usage") and told.get("model") != "gateway-injected"
    )


def errors_in(events: list[bytes]) -> int:
    results = [json.loads(event).get("message", {}) for event in events]
    return sum(
        bool(told["isError"] or (told.get("details") or {}).get("exitCode"))
        for told in results
        if told.get("role") == "toolResult"
    )


def assert_as_labelled(told: Told, label: Json) -> None:
    distinct = {(c.tool, c.args) for c in told.calls}
    found = {
        "tool_calls": len(told.calls),
        "tool_results": len(told.answers),
        "distinct_calls": len(distinct),
        "longest_identical_run": told.longest_identical_run,
    }
    assert found == {key: label.get(key, value) for key, value in found.items()}
    assert told.unreadable == 0


@with_real_logs
@pytest.mark.parametrize("name", labels())
def test_real_transcripts_tell_their_errors_and_tokens(name: str) -> None:
    path = REAL / "transcripts" / f"{name}.jsonl"
    told, lines = read_at_once("openclaw", path), path.read_bytes().splitlines()
    assert told.tokens == tokens_in(lines)
    assert told.errors == errors_in(lines)
    assert {c.session for c in told.calls} == {json.loads(lines[0])["id"]}


@with_real_logs
def test_a_real_database() -> None:
    told, by_key = read_at_once("openclaw", REAL_DATABASE), {}
    sql = "SELECT session_key, session_id FROM session_windows"
    for key, session in rows_of(REAL_DATABASE, sql):
        by_key[key] = str(session)
    labelled = [label for label in labels().values() if label["session_key"] in by_key]
    assert len(labelled) >= 2
    for label in labelled:
        assert_as_labelled(told.of(by_key[label["session_key"]]), label)
    events = real_events()
    assert told.tokens == tokens_in(events)
    assert told.errors == errors_in(events)
    assert {c.agent for c in told.calls} == {"worker"}


def real_events() -> list[bytes]:
    rows = rows_of(REAL_DATABASE, "SELECT event_json, event_zstd FROM transcript_events")
    return [
        text.encode() if isinstance(text, str) else zstandard.decompress(frame)  # type: ignore[arg-type]
        for text, frame in rows
    ]


@with_real_logs
def test_a_real_database_growing(tmp_path: Path) -> None:
    """As its program writes it, a row at a time, with a look after every twentieth or so."""
    sql = "SELECT session_id, seq, created_at FROM transcript_events"
    keys = rows_of(REAL_DATABASE, sql)
    rows = [
        Row(str(session), int(str(seq)), event, int(str(at)))
        for (session, seq, at), event in zip(keys, real_events(), strict=True)
    ]
    rows.sort(key=lambda row: (row.at, row.session, row.seq))
    writer = OpenClaw(tmp_path / "worker.sqlite")
    for key, session in rows_of(REAL_DATABASE, "SELECT session_key, session_id FROM session_windows"):
        writer.session(str(session), str(key))
    follower = Follower(format="openclaw", pattern=str(writer.path))
    for start, stop in pairwise([*range(0, len(rows), 19), len(rows)]):
        for row in rows[start:stop]:
            writer.add(row)
        follower.look()
    writer.close()
    assert follower.told.in_any_order() == read_at_once("openclaw", REAL_DATABASE).in_any_order()


# ── runs that only the audit shows ────────────────────────────────────────────────────────────────

AUDIT = """
    CREATE TABLE audit_events (
        sequence INTEGER PRIMARY KEY, occurred_at INTEGER, kind TEXT, action TEXT, status TEXT, agent_id TEXT,
        session_key TEXT, session_id TEXT, run_id TEXT, tool_call_id TEXT, tool_name TEXT
    )
"""
OWN_KEY = "agent:main:internal-session-effects:review_1"


def audited(sequence: int, **fields: object) -> Json:
    return {
        "sequence": sequence,
        "occurred_at": TIME + sequence * 1000,
        "kind": "tool_action",
        "action": "tool.action.started",
        "status": "started",
        "agent_id": "main",
        "session_key": OWN_KEY,
        "session_id": "s-1",
        "run_id": "review:1",
        "tool_call_id": f"sha256:{sequence // 2}",
        "tool_name": "exec",
        **fields,
    }


def write_audit(writer: Writer, event: Json) -> None:
    names = [name for name in audited(0) if name in event]
    values = ", ".join("?" * len(names))
    sql = f"INSERT INTO audit_events ({', '.join(names)}) VALUES ({values})"  # noqa: S608 - names of this file
    writer.run(sql, *(event[name] for name in names))


def test_runs_without_a_transcript_are_seen(tmp_path: Path) -> None:
    """OpenClaw starts them itself. Nothing is known of their calls but the tool: no two are ever alike."""
    writer = Writer(tmp_path / "state/openclaw.sqlite", AUDIT)
    end = {"action": "tool.action.finished", "status": "succeeded"}
    events = [
        audited(1, kind="agent_run", action="agent.run.started", tool_call_id=None),
        audited(2, session_id="internal-session-effects-review_1"),
        audited(3, **end),
        audited(4),
        audited(5, **end | {"status": "failed"}),
        audited(6),
        audited(7, **end | {"status": "cancelled"}),
        audited(8, session_key="agent:main:main", run_id="r-2"),
        audited(10, action="tool.action.paused"),
        audited(12, tool_name=None),
        audited(14, occurred_at=-1),
    ]
    follower = Follower(format="openclaw", pattern=str(tmp_path / "**/*.sqlite"))
    for event in events:
        write_audit(writer, event)
        follower.look()
    told = follower.told
    calls = [(c.session, c.agent, c.tool, c.parent) for c in told.calls]
    assert calls == [
        ("review:1", "main", "exec", None),
        ("review:1", "main", "exec", "s-1"),
        ("review:1", "main", "exec", "s-1"),
    ]
    assert len({c.args_hash for c in told.calls}) == 3
    assert [(a.call_id, a.is_error) for a in told.answers] == [
        ("sha256:1", False),
        ("sha256:2", True),
        ("sha256:3", False),
    ]
    assert len({a.digest for a in told.answers}) == 3
    assert told.unreadable == 2
    assert told.in_any_order() == read_at_once("openclaw", writer.path).in_any_order()
    writer.close()


@with_real_logs
def test_the_real_audit(tmp_path: Path) -> None:
    """Of its two runs one has a transcript."""
    events = [json.loads(line) for line in (REAL / "audit_events_head.jsonl").read_bytes().splitlines()]
    writer = Writer(tmp_path / "openclaw.sqlite", AUDIT)
    for event in events:
        write_audit(writer, event)
    told = read_at_once("openclaw", writer.path)
    writer.close()
    hidden = [event for event in events if ":internal-session-effects:" in event["session_key"]]
    assert len(told.calls) == sum(event["action"] == "tool.action.started" for event in hidden)
    assert told.longest_identical_run == 1
    assert set(told.parents.values()) == {"2e57b087-a406-44c8-a2a2-b1d2568e926a"}
