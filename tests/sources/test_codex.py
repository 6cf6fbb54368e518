"""Codex CLI's rollouts: code mode and direct tools, sub-agents, failures told elsewhere, tokens told twice."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.sources.codex import Rollout
from jobs.thrash.call import Answer, Entry, Usage
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

THREAD = "01a30000-1000-7000-8000-000000000001"
OLDER_THREAD = "01a20000-1000-7000-8000-000000000001"
TURN = "01a30000-2000-7000-8000-0000000000a1"
OLDER_TURN = "01a20000-2000-7000-8000-0000000000a1"

needs_runs = pytest.mark.skipif(not SHARED.exists(), reason="logs of real runs are not part of a clone")
every_run = pytest.mark.parametrize("path", LABELS or ["none"], ids=lambda path: path[-17:-6])


# ── records ───────────────────────────────────────────────────────────────────────────────────────


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


# ── answers ───────────────────────────────────────────────────────────────────────────────────────


def test_equal_outputs_have_equal_digests() -> None:
    """Chunk id, wall time and token count differ each time; test runs tell their own time, too."""
    first = digest_of(call("call_1"), output("call_1", direct("Ran 1 test in 0.001s\nOK\n", chunk="a")))
    again = direct("Ran 1 test in 0.107s\nOK\n", chunk="b", wall="0.1234")
    assert first == digest_of(call("call_2"), output("call_2", again))


def test_outputs_of_scripts_differ_in_their_wall_time() -> None:
    first = digest_of(script("call_1"), scripted("call_1", "ready", wall=0.1))
    assert first == digest_of(script("call_2"), scripted("call_2", "ready", wall=12.5))
    assert first != digest_of(script("call_2"), scripted("call_2", "pending"))


def test_a_script_may_print_the_whole_result_of_a_command() -> None:
    text = '{"chunk_id":"%s","wall_time_seconds":%s,"exit_code":0,"output":"%s"}'
    first = digest_of(script("call_1"), scripted("call_1", text % ("ab12", "0.05", "ready")))
    assert first == digest_of(script("call_2"), scripted("call_2", text % ("cd34", "1.5e-05", "ready")))
    assert first != digest_of(script("call_2"), scripted("call_2", text % ("ab12", "0.05", "pending")))


@pytest.mark.parametrize(
    "text",
    [
        direct("ready", code=1),
        direct("pending"),
        direct("Exit code: 3\nWall time: 0 seconds\nOutput:\nready"),
        direct("Output:\nready"),
        "ready",
        "",
        "Chunk ID: 85f3fb\nready",
        '{"output": 3}',
        '{"output": "ready", "metadata": 3}',
        None,
        7,
        [],
        [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}],
        [{"type": "input_image", "image_url": "data:image/png;base64,BBBB"}],
        {"content": "ready"},
    ],
)  # fmt: skip
def test_different_outputs_have_different_digests(text: object) -> None:
    ready = digest_of(call("call_1"), output("call_1", direct("ready")))
    assert digest_of(call("call_1"), output("call_1", text)) != ready


def test_a_nested_head_of_a_patch_is_left_out() -> None:
    text = "Wall time: {} seconds\nOutput:\nExit code: {}\nWall time: {} seconds\nOutput:\nSuccess."
    good = [read([meta(), call("1"), output("1", text.format(wall, 0, wall))]).answers[0] for wall in (0, 1)]
    [bad] = read([meta(), call("1"), output("1", text.format(0, 1, 0))]).answers
    assert good[0] == good[1]
    assert [answer.is_error for answer in (*good, bad)] == [False, False, True]
    assert bad.digest != good[0].digest


def test_a_command_that_fails_in_a_script_makes_the_call_an_error_once() -> None:
    """The output of a script says `Script completed` whatever its commands did; they have ids of their own."""
    lines = [script("call_1"), ended("exec-1"), ended("exec-2", code=1), ended("exec-3", code=1)]
    told = read([meta(), begin(), *lines, scripted("call_1", ""), script("call_2"), scripted("call_2", "")])
    assert [answer.is_error for answer in told.answers] == [True, False]


def test_a_script_that_fails_itself_is_an_error() -> None:
    told = read([meta(), script("call_1"), scripted("call_1", "Script error:\nx", status="failed")])
    assert told.errors == 1


@pytest.mark.parametrize("failing", ["call_1", "call_2", "call_3"])
def test_a_failure_belongs_to_the_script_that_names_its_command(failing: str) -> None:
    """Scripts asked for at once run one after the other, and their outputs come when all have run."""
    commands = {"call_1": "grep \"a\\b\" 'ü.md'", "call_2": "ls", "call_3": "make\n test"}
    sources = {
        "call_1": f"await tools.exec_command({json.dumps({'cmd': commands['call_1']}, ensure_ascii=False)});",
        "call_2": "await tools.exec_command({cmd: 'ls'});",
        "call_3": "await tools.exec_command({cmd: `make\n test`});",
    }
    calls = [script(name, source) for name, source in sources.items()]
    ends = [ended(f"exec-{name}", code=name == failing, command=it) for name, it in commands.items()]
    told = read([meta(), begin(), *calls, *ends, *[scripted(name, "") for name in commands]])
    assert [answer.call_id for answer in told.answers if answer.is_error] == [failing]


def test_a_failure_that_no_script_names_is_the_first_ones() -> None:
    odd = event("item_completed", item={"type": "CommandExecution", "id": "x", "command": [], "exit_code": 1})
    for failure in (ended("x", code=1), odd, event("item_completed", item={"id": "x", "status": "failed"})):
        told = read(
            [
                meta(),
                script("call_1"),
                script("call_2"),
                failure,
                scripted("call_1", ""),
                scripted("call_2", ""),
            ]
        )
        assert [answer.is_error for answer in told.answers] == [True, False]


def test_a_script_that_runs_on_fails_where_it_is_waited_for() -> None:
    """Its first output only says that it runs; that answer is told and stays."""
    running = scripted("call_1", "", status="running with cell ID 7")
    wait = call("call_2", '{"cell_id": "7"}', name="wait", namespace="functions")
    lines = [
        meta(),
        begin(),
        script("call_1"),
        running,
        wait,
        ended("exec-1", code=1),
        scripted("call_2", ""),
    ]
    assert [answer.is_error for answer in read(lines).answers] == [False, True]


def test_a_command_that_runs_on_fails_where_it_is_polled() -> None:
    """Its end bears the id of the call that has its answer already."""
    running = "Chunk ID: a\nWall time: 1.0 seconds\nProcess running with session ID 42\nOriginal token count: 0\nOutput:\n"
    lines = [meta(), begin(), call("call_1"), output("call_1", running), call("call_2", name="write_stdin")]
    told = read(
        [*lines, ended("call_1", code=1), output("call_2", direct("", code=1)), ended("call_1", code=1)]
    )
    assert [(answer.call_id, answer.is_error) for answer in told.answers] == [
        ("call_1", False),
        ("call_2", True),
    ]


def test_running_commands_differ_in_their_session() -> None:
    running = "Chunk ID: a\nWall time: 1.0 seconds\nProcess running with session ID {}\nOutput:\nx"
    first, other = (digest_of(call("1"), output("1", running.format(number))) for number in (42, 43))
    assert first == other


def test_an_exit_code_in_the_output_counts_where_no_event_tells_it() -> None:
    told = read([meta(), call("call_1"), output("call_1", direct("", code=127)), ended("call_1", code=127)])
    assert told.errors == len(told.answers) == 1


@pytest.mark.parametrize(("code", "errors"), [(0, 0), (1, 1), (-9, 1), (None, 0)])
def test_commands_of_older_releases_end_in_an_event_of_their_own(code: int | None, errors: int) -> None:
    lines = [
        call("call_1"),
        event("exec_command_end", call_id="call_1", exit_code=code),
        output("call_1", "x"),
    ]
    assert read([meta(), *lines]).errors == errors


@pytest.mark.parametrize("status", ["failed", "declined"])
def test_a_change_of_files_or_a_call_of_another_program_may_fail(status: str) -> None:
    """They have a status only."""
    failure = event("item_completed", item={"type": "FileChange", "id": "call_1", "status": status})
    patch = item("custom_tool_call", name="apply_patch", call_id="call_1", input="*** Begin Patch")
    assert read([meta(), patch, failure, output("call_1", "{}")]).errors == 1


def test_an_answer_is_told_once() -> None:
    """A script may add notes to its call later."""
    note = item("custom_tool_call_output", call_id="call_1", output="still at it")
    told = read([meta(), script("call_1"), scripted("call_1", "done"), note, note])
    assert len(told.answers) == 1


def test_a_killed_call_gets_no_answer_and_no_blame() -> None:
    """After a kill nothing is written; a resume begins a turn in the same file."""
    killed = [meta(), begin(), script("call_1"), used("resp_1", sum_of(10, 1))]
    resumed = [begin(), script("call_2", "run()"), ended("exec-9", code=1), scripted("call_2", "")]
    told = read([*killed, *resumed])
    assert [answer.call_id for answer in told.answers if answer.is_error] == ["call_2"]
    assert len(told.calls) == 2


def test_an_interrupted_call_may_get_its_output_after_the_turn() -> None:
    told = read(
        [meta(), begin(), call("1"), event("turn_aborted", reason="interrupted"), output("1", "aborted")]
    )
    assert [answer.is_error for answer in told.answers] == [False]


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
        assert len(reader.state()) < 50_000
    assert len({call.call_id for call in told.calls}) == 2
    assert [(answer.call_id, answer.is_error) for answer in told.answers] == [(told.calls[0].call_id, True)]
    assert told.calls[0].session == told.usages[0].session
    for call_ in told.calls:
        names = (call_.session, call_.agent, call_.tool, call_.call_id or "", call_.parent or "")
        assert max(map(len, names)) <= 200


def test_the_state_stays_small_however_many_calls_get_no_output() -> None:
    reader = Rollout("rollout.jsonl", "")
    reader.read(used("resp_1", sum_of(10, 1)))
    for number in range(1000):
        reader.read(script(f"call_{number}", "é" * 5000))
    assert len(reader.state()) < 300_000
    assert reader.read(scripted("call_999", ""))


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
