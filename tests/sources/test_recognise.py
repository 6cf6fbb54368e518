"""A log's format is told by how it begins."""

import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.sources import recognise as recognising
from jobs.sources.recognise import Formats, Unknown
from jobs.sources.registry import FORMATS
from jobs.sources.sqlite_process import TableReader
from tests.sources.contract import NO_LOGS, SHARED
from tests.sources.databases import OpenClaw, OpenCode, locked

BEGINNINGS = {
    "gateway": ['{"ts":1767225600,"agentId":"main","tool":"exec","args":{}}'],
    "claude-code": [
        '{"type":"queue-operation","operation":"enqueue","sessionId":"s"}',
        '{"type":"user","sessionId":"s","agentId":"a1","message":{"role":"user","content":"Go on."}}',
    ],
    "codex": ['{"timestamp":"2026-11-30T09:38:31.259Z","type":"session_meta","payload":{"id":"s"}}'],
    "gemini-cli": [
        '{"sessionId":"s","projectHash":"0f","startTime":"2026-11-30T09:33:59.556Z","kind":"main"}'
    ],
    "openclaw": ['{"type":"session","version":3,"id":"s","timestamp":"2026-11-30T09:03:39.565Z"}'],
}
WRITERS = {"openclaw": OpenClaw, "opencode": OpenCode}
DATA = Path(__file__).parents[1] / "data"
REAL = {
    "claude-code": "agents/claude/.claude/projects/**/*.jsonl",
    "codex": "agents/codex/.codex/**/*.jsonl",
    "gemini-cli": "agents/gemini/.gemini/**/*.jsonl",
    "opencode": "agents/opencode/.local/**/*.db",
    "openclaw": "openclaw/transcripts/*.jsonl",
    "gateway": "traces/[bhrt]*_*.jsonl",
}
FOREIGN = (
    "agents/*/hook_events*.jsonl",
    "generation/*.jsonl",
    "openclaw/[acls]*.jsonl",
    "traces/labels.jsonl",
    "ouroboros/*.db",
    "*/README.md",
    "*/labels.json",
)


def recognise(path: str, formats: Formats) -> str | Unknown:
    with TableReader() as tables:
        return recognising.recognise(path, formats, tables)


def format_of(path: str, formats: Formats) -> str | None:
    """The name of the format that a file has, None if it has none that is known."""
    found = recognise(path, formats)
    return found if isinstance(found, str) else None


def made_of(lines: Sequence[str], folder: Path) -> str:
    path = folder / "log.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


@pytest.mark.parametrize("name", BEGINNINGS)
def test_a_log_of_lines_is_recognised(name: str, tmp_path: Path) -> None:
    assert format_of(made_of(BEGINNINGS[name], tmp_path), FORMATS) == name


@pytest.mark.parametrize("name", BEGINNINGS)
def test_lines_that_tell_nothing_may_come_first(name: str, tmp_path: Path) -> None:
    """Halves of lines, other records and blank lines do not hide what follows."""
    noise = ['"agentId":"main"}', "", "[1, 2]", '{"note": "rotated"}', "[" * 5000, "\udcff"]
    path = tmp_path / "log.jsonl"
    path.write_bytes("\n".join([*noise, *BEGINNINGS[name]]).encode(errors="surrogateescape"))
    assert format_of(str(path), FORMATS) == name


@pytest.mark.parametrize("name", WRITERS)
def test_a_database_is_recognised_by_its_tables(name: str, tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with closing(WRITERS[name](path)):
        assert format_of(str(path), FORMATS) == name


@pytest.mark.parametrize(
    "content", [b"", b"notes of mine\n", b'{"ts": 1}\n', b"\x1f\x8b\x08", b"SQLite format 3\0 but it is none"]
)
def test_what_nobody_knows_has_no_format(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert format_of(str(path), FORMATS) is None


def test_another_database_has_no_format(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE event (id)")
    assert format_of(str(path), FORMATS) is None


def test_every_format_can_be_recognised() -> None:
    assert BEGINNINGS.keys() | WRITERS.keys() == FORMATS.keys()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200))
def test_no_beginning_is_an_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert format_of(str(path), FORMATS) is None


@given(
    record=st.dictionaries(
        st.sampled_from(
            ["type", "sessionId", "message", "payload", "key", "agentId", "tool", "ts", "version"]
        ),
        st.one_of(st.none(), st.integers(), st.text(max_size=5), st.lists(st.integers(), max_size=2)),
    )
)
def test_no_record_is_an_error(record: dict[str, object]) -> None:
    """Whatever its fields hold."""
    for form in FORMATS.values():
        form.is_record(record)


def test_logs_of_pi_are_not_openclaws(tmp_path: Path) -> None:
    """OpenClaw is built on it, and its records begin alike: only the name tells."""
    path = Path(made_of(BEGINNINGS["openclaw"], tmp_path))
    assert recognise(str(path), FORMATS) == "openclaw"
    path = path.rename(tmp_path / "2026-11-30T09-03-39-565Z_5f0f6d0e-0000-4000-8000-000000000001.jsonl")
    assert recognise(str(path), FORMATS) is Unknown.RECORDS


# ── logs as they are ──────────────────────────────────────────────────────────────────────────────


def assert_is_of_that_format_alone(path: Path, name: str) -> None:
    assert format_of(str(path), FORMATS) == name
    alone = {name: form for name, form in FORMATS.items() if format_of(str(path), {name: form})}
    assert alone.keys() == {name}


@pytest.mark.parametrize("name", FORMATS)
def test_every_sample_is_of_its_format_and_of_no_other(name: str) -> None:
    samples = [path for path in (DATA / name).rglob("*.jsonl") if path.read_bytes().endswith(b"\n")]
    known = [path for path in samples if path.name not in NO_LOGS | {"events.jsonl"}]
    for path in known:
        if "session-2026-03-02T10-16" not in path.name:  # a resume's stray file, which holds no record
            assert_is_of_that_format_alone(path, name)


@pytest.mark.parametrize("name", REAL)
def test_every_real_log_is_of_its_format_and_of_no_other(name: str) -> None:
    paths = list(SHARED.glob(REAL[name]))
    if not paths:
        pytest.skip("no real logs here")
    for path in paths:
        assert_is_of_that_format_alone(path, name)


def test_a_real_database_of_openclaw_is_recognised() -> None:
    path = SHARED / "openclaw" / "worker-openclaw-agent.sqlite"
    if not path.exists():
        pytest.skip("no real logs here")
    assert_is_of_that_format_alone(path, "openclaw")


@pytest.mark.parametrize("pattern", FOREIGN)
def test_real_files_that_are_no_logs_of_agents_have_no_format(pattern: str) -> None:
    for path in SHARED.glob(pattern):
        assert format_of(str(path), FORMATS) is None, path


# ── not yet, or never ─────────────────────────────────────────────────────────────────────────────


def test_a_line_that_has_only_begun_tells_nothing_yet(tmp_path: Path) -> None:
    """At its last byte the format is known, its line end or not."""
    [line] = BEGINNINGS["codex"]
    path = tmp_path / "log.jsonl"
    for length in range(len(line)):
        path.write_text(line[:length])
        assert recognise(str(path), FORMATS) is Unknown.BLANK
    path.write_text(line)
    assert recognise(str(path), FORMATS) == "codex"


def test_a_first_line_may_be_long(tmp_path: Path) -> None:
    """It holds what the model was told, or a picture."""
    line = BEGINNINGS["codex"][0].replace('"id":"s"', f'"id":"s","instructions":"{"x" * 500_000}"')
    assert format_of(made_of([line, "{}"], tmp_path), FORMATS) == "codex"


@pytest.mark.parametrize("size", [10, 1_000])
def test_many_records_of_unknown_types_may_come_first(size: int, tmp_path: Path) -> None:
    """Such as a program writes before anybody has said anything; text is not looked through as far."""
    record = f'{{"type":"mode","sessionId":"s","mode":"{"x" * size}"}}'
    for number in (60, 1900):
        for name, lines in BEGINNINGS.items():
            assert format_of(made_of([record] * number + lines, tmp_path), FORMATS) == name
        assert recognise(made_of([record] * number, tmp_path), FORMATS) is Unknown.RECORDS


def test_zeros_before_the_first_line_are_passed_over(tmp_path: Path) -> None:
    """A writer that does not append leaves them after its log was truncated."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(bytes(5000))
    assert recognise(str(path), FORMATS) is Unknown.BLANK
    path.write_bytes(bytes(5000) + BEGINNINGS["gateway"][0].encode())
    assert recognise(str(path), FORMATS) == "gateway"


def test_records_that_nobody_knows_are_told_from_text(tmp_path: Path) -> None:
    path = made_of(['{"level": "info"}', "[]"], tmp_path)
    assert recognise(path, FORMATS) is Unknown.RECORDS
    assert recognise(made_of(["notes"], tmp_path), FORMATS) is Unknown.OTHER


def test_a_record_that_fits_two_formats_tells_nothing(tmp_path: Path) -> None:
    path = made_of([BEGINNINGS["gateway"][0][:-1] + ',"sessionId":"s","projectHash":"0f"}'], tmp_path)
    assert recognise(path, FORMATS) is Unknown.RECORDS


def test_a_database_without_tables_tells_nothing_yet(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 1")
        assert recognise(str(path), FORMATS) is Unknown.BLANK
        database.execute("CREATE TABLE event (id)")
        assert recognise(str(path), FORMATS) is Unknown.TABLES


def test_a_database_that_is_locked_is_no_other_database(tmp_path: Path) -> None:
    """What it is cannot be said now."""
    path = tmp_path / "agent.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("CREATE TABLE event (id)")
    with locked(path), pytest.raises(OSError, match="locked"):
        recognise(str(path), FORMATS)


def test_a_database_whose_reader_is_lost_is_no_other_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it is cannot be said now, either."""
    path = tmp_path / "agent.db"
    OpenCode(path).close()
    monkeypatch.setattr(sys, "executable", "/nothing")
    with pytest.raises(OSError, match="its reader cannot be started"):
        recognise(str(path), FORMATS)
