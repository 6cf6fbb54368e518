"""Gemini CLI's chats: `tests/data/gemini-cli`, and where they are at hand those that the program itself has written."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jobs.sources.gemini_cli import ChatReader
from jobs.thrash.call import Answer, ToolCall, Usage
from tests.sources.contract import SHARED, Told, read_at_once

DATA = Path(__file__).parents[1] / "data" / "gemini-cli"
GARDEN = DATA / "garden" / "chats"
PARENT = "6f1c2d3e-58a0-4c1b-9a77-0d2b7c1e4f90"
CHILD = "b07d5a14-2f3c-4e0e-8d35-c1a9e6b2f711"
HOME = SHARED / "agents" / "gemini"
TMP = HOME / ".gemini" / "tmp"

with_shared_data = pytest.mark.skipif(
    not SHARED.exists(), reason="the logs of real programs are not part of a clone"
)

Json = dict[str, Any]


def labelled_files() -> list[tuple[str, Json]]:
    if not SHARED.exists():
        return []
    runs = json.loads((SHARED / "agents" / "labels.json").read_bytes())
    return [
        file for run, labels in runs.items() if run.startswith("gemini/") for file in labels["files"].items()
    ]


def messages_in(content: bytes) -> Iterator[Json]:
    """Every message, as often as a chat has it."""
    for line in content.splitlines():
        record = json.loads(line)
        yield from record.get("$set", {}).get("messages", [])
        if "type" in record:
            yield record


def tokens_in(content: bytes) -> int:
    totals = {
        message["id"]: message["tokens"]["total"] for message in messages_in(content) if "tokens" in message
    }
    return sum(totals.values())


def failed_commands_in(content: bytes) -> int:
    """Those whose call is a success by its status."""
    calls = {call["id"]: call for message in messages_in(content) for call in message.get("toolCalls", [])}
    end = re.compile(r"\\nExit Code: \d+\\nProcess Group PGID: \d+\\n")
    return sum(bool(end.search(json.dumps(call["result"]))) for call in calls.values())


def log_of(folder: Path, *records: Json | bytes) -> Path:
    log = folder / "garden" / "chats" / "session-2026-03-02T10-05-6f1c2d3e.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(b"".join(line(record) for record in records))
    return log


def line(record: Json | bytes) -> bytes:
    return record if isinstance(record, bytes) else json.dumps(record, separators=(",", ":")).encode() + b"\n"


def told_by(*records: Json | bytes, reader: ChatReader | None = None) -> Told:
    """What one chat tells, read by one reader."""
    reader = reader or ChatReader("/home/op/.gemini/tmp/garden/chats/session-1.jsonl", "")
    told = Told()
    for record in records:
        entries = reader.read(line(record))
        told.unreadable += entries is None
        told.calls += [entry for entry in entries or () if isinstance(entry, ToolCall)]
        told.answers += [entry for entry in entries or () if isinstance(entry, Answer)]
        told.usages += [entry for entry in entries or () if isinstance(entry, Usage)]
    return told


def header(session: str = PARENT) -> Json:
    return {
        "sessionId": session,
        "projectHash": "3f",
        "startTime": at(0),
        "lastUpdated": at(0),
        "kind": "main",
    }


def at(second: int) -> str:
    return f"2026-03-02T{10 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.250Z"


def message(number: int, *calls: Json, **fields: object) -> Json:
    """An answer of the model as it is first written, or with the calls that have ended since."""
    used = {"input": 1200, "output": 30, "cached": 0, "thoughts": 0, "tool": 0, "total": 1230}
    written: Json = {
        "id": f"m-{number}",
        "timestamp": at(number),
        "type": "gemini",
        "content": "",
        "tokens": used,
    }
    return written | {"model": "gemini-2.5-pro"} | ({"toolCalls": [*calls]} if calls else {}) | fields


def call(name: str, output: object = "later", tool: str = "read_file", **fields: object) -> Json:
    response = {"functionResponse": {"id": name, "name": tool, "response": {"output": output}}}
    given: Json = {"id": name, "name": tool, "args": {"file_path": "beans.md"}, "result": [response]}
    return given | {"status": "success", "timestamp": at(59), "resultDisplay": ""} | fields


def command(name: str, output: str, **fields: object) -> Json:
    return call(name, output, "run_shell_command", **fields)


def rewrite(*messages: Json) -> Json:
    return {"$set": {"messages": [*messages], "lastUpdated": at(99)}}


def digest(given: Json) -> str:
    return told_by(message(1, given)).answers[0].digest


# ── what the program has written ──────────────────────────────────────────────────────────────────


@with_shared_data
@pytest.mark.parametrize(("file", "label"), labelled_files())
def test_a_real_chat_tells_its_errors_and_tokens(file: str, label: Json) -> None:
    """Errors are those that the log flags, and the failed commands."""
    content = (HOME / file).read_bytes()
    told = read_at_once("gemini-cli", HOME / file)
    assert told.errors == label["errors"] + failed_commands_in(content)
    assert told.tokens == tokens_in(content)


@with_shared_data
def test_three_commands_of_the_real_healthy_run_failed() -> None:
    """Their status is `success`: only the text has their exit code."""
    told = read_at_once("gemini-cli", TMP / "gemini-pricing" / "chats" / "*.jsonl")
    assert told.errors == 3


@with_shared_data
def test_real_sub_agents_are_named_by_their_project() -> None:
    told = read_at_once("gemini-cli", TMP / "gemini-delegate" / "chats" / "**" / "*.jsonl")
    assert {call.agent for call in told.calls if not call.parent} == {"gemini-delegate"}
    assert {call.agent for call in told.calls if call.parent} == {"gemini-delegate/subagent"}


# ── what a chat tells ─────────────────────────────────────────────────────────────────────────────


def test_a_chat_tells_its_calls_their_answers_and_the_tokens() -> None:
    told = read_at_once("gemini-cli", DATA / "calls.jsonl")
    assert [call.call_id for call in told.calls] == [f"{tool}__fc-aa{n}" for n, tool in enumerate(TOOLS, 1)]
    assert [call.tool for call in told.calls] == TOOLS
    assert {(call.session, call.agent, call.parent) for call in told.calls} == {(PARENT, "gemini-cli", None)}
    assert [answer.call_id for answer in told.answers] == [call.call_id for call in told.calls]
    assert [answer.is_error for answer in told.answers] == [False, True, True, True, False, False]
    assert told.tokens == tokens_in((DATA / "calls.jsonl").read_bytes()) == 7062
    assert told.unreadable == 0
    digests = [answer.digest for answer in told.answers]
    assert digests[0] == digests[5]
    assert digests[1] == digests[2]
    assert len(set(digests)) == 4


TOOLS = [
    "read_file",
    "run_shell_command",
    "run_shell_command",
    "read_file",
    "list_directory",
    "read_file",
]


def test_a_call_is_told_with_its_arguments_and_the_time_at_which_the_model_asked_for_it() -> None:
    first, second = (
        told_by(header(), message(7, call("a", args={"b": [1, "\u00fc"]}))),
        told_by(header(), message(7), message(7, call("a", args={"b": [1, "\u00fc"]}))),
    )
    for told in (first, second):
        assert [(call.ts, call.args) for call in told.calls] == [(1772445607.25, b'{"b":[1,"\\u00fc"]}')]
        assert [answer.ts for answer in told.answers] == [1772445659.25]


def test_a_sub_agent_is_a_session_of_its_own_whose_folder_names_its_parent() -> None:
    told = read_at_once("gemini-cli", GARDEN / "**" / "*.jsonl")
    assert told.parents == {PARENT: None, CHILD: PARENT}
    assert {call.agent for call in told.of(PARENT).calls} == {"garden"}
    assert [call.tool for call in told.of(CHILD).calls] == ["read_file", "complete_task"]
    assert {call.agent for call in told.of(CHILD).calls} == {"garden/subagent"}


def test_what_a_resume_leaves_behind_tells_nothing() -> None:
    """An empty file, or one of two lines, of the same session."""
    for left in ("10-15", "10-16"):
        told = read_at_once("gemini-cli", GARDEN / f"session-2026-03-02T{left}-6f1c2d3e.jsonl")
        assert told == Told()


def test_a_second_first_record_does_not_begin_another_session() -> None:
    told = told_by(
        header(),
        message(1, call("a")),
        header("another"),
        {"$set": {"sessionId": "third"}},
        message(2, call("b")),
    )
    assert [call.session for call in told.calls] == [PARENT, PARENT]


def test_a_chat_without_its_first_record_is_named_after_its_file() -> None:
    """And stays so: a resume's record comes too late."""
    told = told_by(message(1, call("a")), header(), message(2, call("b")))
    assert [call.session for call in told.calls] == ["session-1", "session-1"]


# ── once ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_message_written_twice_tells_its_tokens_and_its_call_once() -> None:
    """The tokens come first, at a time when nobody knows of a call: they are told without one."""
    told = told_by(header(), message(1), message(1, call("a")), message(1, call("a")))
    assert [(call.call_id, call.tokens) for call in told.calls] == [("a", None)]
    assert [(usage.tokens, usage.has_call) for usage in told.usages] == [(1230, False)]
    assert len(told.answers) == 1


def test_tokens_that_come_with_calls_are_told_with_the_first_of_them() -> None:
    told = told_by(header(), message(1, call("a"), call("b")))
    assert [call.tokens for call in told.calls] == [1230, None]
    assert [(usage.tokens, usage.has_call) for usage in told.usages] == [(1230, True)]


def test_tokens_that_come_after_the_calls_are_told_without_one() -> None:
    told = told_by(header(), message(1, call("a"), tokens=None), message(1, call("a")))
    assert [call.tokens for call in told.calls] == [None]
    assert [(usage.tokens, usage.has_call) for usage in told.usages] == [(1230, False)]


def test_tokens_from_the_cache_are_part_of_the_input() -> None:
    used = {"input": 1000, "output": 30, "cached": 800, "thoughts": 12, "tool": 5, "total": 1047}
    (usage,) = told_by(header(), message(1, tokens=used)).usages
    assert (usage.input, usage.output, usage.cached, usage.tokens) == (205, 42, 800, 1047)
    assert usage.model == "gemini-2.5-pro"


def test_a_rewritten_history_repeats_no_call_and_removes_none() -> None:
    """Whether it has the calls or not; a user's record under an id of the model's is none of the model's."""
    result = {"id": "m-1", "timestamp": at(1), "type": "user", "content": [call("a")["result"]]}
    told = told_by(
        header(),
        message(1),
        message(1, call("a")),
        rewrite(message(1), result),
        rewrite(message(1, call("a", "hidden")), result),
        message(1, call("a")),
    )
    assert [call.call_id for call in told.calls] == ["a"]
    assert len(told.answers) == len(told.usages) == 1


def test_a_call_that_only_a_rewritten_history_has_is_told() -> None:
    told = told_by(header(), message(1), rewrite(message(1, call("a")), message(2, call("b"))))
    assert [call.call_id for call in told.calls] == ["a", "b"]
    assert told.tokens == 2460


def test_a_history_longer_than_what_is_remembered_is_not_told_again() -> None:
    """Also not after a restart; what is new in it is told."""
    history = [message(n, call(f"c-{n}")) for n in range(1500)]
    reader = ChatReader("/tmp/garden/chats/session-1.jsonl", "")
    assert len(told_by(header(), *history, reader=reader).calls) == 1500
    again = told_by(rewrite(*history, message(1500, call("new"))), reader=reader)
    assert [call.call_id for call in again.calls] == ["new"]
    assert len(again.usages) == 1
    restarted = ChatReader("/tmp/garden/chats/session-1.jsonl", reader.state())
    assert told_by(rewrite(*history), rewrite(*history[:700]), reader=restarted) == Told()


def test_an_older_call_that_only_a_rewritten_history_has_is_told_while_all_ids_are_remembered() -> None:
    told = told_by(header(), message(2, call("b")), rewrite(message(1, call("a")), message(2, call("b"))))
    assert [call.call_id for call in told.calls] == ["b", "a"]


def test_the_newest_message_may_get_its_calls_from_a_history_longer_than_what_is_remembered() -> None:
    history = [message(n, call(f"c-{n}")) for n in range(1500)]
    told = told_by(header(), *history, message(1500), rewrite(*history, message(1500, call("new"))))
    assert [call.call_id for call in told.calls[1500:]] == ["new"]


def test_a_history_told_for_the_first_time_is_told_whole() -> None:
    """However long it is and whatever the order of its times."""
    history = [message(-n % 1500, call(f"c-{n}")) for n in range(1500)]
    assert len(told_by(header(), rewrite(*history)).calls) == 1500


def test_what_is_remembered_is_bounded() -> None:
    reader = ChatReader("/tmp/garden/chats/session-1.jsonl", "")
    told_by(header("s" * 10_000), reader=reader)
    for n in range(3000):
        told_by(message(n, call(f"{n}" * 1000, result=None, status="executing")), reader=reader)
    assert len(reader.state()) < 40_000


def test_a_clock_set_back_hides_no_call() -> None:
    later = [message(3600 + n, call(f"later-{n}")) for n in range(600)]
    told = told_by(header(), *later, message(1, call("a")))
    assert told.calls[-1].call_id == "a"


def test_a_rewound_chat_has_made_its_calls() -> None:
    told = told_by(header(), message(1, call("a")), {"$rewindTo": "m-1"}, message(2, call("b")))
    assert [call.call_id for call in told.calls] == ["a", "b"]


def test_a_result_that_comes_again_as_a_users_message_is_no_second_call() -> None:
    again = {"id": "u-1", "timestamp": at(2), "type": "user", "content": call("a")["result"]}
    told = told_by(header(), message(1, call("a")), again)
    assert (len(told.calls), len(told.answers)) == (1, 1)


def test_a_call_still_running_has_its_answer_later() -> None:
    """Today's releases write a call when it has ended; another one may not wait."""
    running = call("a", status="executing", result=None)
    reader = ChatReader("/tmp/garden/chats/session-1.jsonl", "")
    told = told_by(header(), message(1, running), message(1, running), reader=reader)
    assert (len(told.calls), len(told.answers)) == (1, 0)
    restarted = ChatReader("/tmp/garden/chats/session-1.jsonl", reader.state())
    told = told_by(message(1, call("a")), message(1, call("a")), reader=restarted)
    assert (len(told.calls), len(told.answers)) == (0, 1)


# ── failures, and what varies in equal answers ────────────────────────────────────────────────────

END = "\nProcess Group PGID: 77\n</untrusted_context>"


@pytest.mark.parametrize(
    "failed",
    [
        command("a", f"<untrusted_context>\nOutput: no\nExit Code: 2{END}"),
        command("a", "Output: no\nExit Code: 2"),
        command("a", f"Output: no\nExit Code: 2\nBackground PIDs: 78, 79{END}"),
        command("a", f"Output: (empty)\nSignal: 15{END}"),
        call("a", status="error"),
        call("a", status="error", result=None),
    ],
)
def test_an_error_and_a_command_that_ends_with_another_code_than_0_are_failures(failed: Json) -> None:
    """The status of a command is `success` whatever its exit code."""
    assert told_by(message(1, failed)).errors == 1


@pytest.mark.parametrize(
    "fine",
    [
        command("a", f"<untrusted_context>\nOutput: yes{END}"),
        command("a", f"Output: Exit Code: 1{END}"),
        command("a", f"Output: the log says\nExit Code: 1\nand goes on{END}"),
        command("a", ""),
        call("a", "the log says\nExit Code: 1"),
        call("a", status="cancelled"),
    ],
)
def test_a_text_about_a_failure_is_none(fine: Json) -> None:
    """Nor is a call that a person has cancelled."""
    assert told_by(message(1, fine)).errors == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Output: yes\nProcess Group PGID: 28660", "Output: yes\nProcess Group PGID: 9"),
        ("Output: yes\nBackground PIDs: 4, 5\nProcess Group PGID: 3", "Output: yes\nProcess Group PGID: 9"),
        (
            "Output: no\nExit Code: 1\nProcess Group PGID: 3",
            "Output: no\nExit Code: 1\nProcess Group PGID: 9",
        ),
        (
            f"<untrusted_context>\nOutput: yes{END}",
            f"<untrusted_context>\nOutput: yes{END.replace('7', '8')}",
        ),
        (
            "Command moved to background (PID: 812). Output hidden.",
            "Command moved to background (PID: 9). Output hidden.",
        ),
        (
            "Output too large. For full output see: /tmp/run_shell_command__fc-a.txt\nyes",
            "Output too large. For full output see: /tmp/run_shell_command__fc-b.txt\nyes",
        ),
        ("Output: Ran 1 test in 0.001s\n\nOK", "Output: Ran 1 test in 0.314s\n\nOK"),
    ],
)
def test_equal_answers_have_equal_digests(one: str, other: str) -> None:
    """Whatever ids of processes and calls, files and run times are in them."""
    assert digest(command("a", one)) == digest(command("b", other))


def test_different_answers_have_different_digests() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    answers = [
        call("a", "yes"),
        call("a", "no"),
        call("a", "yes\nProcess Group PGID: 1"),
        call("a", "yes\nProcess Group PGID: 2"),
        command("a", "Output: no\nExit Code: 1\nProcess Group PGID: 3"),
        command("a", "Output: no\nExit Code: 2\nProcess Group PGID: 3"),
        command("a", "Output: no\nProcess Group PGID: 3"),
        call("a", {"rows": 1}),
        call("a", {"rows": 2}),
        call("a", result=[{"functionResponse": {"response": {"rows": 1}}}]),
        call("a", result=[{"functionResponse": {"response": {"rows": 2}}}]),
        call("a", result=[*call("a", "yes")["result"], image]),
        call("a", result=[{"functionResponse": {"response": {"output": "yes"}, "parts": [image]}}]),
        call("a", result=[{"text": "yes"}]),
        call("a", result="plain"),
        call("a", result=["plain", "plain"]),
        call("a", result=7),
        call("a", result=None),
    ]
    assert len({digest(answer) for answer in answers}) == len(answers)


# ── records of other kinds, and such as no program writes ─────────────────────────────────────────


@pytest.mark.parametrize(
    "record",
    [
        {"id": "i-1", "timestamp": at(1), "type": "info", "content": "saved"},
        {"id": "x-1", "timestamp": at(1), "type": "checkpoint", "toolCalls": [call("a")]},
        {"id": "x-1", "type": 7, "toolCalls": [call("a")]},
        {"id": "u-1", "type": "user", "tokens": "many", "toolCalls": "none"},
        {"$set": {"summary": "all is well"}},
        {"$set": {"messages": [message(1, call("a"), type="user")]}},
        {"$set": {"messages": None}},
        {"$set": {"messages": "none"}},
        {"$set": 7},
        {"$unset": ["summary"]},
        {"$rewindTo": "m-1"},
        {},
    ],
)
def test_a_record_of_another_kind_is_ignored(record: Json) -> None:
    assert told_by(record) == Told()


@pytest.mark.parametrize(
    "record",
    [
        b'{"id":"m-1","timestamp":"2026-03-0\n',
        b'{"$set":{"lastUpdated":"2026-03-0\n',
        b"\xff\xfe\n",
        b"[]\n",
        b"[" * 100_000,
        b'{"$set":{"messages":' + b"[" * 100_000,
        message(1, call("a"), id=None),
        message(1, call("a"), timestamp=None),
        message(1, call("a"), timestamp="2026-02-31T00:00:00Z"),
        message(1, call("a"), timestamp="0001-01-01T00:00:00+23:00"),
        message(1, call("a"), timestamp=-1),
        message(1, call("a"), timestamp=1e300),
    ],
)
def test_a_malformed_record_counts(record: Json | bytes) -> None:
    assert told_by(record) == Told(unreadable=1)


def test_a_field_that_makes_no_sense_hides_no_call() -> None:
    for odd in (
        message(1, call("a"), tokens={"input": -5, "output": 1e30}),
        message(1, call("a"), tokens="many", model=["one"]),
        message(1, call("a"), timestamp=1772445601250),
        message(1, call("a"), id=12),
        message(1, call("a", timestamp="0001-01-01T00:00:00Z")),
        message(1, call("a", status=7, timestamp="now", result=[1, 2])),
        message(1, {"id": "b"}, {"name": "c"}, 7, call("a"), call("", "d")),  # type: ignore[arg-type]
    ):
        told = told_by(odd)
        assert [(call.call_id, call.ts // 1) for call in told.calls] == [("a", 1772445601)]
        assert len(told.answers) == 1
        assert told.unreadable == 0


def test_a_message_that_makes_no_sense_hides_no_other_one_of_a_history() -> None:
    told = told_by(rewrite(message(1, call("a"), timestamp="?"), {"id": 3}, message(2, call("b"), tokens=-1)))
    assert [call.call_id for call in told.calls] == ["b"]


def test_half_a_character_hides_no_call() -> None:
    """A cut text ends in one; no text that can be stored has it."""
    half = json.dumps(message(1, call("a\ud83d", "yes \udc00", args={"text": "\ud83d"}))).encode()
    told = told_by(half + b"\n")
    (told_call,), (answer,) = told.calls, told.answers
    assert told_call.call_id == answer.call_id == "a\ufffd"
    assert msgspec.json.decode(told_call.args) == {"text": "\ufffd"}


def test_a_byte_that_is_no_text_hides_no_call() -> None:
    wrong = line(message(1, call("a", "yes"))).replace(b"yes", b"y\xffs").replace(b"beans.md", b"b\xff")
    told = told_by(wrong)
    assert (len(told.calls), len(told.answers)) == (1, 1)


def test_a_name_of_any_length_is_cut() -> None:
    long = "x" * 1_000_000
    told = told_by(header(long), message(1, call(long, tool=long), model=long), message(2, call(long + "y")))
    for told_call in told.calls:
        assert max(map(len, (told_call.session, told_call.tool, told_call.call_id or ""))) <= 200
    assert len({told_call.call_id for told_call in told.calls}) == 2
    assert told.calls[0].call_id == told.answers[0].call_id
    assert len(told.usages[0].model or "") <= 200


@pytest.mark.parametrize(
    ("path", "agent", "parent"),
    [
        ("/home/op/.gemini/tmp/garden/chats/session-1.jsonl", "garden", None),
        ("/home/op/.gemini/tmp/garden/chats/p-1/c-1.jsonl", "garden/subagent", "p-1"),
        ("/kept/garden/session-1.jsonl", "garden", None),
        ("/session-1.jsonl", "gemini", None),
        ("/chats/session-1.jsonl", "gemini", None),
        ("/tmp/g\udcff/chats/p\udcff/c-1.jsonl", "g?/subagent", "p?"),
        (f"/tmp/{'g' * 250}/chats/session-1.jsonl", f"{'g' * 180}#", None),
    ],
)
def test_the_agent_is_the_project_that_the_path_names(path: str, agent: str, parent: str | None) -> None:
    (told_call,) = told_by(message(1, call("a")), reader=ChatReader(path, "")).calls
    assert told_call.agent.startswith(agent)
    assert len(told_call.agent) <= 200
    assert told_call.parent == parent
    assert told_call.session.encode()


@pytest.mark.parametrize(
    "state", ["{", "[]", "7", '{"told":7}', '{"newest":"late"}', "\udcff", "[" * 100_000]
)
def test_a_state_that_is_none_is_none(state: str) -> None:
    reader = ChatReader("/tmp/garden/chats/session-1.jsonl", state)
    assert len(told_by(header(), message(1, call("a")), reader=reader).calls) == 1


def test_a_log_is_found_under_its_project(tmp_path: Path) -> None:
    log_of(tmp_path, header(), message(1), message(1, call("a")))
    told = read_at_once("gemini-cli", tmp_path / "*" / "chats" / "**" / "*.jsonl")
    assert [(call.agent, call.session) for call in told.calls] == [("garden", PARENT)]
