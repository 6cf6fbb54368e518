"""What is seen of the sources: the ends of the newest files, as the scan would read them."""

import json
import os
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from bot.checking.finding import Finding, Level
from bot.checking.watched import check_overlaps, check_source, read_for_check
from jobs.thrash.policy import OnDetection
from tests.bot.checking.conftest import as_anyone
from tests.fakes import NOON
from tests.sources.databases import DATA, OpenClaw, OpenCode, openclaw_rows, opencode_rows

UTC = ZoneInfo("UTC")
STOPPED = """
[[sources]]
name = "gateway"
format = "gateway"
path = "{path}"
killer = "stopper"

[killers.stopper]
kind = "{kind}"
"""
OBSERVED = STOPPED.replace('killer = "stopper"\n', "")


def look(
    folder: Path,
    watchlist: str = STOPPED,
    path: str = "*.jsonl",
    kind: str = "dry_run",
    hooks: str | None = None,
) -> list[Finding]:
    file = folder / "loopwarden.toml"
    file.write_text(watchlist.format(path=path, kind=kind))
    read, finding = read_for_check(file)
    assert read is not None, finding
    [spec] = read.sources
    return list(check_source(spec, read, OnDetection.STOP, NOON, UTC, hooks=hooks))


def calls(*agents: str, ts: float = NOON - 125, **fields: object) -> str:
    lines = ({"ts": ts, "agentId": agent, "tool": "exec", "args": {}} | fields for agent in agents)
    return "".join(json.dumps(line) + "\n" for line in lines)


def told(findings: Iterable[Finding], level: Level) -> list[str]:
    return [finding.says for finding in findings if finding.level is level]


def test_a_source_tells_files_sessions_and_last_call(folder: Path) -> None:
    """Compressed files do not count, as they are not read."""
    (folder / "a.jsonl").write_text(calls("x", "y", "x"))
    (folder / "b.jsonl").write_text(calls("z", ts=NOON - 7200))
    (folder / "b.jsonl.gz").write_bytes(b"\x1f\x8b")
    findings = look(folder, path="*.jsonl*")
    assert told(findings, Level.OK) == [
        "2 files, 3 sessions, last call 07:57:55 (2 min 5 s ago)",
        "on a detection: stop, by killer stopper",
    ]
    assert len(findings) == 2


def test_a_last_call_in_the_future_is_told_as_the_log_says_it(folder: Path) -> None:
    (folder / "a.jsonl").write_text(calls("x", ts=NOON + 86_400))
    assert told(look(folder), Level.OK)[0] == "1 file, 1 session, last call 2027-01-16 08:00"


def test_only_the_end_of_a_large_log_is_read(folder: Path) -> None:
    """What lies a gigabyte before it could be anything; the line that is cut there is not counted as unreadable."""
    log = folder / "a.jsonl"
    with log.open("wb") as file:
        file.write(calls("long ago").encode() + b"no call\n")
        file.seek(1 << 30)
        file.write(b"\n" + calls("now").encode() * 10_000)
    assert log.stat().st_size > 1 << 30
    findings = look(folder)
    assert told(findings, Level.OK)[0].startswith("1 file, 1 session, ")
    assert told(findings, Level.WARNING) == []


def test_only_the_newest_files_are_read(folder: Path) -> None:
    """The others are counted."""
    for number in range(60):
        log = folder / f"{number}.jsonl"
        log.write_text(calls(f"agent {number}") if number >= 10 else "not to be read\n")
        os.utime(log, (number, number))
    findings = look(folder)
    assert told(findings, Level.OK)[0].startswith("60 files (the newest 50 looked at), 50 sessions, ")
    assert told(findings, Level.WARNING) == []


def test_a_source_without_a_file_is_a_warning(folder: Path) -> None:
    """Agents may not have begun yet."""
    [found, _] = look(folder, path="none/*.jsonl")
    assert found.level is Level.WARNING
    assert found.says == f"there is no file at {folder}/none/*.jsonl yet"
    assert "correct `path`" in found.mend


def test_an_empty_log_is_fine(folder: Path) -> None:
    (folder / "a.jsonl").touch()
    assert told(look(folder), Level.OK)[0] == "1 file, no calls in them yet"


def test_a_source_without_a_killer_is_a_warning(folder: Path) -> None:
    (folder / "a.jsonl").write_text(calls("x"))
    assert told(look(folder, OBSERVED), Level.WARNING) == [
        "observed only: it has no killer, so nothing is ever stopped"
    ]


def test_unreadable_lines_among_calls_are_a_warning(folder: Path) -> None:
    (folder / "a.jsonl").write_text("begin\n" + calls("x") + "end\n")
    (folder / "b.jsonl").write_text("begin\n" + calls("x"))
    assert told(look(folder), Level.WARNING) == [
        "3 lines of those looked at cannot be read and will be skipped"
    ]


def test_a_log_without_any_call_is_an_error(folder: Path) -> None:
    (folder / "a.jsonl").write_text("begin\nend\n")
    findings = look(folder)
    assert told(findings, Level.ERROR) == [
        "1 file, and none of the 2 lines looked at is one of format gateway"
    ]
    assert told(findings, Level.WARNING) == []


def test_a_log_that_this_user_may_not_read_is_an_error(folder: Path) -> None:
    """It is named, and what can be read is told all the same."""
    (folder / "a.jsonl").write_text(calls("x"))
    closed = folder / "b.jsonl"
    closed.write_text(calls("y"))
    closed.chmod(0)
    (folder / "loopwarden.toml").touch(mode=0o666)
    (folder / "loopwarden.toml").chmod(0o666)
    with as_anyone():
        findings = look(folder)
    assert told(findings, Level.ERROR) == [f"{closed} cannot be read: Permission denied."]
    assert told(findings, Level.OK)[0].startswith("1 file, 1 session, ")


def test_of_many_problems_the_first_are_told(folder: Path) -> None:
    for number in range(5):
        (folder / f"{number}.jsonl").mkdir()
    findings = look(folder)
    errors = told(findings, Level.ERROR)
    assert len(errors) == 3
    assert errors[2].endswith("/2.jsonl is not read: it is a directory, not a regular file. (and 2 more)")
    assert told(findings, Level.WARNING) == []


@pytest.mark.parametrize(
    ("kind", "fields", "is_error"),
    [
        ('process"\nmatch = "agent', {}, True),
        ('process"\nmatch = "agent', {"pid": 4711}, False),
        ('process"\npid_file = "a.pid"\nmatch = "agent', {}, False),
        ("dry_run", {}, False),
    ],
)
def test_calls_without_a_pid_need_another_way_to_the_process(
    folder: Path, kind: str, fields: dict[str, int], is_error: bool
) -> None:
    """A killer that signals a process must get its pid from somewhere."""
    (folder / "a.jsonl").write_text(calls("x", **fields))
    errors = told(look(folder, kind=kind), Level.ERROR)
    assert errors == (
        ["no call names a `pid`, and killer stopper has no pid_file: it could stop nothing"]
        if is_error
        else []
    )


def test_a_name_cannot_hide_or_break_a_line(folder: Path) -> None:
    """File names are foreign text: in one line, without control characters, secrets masked."""
    (folder / "a\n\x1b[31m\u202etoken=hunter2.jsonl").mkdir()
    [error] = told(look(folder), Level.ERROR)
    assert error.isprintable()
    assert "hunter2" not in error


def test_a_wrong_watch_list_is_named(folder: Path) -> None:
    file = folder / "loopwarden.toml"
    file.write_text("[[source]]\n")
    read, finding = read_for_check(file)
    assert read is None
    assert finding.level is Level.ERROR
    assert finding.says.startswith("source: unknown table (did you mean sources?)")


# ── logs as programs write them ───────────────────────────────────────────────────────────────────


def test_logs_of_any_format_are_told_alike(folder: Path) -> None:
    """Also of a database; `auto` is what an entry without `format` means."""
    logs = folder / "logs"
    logs.mkdir()
    (logs / "rollout-1.jsonl").write_bytes((DATA / "codex" / "calls.jsonl").read_bytes())
    (logs / "calls.jsonl").write_text(calls("x"))
    with closing(OpenCode(logs / "opencode.db")) as database:
        for row in opencode_rows():
            database.add(row)
        found = look(folder, STOPPED.replace('format = "gateway"\n', ""), path="logs/*")
    assert told(found, Level.OK)[0].startswith("3 files, 4 sessions, last call ")
    assert told(found, Level.WARNING) == told(found, Level.ERROR) == []


def test_of_a_database_only_the_newest_is_read(folder: Path) -> None:
    """As little of each of many sessions as of a file."""
    with closing(OpenClaw(folder / "openclaw-agent.sqlite")) as database:
        for number in range(60):
            for row in openclaw_rows(f"s-{number}")[1:]:
                database.add(replace(row, at=row.at + number))
        found = look(folder, STOPPED.replace('"gateway"\npath', '"openclaw"\npath'), path="*.sqlite")
    assert told(found, Level.OK)[0].startswith("1 file, 50 sessions, ")


@pytest.mark.parametrize("has_hook", [True, False])
def test_a_hook_names_the_process_that_a_log_does_not(folder: Path, has_hook: bool) -> None:
    """It alone makes no files and no sessions."""
    (folder / "7d0c2f6e.jsonl").write_bytes((DATA / "claude-code" / "calls.jsonl").read_bytes())
    (folder / "hook").mkdir()
    if has_hook:
        (folder / "hook" / "claude-code.jsonl").write_text(calls("y", "z", pid=4711))
    found = look(
        folder,
        STOPPED.replace('"gateway"\npath', '"claude-code"\npath'),
        kind='process"\nmatch = "agent',
        hooks=f"{folder}/hook",
    )
    assert told(found, Level.OK)[0].startswith("1 file, ")
    assert [finding.mend.partition(",")[0] for finding in found if finding.level is Level.ERROR] == (
        [] if has_hook else ["let the agents' program call `loopwarden hook`"]
    )


def overlaps(folder: Path, *entries: tuple[str, str, str]) -> list[Finding]:
    file = folder / "loopwarden.toml"
    entry = '[[sources]]\nname = "{}"\nformat = "{}"\npath = "{}"\n'
    file.write_text("".join(entry.format(*each) for each in entries))
    read, finding = read_for_check(file)
    assert read is not None, finding
    return list(check_overlaps(read.sources))


def test_entries_that_find_the_same_files_are_both_named(folder: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (folder / name).write_text(calls("x"))
    [found] = overlaps(
        folder, ("one", "gateway", "a*"), ("two", "auto", "*.jsonl"), ("three", "gateway", "none/*")
    )
    assert found.level is Level.WARNING
    assert (found.subject, found.says) == (
        "source two",
        "source one finds 1 file of it, too, and comes first: there they are read",
    )
    assert found.mend == "narrow the `path` of one or of two, or take one of them out"


def test_entries_of_different_formats_may_find_the_same_files(folder: Path) -> None:
    (folder / "a.jsonl").write_text(calls("x"))
    assert overlaps(folder, ("one", "gateway", "*.jsonl"), ("two", "codex", "*.jsonl")) == []
