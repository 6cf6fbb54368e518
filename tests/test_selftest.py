"""`loopwarden selftest`: a line for each workflow, an exit code, and what came of it in the bot's database."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import psutil
import pytest

from bot.__main__ import main
from jobs.alert.notice import AnyNotice
from jobs.alert.selftest_notice import SelftestNotice
from jobs.artifacts import trial
from jobs.pinning.kind import How, Kind
from jobs.pinning.pin import Pin, encoded, hash_of
from jobs.store.blocking import open_blocking
from jobs.store.schema import FILE_NAME
from jobs.verification.spec import StatusSpec, WorkflowSpec
from jobs.verification.verdict import Check
from tests.environment import unmeasured

NIGHTLY: Final = """
[workflows.nightly]
output = "report.json"
required = ["status"]
timestamp = "timestamp"
status = { allowed = ["ok", "failed"] }
"""
WEEKLY: Final = '[workflows.weekly]\noutput = "weekly.txt"\nformat = "text"\n'
LENIENT: Final = (
    "from jobs.artifacts import trial_child\n"
    "from jobs.verification import checks\n"
    "checks.status = lambda document, spec: 'seems fine'\n"
    "trial_child.main()"
)

Selftest = Callable[..., tuple[int, list[str], str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the command is run."""
    for name in [name for name in os.environ if name.startswith("LOOPWARDEN_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LOOPWARDEN_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def selftest(folder: Path, capsys: pytest.CaptureFixture[str]) -> Selftest:  # noqa: ARG001 - where it is run
    """Run the command; return its exit code, the lines that it prints, and its complaint."""

    def run(*names: str) -> tuple[int, list[str], str]:
        code = main(["selftest", *names])
        said, complained = capsys.readouterr()
        return code, said.splitlines(), complained

    return run


def kept(folder: Path, columns: str, table: str = "selftest") -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "data" / FILE_NAME)) as database:
        return database.execute(f"SELECT {columns} FROM {table} ORDER BY id").fetchall()  # noqa: S608


def delivered(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Let the workflow have a good output."""
    now = datetime.now(UTC).isoformat()  # noqa: TID251 - the command looks at the clock of the machine, too
    (folder / "report.json").write_text(json.dumps({"status": "ok", "timestamp": now}))
    assert main(["verify", "nightly"]) == 0
    capsys.readouterr()


def pin(spec: WorkflowSpec, folder: Path) -> None:
    entry = encoded(spec)
    approved = Pin(
        kind=Kind.WORKFLOW, name=spec.name, entry=entry, hash=hash_of(entry), how=How.APPROVED, at=0
    )
    with open_blocking(str(folder / "data")) as store:
        store.write(store.tables.pins.add(approved))


# ── what is tried ─────────────────────────────────────────────────────────────────────────────────


def test_the_last_good_output_is_made_bad(
    folder: Path, selftest: Selftest, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a first good run; the output may be gone by then. What came of it is kept."""
    (folder / "loopwarden.toml").write_text(NIGHTLY)
    delivered(folder, capsys)
    (folder / "report.json").unlink()
    code, [line], complained = selftest()
    assert (code, complained) == (0, "")
    [(workflow, pin_id, made_of, result)] = kept(folder, "workflow, pin_id, made_of, result")
    assert (workflow, pin_id, made_of) == ("nightly", 1, "output")
    detected = json.loads(result)["detected"]
    assert line == f"nightly: {detected} of {detected} detected, made of its last good output"
    assert detected > 10


def test_of_what_is_verified_without_a_watch_list_nothing_is_kept(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each path is a workflow of its own then, and nobody tests it."""
    now = datetime.now(UTC).isoformat()  # noqa: TID251 - as above
    (folder / "report.json").write_text(json.dumps({"status": "ok", "result": 3, "timestamp": now}))
    assert main(["verify", "report.json"]) == 0
    capsys.readouterr()
    assert kept(folder, "outcome", "verdict") == [("pass",)]
    with open_blocking(str(folder / "data")) as store:
        assert store.read(store.tables.good_outputs.of(str(folder / "report.json"))) is None


def test_without_any_run_one_is_made_up(folder: Path, selftest: Selftest) -> None:
    """No bot, no chat, no run and no pin are needed; a line for each workflow that is named, or for all."""
    (folder / "loopwarden.toml").write_text(NIGHTLY + WEEKLY)
    code, lines, complained = selftest()
    assert (code, complained) == (0, "")
    ends = "detected, made of an output made up after its specification"
    assert [line.partition(":")[0] for line in lines] == ["nightly", "weekly"]
    assert all(line.endswith(ends) for line in lines)
    assert [line.partition(":")[0] for line in selftest("weekly", "weekly")[1]] == ["weekly"]
    assert kept(folder, "workflow, pin_id") == [("nightly", None), ("weekly", None), ("weekly", None)]


def test_what_is_pinned_counts(folder: Path, selftest: Selftest) -> None:
    """Whatever the watch list says, or whether there is one."""
    pin(WorkflowSpec(name="approved", status=StatusSpec()), folder)
    (folder / "loopwarden.toml").write_text("this is no TOML")
    assert selftest()[1][0].startswith("approved: ")
    assert kept(folder, "workflow, pin_id") == [("approved", 1)]


@pytest.mark.parametrize(
    ("watchlist", "why"),
    [
        (
            NIGHTLY.replace('required = ["status"]\n', ""),
            "the watch list differs; what was pinned of nightly counts until the change is approved: `loop",
        ),
        (
            WEEKLY,
            "loopwarden.toml: no workflow of that name; known: weekly; what was pinned of nightly counts",
        ),
        ("=", "line 1, column 1"),
        (None, "neither is there a watch list"),
    ],
    ids=["edited", "gone", "wrong", "no file"],
)
def test_where_the_watch_list_differs_from_what_is_tried_that_is_said(
    folder: Path, selftest: Selftest, capsys: pytest.CaptureFixture[str], watchlist: str | None, why: str
) -> None:
    """As `loopwarden verify` does."""
    (folder / "loopwarden.toml").write_text(NIGHTLY)
    delivered(folder, capsys)
    assert selftest("nightly")[2] == ""
    (folder / "loopwarden.toml").unlink()
    if watchlist is not None:
        (folder / "loopwarden.toml").write_text(watchlist)
    code, [line], complained = selftest("nightly")
    assert (code, line.partition(":")[0]) == (0, "nightly")
    assert complained.startswith(f"loopwarden: warning: {why}")
    main(["verify", "nightly"])
    assert capsys.readouterr().err == complained


def test_what_is_not_pinned_is_tried_as_it_is_written(folder: Path, selftest: Selftest) -> None:
    """Beside what is."""
    pin(WorkflowSpec(name="nightly", status=StatusSpec()), folder)
    (folder / "loopwarden.toml").write_text(NIGHTLY + WEEKLY)
    assert [line.partition(":")[0] for line in selftest()[1]] == ["nightly", "weekly"]
    assert kept(folder, "workflow, pin_id") == [("nightly", 1), ("weekly", None)]


def test_the_schema_of_what_is_not_pinned_is_tried_as_it_is_in_its_file(
    folder: Path, selftest: Selftest
) -> None:
    (folder / "schema.json").write_text(
        '{"type": "object", "required": ["a"], "properties": {"a": {"const": 7}}}'
    )
    (folder / "loopwarden.toml").write_text('[workflows.n]\noutput = "n.json"\nschema = "schema.json"\n')
    code, [line], _ = selftest()
    assert (code, line.split(",")[1]) == (0, " made of an output made up after its specification")


def test_no_command_is_run(folder: Path, selftest: Selftest) -> None:
    """It is said that this one check is not tried."""
    (folder / "loopwarden.toml").write_text(WEEKLY + 'command = { argv = ["/usr/bin/touch", "ran"] }\n')
    code, [line], _ = selftest()
    assert code == 0
    assert line.endswith("; its command is not tried")
    assert not (folder / "ran").exists()


def test_a_command_that_is_not_the_approved_one_is_named(
    folder: Path, selftest: Selftest, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is not tried, but nobody may take it for what was approved."""
    script = folder / "check.sh"
    script.write_text("#!/bin/sh\nexit 0\n")
    script.chmod(0o755)
    (folder / "loopwarden.toml").write_text(NIGHTLY + 'command = { argv = ["./check.sh"] }\n')
    delivered(folder, capsys)
    assert selftest()[1][0].endswith("; its command is not tried")
    script.write_text("#!/bin/sh\nexit 1\n")
    _, [line], complained = selftest()
    assert line.endswith(f"; its command is not tried, and {script} is not the file that was approved")
    assert "the watch list differs" in complained


# ── what came of it ───────────────────────────────────────────────────────────────────────────────


def test_what_survives_is_named_and_told(
    folder: Path, selftest: Selftest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here and, where a bot runs, in the chat; the exit code is 1."""
    monkeypatch.setattr(trial, "_ARGV", (sys.executable, "-c", LENIENT))
    (folder / "loopwarden.toml").write_text(NIGHTLY)
    code, [_, *survivors], _ = selftest()
    assert code == 1
    assert survivors
    assert all("which the check status should have caught: " in line for line in survivors)
    assert any(line.endswith("it passes: seems fine") for line in survivors)
    [(body,)] = kept(folder, "body", "outbox")
    notice = msgspec.json.decode(body, type=AnyNotice)
    assert isinstance(notice, SelftestNotice)
    assert len(notice.result.survivors) == len(survivors)
    assert {survivor.check for survivor in notice.result.survivors} == {Check.STATUS}


def test_what_is_cut_short_is_no_pass(
    folder: Path, selftest: Selftest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "_ARGV", (sys.executable, "-c", "raise SystemExit(7)"))
    (folder / "loopwarden.toml").write_text(NIGHTLY)
    why = "not all could be judged: the process that did ended with exit code 7"
    assert selftest() == (1, [f"nightly: nothing was tried: {why}"], "")


def test_part_of_it_may_be_tried(folder: Path, selftest: Selftest, monkeypatch: pytest.MonkeyPatch) -> None:
    part = 'print(\'{"made_of": "specification"}\'); raise SystemExit(7)'
    monkeypatch.setattr(trial, "_ARGV", (sys.executable, "-c", part))
    (folder / "loopwarden.toml").write_text(NIGHTLY)
    code, [line], _ = selftest()
    assert code == 1
    assert line.startswith(
        "nightly: 0 of 0 detected, made of an output made up after its specification; not all"
    )


def test_without_a_database_it_is_only_said(folder: Path, selftest: Selftest) -> None:
    (folder / "loopwarden.toml").write_text(WEEKLY)
    (folder / "data").mkdir()
    (folder / "data" / FILE_NAME).write_text("no database")
    code, [line], complained = selftest()
    assert code == 0
    assert line.startswith("weekly: ")
    assert complained.startswith(
        "loopwarden: warning: pins and good outputs are not known, and nothing is kept: "
    )


# ── asked wrongly ─────────────────────────────────────────────────────────────────────────────────


def test_a_workflow_that_is_unknown(folder: Path, selftest: Selftest) -> None:
    """None is tested then."""
    (folder / "loopwarden.toml").write_text(NIGHTLY)
    code, said, complained = selftest("nightly", "nihgtly")
    assert (code, said) == (2, [])
    assert complained == "loopwarden: no workflow of that name (did you mean nightly?); known: nightly\n"
    assert kept(folder, "id") == []


@pytest.mark.parametrize(
    ("watchlist", "complaint"),
    [
        (None, "loopwarden: the watch list is wrong: "),
        ("workflows = 3", "loopwarden: the watch list is wrong: "),
        ('[sources.a]\nformat = "gateway"\npaths = ["a.jsonl"]\n', "loopwarden: there is no workflow: "),
    ],
)
def test_no_workflow(folder: Path, selftest: Selftest, watchlist: str | None, complaint: str) -> None:
    if watchlist is not None:
        (folder / "loopwarden.toml").write_text(watchlist)
    code, said, complained = selftest()
    assert (code, said) == (2, [])
    assert complained.startswith(complaint)


def test_for_a_slip_no_database_is_begun(folder: Path, selftest: Selftest) -> None:
    assert selftest()[0] == 2
    assert not (folder / "data").exists()


# ── a signal ──────────────────────────────────────────────────────────────────────────────────────

HANGING: Final = """
import sys
from bot.__main__ import main
from jobs.artifacts import trial
trial._ARGV = ("/bin/sh", "-c", "exec 3>held; echo up >&3; exec sleep 1000")
sys.exit(main(["selftest"]))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_leaves_nothing_behind(folder: Path, number: signal.Signals) -> None:
    (folder / "loopwarden.toml").write_text(NIGHTLY)
    os.mkfifo(folder / "held")
    process = subprocess.Popen([sys.executable, "-c", HANGING], env=unmeasured())  # noqa: S603 - ours
    with (folder / "held").open() as held:
        assert held.readline() == "up\n"
        process.send_signal(number)
        assert process.wait(timeout=60) == 128 + number
        assert held.read() == ""
    assert psutil.pid_exists(process.pid) is False
