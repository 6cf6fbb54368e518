"""`loopwarden verify` judges by what was approved; `loopwarden approve` is for people without a chat."""

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from bot.__main__ import main
from jobs.store.database import open_database
from jobs.store.schema import FILE_NAME
from tests.jobs.pins import ADMIN, PinWorld

Done = subprocess.CompletedProcess[str]
Run = Callable[..., Done]

NIGHTLY: Final = """
[workflows.nightly]
output = "out.json"
required = ["status", "total"]
"""
LAX: Final = '[workflows.nightly]\noutput = "out.json"\n'
SCRIPT: Final = """
[workflows.tested]
output = "out.json"
command = { argv = ["./check.sh", "{path}"] }
"""
PINNED: Final = (
    "loopwarden: nightly is pinned as the watch list has it; a change counts once it is approved\n"
)
WARNING: Final = "loopwarden: warning: {why}; what was approved of nightly counts\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the commands are run, with an output that lacks its total."""
    for name in [name for name in os.environ if name.startswith("LOOPWARDEN_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LOOPWARDEN_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loopwarden.toml").write_text(NIGHTLY)
    leave(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:  # noqa: ARG001 - where it is run
    def run(*arguments: str) -> Done:
        code = main([*arguments])
        said, complained = capsys.readouterr()
        return Done(arguments, code, said, complained)

    return run


def leave(folder: Path, **more: object) -> None:
    """Write what a run leaves."""
    now = datetime.now(UTC).isoformat()  # noqa: TID251 - judged by the clock of the machine
    report = {"status": "ok", "result": 1, "timestamp": now, **more}
    (folder / "out.json").write_text(json.dumps(report))


def kept(folder: Path, columns: str, table: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "data" / FILE_NAME)) as database:
        return database.execute(f"SELECT {columns} FROM {table} ORDER BY id").fetchall()  # noqa: S608


async def watched(folder: Path) -> None:
    """Let a bot have looked."""
    async with open_database(folder / "data") as store:
        await PinWorld(folder=folder, store=store).pinning.begin()
        async with store.transaction() as tables:
            await tables.presence.note(1.0)


def save_script(folder: Path, text: str) -> None:
    script = folder / "check.sh"
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o755)


# ── what counts ───────────────────────────────────────────────────────────────────────────────────


def test_at_first_sight_a_workflow_is_pinned_which_is_said_here_and_in_the_chat(
    folder: Path, run: Run
) -> None:
    done = run("verify", "nightly")
    assert (done.returncode, done.stderr) == (1, PINNED)
    assert kept(folder, "kind, name, how, by", "pin") == [("workflow", "nightly", "first verify", None)]
    told = kept(folder, "body ->> 'notice', body ->> 'how', body ->> '$.entries[0].name'", "outbox")
    assert told[0] == ("FirstUseNotice", "first verify", "nightly")
    assert run("verify", "nightly").stderr == ""
    assert len(kept(folder, "id", "pin")) == 1


@pytest.mark.parametrize(
    ("watchlist", "why"),
    [
        (LAX, "the watch list differs"),
        ("[", "line 1, column 2: invalid initial character for a key part"),
        (
            '[workflows.other]\noutput = "x"\n',
            "loopwarden.toml: no workflow of that name; known: other",
        ),
        (None, "neither is there a watch list at {folder}/loopwarden.toml"),
    ],
    ids=["edited", "wrong", "without it", "gone"],
)
def test_an_edited_watch_list_changes_nothing(
    folder: Path, run: Run, watchlist: str | None, why: str
) -> None:
    """Nor does one that is wrong or gone: it is said, and what was approved counts."""
    before = run("verify", "nightly")
    (folder / "loopwarden.toml").unlink()
    if watchlist is not None:
        (folder / "loopwarden.toml").write_text(watchlist)
    done = run("verify", "nightly")
    assert (done.returncode, done.stdout.splitlines()[2:]) == (1, before.stdout.splitlines()[2:])
    assert done.stderr.startswith(f"loopwarden: warning: {why.format(folder=folder)}")
    assert done.stderr.endswith("; what was approved of nightly counts\n")
    leave(folder, total=3)
    assert run("verify", "nightly").returncode == 0


def test_another_output_is_judged_by_what_was_approved_too(folder: Path, run: Run) -> None:
    run("verify", "nightly")
    (folder / "loopwarden.toml").unlink()
    (folder / "other.json").write_text('{"status": "ok", "timestamp": 1, "result": 1}')
    done = run("verify", "nightly", "other.json")
    assert (done.returncode, "total" in done.stdout) == (1, True)
    assert done.stderr == WARNING.format(why="there is no watch list")


def test_the_defaults_are_never_pinned(folder: Path, run: Run) -> None:
    (folder / "loopwarden.toml").unlink()
    done = run("verify", "nightly", "out.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert kept(folder, "id", "pin") == []


async def test_what_the_bot_has_pinned_counts(folder: Path, run: Run) -> None:
    await watched(folder)
    (folder / "loopwarden.toml").write_text(LAX)
    done = run("verify", "nightly")
    assert (done.returncode, done.stderr) == (1, WARNING.format(why="the watch list differs"))
    assert len(kept(folder, "id", "pin")) == 1


async def test_what_was_pinned_here_is_no_first_sight_for_the_bot(folder: Path, run: Run) -> None:
    """It has been told already; what differs since is asked."""
    run("verify", "nightly")
    (folder / "loopwarden.toml").write_text(LAX)
    async with open_database(folder / "data") as store:
        world = PinWorld(folder=folder, store=store)
        await world.pinning.begin()
        assert world.watch.workflows()["nightly"].required == ("status", "total")
        proposal = await world.proposal()
        await world.pinning.approve(proposal.id, ADMIN)
    assert run("verify", "nightly").returncode == 0


def test_a_pin_that_was_altered_does_not_count(folder: Path, run: Run) -> None:
    run("verify", "nightly")
    with closing(sqlite3.connect(folder / "data" / FILE_NAME)) as database:
        database.execute("INSERT INTO pin SELECT 9, kind, name, '{}', hash, how, by, at FROM pin")
        database.commit()
    assert run("verify", "nightly").returncode == 1


async def test_where_nothing_else_was_approved_an_altered_pin_is_no_first_sight(
    folder: Path, run: Run
) -> None:
    await watched(folder)
    with closing(sqlite3.connect(folder / "data" / FILE_NAME)) as database:
        database.execute("UPDATE pin SET entry = '{}'")
        database.commit()
    done = run("verify", "nightly")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "loopwarden: nightly is not approved yet: see the chat\n"


def test_without_a_database_the_watch_list_counts(folder: Path, run: Run) -> None:
    """It is said that nothing is kept."""
    run("verify", "nightly")
    (folder / "loopwarden.toml").write_text(LAX)
    shutil.rmtree(folder / "data")
    (folder / "data").touch()
    done = run("verify", "nightly")
    assert done.returncode == 0
    assert done.stderr.startswith("loopwarden: warning: the verdict is not kept: ")


# ── what it runs ──────────────────────────────────────────────────────────────────────────────────


def test_a_program_that_was_written_over_is_not_run(folder: Path, run: Run) -> None:
    (folder / "loopwarden.toml").write_text(SCRIPT)
    save_script(folder, "exit 1")
    assert run("verify", "tested").returncode == 1
    save_script(folder, "touch run; exit 0")
    done = run("verify", "tested")
    assert (done.returncode, (folder / "run").exists()) == (1, False)
    assert "warning: the watch list differs" in done.stderr
    assert "not the file that was approved" in done.stdout


async def test_a_new_program_waits_for_approval_where_a_bot_looks(folder: Path, run: Run) -> None:
    await watched(folder)
    (folder / "loopwarden.toml").write_text(NIGHTLY + SCRIPT + LAX.replace("nightly", "plain"))
    save_script(folder, "touch run")
    done = run("verify", "tested")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "loopwarden: tested is not approved yet: see the chat\n"
    assert not (folder / "run").exists()
    assert run("verify", "plain").returncode == 0
    assert [name for (name,) in kept(folder, "name", "pin")] == ["nightly", "plain"]


def test_a_schema_that_was_written_over_changes_nothing(folder: Path, run: Run) -> None:
    (folder / "loopwarden.toml").write_text(LAX + 'schema = "s.json"\n')
    (folder / "s.json").write_text('{"required": ["total"]}')
    assert run("verify", "nightly").returncode == 1
    (folder / "s.json").write_text("{}")
    done = run("verify", "nightly")
    assert (done.returncode, done.stderr) == (1, WARNING.format(why="the watch list differs"))


# ── approved without a chat ───────────────────────────────────────────────────────────────────────


def test_what_is_approved_counts_from_now_on(folder: Path, run: Run) -> None:
    """What differs is shown field by field, the looser first."""
    run("verify", "nightly")
    (folder / "loopwarden.toml").write_text(LAX + 'required = ["status", "result"]\nmax_age = "10m"\n')
    done = run("approve", "nightly")
    assert (done.returncode, done.stderr) == (0, "")
    first, *changes = [line.split() for line in done.stdout.splitlines()]
    assert first == ["nightly:", "approved"]
    assert [change[0] for change in changes] == ["looser", "stricter", "stricter"]
    assert ["stricter", "max_age:", "30", "min", "->", "10", "min"] in changes
    assert (run("verify", "nightly").returncode, kept(folder, "how", "pin")[-1]) == (0, ("approved",))
    assert run("approve", "nightly").stdout == "nightly: nothing differs from what was approved\n"


def test_what_is_gone_can_be_approved_too(folder: Path, run: Run) -> None:
    run("verify", "nightly")
    (folder / "loopwarden.toml").write_text(SCRIPT)
    save_script(folder, "exit 0")
    done = run("approve", "nightly", "tested")
    lines = done.stdout.splitlines()
    assert (done.returncode, lines[0], lines[1].split()[0]) == (0, "nightly: removed", "looser")
    assert "tested: approved" in lines
    assert "  not pinned: {path}, which is another one each time" in lines
    assert run("verify", "nightly").returncode == 2


async def test_a_first_start_of_the_bot_after_that_is_a_first_sight(folder: Path, run: Run) -> None:
    """All that nobody has approved yet is in force at once."""
    run("approve", "nightly")
    killer = '[killers.stopper]\nkind = "process"\nmatch = "sleep 1000"\n'
    source = '[[sources]]\nname = "gateway"\npath = "calls.jsonl"\nkiller = "stopper"\n'
    (folder / "loopwarden.toml").write_text(source + killer + NIGHTLY)
    async with open_database(folder / "data") as store:
        world = PinWorld(folder=folder, store=store)
        await world.pinning.begin()
        assert world.watch.sources()["gateway"].killer is not None


async def test_where_a_bot_has_looked_the_chat_decides(folder: Path, run: Run) -> None:
    await watched(folder)
    (folder / "loopwarden.toml").write_text(LAX)
    done = run("approve", "nightly")
    assert (done.returncode, done.stdout) == (2, "")
    assert "approved in the chat" in done.stderr
    assert len(kept(folder, "id", "pin")) == 1


@pytest.mark.parametrize(
    ("watchlist", "code", "message"),
    [
        (NIGHTLY, 2, "no workflow of that name; known: nightly"),
        ("[", 2, "the watch list is wrong: line 1"),
        (NIGHTLY.replace("nightly", "strange") + 'schema = "gone.json"\n', 2, "the schema cannot be used"),
    ],
    ids=["unknown", "wrong", "schema"],
)
def test_what_cannot_be_approved_leaves_nothing_behind(
    folder: Path, run: Run, watchlist: str, code: int, message: str
) -> None:
    (folder / "loopwarden.toml").write_text(watchlist)
    done = run("approve", "strange")
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert not (folder / "data").exists()


def test_of_several_all_are_approved_or_none(folder: Path, run: Run) -> None:
    run("verify", "nightly")
    (folder / "loopwarden.toml").write_text(LAX)
    done = run("approve", "nightly", "strange")
    assert (done.returncode, done.stdout) == (2, "")
    assert "strange: neither in the watch list nor pinned" in done.stderr
    assert len(kept(folder, "id", "pin")) == 1


def test_a_database_that_cannot_be_used_keeps_no_approval(folder: Path, run: Run) -> None:
    (folder / "data").touch()
    done = run("approve", "nightly")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("loopwarden: nothing is approved: ")
