"""opencode's database: samples of its record shapes, and one that it has really written."""

import json
import sqlite3
from collections import Counter
from itertools import islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.ports import Cursor
from jobs.sources.opencode_events import Session
from jobs.sources.opencode_tables import Parts
from jobs.sources.sqlite_log import Databases
from jobs.sources.table_format import RowLimits
from jobs.thrash.call import Answer, Entry, Usage
from tests.sources.contract import SHARED, Follower, Told, read_at_once
from tests.sources.databases import OpenCode, Row, opencode_rows, rows_of

REAL = SHARED / "agents"
REAL_DATABASE = REAL / "opencode/.local/share/opencode/opencode.db"
with_real_logs = pytest.mark.skipif(not REAL.exists(), reason="real logs are not part of a clone")
MAIN, SUB = "ses_0000000000000000000000main", "ses_00000000000000000000000sub"
TIME = 1796031441000

Json = dict[str, Any]


def session(state: str = "") -> Session:
    return Session(session="ses_1", agent="shop", parent=None, state=state)


def event(**part: object) -> bytes:
    return json.dumps({"part": {"id": "prt_1", **part}, "time": TIME}).encode()


def tool(status: str, part_id: str = "prt_1", **state: Any) -> bytes:
    whole = {"status": status, "input": {"command": "ls"}, "time": {"start": TIME}, **state}
    return event(id=part_id, type="tool", tool="bash", callID="call_1", state=whole)


def answer(**state: Any) -> Answer:
    (found,) = [
        entry for entry in session().read(tool("completed", **state)) or () if isinstance(entry, Answer)
    ]
    return found


def sample(path: Path) -> OpenCode:
    writer = OpenCode(path)
    writer.session(MAIN)
    writer.session(SUB, parent=MAIN, title="Count the rows (@general subagent)")
    return writer


# ── what an event tells ───────────────────────────────────────────────────────────────────────────


def test_the_sample_tells_all_there_is(tmp_path: Path) -> None:
    writer = sample(tmp_path / "opencode.db")
    for row in opencode_rows():
        writer.add(row)
    told = read_at_once("opencode", writer.path)
    writer.close()
    main = told.of(MAIN)
    assert [(c.tool, c.call_id, c.args) for c in main.calls] == [
        ("bash", "call_1", b'{"command":"ls"}'),
        ("bash", "call_2", b'{"command":"make test"}'),
        ("read", "call_3", b'{"filePath":"missing"}'),
        ("task", "call_4", b'{"description":"Count","subagent_type":"general"}'),
        ("bash", "call_5", b'{"command":"sleep 600"}'),
    ]
    assert [(a.call_id, a.is_error) for a in main.answers] == [
        ("call_1", False),
        ("call_2", True),
        ("call_3", True),
        ("call_4", False),
    ]
    assert told.parents == {MAIN: None, SUB: MAIN}
    assert {(c.session, c.agent) for c in told.calls} == {(MAIN, "shop"), (SUB, "Count the rows")}
    assert sorted((u.tokens, u.model, u.has_call) for u in told.usages) == [
        (136, "m", False),
        (156, "m", False),
        (166, "m", False),
        (176, "m", False),
    ]
    assert sum(usage.cost or 0 for usage in told.usages) == pytest.approx(0.014)
    assert {c.tokens for c in told.calls} == {None}
    assert told.unreadable == 0


def test_a_call_is_told_when_it_has_its_input_and_only_once() -> None:
    """Its part is written anew at every change; between two of them the bot may restart."""
    told: list[Entry] = []
    state = ""
    for status in ("pending", "running", "running", "completed", "completed", "running"):
        reader = session(state)
        told += reader.read(tool(status)) or ()
        state = reader.state()
    assert [type(entry).__name__ for entry in told] == ["ToolCall", "Answer"]


def test_a_call_whose_start_was_not_seen_is_told_with_its_answer() -> None:
    told = session().read(tool("error", error="Tool execution aborted")) or ()
    assert [type(entry).__name__ for entry in told] == ["ToolCall", "Answer"]


def test_an_answer_that_is_taken_from_the_model_later_is_not_told_again() -> None:
    """Its part is written once more, long after."""
    assert session().read(tool("completed", time={"start": TIME, "end": TIME, "compacted": TIME})) == ()


def test_a_command_that_exits_non_zero_is_an_error() -> None:
    """It is `completed` all the same."""
    assert answer(metadata={"exit": 1}).is_error
    assert not answer(metadata={"exit": 0}).is_error
    assert not answer(metadata={"exit": None}).is_error
    assert not answer().is_error


def test_what_varies_does_not_tell_answers_apart() -> None:
    """The run times of tests, and the sessions that sub-agents had."""
    assert answer(output="Ran 1 test in 0.001s").digest == answer(output="Ran 1 test in 0.002s").digest
    task = '<task id="ses_dd42f174fffe7CqejlzZTbiH{}">done</task>'
    assert answer(output=task.format("e0")).digest == answer(output=task.format("e1")).digest
    assert answer(output="a").digest != answer(output="b").digest
    images = [answer(attachments=[{"id": "prt_9", "url": f"data:{data}"}]) for data in "ab"]
    assert images[0].digest != images[1].digest


def test_use_is_counted_once_however_often_the_message_repeats_it() -> None:
    used = {"input": 100, "output": 20, "reasoning": 5, "cache": {"read": 30, "write": 4}}
    info = {"info": {"role": "assistant", "modelID": "m", "tokens": used, "time": {"created": TIME}}}
    reader = session()
    told = [
        entry
        for line in (json.dumps(info).encode(), event(type="step-finish", tokens=used, cost=0.5))
        for entry in reader.read(line) or ()
    ]
    assert told == [
        Usage(
            session="ses_1", ts=TIME / 1000, model="m", input=100, output=25, cached=34, written=4, cost=0.5
        ),
    ]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"no json",
        b'{"part": ' + b"[" * 200_000,
    ],
)
def test_an_event_that_is_no_json_is_unreadable(line: bytes) -> None:
    assert session().read(line) is None


@pytest.mark.parametrize(
    "line",
    [
        b'{"part": {"type": "step-finish"}, "time": 1796031441000}',
        b'{"info": {"role": "user"}}',
    ],
)
def test_an_event_that_tells_nothing_is_none(line: bytes) -> None:
    assert session().read(line) == ()


def test_an_odd_field_hides_nothing_else() -> None:
    odd = tool("completed", output=["a"], metadata={"exit": "one"}, title=5, attachments=[7, {"url": 3}])
    told = session().read(odd.replace(b'"ls"', b'"ls\\ud800"')) or ()
    assert [type(entry).__name__ for entry in told] == ["ToolCall", "Answer"]
    odd = event(type="step-finish", tokens={"input": -1, "output": 3, "cache": 7}, cost="free")
    (usage,) = session().read(odd) or ()
    assert isinstance(usage, Usage)
    assert (usage.tokens, usage.cost) == (3, None)


def test_what_is_remembered_is_bounded() -> None:
    """Also of calls that were killed, whose answers never come."""
    reader = session()
    for number in range(3000):
        reader.read(tool("running", part_id=f"prt_{'x' * 10_000}{number:014}"))
        reader.read(tool("completed", part_id=f"prt_{number:026}"))
    reader.read(json.dumps({"info": {"role": "assistant", "modelID": "m" * 100_000}}).encode())
    assert len(reader.state()) < 30_000


@given(st.binary(max_size=300))
def test_no_bytes_are_an_exception(damage: bytes) -> None:
    line = tool("completed", output="a")
    for place in range(0, len(line), 40):
        session(damage.decode(errors="replace")).read(line[:place] + damage + line[place + len(damage) :])


# ── databases ─────────────────────────────────────────────────────────────────────────────────────


def test_a_running_call_is_seen_while_it_runs(tmp_path: Path) -> None:
    writer = sample(tmp_path / "opencode.db")
    writer.add(Row(MAIN, 0, tool("running"), TIME, "message.part.updated.1"))
    follower = Follower(format="opencode", pattern=str(writer.path))
    follower.look()
    assert (len(follower.told.calls), follower.told.answers) == (1, [])
    writer.close()


def test_malformed_rows_are_counted_and_other_types_passed_over(tmp_path: Path) -> None:
    writer = sample(tmp_path / "opencode.db")
    writer.add(Row(MAIN, 0, b"no json", TIME, "message.part.updated.1"))
    writer.add(Row(MAIN, 1, b"no json", TIME, "something.new.1"))
    writer.add(Row(MAIN, 2, tool("running"), TIME, "message.part.updated.2"))
    told = read_at_once("opencode", writer.path)
    assert (len(told.calls), told.unreadable) == (1, 1)
    writer.close()


def test_a_database_of_another_program_is_a_problem(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "opencode.db")
    database.execute("CREATE TABLE note (id, data)")
    database.close()
    source = Follower(format="opencode", pattern=str(tmp_path / "opencode.db")).source()
    assert list(source.read_new({}, now=0)) == []
    assert source.problems() == (f"{tmp_path}/opencode.db cannot be read: it has no table event or part.",)


# ── databases without events ──────────────────────────────────────────────────────────────────────

PARTS_ALONE = """
    DROP TABLE event;
    CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, data TEXT);
    CREATE TABLE part (
        id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT
    );
"""


def sample_of_parts(path: Path) -> OpenCode:
    writer = sample(path)
    writer.database.executescript(PARTS_ALONE)
    message = {"role": "assistant", "modelID": "m"}
    writer.run("INSERT INTO message VALUES ('msg_1', ?, ?)", MAIN, json.dumps(message))
    return writer


def change(writer: OpenCode, part: str, at: int, event: bytes | str) -> None:
    """Write a part, or write it anew, at a time after the start in ms."""
    data = event if isinstance(event, str) else json.dumps(json.loads(event)["part"] | {"id": None})
    values = (f"prt_{part}", MAIN, TIME, TIME + at, data)
    writer.run("INSERT OR REPLACE INTO part VALUES (?, 'msg_1', ?, ?, ?, CAST(? AS TEXT))", *values)


def test_parts_that_are_changed_in_place_are_told_as_they_change(tmp_path: Path) -> None:
    """A call when it has its input, its answer when it has ended, however often one looks."""
    writer = sample_of_parts(tmp_path / "opencode.db")
    follower = Follower(format="opencode", pattern=str(writer.path))
    told = []
    for at, status in enumerate(("pending", "running", "running", "completed", "completed")):
        change(writer, "1", at, tool(status))
        follower.look()
        told.append((len(follower.told.calls), len(follower.told.answers)))
    assert told == [(0, 0), (1, 0), (1, 0), (1, 1), (1, 1)]
    writer.close()


def test_parts_changed_at_the_same_time_are_all_told(tmp_path: Path) -> None:
    writer = sample_of_parts(tmp_path / "opencode.db")
    for number in range(300):
        change(writer, f"{number}", 7, tool("running", output="x" * 3000))
    assert len(read_at_once("opencode", writer.path).calls) == 300
    writer.close()


def test_the_use_of_a_step_has_its_messages_model(tmp_path: Path) -> None:
    writer = sample_of_parts(tmp_path / "opencode.db")
    change(writer, "1", 1, event(type="step-finish", cost=0.5, tokens={"input": 100}))
    (usage,) = read_at_once("opencode", writer.path).usages
    assert (usage.model, usage.input, usage.cost, usage.ts) == ("m", 100, 0.5, TIME / 1000)
    writer.close()


def test_parts_that_are_no_json_are_counted(tmp_path: Path) -> None:
    writer = sample_of_parts(tmp_path / "opencode.db")
    writer.run("UPDATE message SET data = 'no json'")
    change(writer, "1", 1, "no json")
    change(writer, "2", 2, tool("running"))
    told = read_at_once("opencode", writer.path)
    assert (len(told.calls), told.unreadable) == (1, 1)
    writer.close()


def taken_out(part: str, end: int) -> bytes:
    """A call whose answer is not shown to the model any more."""
    times = {"start": TIME, "end": TIME + end, "compacted": TIME + 9000}
    return tool("completed", part_id=f"prt_{part}", time=times)


def test_parts_whose_answers_were_taken_from_the_model_are_told(tmp_path: Path) -> None:
    """There is no other record of these calls."""
    writer = sample_of_parts(tmp_path / "opencode.db")
    for number in range(30):
        change(writer, f"{number}", 9000, taken_out(f"{number}", number))
    change(writer, "30", 8000, tool("completed", time={"start": TIME, "end": TIME + 8000}))
    told = read_at_once("opencode", writer.path)
    assert (len(told.calls), len(told.answers)) == (31, 31)
    writer.close()


@settings(max_examples=15, deadline=None)
@given(
    changes=st.lists(st.tuples(st.integers(0, 29), st.sampled_from([False] * 5 + [True])), max_size=80),
    chunk=st.integers(1, 3000),
)
def test_calls_are_told_once_whenever_their_answers_are_taken_from_the_model(
    changes: list[tuple[int, bool]], chunk: int
) -> None:
    """Before one looks for the first time or between two looks, of which the bot does not survive each."""
    with TemporaryDirectory() as folder:
        writer = sample_of_parts(Path(folder, "opencode.db"))
        source = Databases(
            name="agents", pattern=str(writer.path), formats=[Parts()], limits=RowLimits(chunk=chunk)
        )
        cursors, calls, answers = dict[str, Cursor](), list[str | None](), list[str]()

        def look(batches: int | None) -> None:
            for batch in islice(source.read_new(dict(cursors), now=0), batches):
                cursors[batch.path] = batch.cursor
                calls.extend(call.call_id for call in batch.calls)
                answers.extend(answer.call_id for answer in batch.answers)

        ended = dict[int, int]()
        for at, (part, is_look) in enumerate(changes, start=1):
            times = {"start": TIME, "end": TIME + ended.setdefault(part, at)}
            times |= {"compacted": TIME + at} if ended[part] < at else {}
            data = tool("completed", time=times).replace(b"call_1", b"%d" % part)
            change(writer, f"{part}", at, data)
            if is_look:
                look(1)
                look(None)
        look(None)
        writer.close()
    expected = Counter(map(str, ended))
    assert Counter(calls) == expected
    assert Counter(answers) == expected


@with_real_logs
def test_real_parts_tell_what_events_do(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    path.write_bytes(REAL_DATABASE.read_bytes())
    database = sqlite3.connect(path)
    database.execute("DROP TABLE event")
    database.close()
    whole, told = read_at_once("opencode", REAL_DATABASE), read_at_once("opencode", path)
    assert read_at_once("auto", path).in_any_order() == told.in_any_order()
    assert told.in_any_order() == whole.in_any_order()


# ── what opencode has really written ──────────────────────────────────────────────────────────────


def real_sessions() -> dict[str, Json]:
    labels = json.loads((REAL / "labels.json").read_bytes()) if REAL.exists() else {}
    runs = [run for name, run in labels.items() if name.startswith("opencode/")]
    return {name: label for run in runs for name, label in run["sessions"].items()}


@with_real_logs
@pytest.mark.parametrize("name", real_sessions())
def test_real_sessions_tell_their_errors_and_tokens(name: str) -> None:
    """`errors` of the labels are only those with a status of their own; failed commands come to them."""
    told, label = read_at_once("opencode", REAL_DATABASE).of(name), real_sessions()[name]
    parts = [json.loads(str(data)) for (data,) in rows_of(REAL_DATABASE, PARTS, name)]
    states = [part["state"] for part in parts if part["type"] == "tool"]
    failed = sum(bool(state.get("metadata", {}).get("exit")) for state in states)
    assert told.errors == label["errors"] + failed
    assert told.tokens == sum(part["tokens"]["total"] for part in parts if part["type"] == "step-finish")
    (cost,) = rows_of(REAL_DATABASE, "SELECT cost FROM session WHERE id = ?", name)
    assert sum(usage.cost or 0 for usage in told.usages) == pytest.approx(cost[0])


PARTS = "SELECT data FROM part WHERE session_id = ?"


@with_real_logs
def test_a_real_database_growing(tmp_path: Path) -> None:
    """As its program writes it, a row at a time, with a look after every fiftieth or so."""
    writer = OpenCode(tmp_path / "opencode.db")
    for values in rows_of(REAL_DATABASE, "SELECT id, parent_id, directory, title FROM session"):
        writer.run("INSERT INTO session VALUES (?, ?, ?, ?, 0)", *values)
    sql = "SELECT aggregate_id, seq, data, type FROM event ORDER BY id"
    rows = [
        Row(str(name), int(str(seq)), str(data).encode(), TIME + number, str(kind))
        for number, (name, seq, data, kind) in enumerate(rows_of(REAL_DATABASE, sql))
    ]
    follower = Follower(format="opencode", pattern=str(writer.path))
    for start, stop in pairwise([*range(0, len(rows), 49), len(rows)]):
        for row in rows[start:stop]:
            writer.add(row)
        follower.look()
    writer.close()
    whole: Told = read_at_once("opencode", REAL_DATABASE)
    assert follower.told.in_any_order() == whole.in_any_order()
