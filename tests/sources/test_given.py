"""What a person names becomes logs: each file once, by format, in the order in which they were written."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from jobs.sources.given import Log, find_logs
from jobs.sources.tail import Identity
from jobs.watchlist.sources import AUTO
from tests.fakes import NOON

GATEWAY = '{"ts":1767225600,"agentId":"main","tool":"exec","args":{}}\n'
CODEX = '{"timestamp":"2026-11-30T09:38:31.259Z","type":"session_meta","payload":{"id":"s"}}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of two formats and one of none, the names against the order of time."""
    contents = {
        "z.jsonl": GATEWAY,
        "deep/er/b.jsonl": GATEWAY,
        "a.jsonl": GATEWAY,
        "c.jsonl": CODEX,
        "README": "Hi!",
    }
    for number, (name, content) in enumerate(contents.items()):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        os.utime(path, (NOON + number, NOON + number))
    return tmp_path


def found(given: str, folder: Path, format_name: str = AUTO) -> tuple[list[tuple[str, list[str]]], list[str]]:
    problems: list[str] = []
    logs = find_logs(given, format_name, str(folder), problems, set())
    return [(log.format, paths_of(log)) for log in logs], problems


def paths_of(log: Log) -> list[str]:
    return [file.path for file in log.files]


def test_a_file_is_named_as_it_was_given(folder: Path) -> None:
    assert found("a.jsonl", folder) == ([("gateway", ["a.jsonl"])], [])
    assert found("./a.jsonl", folder) == ([("gateway", ["./a.jsonl"])], [])
    assert found(f"{folder}/a.jsonl", Path("/")) == ([("gateway", [f"{folder}/a.jsonl"])], [])


@pytest.mark.parametrize("given", [".", "./"])
def test_all_files_of_a_folder_are_sorted_by_format_and_time(given: str, folder: Path) -> None:
    logs, problems = found(given, folder)
    assert [(name, [path.removeprefix("./") for path in paths]) for name, paths in logs] == [
        ("gateway", ["z.jsonl", "deep/er/b.jsonl", "a.jsonl"]),
        ("codex", ["c.jsonl"]),
    ]
    assert problems == []


def test_hidden_folders_are_looked_into(folder: Path) -> None:
    """Agents keep their logs there. Links to folders are not followed, and pipes are no files."""
    hidden = folder / ".codex" / "sessions" / ".old"
    hidden.mkdir(parents=True)
    (hidden / "rollout.jsonl").write_text(CODEX)
    os.utime(hidden / "rollout.jsonl", (NOON + 9, NOON + 9))
    (folder / "loop").symlink_to(folder)
    (folder / "lost.jsonl").symlink_to("nowhere")
    os.mkfifo(hidden / "pipe")
    logs, problems = found(".", folder)
    assert logs[1] == ("codex", ["./c.jsonl", "./.codex/sessions/.old/rollout.jsonl"])
    assert problems == []
    assert found(".codex", folder) == ([("codex", [".codex/sessions/.old/rollout.jsonl"])], [])


@pytest.mark.parametrize("given", [".", "./"])
def test_in_a_hidden_folder_only_what_is_named_like_an_agents_log_is_opened(
    given: str, tmp_path: Path
) -> None:
    """Caches and browsers lie there, too. A folder that is given is looked at whole, hidden or not."""
    (tmp_path / ".browser").mkdir()
    (tmp_path / ".browser" / "history").write_text("{}\n")
    (tmp_path / ".browser" / "log.jsonl.1").write_text(GATEWAY)
    for name in (".browser/cookies.db", ".local/share/opencode/opencode.db"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(tmp_path / name)) as database:
            database.execute("CREATE TABLE something (x)")
    left_out = ".local/share/opencode/opencode.db is left out: its format is not known."
    assert found(given, tmp_path) == ([("gateway", ["./.browser/log.jsonl.1"])], [f"./{left_out}"])
    assert set(found(".browser", tmp_path)[1]) == {
        f".browser/{name} is left out: its format is not known." for name in ("history", "cookies.db")
    }


def test_a_large_hole_among_logs_is_named(folder: Path) -> None:
    """A file that has no line yet is not, unless it is too long for one."""
    (folder / "new.jsonl").write_text('{"ts"')
    with (folder / "hole.jsonl").open("wb") as file:
        file.truncate(1 << 40)
    assert found(".", folder)[1] == ["./hole.jsonl is left out: its format is not known."]


def test_only_what_looks_like_a_log_is_named_as_left_out(folder: Path) -> None:
    """Records or tables that no format knows, and what is compressed; text only if it was named by itself."""
    (folder / "other.jsonl").write_text('{"hello": "world"}\n')
    (folder / "z.jsonl.1.gz").write_bytes(b"\x1f\x8b")
    with closing(sqlite3.connect(folder / "other.db")) as database:
        database.execute("CREATE TABLE something (x)")
    _, problems = found(".", folder)
    assert {problem.removeprefix("./").partition(" is left out")[0] for problem in problems} == {
        *("other.jsonl", "z.jsonl.1.gz", "other.db"),
    }
    for given in ("README", f"{folder}/README"):
        assert found(given, folder)[1] == [f"{given} is left out: its format is not known."]


def test_where_there_is_nothing_but_text_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "README").write_text("Hi!")
    assert found(".", tmp_path) == ([], [". holds no log of a known format."])


def test_a_pattern_finds_what_matches(folder: Path) -> None:
    assert found("**/*.jsonl", folder)[0][0] == ("gateway", ["z.jsonl", "deep/er/b.jsonl", "a.jsonl"])


def test_a_format_that_is_named_is_not_doubted(folder: Path) -> None:
    assert found("README", folder, "codex") == ([("codex", ["README"])], [])


def test_a_name_that_could_be_a_pattern_is_a_name_first(folder: Path) -> None:
    (folder / "run[1].jsonl").write_text(GATEWAY)
    logs = find_logs("run[1].jsonl", AUTO, str(folder), [], set())
    (file,) = logs[0].files
    (batch,) = file.source.read_new({}, NOON)
    assert (file.path, file.size, len(batch.calls)) == ("run[1].jsonl", len(GATEWAY), 1)


def test_a_file_is_read_once_however_many_names_it_has(folder: Path) -> None:
    """It bears its own name rather than a link's: some formats tell by it whose log it is."""
    (folder / "0.jsonl").symlink_to(folder / "a.jsonl")
    (folder / "b.jsonl").hardlink_to(folder / "a.jsonl")
    assert found("[0ab].jsonl", folder) == ([("gateway", ["a.jsonl"])], [])


def test_a_file_that_several_paths_name_is_of_the_first(folder: Path) -> None:
    read, problems = set[Identity](), list[str]()
    paths = [
        [path for log in find_logs(given, AUTO, str(folder), problems, read) for path in paths_of(log)]
        for given in ("deep", ".", "a.jsonl", "deep")
    ]
    assert paths == [["deep/er/b.jsonl"], ["./z.jsonl", "./a.jsonl", "./c.jsonl"], [], []]
    assert problems == []


def test_a_damaged_database_is_handed_to_what_reads_databases(folder: Path) -> None:
    """That says why it cannot be read; whose it was cannot be told any more."""
    (folder / "deep" / "any.db").write_bytes(b"SQLite format 3\0trash")
    (log,) = find_logs("deep/any.db", AUTO, str(folder), [], set())
    (file,) = log.files
    assert list(file.source.read_new({}, NOON)) == []
    assert file.source.problems() == (f"{folder}/deep/any.db cannot be read: file is not a database.",)


def test_what_is_not_there_is_said(folder: Path) -> None:
    assert found("none.jsonl", folder) == ([], ["none.jsonl is not there."])
    assert found("none*", folder) == ([], ["none* matches no file."])


def test_what_cannot_be_read_is_said(folder: Path) -> None:
    (folder / "lost.jsonl").symlink_to(folder / "nowhere")
    os.mkfifo(folder / "pipe")
    assert found("lost.jsonl", folder) == ([], ["lost.jsonl cannot be read: No such file or directory."])
    assert found("pipe", folder) == ([], ["pipe is not read: it is no regular file."])


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_closed_file_is_said(folder: Path) -> None:
    (folder / "a.jsonl").chmod(0)
    assert found("a.jsonl", folder) == ([], ["a.jsonl cannot be read: Permission denied."])


def test_of_many_files_that_are_left_out_some_are_named(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"note-{number}").write_text("{}\n")
    _, problems = found("note-*", tmp_path)
    assert len(problems) == 6
    assert problems[-1] == "4 more files are left out: their formats are not known."


def test_what_a_database_keeps_beside_it_is_no_log(tmp_path: Path) -> None:
    for end in ("-wal", "-shm", "-journal"):
        (tmp_path / f"agent.db{end}").write_text("")
    assert found(".", tmp_path) == ([], [". holds no log of a known format."])
