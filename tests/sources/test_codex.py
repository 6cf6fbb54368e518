"""Codex CLI's rollouts: code mode and direct tools, sub-agents, failures told elsewhere, tokens told twice."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.sources.codex import Rollout
from tests.sources.codex_lines import (
    OLDER_THREAD,
    OLDER_TURN,
    THREAD,
    begin,
    call,
    counted,
    ended,
    event,
    meta,
    output,
    read,
    record,
    script,
    scripted,
    sum_of,
    take,
    used,
)
from tests.sources.contract import SHARED, Told, read_at_once

DATA = Path(__file__).parents[1] / "data" / "codex"
RUNS = SHARED / "agents" / "codex"
LABELS: dict[str, dict[str, Any]] = (
    {
        path: labels
        for run, told in json.loads((SHARED / "agents" / "labels.json").read_bytes()).items()
        if run.startswith("codex/")
        for path, labels in told["files"].items()
    }
    if SHARED.exists()
    else {}
)

needs_runs = pytest.mark.skipif(not SHARED.exists(), reason="logs of real runs are not part of a clone")
every_run = pytest.mark.parametrize("path", LABELS or ["none"], ids=lambda path: path[-17:-6])


# ── real runs ─────────────────────────────────────────────────────────────────────────────────────


def records_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@needs_runs
@every_run
def test_a_real_run_tells_which_commands_failed(path: str) -> None:
    """Though no output flags it."""
    records = records_of(RUNS / path)
    failed = [r for r in records if r["payload"].get("item", {}).get("status") == "failed"]
    assert read_at_once("codex", RUNS / path).errors == len(failed)


@needs_runs
@every_run
def test_a_real_run_tells_its_thread_and_tokens(path: str) -> None:
    records = records_of(RUNS / path)
    head = records[0]["payload"]
    told = read_at_once("codex", RUNS / path)
    sums = [r["payload"]["usage"] for r in records if r["type"] == "token_usage_record"]
    assert told.parents == {head["id"]: head.get("parent_thread_id")}
    assert told.tokens == sum(usage["total_tokens"] for usage in sums)
    assert sum(usage.cached for usage in told.usages) == sum(usage["cached_input_tokens"] for usage in sums)
    # What the scan adds up.
    with_calls = sum(call.tokens or 0 for call in told.calls)
    assert with_calls + sum(usage.tokens for usage in told.usages if not usage.has_call) == told.tokens


@needs_runs
def test_sub_agents_of_real_runs_have_names() -> None:
    """A sub-agent is called as its task or by its nickname, another thread as the folder in which it works."""
    told = read_at_once("codex", RUNS / ".codex/sessions/*/*/*/*.jsonl")
    assert {call.agent for call in told.calls} == {
        "codex-reports",
        "codex-pricing",
        "codex-delegate",
        "count_rows",
        "watch_report",
        "codexd-reports",
        "codexd-pricing",
        "codexd-delegate",
        "Leibniz",
        "Dirac",
    }


# ── samples ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["calls", "subagent", "older", "fork"])
def test_a_sample_line_by_line_tells_the_same(name: str) -> None:
    path = DATA / f"{name}.jsonl"
    told, expected = read(path.read_bytes().splitlines()), read_at_once("codex", path)
    assert told == expected
    assert told.unreadable == 0


def test_a_sample_of_code_mode_and_direct_tools() -> None:
    told = read_at_once("codex", DATA / "calls.jsonl")
    failed = {answer.call_id for answer in told.answers if answer.is_error}
    assert [call.call_id for call in told.calls] == [f"call_{number}" for number in range(1, 11)]
    assert len(told.answers) == 9
    assert failed == {"call_3", "call_5", "call_6", "call_7", "call_8"}
    assert [call.tokens for call in told.calls] == [
        None, 1320, 1410, 1530, None, 1030, 1120, 1210, 1300, 1390,
    ]  # fmt: skip
    assert told.tokens == 13_120
    assert [signature[2] for signature in told.signatures[:2]] == [told.answers[0].digest] * 2
    assert told.answers[5].digest == told.answers[6].digest


def test_a_sample_of_an_older_release() -> None:
    """Commands and patches end in events of their own; tokens are counted as often as their sum changes."""
    told = read_at_once("codex", DATA / "older.jsonl")
    assert [call.tool for call in told.calls] == [
        "exec_command", "shell", "apply_patch", "local_shell", "web_search",
    ]  # fmt: skip
    assert [answer.is_error for answer in told.answers] == [True, True, True, False]
    assert told.tokens == 1230 + 3 * 1330
    assert {usage.model for usage in told.usages} == {"gpt-5"}
    assert {(call.agent, call.parent) for call in told.calls} == {("Dirac", THREAD)}
    assert told.calls[1].args == b'"not { json"'
    assert json.loads(told.calls[3].args) == {"type": "exec", "command": ["ls"]}


def test_a_copied_history_is_not_told_again() -> None:
    """A fork begins with another thread's records, under that thread's `session_meta`."""
    told = read_at_once("codex", DATA / "fork.jsonl")
    assert [(call.call_id, call.session[-1]) for call in told.calls] == [("call_f2", "4")]
    assert [answer.call_id for answer in told.answers] == ["call_f2"]
    assert told.tokens == 1330


# ── threads ───────────────────────────────────────────────────────────────────────────────────────


def test_a_resume_that_names_the_thread_again_changes_nothing() -> None:
    told = read([meta(), begin(), call("call_1"), meta(cwd="/elsewhere"), call("call_2")])
    assert [(call.session, call.agent) for call in told.calls] == [(THREAD, "reports")] * 2


def test_the_first_name_of_a_thread_counts() -> None:
    """What a file tells of another thread, in its midst too, is that thread's."""
    lines = [meta(), begin(), call("call_1"), meta(OLDER_THREAD), begin(OLDER_TURN), call("call_2")]
    told = read([*lines, begin(), call("call_3")])
    assert [(call.session, call.call_id) for call in told.calls] == [(THREAD, "call_1"), (THREAD, "call_3")]


@pytest.mark.parametrize("turn", [None, "turn-1"])
def test_a_turn_whose_age_is_not_known_is_the_threads_own(turn: str | None) -> None:
    told = read([meta(forked_from_id="t-1"), record("turn_context", {"turn_id": turn}), call("call_1")])
    assert len(told.calls) == 1


def test_sums_of_a_copied_history_are_no_news() -> None:
    total = sum_of(1000, 100)
    lines = [meta(forked_from_id=OLDER_THREAD), counted(total, sum_of(500, 50)), begin()]
    assert read([*lines, counted(total, sum_of(500, 50))]).usages == []
    assert read([*lines, counted(sum_of(1200, 110), sum_of(200, 10))]).tokens == 210


def test_a_log_without_head_is_named_by_its_file() -> None:
    name = f"rollout-2026-11-30T09-37-39-{THREAD}.jsonl"
    [found] = read([call("call_1")], path=f"/home/op/{name}").calls
    [other] = read([call("call_1")], path="/home/op/\udcff.jsonl").calls
    assert (found.session, found.agent, found.parent) == (THREAD, "codex", None)
    assert (other.session, other.agent) == ("?", "codex")


@pytest.mark.parametrize("state", ["", "null", "[]", "{", '{"session":1}', "[" * 10_000, '{"v":1}'])
def test_a_state_that_is_none_is_no_state(state: str) -> None:
    reader = Rollout(f"rollout-{THREAD}.jsonl", state)
    assert reader.read(call("call_1"))
    assert THREAD in reader.state()


@pytest.mark.parametrize(
    ("payload", "agent", "parent"),
    [
        ({}, "reports", None),
        ({"cwd": "C:\\code\\prices"}, "prices", None),
        ({"cwd": "/"}, "codex", None),
        ({"parent_thread_id": "t-1", "agent_nickname": "Godel"}, "Godel", "t-1"),
        (
            {"parent_thread_id": "t-1", "agent_nickname": "Godel", "agent_path": "/root/a/count"},
            "count",
            "t-1",
        ),
        ({"source": {"subagent": "review"}}, "reports", None),
        (
            {"source": {"subagent": {"thread_spawn": {"parent_thread_id": "t-1", "agent_nickname": "Abel"}}}},
            "Abel",
            "t-1",
        ),
    ],
)
def test_an_agents_name_and_parent(payload: dict[str, Any], agent: str, parent: str | None) -> None:
    """Its task, else its nickname, else its folder; `session_id` is the root's, not the parent's."""
    [found] = read([meta(session_id="root", **payload), call("call_1")]).calls
    assert (found.session, found.agent, found.parent) == (THREAD, agent, parent)


# ── calls ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_arguments_of_a_script_are_the_script_as_logged() -> None:
    source = 'const r = await tools.exec_command({"cmd": "ls ü"});\ntext(r.output);'
    [found] = read([meta(), script("call_1", source)]).calls
    assert (found.tool, found.args) == ("exec", json.dumps(source, ensure_ascii=False).encode())


@pytest.mark.parametrize(
    ("arguments", "args"),
    [
        ('{"cmd": "ls"}', b'{"cmd": "ls"}'),
        ('{"cmd":"ü"}', '{"cmd":"ü"}'.encode()),
        ("", b'""'),
        ("{cmd}", b'"{cmd}"'),
        ('{"cmd": "\\ud800"}', b'"{\\"cmd\\": \\"\\\\ud800\\"}"'),
    ],
)
def test_the_arguments_of_a_function_are_the_json_in_their_string(arguments: str, args: bytes) -> None:
    [found] = read([meta(), call("call_1", arguments)]).calls
    assert found.args == args
    json.loads(found.args)


def test_arguments_too_deep_to_read_are_a_string() -> None:
    [found] = read([meta(), call("call_1", "[" * 100_000)]).calls
    assert json.loads(found.args) == "[" * 100_000


def test_a_tool_of_another_program_bears_that_programs_name() -> None:
    lines = [
        call("1", name="search", namespace="mcp__docs"),
        call("2", name="wait_agent", namespace="collaboration"),
    ]
    told = read([meta(), *lines])
    assert [call.tool for call in told.calls] == ["mcp__docs__search", "wait_agent"]


def test_a_call_is_told_once() -> None:
    """A compacted history lies in a record of its own; what is written again is known by its id."""
    history = [{"type": "function_call", "name": "exec_command", "arguments": "{}", "call_id": "call_1"}]
    lines = [
        meta(),
        call("call_1"),
        output("call_1", "a"),
        record("compacted", {"replacement_history": history}),
    ]
    told = read([*lines, call("call_1"), output("call_1", "b")])
    assert (len(told.calls), len(told.answers)) == (1, 1)


def test_a_call_in_flight_is_told_with_the_next_record() -> None:
    """Its tokens come right after it; only the first answer of the model is not waited for."""
    lines = [meta(), begin(), call("call_1"), used("resp_1", sum_of(10, 1)), call("call_2"), call("call_3")]
    assert [found.tokens for found in read(lines).calls] == [None]
    told = read([*lines, used("resp_2", sum_of(20, 2))])
    assert [found.tokens for found in told.calls] == [None, 22, None]
    assert [usage.has_call for usage in told.usages] == [False, True]


def test_a_call_without_its_tokens_is_told_all_the_same() -> None:
    """The model's answer may have been cut short."""
    lines = [meta(), begin(), call("call_1"), used("resp_1", sum_of(10, 1)), call("call_2")]
    for following in (
        event("turn_aborted"),
        begin(),
        output("call_2", ""),
        record("world_state", {}),
        ended("x"),
    ):
        told = read([*lines, following])
        assert [(found.call_id, found.tokens) for found in told.calls] == [("call_1", None), ("call_2", None)]


def test_a_malformed_record_does_not_lose_a_call() -> None:
    lines = [
        meta(),
        used("resp_1", sum_of(10, 1)),
        call("call_1"),
        b"{",
        call(""),
        event("token_count", info=7),
    ]
    assert [found.call_id for found in read(lines).calls if found.call_id] == ["call_1"]


def test_a_long_call_is_not_held_back() -> None:
    """What is held back is kept between two looks."""
    lines = [meta(), used("resp_1", sum_of(10, 1)), call("call_1", '"' + "x" * 50_000 + '"')]
    told = read([*lines, used("resp_2", sum_of(20, 2))])
    assert [found.tokens for found in told.calls] == [None]
    assert told.tokens == 33
    assert not any(usage.has_call for usage in told.usages)


# ── tokens ────────────────────────────────────────────────────────────────────────────────────────


def test_tokens_are_counted_once_for_each_answer_of_the_model() -> None:
    """`token_count` tells the same again, and a resume may repeat a record."""
    usage = sum_of(1290, 30, cached=1000, written=100)
    record_ = used("resp_1", usage)
    told = read([meta(), record("turn_context", {"model": "gpt-6"}), record_, counted(usage, usage), record_])
    [found] = told.usages
    assert (found.input, found.cached, found.output, found.tokens) == (190, 1100, 30, 1320)
    assert found.written == 100
    assert (found.model, found.has_call) == ("gpt-6", False)


def test_tokens_of_another_thread_are_not_its_own() -> None:
    assert read([meta(), used("resp_1", sum_of(10, 1), thread=OLDER_THREAD)]).usages == []


def test_older_tokens_are_counted_when_their_sum_changes() -> None:
    """Equal answers in a row count each; a record for changed limits does not."""
    last = sum_of(10, 1)
    lines = [counted(sum_of(10, 1), last), counted(sum_of(10, 1), last, 2), counted(sum_of(20, 2), last)]
    assert read([meta(), event("token_count", info=None), *lines]).tokens == 22


def test_a_thread_that_a_newer_release_goes_on_with_is_not_counted_twice() -> None:
    last = sum_of(10, 1)
    lines = [counted(last, last), used("resp_1", last), counted(sum_of(20, 2), last)]
    assert read([meta(), *lines]).tokens == 22


def test_more_from_the_cache_than_in_all_is_no_negative_number() -> None:
    [found] = read([meta(), used("resp_1", sum_of(10, 1, cached=50))]).usages
    assert (found.input, found.cached, found.output) == (0, 10, 1)


@pytest.mark.parametrize("number", [-1, 10**13, 10**400, 1.5, "many", None, [], {}])
def test_numbers_out_of_range_are_left_out(number: object) -> None:
    [found] = read([meta(), used("resp_1", {"input_tokens": number, "output_tokens": 3})]).usages
    assert (found.input, found.output) == (0, 3)


# ── hostile logs ──────────────────────────────────────────────────────────────────────────────────


def test_long_names_are_cut_and_the_state_stays_small() -> None:
    """They still tell things apart."""
    long = "x" * 3_000_000
    reader = Rollout(long, "")
    told = Told()
    for line in [
        meta(long + "s", parent_thread_id=long, agent_path=long, cwd=long),
        record("turn_context", {"model": long}),
        used(long, sum_of(10, 1), thread=long + "s"),
        script(long + "1", long),
        ended(long + "1", code=1),
        call(long + "2", name=long),
        scripted(long + "1", long),
    ]:
        take(told, reader.read(line) or ())
        assert len(reader.state()) < 70_000
    assert len({call.call_id for call in told.calls}) == 2
    assert [(answer.call_id, answer.is_error) for answer in told.answers] == [(told.calls[0].call_id, True)]
    assert told.calls[0].session == told.usages[0].session
    for call_ in told.calls:
        names = (call_.session, call_.agent, call_.tool, call_.call_id or "", call_.parent or "")
        assert max(map(len, names)) <= 200


def test_the_state_stays_small_however_many_calls_get_no_output() -> None:
    reader = Rollout("rollout.jsonl", "")
    reader.read(used("resp_1", sum_of(10, 1)))
    for number in range(3000):
        reader.read(script(f"call_{number}", "é" * 5000))
    assert len(reader.state()) < 300_000
    assert reader.read(scripted("call_2999", ""))


def test_deep_nesting_is_no_exception() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    line = b'{"timestamp":"2026-11-30T09:37:44Z","type":"response_item","payload":%b}'
    told = read([meta(), line % deep, line % (b'{"type":"message","content":' + deep + b"}")])
    assert told.calls == []
    assert told.unreadable == 2


def test_bytes_that_are_no_text_do_not_hide_a_call() -> None:
    """They become replacement characters in the arguments, and make an output like no other."""
    lines = [
        script("call_1", "a\x80b").replace("\x80".encode(), b"\xff"),
        scripted("call_1", "\x81").replace("\x81".encode(), b"\xff"),
    ]
    told = read([meta(), *lines])
    assert json.loads(told.calls[0].args) == "a\ufffdb"
    assert len(told.answers) == 1


def test_half_a_character_does_not_hide_a_call() -> None:
    """JSON has them where a text was cut."""
    cut = rb'{"timestamp":"2026-11-30T09:37:44Z","type":"response_item","payload":{"type":"custom_tool_call","name":"exec","call_id":"1","input":"a\ud83d"}}'
    [found] = read([meta(), cut]).calls
    assert json.loads(found.args) == "a\ufffd"


SAMPLE = [
    line for name in ("calls", "older", "fork") for line in (DATA / f"{name}.jsonl").read_bytes().splitlines()
]


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_no_damage_is_an_exception(data: st.DataObject) -> None:
    """Lines in any order, any of them with a piece replaced; and what is told then can be stored."""
    reader = Rollout("rollout.jsonl", "")
    told = Told()
    for line in data.draw(st.lists(st.sampled_from(SAMPLE), max_size=8)):
        start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(line))] * 2)))
        piece = data.draw(
            st.binary(max_size=8) | st.sampled_from([b"null", b'"', b"{}", b"[", b"1e400", b"\\ud800"])
        )
        take(told, reader.read(line[:start] + piece + line[stop:]) or ())
        reader = Rollout("rollout.jsonl", reader.state())
    for found in told.calls:
        assert "".join((found.session, found.agent, found.tool, found.call_id or "")).encode()
        json.loads(found.args)
    assert len({answer.call_id for answer in told.answers}) == len(told.answers)
