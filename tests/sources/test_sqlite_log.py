"""Databases: looked at while they are written to, damaged, moved, replaced, and full of sessions."""

import os
import sqlite3
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import pytest
import zstandard

from jobs.ports import Cursor
from jobs.sources import sqlite_rows
from jobs.sources.openclaw_tables import Tables
from jobs.sources.sqlite_log import Databases
from jobs.sources.sqlite_look import look
from jobs.sources.sqlite_talk import Look, Problem, Told
from jobs.sources.table_format import RowLimits
from jobs.thrash.call import LoggedCall
from tests.sources.contract import Follower, read_at_once
from tests.sources.databases import OpenClaw, OpenCode, Row, locked, openclaw_rows

START = 1_796_000_000
NOBODY = 65534
NOW = 1_800_000_000


def call(session: str, seq: int, after: int, command: str = "date") -> Row:
    """A call so many seconds after the start."""
    ts = START + after
    content = [
        {"type": "toolCall", "id": f"c-{seq}", "name": "exec", "arguments": {"command": command}},
    ]
    message = {"role": "assistant", "content": content, "timestamp": ts * 1000}
    return Row(session, seq, msgspec.json.encode({"type": "message", "message": message}), ts * 1000)


def times(calls: Iterable[LoggedCall]) -> list[float]:
    return [call.ts - START for call in calls]


@contextmanager
def may_not_write_to(folder: Path) -> Iterator[None]:
    folder.chmod(0o555)
    user = os.geteuid()
    if not user:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)
        folder.chmod(0o755)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[OpenClaw]:
    opened = OpenClaw(tmp_path / "agents/main/agent/openclaw-agent.sqlite")
    yield opened
    opened.close()


@pytest.fixture
def follower(writer: OpenClaw) -> Follower:
    return Follower(format="openclaw", pattern=str(writer.path))


def cursor_of(follower: Follower) -> Cursor:
    (cursor,) = msgspec.json.decode(follower.kept, type=dict[str, Cursor]).values()
    return cursor


def problems(pattern: Path, format_name: str = "openclaw") -> str:
    source = Follower(format=format_name, pattern=str(pattern)).source()
    assert all(not batch.calls for batch in source.read_new({}, now=0))
    return "\n".join(source.problems())


def looked_at(path: Path, state: str | None = None) -> list[Told | Problem]:
    """What the process that reads databases would answer, asked within this one."""
    request = Look(path=str(path), formats=(), state=state, now=0, limits=RowLimits())
    return list(look(request, [Tables()]))


def test_what_is_not_committed_is_not_there_yet(writer: OpenClaw, follower: Follower) -> None:
    """A writer in the midst of its transaction neither hides what was committed nor shows what was not."""
    writer.add(call("s-1", 0, 1000))
    writer.run("BEGIN IMMEDIATE")
    writer.add(call("s-1", 1, 1001))
    follower.look()
    assert times(follower.told.calls) == [1000]
    writer.run("ROLLBACK")
    follower.look()
    writer.add(call("s-1", 1, 1002))
    follower.look()
    assert times(follower.told.calls) == [1000, 1002]


def test_nothing_is_written_to_a_database(writer: OpenClaw, follower: Follower) -> None:
    """Not even a checkpoint of its write-ahead log."""
    for row in openclaw_rows():
        writer.add(row)
    beside = Path(f"{writer.path}-wal")
    before = writer.path.read_bytes(), beside.read_bytes()
    follower.look()
    assert (writer.path.read_bytes(), beside.read_bytes()) == before


def test_for_an_unchanged_database_no_process_is_started(
    writer: OpenClaw, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.add(call("s-1", 0, 1000))
    source = Follower(format="openclaw", pattern=str(writer.path)).source()
    (batch,) = source.read_new({}, now=NOW * 2)
    monkeypatch.setattr(sys, "executable", "/nothing")
    (again,) = source.read_new({batch.path: batch.cursor}, now=NOW * 2 + 60)
    assert not again.calls
    assert again.cursor == msgspec.structs.replace(batch.cursor, read_at=NOW * 2 + 60)


def test_a_change_right_after_a_look_is_seen(writer: OpenClaw) -> None:
    """A file's time may be as old as the look itself."""
    source = Follower(format="openclaw", pattern=str(writer.path)).source()
    writer.add(call("s-1", 0, 1000))
    now = writer.path.stat().st_ctime + 1
    (batch,) = source.read_new({}, now=now)
    writer.add(call("s-1", 1, 1001))
    (again,) = source.read_new({batch.path: batch.cursor}, now=now + 60)
    assert len(again.calls) == 1


def test_a_locked_database_is_a_problem_for_as_long(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    writer = OpenClaw(path)
    writer.run("PRAGMA journal_mode = DELETE")
    writer.add(call("s-1", 0, 1000))
    writer.close()
    with locked(path):
        assert problems(path) == f"{path} cannot be read: database is locked."
    assert len(read_at_once("openclaw", path).calls) == 1


@pytest.mark.parametrize("format_name", ["openclaw", "opencode"])
def test_another_programs_database_is_a_problem(tmp_path: Path, format_name: str) -> None:
    path = tmp_path / "other.db"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE note (text)")
    database.close()
    assert problems(path, format_name).startswith(f"{path} cannot be read: it has no table ")


def test_a_file_that_is_no_database_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "opencode.db").write_text("not SQLite")
    (tmp_path / "opencode.db-wal").write_text("beside it")
    (tmp_path / "empty.db").touch()
    (tmp_path / "folder.db").mkdir()
    assert problems(tmp_path / "*.db*", "opencode").splitlines() == [
        f"{tmp_path}/folder.db is not read: it is no SQLite database.",
        f"{tmp_path}/opencode.db is not read: it is no SQLite database.",
    ]


def test_a_database_that_is_not_there_is_no_problem(tmp_path: Path) -> None:
    assert problems(tmp_path / "opencode.db", "opencode") == ""


def test_a_database_in_a_closed_folder_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert "cannot be read: Too many levels of symbolic links." in problems(tmp_path / "loop", "opencode")


def test_a_damaged_page_hides_the_rest_only(tmp_path: Path) -> None:
    """What can be read is told, once, and what cannot is a problem at every look."""
    path = tmp_path / "opencode.db"
    writer = OpenCode(path)
    for session in range(40):
        command = f'"{"x" * 3000}"'
        state = f'{{"status": "running", "input": {command}}}'
        part = f'{{"id": "prt_1", "type": "tool", "tool": "bash", "state": {state}}}'
        event = f'{{"part": {part}, "time": 1796031441000}}'
        writer.session(f"ses_{session:02d}")
        writer.add(Row(f"ses_{session:02d}", 0, event.encode(), START * 1000, "message.part.updated.1"))
    writer.run("PRAGMA journal_mode = DELETE")
    writer.close()
    content = bytearray(path.read_bytes())
    place = content.find(b"x" * 100, len(content) // 2) // 4096 * 4096
    content[place : place + 4096] = b"\xff" * 4096
    path.write_bytes(content)
    source = Follower(format="opencode", pattern=str(path)).source()
    cursors: dict[str, Cursor] = {}
    told = []
    for _ in range(2):
        for batch in source.read_new(dict(cursors), now=0):
            cursors[batch.path] = batch.cursor
            told += [c.session for c in batch.calls]
        assert source.problems() == (f"{path} cannot be read as a whole: database disk image is malformed.",)
        assert cursors[str(path)].is_behind
    assert (len(told), len(set(told))) == (39, 39)


def test_no_bytes_are_an_exception(tmp_path: Path) -> None:
    writer = OpenClaw(tmp_path / "a.sqlite")
    for row in openclaw_rows():
        writer.add(row)
    writer.run("PRAGMA journal_mode = DELETE")
    writer.close()
    content = writer.path.read_bytes()
    for length in range(0, len(content), 700):
        writer.path.write_bytes(content[:length] + os.urandom(len(content) - length))
        source = Follower(format="openclaw", pattern=str(writer.path)).source()
        list(source.read_new({}, now=0))


def test_where_nothing_can_be_created_a_database_that_nobody_writes_to_is_read() -> None:
    """A read-only disk, say: SQLite cannot share a write-ahead log there."""
    with tempfile.TemporaryDirectory() as folder:
        writer = OpenClaw(Path(folder, "a.sqlite"))
        writer.add(call("s-1", 0, 1000))
        beside = Path(f"{writer.path}-wal")
        content = beside.read_bytes()
        writer.close()
        with may_not_write_to(Path(folder)):
            (told,) = looked_at(writer.path)
        assert isinstance(told, Told)
        assert len(told.calls) == 1
        beside.write_bytes(content)
        with may_not_write_to(Path(folder)):
            refused = looked_at(writer.path)
        assert refused == [
            Problem(text=f"{writer.path} cannot be read: unable to open database file."),
        ]


def test_a_moved_database_is_read_on(writer: OpenClaw, follower: Follower, tmp_path: Path) -> None:
    writer.add(call("s-1", 0, 1000))
    follower.look()
    writer.add(call("s-1", 1, 1001))
    writer.close()
    moved = writer.path.rename(tmp_path / "moved.sqlite")
    follower.pattern = str(moved)
    follower.look()
    assert times(follower.told.calls) == [1000, 1001]


def test_a_database_that_two_paths_lead_to_is_read_once(writer: OpenClaw, tmp_path: Path) -> None:
    writer.add(call("s-1", 0, 1000))
    (tmp_path / "agents/link").symlink_to(tmp_path / "agents/main")
    told = read_at_once("openclaw", tmp_path / "agents/*/agent/*.sqlite")
    assert len(told.calls) == 1


@pytest.mark.parametrize("folder", ["a b?immutable=1", "#1", "100%", "%41", "ü"])
def test_a_databases_path_may_have_any_sign(tmp_path: Path, folder: str) -> None:
    """SQLite is given it in an address, where some have a meaning."""
    with closing(OpenClaw(tmp_path / folder / "openclaw-agent.sqlite")) as writer:
        writer.add(call("s-1", 0, 1000))
        told = read_at_once("openclaw", tmp_path / "*/openclaw-agent.sqlite")
    assert len(told.calls) == 1


def test_replaced_rows_are_told_as_far_as_they_are_newer(writer: OpenClaw, follower: Follower) -> None:
    for seq in range(4):
        writer.add(call("s-1", seq, 1000 + seq))
    follower.look()
    writer.run("DELETE FROM transcript_events")
    writer.add(call("s-1", 0, 1003))
    writer.add(call("s-1", 1, 1004))
    follower.look()
    follower.look()
    assert times(follower.told.calls) == [1000, 1001, 1002, 1003, 1004]


def test_what_is_remembered_is_bounded_and_no_call_is_told_twice(
    writer: OpenClaw, follower: Follower
) -> None:
    """Sessions silent for longest are forgotten; one that goes on is told from there."""
    for session in range(600):
        writer.add(call(f"s-{session}", 0, 1000 + session))
    follower.look()
    assert len(follower.told.calls) == 600
    size = len(cursor_of(follower).state)
    assert size < 20_000
    for session in (1, 300, 599):
        writer.add(call(f"s-{session}", 1, 2000 + session))
    writer.add(call("new", 0, 3000))
    follower.look()
    follower.look()
    assert times(follower.told.calls[600:]) == [2001, 2300, 2599, 3000]
    assert len(cursor_of(follower).state) < size * 1.1


def test_a_vacuum_hides_no_call(writer: OpenClaw, follower: Follower) -> None:
    """It gives the rows other rowids; so does the deletion of the newest."""
    for seq in range(4):
        writer.add(call("s-1", seq, 1000 + seq))
        writer.add(call("s-2", seq, 1000 + seq))
    follower.look()
    writer.run("DELETE FROM transcript_events WHERE session_id = 's-1'")
    writer.run("VACUUM")
    writer.add(call("s-2", 4, 2000))
    follower.look()
    writer.run("DELETE FROM transcript_events WHERE seq = 4")
    writer.add(call("s-3", 0, 2001))
    follower.look()
    writer.run("DELETE FROM transcript_events")
    follower.look()
    writer.add(call("s-4", 0, 2002))
    follower.look()
    assert times(follower.told.calls[8:]) == [2000, 2001, 2002]


def test_only_what_is_new_is_looked_at(writer: OpenClaw, follower: Follower) -> None:
    """A thousand silent sessions cost nothing."""
    statements: list[str] = []
    for session in range(5):
        writer.add(call(f"s-{session}", 0, 1000 + session))
    follower.look()
    connect = sqlite_rows._connected

    def traced(address: str, limits: RowLimits) -> sqlite3.Connection:
        database = connect(address, limits)
        database.set_trace_callback(statements.append)
        return database

    writer.add(call("s-1", 1, 2000))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite_rows, "_connected", traced)
        (told,) = looked_at(writer.path, cursor_of(follower).state)
    assert isinstance(told, Told)
    assert times(told.calls) == [2000]
    assert not [sql for sql in statements if "RECURSIVE" in sql]
    assert len(statements) < 12


@pytest.mark.parametrize("state", ["", "{", "[]", "null", '{"sessions": 1}', "[" * 10_000])
def test_a_state_that_is_lost_tells_nothing_twice(writer: OpenClaw, state: str) -> None:
    """What is there is taken as read, which is a problem, once."""
    source = Follower(format="openclaw", pattern=str(writer.path)).source()
    for session in range(300):
        writer.add(call(f"s-{session}", 0, 1000 + session))
    *_, batch = source.read_new({}, now=NOW)
    cursor = msgspec.structs.replace(batch.cursor, state=state, tail="")
    *_, batch = source.read_new({batch.path: cursor}, now=NOW)
    assert batch.calls == []
    assert source.problems() == (
        f"{writer.path} is read from its end on: how far it had been read is not known.",
    )
    writer.add(call("s-1", 1, 2000))
    writer.add(call("s-299", 1, 2001))
    (again,) = source.read_new({batch.path: batch.cursor}, now=NOW)
    assert times(again.calls) == [2000, 2001]
    assert source.problems() == ()


@pytest.mark.parametrize("touched", [9e999, -9e999, 1e300, -1, "never"])
def test_an_odd_time_does_not_make_a_state_unreadable(
    writer: OpenClaw, follower: Follower, touched: object
) -> None:
    writer.run("INSERT INTO transcript_events VALUES ('odd', 0, '{\"type\": \"x\"}', ?, NULL)", touched)
    writer.add(call("s-1", 0, 1000))
    follower.look()
    writer.add(call("s-1", 1, 1001))
    follower.look()
    follower.look()
    assert times(follower.told.calls) == [1000, 1001]


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("format_name", ["openclaw", "auto"])
def test_a_database_with_a_pipe_beside_it_is_not_opened(tmp_path: Path, end: str, format_name: str) -> None:
    """SQLite would wait for the pipe's writer, for ever."""
    path = tmp_path / "real.sqlite"
    writer = OpenClaw(path)
    writer.add(call("s-1", 0, 1000))
    writer.close()
    (tmp_path / "openclaw.link").symlink_to(path)
    os.mkfifo(f"{path}{end}")
    assert f"real.sqlite{end} is not a regular file" in problems(tmp_path / "*.link", format_name)


@pytest.mark.parametrize("name", ["transcript_events", "session_windows", "Session_Nodes"])
@pytest.mark.parametrize("format_name", ["openclaw", "auto"])
def test_a_view_is_no_table(tmp_path: Path, name: str, format_name: str) -> None:
    """It may have rows without end, or cost more than all memory just to be understood."""
    path = tmp_path / "a.sqlite"
    writer = OpenClaw(path)
    writer.run("CREATE TABLE t (session_id, seq, event_json, created_at, event_zstd)")
    writer.run(f"DROP TABLE {name}")
    writer.run(f"CREATE VIEW {name} AS SELECT * FROM t")  # noqa: S608 - a name of ours
    writer.close()
    assert "it has no table" in problems(path, format_name) or "is not known" in problems(path, format_name)


def test_a_database_that_takes_too_long_is_left_for_the_next_look(writer: OpenClaw) -> None:
    """What has been read by then is told once."""
    for seq in range(3000):
        writer.add(call("s-1", seq, 1000 + seq))
    kept: dict[str, Cursor] = {}
    told: list[float] = []
    for seconds in (0.0, 0.001, 60.0):
        limits = RowLimits(seconds=seconds, chunk=10_000)
        source = Databases(name="agents", pattern=str(writer.path), formats=[Tables()], limits=limits)
        for batch in source.read_new(dict(kept), now=0):
            kept[batch.path] = batch.cursor
            told += times(batch.calls)
        assert source.problems() == (
            ()
            if seconds == 60
            else (f"{writer.path} takes too long to read: the rest of it is left for the next look.",)
        )
    assert told == [1000 + seq for seq in range(3000)]


def test_a_row_too_long_behind_one_of_another_type_is_skipped(tmp_path: Path) -> None:
    writer = OpenCode(tmp_path / "opencode.db")
    writer.session("ses_1")
    writer.add(Row("ses_1", 0, b"{}", type="session.updated.1"))
    writer.add(Row("ses_1", 1, b"x" * (9 << 20), type="message.part.updated.1"))
    state = '{"status": "running", "input": {}}'
    part = f'{{"part": {{"id": "prt_1", "type": "tool", "tool": "bash", "state": {state}}}, "time": 1796031441000}}'
    writer.add(Row("ses_1", 2, part.encode(), type="message.part.updated.1"))
    told = read_at_once("opencode", writer.path)
    writer.close()
    assert (len(told.calls), told.unreadable) == (1, 1)


def test_of_rows_with_one_number_one_is_read(tmp_path: Path) -> None:
    writer = OpenCode(tmp_path / "opencode.db")
    writer.run("DROP INDEX event_aggregate_seq_idx")
    for number in range(2):
        writer.run("INSERT INTO event VALUES (?, 'ses_1', 1, 'message.updated.1', 'x')", str(number))
    writer.add(Row("ses_1", 2, b"x" * (9 << 20), type="message.part.updated.1"))
    told = read_at_once("opencode", writer.path)
    writer.close()
    assert told.calls == []


def test_a_damaged_database_does_not_grow_its_state(tmp_path: Path) -> None:
    """Nor does one that is never read as a whole for another reason."""
    writer = OpenCode(tmp_path / "opencode.db")
    for session in range(1000):
        state = f'{{"status": "running", "input": "{"Q" * (0 if session else 50_000)}"}}'
        part = f'{{"id": "prt_1", "type": "tool", "tool": "bash", "state": {state}}}'
        event = f'{{"part": {part}, "time": {(START + session) * 1000}}}'
        at = (START + session) * 1000
        writer.session(f"ses_{session}")
        writer.add(Row(f"ses_{session}", 0, event.encode(), at, "message.part.updated.1"))
    writer.run("PRAGMA journal_mode = DELETE")
    writer.close()
    content = bytearray(writer.path.read_bytes())
    for place in range(0, len(content), 4096):
        if content.count(b"Q", place + 4, place + 4096) == 4092:
            content[place : place + 4] = b"\x7f\xff\xff\xff"
    writer.path.write_bytes(content)
    source = Follower(format="opencode", pattern=str(writer.path)).source()
    *_, batch = source.read_new({}, now=0)
    assert source.problems() != ()
    assert len(batch.cursor.state) < 20_000
    assert not any(batch.calls for batch in source.read_new({batch.path: batch.cursor}, now=0))


def test_rows_come_in_bounded_batches(writer: OpenClaw) -> None:
    """A look that was cut short goes on where it ended, and says that it was behind."""
    for seq in range(50):
        writer.add(call(f"s-{seq % 3}", seq, 1000 + seq, os.urandom(400).hex()))
    limits = RowLimits(chunk=2000)
    source = Databases(name="agents", pattern=str(writer.path), formats=[Tables()], limits=limits)
    batches = list(source.read_new({}, now=0))
    assert sum(len(batch.calls) for batch in batches) == 50
    assert all(batch.size < 5000 for batch in batches)
    assert [batch.cursor.is_behind for batch in batches] == [True] * (len(batches) - 1) + [False]
    for batch in batches:
        rest = source.read_new({batch.path: batch.cursor}, now=0)
        seen = batches[: batches.index(batch) + 1]
        assert sum(len(later.calls) for later in (*seen, *rest)) == 50


def test_of_a_very_large_database_the_rest_is_left_for_the_next_look(writer: OpenClaw) -> None:
    for seq in range(20):
        writer.add(call("s-1", seq, 1000 + seq))
    limits = RowLimits(chunk=500, look=2000)
    source = Databases(name="agents", pattern=str(writer.path), formats=[Tables()], limits=limits)
    cursors: dict[str, Cursor] = {}
    calls, looks = 0, 0
    while looks == 0 or source.problems():
        for batch in source.read_new(dict(cursors), now=0):
            cursors[batch.path] = batch.cursor
            calls += len(batch.calls)
        looks += 1
        assert cursors[str(writer.path)].is_behind == bool(source.problems())
    assert (calls, looks > 2) == (20, True)


def test_a_row_too_long_to_read_is_skipped_and_counted(writer: OpenClaw) -> None:
    writer.packed_from = 1 << 30
    writer.add(call("s-1", 0, 1000))
    writer.add(call("s-1", 1, 1001, "x" * 100_000))
    writer.add(call("s-1", 2, 1002))
    limits = RowLimits(longest_row=50_000)
    source = Databases(name="agents", pattern=str(writer.path), formats=[Tables()], limits=limits)
    batches = list(source.read_new({}, now=0))
    assert times(c for batch in batches for c in batch.calls) == [1000, 1002]
    assert batches[-1].cursor.unreadable == 1
    assert source.problems() == ()


@pytest.mark.parametrize(
    "frame",
    [
        b"no frame",
        b"",
        zstandard.compress(b" " * (9 << 20)),
        zstandard.ZstdCompressor(write_content_size=False).compress(b" " * (9 << 20)),
        zstandard.compress(b"{}")[:-1],
        zstandard.compress(b"no json"),
    ],
    ids=["none", "empty", "bomb", "bomb of unknown size", "cut", "no event"],
)
def test_a_frame_that_cannot_be_unpacked_is_counted(writer: OpenClaw, frame: bytes) -> None:
    writer.run("INSERT INTO transcript_events VALUES ('s-1', 0, NULL, 1000, ?)", frame)
    writer.run("INSERT INTO transcript_events VALUES ('s-1', 1, NULL, 1000, NULL)")
    told = read_at_once("openclaw", writer.path)
    assert (told.calls, told.unreadable) == ([], 2)


def test_odd_rows_and_ids_are_no_exception(tmp_path: Path) -> None:
    """SQLite keeps values of any type in any column, and texts that are none."""
    writer = OpenCode(tmp_path / "opencode.db")
    for session, seq in [
        (7, 0),
        ("s-1", "text"),
        ("s-2", 1.5),
        (b"\xff", 0),
        ("x" * 100_000, 0),
        ("s-3", None),
    ]:
        writer.database.execute("DROP INDEX IF EXISTS event_aggregate_seq_idx")
        writer.database.execute("CREATE TABLE IF NOT EXISTS odd (id, aggregate_id, seq, type, data)")
        sql = "INSERT INTO odd VALUES (NULL, ?, ?, 'message.part.updated.1', CAST(X'FF' AS TEXT))"
        writer.run(sql, session, seq)
    writer.run("INSERT INTO odd VALUES (NULL, CAST(X'FFFE' AS TEXT), 3, 'message.updated.1', 1)")
    writer.run("DROP TABLE event")
    writer.run("ALTER TABLE odd RENAME TO event")
    follower = Follower(format="opencode", pattern=str(writer.path))
    follower.look()
    follower.look()
    assert follower.told.calls == []
    assert len(follower.kept) < 5000
    writer.close()
