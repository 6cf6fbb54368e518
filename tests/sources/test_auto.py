"""Logs of all formats at one pattern: each file is read as what it is, and as its own source alone would read it."""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise, zip_longest
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.ports import Cursor
from jobs.sources.auto import AutoLogs
from jobs.sources.log_format import LogFormat, Record
from jobs.sources.registry import FORMATS
from tests.sources.contract import NO_LOGS, SHARED, Follower, parts, read_at_once
from tests.sources.databases import DATA, OpenClaw, OpenCode, Row, locked, openclaw_rows, opencode_rows
from tests.sources.log_reader import LogReader

CALL = b'{"ts":%d,"agentId":"main","tool":"exec","args":{"n":%d}}\n'
ROLLOUT = (DATA / "codex" / "calls.jsonl").read_bytes()


def gateway(*numbers: int) -> bytes:
    return b"".join(CALL % (1767225600 + number, number) for number in numbers)


def auto(folder: Path, pattern: str = "**/*") -> Follower:
    return Follower(format="auto", pattern=f"{folder}/{pattern}")


def look(folder: Path, pattern: str = "*") -> tuple[int, tuple[str, ...]]:
    """Return how many calls there are, and the problems."""
    source = AutoLogs(name="agents", pattern=f"{folder}/{pattern}", formats=FORMATS)
    calls = sum(len(batch.calls) for batch in source.read_new({}, now=0))
    return calls, tuple(source.problems())


# ── all formats together ──────────────────────────────────────────────────────────────────────────


def sample_files(folder: Path) -> dict[Path, bytes]:
    """The samples of all formats that are files of lines, as they would lie in `folder`."""
    files = {}
    for name in ("claude-code", "codex", "gateway", "gemini-cli", "openclaw"):
        for path in (DATA / name).rglob("*"):
            if path.is_file() and path.name not in NO_LOGS:
                files[folder / name / path.relative_to(DATA / name)] = path.read_bytes()
    return files


def expected(folder: Path) -> tuple[Counter[object], ...]:
    """What each format's own source tells of its files."""
    sums: list[Counter[object]] = [Counter(), Counter(), Counter()]
    for name in FORMATS:
        pattern = f"{folder}/{name}/**/*" + ("" if name in {"openclaw", "opencode"} else ".jsonl")
        for whole, part in zip(sums, read_at_once(name, pattern).in_any_order(), strict=True):
            assert isinstance(part, Counter)
            whole.update(part)
    return tuple(sums)


def grow(folder: Path, files: dict[Path, bytes], cuts: Sequence[float]) -> Follower:
    """Let everything grow together, databases too, and look after each part; each look is a new source's."""
    # A sub-agent's description is there before its log is.
    for path in [path for path in files if path.suffix == ".json"]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files.pop(path))
    follower = auto(folder)
    openclaw = OpenClaw(folder / "openclaw" / "agents" / "shop" / "agent" / "openclaw-agent.sqlite")
    opencode = OpenCode(folder / "opencode" / "opencode.db")
    rows, events = openclaw_rows("s-9"), list(opencode_rows())
    openclaw.session("s-9", "agent:shop:main")
    for session in {row.session for row in events}:
        opencode.session(session)
    slices = zip_longest(parts(files, cuts), cut(rows, cuts), cut(events, cuts))
    for lines, some_rows, some_events in slices:
        for path, content in lines.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as file:
                file.write(content)
        for row in some_rows:
            openclaw.add(row)
        for row in some_events:
            opencode.add(row)
        follower.look()
    openclaw.close()
    opencode.close()
    return follower


def cut(rows: Sequence[Row], cuts: Iterable[float]) -> Iterable[Sequence[Row]]:
    places = [0, *sorted(int(place * len(rows)) for place in cuts), len(rows)]
    return [rows[start:stop] for start, stop in pairwise(places)]


@pytest.mark.prove
@settings(max_examples=10)
@given(cuts=st.lists(st.floats(0, 1), max_size=6))
def test_logs_that_grow_together_tell_what_each_tells_alone(cuts: list[float]) -> None:
    """Wherever the looks fall, with a restart between any two."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        told = grow(folder, sample_files(folder), cuts).told
        assert told.in_any_order() == expected(folder)
        assert {call.tool for call in told.calls}
        assert told.unreadable == 0


def test_real_logs_of_all_programs_at_one_pattern(tmp_path: Path) -> None:
    """What they are is not in their names."""
    places = {
        "claude-code": "agents/claude/.claude/projects",
        "codex": "agents/codex/.codex/sessions",
        "gemini-cli": "agents/gemini/.gemini/tmp",
        "opencode": "agents/opencode/.local/share/opencode",
        "openclaw": "openclaw/transcripts",
        "gateway": "traces",
    }
    if not all((SHARED / place).exists() for place in places.values()):
        pytest.skip("no real logs here")
    for name, place in places.items():
        shutil.copytree(
            SHARED / place, tmp_path / name, ignore=shutil.ignore_patterns("labels.jsonl", "README.md")
        )
    for hidden in tmp_path.rglob(".project_root"):
        hidden.unlink()
    follower = auto(tmp_path)
    follower.look()
    told = follower.told
    follower.look()
    assert told.in_any_order() == expected(tmp_path)
    assert len(told.calls) > 1000


def test_a_log_that_was_rewritten_with_text_before_its_records_is_told_to_be_read_no_more(
    tmp_path: Path,
) -> None:
    """Until it is a log again, or gone."""
    log = tmp_path / "calls.log"
    log.write_bytes(gateway(1, 2))
    (tmp_path / "other.log").write_bytes(gateway(9))
    reader = LogReader(source=AutoLogs(name="agents", pattern=f"{tmp_path}/*", formats=FORMATS))
    assert len(reader.look()) == 3
    log.write_bytes(b"text\n" * 60 + gateway(3, 4))
    for _ in range(2):
        assert reader.look() == []
        (problem,) = reader.source.problems()
        assert problem.startswith(f"{log} is not read any more")
    log.write_bytes(b"text\n" + gateway(3, 4))
    assert (len(reader.look()), reader.source.problems()) == (2, ())
    log.write_bytes(b"text\n" * 60)
    reader.look()
    log.unlink()
    assert (reader.look(), reader.source.problems()) == ([], ())


def test_a_large_hole_is_named_and_holds_up_no_other_file(tmp_path: Path) -> None:
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(1 << 40)
    (tmp_path / "log").write_bytes(gateway(1))
    problem = f"{tmp_path}/hole will not be read: its first line is longer than 8 MB."
    assert look(tmp_path) == (1, (problem,))


def test_a_growing_line_is_read_once_it_is_whole(tmp_path: Path) -> None:
    """Byte by byte, from the first: before that the file is no problem, and afterwards nothing is missing."""
    log, content = tmp_path / "log", gateway(1, 2)
    follower, counts = auto(tmp_path), []
    for length in range(len(content) + 1):
        log.write_bytes(content[:length])
        follower.look()
        counts.append(len(follower.told.calls))
    assert counts == sorted(counts)
    assert counts[len(content) // 2 - 1 : len(content) // 2 + 1] == [0, 1]
    assert counts[-1] == 2


def test_a_log_is_read_once_it_shows_what_it_is(tmp_path: Path) -> None:
    """However many records of unknown types came first, and however often one has looked: nothing of it is missing."""
    log, follower = tmp_path / "s.jsonl", auto(tmp_path)
    source = follower.source()
    for part in (b'{"type":"mode"}\n' * 100, b'{"type":"mode"}\n' * 9000):
        with log.open("ab") as file:
            file.write(part)
        assert list(source.read_new({}, now=0)) == []
        assert source.problems() == (f"{log} will not be read: its format is not known.",)
    with log.open("ab") as file:
        file.write(ROLLOUT)
    follower.look()
    assert follower.told.calls == read_at_once("codex", DATA / "codex" / "calls.jsonl").calls
    [batch] = source.read_new({}, now=0)
    assert len(batch.calls) == len(follower.told.calls)


# ── what a file is may change ─────────────────────────────────────────────────────────────────────


def test_a_file_that_is_replaced_is_recognised_anew(tmp_path: Path) -> None:
    log, new = tmp_path / "log.jsonl", tmp_path.with_suffix(".new")
    follower = auto(tmp_path)
    for content in (gateway(1, 2), ROLLOUT, gateway(3)):
        new.write_bytes(content)
        new.replace(log)
        follower.look()
    rollout = read_at_once("codex", DATA / "codex" / "calls.jsonl").calls
    assert [call.tool for call in follower.told.calls] == [
        *["exec"] * 2,
        *[call.tool for call in rollout],
        "exec",
    ]


def test_a_log_that_is_emptied_and_written_on_is_still_that_log(tmp_path: Path) -> None:
    """Also when a restart falls between: what it was is kept with the place."""
    log, follower = tmp_path / "log.jsonl", auto(tmp_path)
    for content in (gateway(1, 2), b"", b"", gateway(3)):
        log.write_bytes(content)
        follower.look()
        [cursor] = msgspec.json.decode(follower.kept, type=dict[str, Cursor]).values()
        assert (cursor.format, cursor.offset) == ("gateway", len(content))
    assert len(follower.told.calls) == 3


def test_what_a_renamed_log_has_left_is_read_where_the_pattern_does_not_find_it(tmp_path: Path) -> None:
    log, follower = tmp_path / "log.jsonl", auto(tmp_path, "*.jsonl")
    log.write_bytes(gateway(1))
    follower.look()
    with log.open("ab") as file:
        file.write(gateway(2))
    log.rename(tmp_path / "log.jsonl.1")
    follower.look()
    assert len(follower.told.calls) == 2


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.1"])
def test_places_from_before_a_format_was_left_out_hold(tmp_path: Path, name: str) -> None:
    """An entry that named its format goes on where it was when that is struck out, also if a log was renamed."""
    log = tmp_path / "log.jsonl"
    log.write_bytes(gateway(1, 2))
    before = Follower(format="gateway", pattern=f"{tmp_path}/*")
    before.look()
    log.rename(tmp_path / name)
    with (tmp_path / name).open("ab") as file:
        file.write(gateway(3))
    after = Follower(format="auto", pattern=before.pattern, kept=before.kept)
    after.look()
    assert len(after.told.calls) == 1


def test_a_database_is_recognised_when_its_tables_come(tmp_path: Path) -> None:
    """They may be in its write-ahead log alone, so that the file itself has not changed."""
    follower = auto(tmp_path)
    path = tmp_path / "opencode.db"
    path.touch()
    follower.look()
    writer = OpenCode(path)
    follower.look()
    for row in opencode_rows():
        writer.add(row)
    follower.look()
    writer.close()
    assert follower.told.calls


def test_a_source_that_goes_on_looks_only_at_what_has_changed(tmp_path: Path) -> None:
    """Of a thousand logs that are as they were none is opened to find out what it is."""
    asked = list[Record]()

    def is_record(record: Record) -> bool:
        asked.append(record)
        return FORMATS["gateway"].is_record(record)

    counting = LogFormat(source=FORMATS["gateway"].source, is_record=is_record)
    for number in range(20):
        (tmp_path / f"{number}.jsonl").write_bytes(gateway(number))
    source = AutoLogs(name="agents", pattern=f"{tmp_path}/*", formats={"gateway": counting})
    reader = LogReader(source=source)
    assert len(reader.look()) == 20
    (tmp_path / "7.jsonl").write_bytes(gateway(7, 8))
    asked.clear()
    assert len(reader.look()) == 1
    assert len(asked) == 1


def test_a_log_that_comes_while_one_looks_is_read_as_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(ROLLOUT)
    (tmp_path / "b.jsonl").write_bytes(gateway(1))
    source = AutoLogs(name="agents", pattern=f"{tmp_path}/*", formats=FORMATS)
    batches = source.read_new({}, now=0)
    next(batches)
    (tmp_path / "c.jsonl").write_bytes(gateway(2))
    (tmp_path / "d.jsonl").write_bytes(b"text\n")
    found = {Path(batch.path).name for batch in batches}
    assert "c.jsonl" in found
    assert "d.jsonl" not in found


# ── what is not read ──────────────────────────────────────────────────────────────────────────────


def test_records_that_nobody_knows_are_one_problem_however_many_files(tmp_path: Path) -> None:
    """They may be logs that somebody wants to have watched."""
    (tmp_path / "log.jsonl").write_bytes(gateway(1))
    (tmp_path / "notes.txt").write_text("not for anybody\n")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\n" + bytes(100))
    assert look(tmp_path) == (1, ())
    (tmp_path / "other-1.jsonl").write_text('{"level": "info"}\n')
    assert look(tmp_path) == (1, (f"{tmp_path}/other-1.jsonl will not be read: its format is not known.",))
    for number in range(2, 300):
        (tmp_path / f"other-{number}.jsonl").write_text('{"level": "info"}\n')
    assert look(tmp_path) == (
        1,
        (f"{tmp_path}/other-1.jsonl and 298 more will not be read: their formats are not known.",),
    )


def test_nothing_but_text_is_a_problem(tmp_path: Path) -> None:
    """The pattern is then likely to be wrong."""
    (tmp_path / "notes.txt").write_text("not for anybody\n")
    assert look(tmp_path) == (0, (f"Nothing at {tmp_path}/* is a log of a known format.",))


def test_nothing_at_all_is_no_problem(tmp_path: Path) -> None:
    """Logs may come: there may be none yet, none with a whole line, or a rotated one that is packed."""
    assert look(tmp_path) == (0, ())
    assert look(tmp_path, "log.jsonl") == (0, ())
    (tmp_path / "log.jsonl").write_bytes(gateway(1)[:20])
    (tmp_path / "log.jsonl.1.gz").write_bytes(b"\x1f\x8b\n")
    assert look(tmp_path) == (0, ())


def test_what_is_no_file_is_a_problem(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "log.jsonl").write_bytes(gateway(1))
    assert look(tmp_path) == (
        1,
        (f"{tmp_path}/pipe is not read: it is a named pipe, not a regular file.",),
    )


def test_a_database_that_is_locked_is_a_problem_and_read_later(tmp_path: Path) -> None:
    """Its place is kept."""
    writer = OpenCode(tmp_path / "opencode.db")
    writer.run("PRAGMA journal_mode = DELETE")
    for row in opencode_rows():
        writer.add(row)
    reader = LogReader(source=AutoLogs(name="agents", pattern=f"{tmp_path}/*", formats=FORMATS))
    calls = sum(len(batch.calls) for batch in reader.source.read_new({}, now=0))
    batches = list(reader.source.read_new({}, now=0))
    reader.keep(batches)
    writer.close()
    with locked(writer.path):
        list(reader.source.read_new(reader.cursors, now=0))
    assert reader.source.problems() == (f"{writer.path} cannot be read: database is locked.",)
    again = list(reader.source.read_new(reader.cursors, now=0))
    assert calls
    assert [len(batch.calls) for batch in again] == [0]


def test_a_database_that_is_locked_at_first_is_read_once_it_is_not(tmp_path: Path) -> None:
    """Until then it cannot be said what it is. After a restart it is what it was: the problem is named once."""
    writer = OpenCode(tmp_path / "opencode.db")
    writer.run("PRAGMA journal_mode = DELETE")
    for row in opencode_rows():
        writer.add(row)
    writer.close()
    refused = f"{writer.path} cannot be read: database is locked."
    with locked(writer.path):
        assert look(tmp_path) == (0, (refused,))
    reader = LogReader(source=AutoLogs(name="agents", pattern=f"{tmp_path}/*", formats=FORMATS))
    reader.keep(list(reader.source.read_new({}, now=0)))
    [cursor] = reader.cursors.values()
    restarted = AutoLogs(name="agents", pattern=f"{tmp_path}/*", formats=FORMATS)
    with locked(writer.path):
        assert list(restarted.read_new(reader.cursors, now=0)) == []
    assert restarted.problems() == (refused,)
    assert cursor.format == "opencode"
