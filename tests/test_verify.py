"""`loopwarden verify`: a line for each check, an exit code, and the verdict in the bot's database."""

import gzip
import json
import os
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol
from zoneinfo import ZoneInfo

import pytest

from bot.__main__ import main
from jobs.store.database import open_database
from jobs.store.schema import FILE_NAME
from jobs.verification.history import Trigger, WorkflowState
from jobs.verification.verdict import Outcome
from tests.environment import unmeasured

Done = subprocess.CompletedProcess[str]

HEAVY: Final = {
    *(
        "aiogram",
        "aiosqlite",
        "apscheduler",
        "argparse",
        "asyncio",
        "difflib",
        "logging",
        "pathlib",
        "psutil",
    ),
    *("pydantic", "rich", "rapidfuzz", "yaml", "jsonschema", "cronsim", "subprocess", "zoneinfo"),
}
NOT_REACHED: Final = [f"{check:<9}  not reached" for check in ("parses", "fields", "fresh", "status")]
PINNED: Final = b"loopwarden: w is pinned as the watch list has it; a change counts once it is approved\n"
"""What is said at first sight of a workflow."""
BY_DEFAULT: Final = (
    "loopwarden: there is no watch list, so status, result and timestamp are asked for;"
    " which fields yours has, a watch list says\n"
)
NIGHTLY: Final = """
[workflows.nightly]
output = "out/report-{date}.json"
required = ["status", "result.total"]
timestamp = "timestamp"
status = { allowed = ["ok", "failed"] }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the command is run: neither settings nor a watch list."""
    for name in [name for name in os.environ if name.startswith("LOOPWARDEN_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LOOPWARDEN_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def as_process(*arguments: str | bytes, **environment: str) -> Done:
    """Run it as a cron line does."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "bot", "verify", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )
    assert "Traceback" not in done.stderr
    return done


class Verify(Protocol):
    """Runs the command in this process."""

    def __call__(self, *arguments: str, **environment: str) -> Done: ...


@pytest.fixture
def verify(
    folder: Path,  # noqa: ARG001 - where it is run
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Verify:
    def run(*arguments: str, **environment: str) -> Done:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        code = main(["verify", *arguments])
        said, complained = capsys.readouterr()
        return Done(arguments, code, said, complained)

    return run


def a_report(**changes: object) -> str:
    """What a run that delivers leaves."""
    return json.dumps({"status": "ok", "result": {"total": 3}, "timestamp": now()} | changes)


def now() -> str:
    return datetime.now(UTC).isoformat()  # noqa: TID251 - another process judges it, by the clock of the machine


def today(zone: str = "UTC") -> str:
    return datetime.now(ZoneInfo(zone)).date().isoformat()  # noqa: TID251 - as above


def kept(folder: Path, columns: str, table: str = "verdict") -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "data" / FILE_NAME)) as database:
        return database.execute(f"SELECT {columns} FROM {table} ORDER BY id").fetchall()  # noqa: S608


# ── without a watch list ──────────────────────────────────────────────────────────────────────────


def test_a_run_that_delivers_passes_every_check(folder: Path, verify: Verify) -> None:
    """By the defaults: status, result and timestamp, fresh and allowed; one line each, and 0."""
    (folder / "report.json").write_text(a_report())
    done = verify("report.json")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [
        [check, "pass"] for check in ("exists", "parses", "fields", "fresh", "status")
    ]
    assert lines[0].startswith("exists     pass         report.json, ")


@pytest.mark.parametrize(
    ("written", "check"),
    [
        ("", "exists"),
        ("{", "parses"),
        (a_report(result=None, timestamp="NOW"), "fields"),
        (a_report(timestamp="2026-01-01T00:00:00Z"), "fresh"),
        (a_report(status="done", timestamp="NOW"), "status"),
    ],
)
def test_the_first_failure_decides(folder: Path, verify: Verify, written: str, check: str) -> None:
    """What comes after it is not reached, and the exit code is 1."""
    (folder / "report.json").write_text(written.replace("NOW", now()))
    done = verify("report.json")
    assert (done.returncode, done.stderr) == (1, BY_DEFAULT if check == "fields" else "")
    results = [line[11:22].rstrip() for line in done.stdout.splitlines()]
    at = ["exists", "parses", "fields", "fresh", "status"].index(check)
    assert results == ["pass"] * at + ["FAIL"] + ["not reached"] * (4 - at)


def test_fields_of_its_own_are_asked_for_without_a_word_about_the_defaults(
    folder: Path, verify: Verify
) -> None:
    (folder / "loopwarden.toml").write_text('[workflows.n]\noutput = "n.json"\nrequired = ["total"]\n')
    (folder / "n.json").write_text(a_report())
    done = verify("n")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "pinned" in done.stderr


def test_a_run_that_left_nothing_fails(folder: Path, verify: Verify) -> None:
    done = verify("report.json")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        f"exists     FAIL         {folder}/report.json does not exist, expected a regular file",
        *NOT_REACHED,
    ]


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("report.jsonl", a_report(timestamp="NOW")),
        ("report.YAML", a_report(timestamp="NOW")),
        ("report.csv", "status,result,timestamp\nok,3,NOW\n"),
        ("report.toml", 'status = "ok"\nresult = 3\ntimestamp = NOW\n'),
        ("report", a_report(timestamp="NOW")),
    ],
)
def test_the_format_is_told_by_the_end_of_the_name(
    folder: Path, verify: Verify, name: str, written: str
) -> None:
    (folder / name).write_text(written.replace("NOW", now()))
    assert verify(name).returncode == 0


def test_the_format_of_what_is_packed_is_told_by_the_name_before(folder: Path, verify: Verify) -> None:
    (folder / "report.jsonl.gz").write_bytes(gzip.compress(f"{a_report()}\n{a_report()}\n".encode()))
    assert verify("report.jsonl.gz").returncode == 0


def test_a_name_may_be_given_to_tell_runs_apart(folder: Path, verify: Verify) -> None:
    (folder / "report.json").write_text(a_report())
    verify("nightly", "report.json")
    verify("report.json")
    assert kept(folder, "workflow, outcome") == [("nightly", "pass"), (f"{folder}/report.json", "pass")]


def test_a_file_without_a_name_is_its_own_workflow(folder: Path, verify: Verify) -> None:
    """A good one resolves no alert of another."""
    (folder / "good.json").write_text(a_report())
    (folder / "bad.json").write_text("{")
    verify("bad.json")
    verify("./good.json")
    assert kept(folder, "name, failures", "workflow") == [
        (f"{folder}/bad.json", 1),
        (f"{folder}/good.json", 0),
    ]
    assert len(kept(folder, "id", "outbox")) == 1


async def test_the_defaults_say_nothing_of_a_workflow_that_the_bot_watches(
    folder: Path, verify: Verify
) -> None:
    """Its watch list is somewhere else: a pass by the defaults would close an alert of other checks."""
    async with open_database(folder / "data") as store, store.transaction() as tables:
        await tables.workflows.save(WorkflowState(name="nightly", since=1.0, judged_until=1.0))
    (folder / "out.json").write_text(a_report())
    done = verify("nightly", "out.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the bot watches nightly: let LOOPWARDEN_WATCHLIST name its watch list" in done.stderr
    async with open_database(folder / "data") as store:
        assert await store.reading.verdicts.page("nightly", None, None, 10) == []


def test_of_a_long_path_the_end_is_the_name(folder: Path, verify: Verify) -> None:
    (folder / ("x" * 250)).mkdir()
    verify(f"{'x' * 250}/report.json")
    [(name,)] = kept(folder, "name", "workflow")
    assert len(name) == 200
    assert name.endswith("xxx/report.json")


def test_a_word_that_names_no_file_is_meant_for_a_watch_list(folder: Path, verify: Verify) -> None:
    """It is no output that is missing: nothing is kept, and the watch list that was looked for is named."""
    done = verify("nightly")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"loopwarden: neither is there a watch list at {folder}/loopwarden.toml (LOOPWARDEN_WATCHLIST names"
        " another), nor a file nightly\n"
    )
    assert not (folder / "data").exists()
    (folder / "nightly").write_text(a_report())
    assert verify("nightly").returncode == 0


@pytest.mark.parametrize(
    "name", ["with\nline end.json", "ünï✓.json", "-x.json", b"\xff.json", "*[a]{date}.json"]
)
def test_a_name_may_be_unusual(folder: Path, name: str | bytes) -> None:
    """It is one line all the same, on whatever terminal."""
    Path(os.fsdecode(name)).write_text(a_report())
    done = as_process("--", name, name, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 5)
    assert kept(folder, "outcome") == [("pass",)]


# ── with a watch list ─────────────────────────────────────────────────────────────────────────────


def test_a_workflow_of_the_watch_list_is_verified(folder: Path, verify: Verify) -> None:
    """Its newest output, wherever the command is run."""
    (folder / "etc/out").mkdir(parents=True)
    (folder / "etc/watch.toml").write_text(NIGHTLY)
    (folder / f"etc/out/report-{today()}.json").write_text(a_report())
    watchlist = str(folder / "etc/watch.toml")
    assert verify("nightly", LOOPWARDEN_WATCHLIST=watchlist).returncode == 0
    (folder / f"etc/out/report-{today()}.json").unlink()
    assert verify("nightly").returncode == 1


def test_a_watch_list_is_found_where_the_bot_would_find_it(folder: Path, verify: Verify) -> None:
    (folder / "loopwarden.toml").write_text(NIGHTLY)
    (folder / "elsewhere.json").write_text(a_report())
    assert verify("nightly").returncode == 1
    assert verify("nightly", "elsewhere.json").returncode == 0


def test_the_date_is_that_of_the_zone(folder: Path, verify: Verify) -> None:
    """Of the two zones one is always a day ahead of the other."""
    (folder / "loopwarden.toml").write_text(NIGHTLY)
    (folder / "out").mkdir()
    (folder / f"out/report-{today('Pacific/Kiritimati')}.json").write_text(a_report())
    codes = {
        zone: verify("nightly", LOOPWARDEN_TZ=zone).returncode
        for zone in ("Pacific/Kiritimati", "Etc/GMT+12")
    }
    assert codes == {"Pacific/Kiritimati": 0, "Etc/GMT+12": 1}


def test_the_id_of_a_run_fills_in_the_name_of_its_output(folder: Path, verify: Verify) -> None:
    (folder / "loopwarden.toml").write_text('[workflows.w]\noutput = "{run}.txt"\nformat = "text"\n')
    (folder / "a.txt").write_text("here")
    assert [verify("w", "--run", "a").returncode, verify("w", "--run=b").returncode] == [0, 1]
    assert kept(folder, "reported", "run") == [("a",), ("b",)]


def test_the_command_of_a_workflow_is_run(folder: Path, verify: Verify) -> None:
    (folder / "loopwarden.toml").write_text(
        '[workflows.w]\noutput = "x.txt"\nformat = "text"\ncommand = { argv = ["grep", "-q", "good", "{path}"] }\n'
    )
    (folder / "x.txt").write_text("good")
    assert verify("w").returncode == 0
    (folder / "x.txt").write_text("bad")
    done = verify("w")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("command    FAIL ")


# ── what is kept ──────────────────────────────────────────────────────────────────────────────────


async def test_a_verdict_is_kept_and_told_while_the_bot_runs(folder: Path, verify: Verify) -> None:
    """In the bot's own database, in the midst of it."""
    async with open_database(folder / "data") as store:
        assert verify("nightly", "report.json").returncode == 1
        [newest] = await store.reading.verdicts.page(None, None, None, 10)
        assert (newest.workflow, newest.by, newest.outcome) == ("nightly", Trigger.COMMAND, Outcome.FAIL)
        async with store.transaction() as tables:
            assert await tables.outbox.due(newest.at, "-1001") is not None


def test_a_run_that_delivers_is_not_told(folder: Path, verify: Verify) -> None:
    (folder / "report.json").write_text(a_report())
    verify("report.json")
    assert kept(folder, "id", "outbox") == []


def test_an_honest_failure_passes_and_is_told(folder: Path, verify: Verify) -> None:
    (folder / "report.json").write_text(a_report(status="failed"))
    assert verify("report.json").returncode == 0
    assert kept(folder, "outcome, says_failed") == [("pass", 1)]
    assert len(kept(folder, "id", "outbox")) == 1


def test_the_same_run_verified_again_is_a_new_verdict_of_it(folder: Path, verify: Verify) -> None:
    (folder / "report.json").write_text(a_report())
    for run in ("7", "7", "8"):
        verify("report.json", "--run", run)
    assert kept(folder, "run_id") == [(1,), (1,), (2,)]


def test_a_stale_copy_is_told_by_what_was_kept(folder: Path, verify: Verify) -> None:
    """The same content under a new timestamp, from another run."""
    (folder / "loopwarden.toml").write_text(NIGHTLY.replace("{date}", "x") + "unchanged = true\n")
    (folder / "out").mkdir()
    codes = []
    for run in ("1", "2"):
        (folder / "out/report-x.json").write_text(a_report())
        codes.append(verify("nightly", "--run", run).returncode)
    assert codes == [0, 1]


@pytest.mark.parametrize("written", [a_report(timestamp="NOW"), "{"])
def test_a_database_that_cannot_be_used_changes_no_verdict(
    folder: Path, verify: Verify, written: str
) -> None:
    """It is said on the standard error."""
    (folder / "report.json").write_text(written.replace("NOW", now()))
    before = verify("report.json")
    shutil.rmtree(folder / "data")
    (folder / "data").touch()
    done = verify("report.json")
    assert done.returncode == before.returncode
    assert len(done.stdout.splitlines()) == 5
    assert done.stderr.startswith("loopwarden: warning: the verdict is not kept: ")


def test_a_database_of_a_newer_release_is_left_alone(folder: Path, verify: Verify) -> None:
    (folder / "report.json").write_text(a_report())
    verify("report.json")
    with closing(sqlite3.connect(folder / "data" / FILE_NAME)) as database:
        database.execute("PRAGMA user_version = 1000")
    done = verify("report.json")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "newer release" in done.stderr
    assert len(kept(folder, "id")) == 1


# ── what is asked wrongly ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "arguments",
    [[], [""], ["a", ""], ["a", "b", "c"], ["--run", "x"], ["a", "--run"], ["a", "--run="], ["a", "-x"]],
)
def test_what_makes_no_sense_is_an_error_with_the_usage(
    folder: Path, verify: Verify, arguments: list[str]
) -> None:
    done = verify(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "\nusage: loopwarden verify NAME [PATH] [--run ID]" in done.stderr
    assert not (folder / "data").exists()


NO_FILE: Final = (
    "w.toml: no such file; write one after loopwarden.example.toml, or let LOOPWARDEN_WATCHLIST name yours"
)


@pytest.mark.parametrize(
    ("name", "watchlist", "message"),
    [
        ("nighly", NIGHTLY, "w.toml: no workflow of that name (did you mean nightly?); known: nightly"),
        ("nightly", "[workflows.nightly]", "the watch list is wrong: workflows.nightly.output: missing"),
        (
            "nightly",
            "[",
            "the watch list is wrong: line 1, column 2: invalid initial character for a key part",
        ),
        ("nightly", None, f"the watch list is wrong: {NO_FILE}"),
    ],
)
def test_an_error_of_the_specification_is_one_line(
    folder: Path, verify: Verify, name: str, watchlist: str | None, message: str
) -> None:
    if watchlist is not None:
        (folder / "w.toml").write_text(watchlist)
    done = verify(name, LOOPWARDEN_WATCHLIST="w.toml")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"loopwarden: {message}\n")


def test_a_path_alone_is_no_workflow_of_a_watch_list(folder: Path, verify: Verify) -> None:
    """How it is asked then is said, if something lies there."""
    (folder / "loopwarden.toml").write_text(NIGHTLY)
    (folder / "x.json").write_text(a_report())
    unknown = "loopwarden: loopwarden.toml: no workflow of that name; known: nightly"
    assert verify("x.json").stderr == f"{unknown}; with a watch list: loopwarden verify NAME x.json\n"
    assert verify("y.json").stderr == f"{unknown}\n"
    assert verify("x.json", "x.json").stderr == f"{unknown}\n"
    assert not (folder / "data").exists()


@pytest.mark.parametrize("run", ["../../etc/passwd", "a\nb", "\x1b[31m", "x" * 300])
def test_an_id_that_nobody_could_report_is_an_error(folder: Path, verify: Verify, run: str) -> None:
    """As over HTTP."""
    (folder / "report.json").write_text(a_report())
    done = verify("report.json", "--run", run)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("loopwarden: --run: must ")
    assert not (folder / "data").exists()


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (None, "the schema cannot be used: {path} does not exist, expected a regular file"),
        ("{", "the schema cannot be used: {path} is no JSON"),
        (
            '{"type": "nonsense"}',
            "the schema {path} is wrong at $.type: 'nonsense' is not valid under any of the given schemas",
        ),
    ],
)
def test_a_schema_that_cannot_be_used_is_an_error_of_the_specification(
    folder: Path, verify: Verify, schema: str | None, message: str
) -> None:
    """And no run that has failed."""
    (folder / "loopwarden.toml").write_text(NIGHTLY + 'schema = "s.json"\n')
    if schema is not None:
        (folder / "s.json").write_text(schema)
    done = verify("nightly")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"loopwarden: {message.format(path=folder / 's.json')}\n"
    assert not (folder / "data").exists()


def test_an_unknown_zone_is_an_error(folder: Path, verify: Verify) -> None:
    (folder / "report.json").write_text(a_report())
    done = verify("report.json", LOOPWARDEN_TZ="Europe/Berln")
    assert done.returncode == 2
    assert (
        done.stderr == "loopwarden: LOOPWARDEN_TZ: is no known time zone; use a name such as Europe/Berlin\n"
    )


@pytest.mark.usefixtures("folder")
def test_its_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["verify", "--help"])
    assert ended.value.code == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "[--run ID]" in said
    assert "0 if the run delivered, 1 if not, 2 if it was asked wrongly, the watch list is wrong" in said
    assert "Without a watch list, the last word is the PATH" in said


# ── around it ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("output", ["/dev/full", None])
def test_who_does_not_read_what_it_says_changes_no_verdict(folder: Path, output: str | None) -> None:
    """A full disk, or a pipe that nobody reads from."""
    (folder / "report.json").write_text(a_report())
    if output is None:
        reading, writing = os.pipe()
        os.close(reading)
    else:
        writing = os.open(output, os.O_WRONLY)
    command = [sys.executable, "-m", "bot", "verify", "report.json"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False, timeout=60)  # noqa: S603
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")
    assert kept(folder, "outcome") == [("pass",)]


def test_closed_outputs_change_no_verdict(folder: Path) -> None:
    (folder / "report.json").write_text(a_report())
    command = f"{sys.executable} -m bot verify report.json >&- 2>&- <&-"
    assert subprocess.run(["/bin/sh", "-c", command], check=False, timeout=60).returncode == 0  # noqa: S603
    assert kept(folder, "outcome") == [("pass",)]


@pytest.mark.usefixtures("folder")
def test_a_folder_that_is_gone_is_a_verdict() -> None:
    command = f"mkdir gone && cd gone && rmdir ../gone && {sys.executable} -m bot verify report.json"
    done = subprocess.run(  # noqa: S603
        ["/bin/sh", "-c", command], check=False, timeout=60, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("exists     FAIL ")


def test_an_interrupt_ends_it_without_a_word(folder: Path) -> None:
    """And what it had started; that fills the pipe to it first, so it is listened to when the signal comes."""
    os.mkfifo(folder / "started")
    # Opened for both, so that it is only waited for as long as one should.
    started = os.open(folder / "started", os.O_RDWR)
    (folder / "x.txt").write_text("x")
    (folder / "loopwarden.toml").write_text(
        '[workflows.w]\noutput = "x.txt"\nformat = "text"\n'
        'command = { argv = ["/bin/sh", "-c", "head -c 200000 /dev/zero; echo $$ > started; exec sleep 1000"] }\n'
    )
    with subprocess.Popen(
        [sys.executable, "-m", "bot", "verify", "w"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert select.select([started], [], [], 60)[0], process.communicate()
        sleeper = int(os.read(started, 100))
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60) == (b"", PINNED)
    os.close(started)
    assert process.returncode == 130
    with pytest.raises(ProcessLookupError):
        os.kill(sleeper, 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_no_signal_leaves_its_command_behind(folder: Path, number: signal.Signals) -> None:
    """Nor what that has started: all of them hold a pipe open."""
    os.mkfifo(folder / "held")
    held = os.open(folder / "held", os.O_RDONLY | os.O_NONBLOCK)
    (folder / "x.txt").write_text("x")
    (folder / "loopwarden.toml").write_text(
        '[workflows.w]\noutput = "x.txt"\nformat = "text"\n'
        'command = { argv = ["/bin/sh", "-c", "exec 3>held; sleep 1000 & echo up >&3; wait"] }\n'
    )
    with subprocess.Popen(
        [sys.executable, "-m", "bot", "verify", "w"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert select.select([held], [], [], 60)[0], process.communicate()
        assert os.read(held, 100) == b"up\n"
        process.send_signal(number)
        assert process.communicate(timeout=60) == (b"", PINNED)
    assert process.returncode == 128 + number
    assert select.select([held], [], [], 60)[0]
    assert os.read(held, 100) == b""
    os.close(held)


def test_it_imports_little(folder: Path) -> None:
    """A cron line waits for it: no event loop, no settings, nothing of the chat."""
    (folder / "loopwarden.toml").write_text(NIGHTLY)
    code = "import sys; from bot.__main__ import main; main(['verify', 'nightly']); print(*sys.modules)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=unmeasured())  # noqa: S603
    assert done.stdout.startswith("exists     FAIL ")
    loaded = set(done.stdout.splitlines()[-1].split())
    assert loaded & HEAVY == set()
