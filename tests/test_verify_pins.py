"""`loopwarden verify` judges by what was approved; `loopwarden approve` is for people without a chat."""

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from bot.__main__ import main
from jobs.store import blocking
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
WARNING: Final = "loopwarden: warning: {why}; what was pinned of nightly counts\n"
DIFFERS: Final = "loopwarden: warning: the watch list differs; what was pinned of nightly counts until the change is approved: {how}\n"
BY_HAND: Final = "`loopwarden approve nightly`"
IN_THE_CHAT: Final = "see the chat"


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
    ending = DIFFERS.format(how=BY_HAND) if watchlist == LAX else WARNING
    assert done.stderr.endswith(ending[ending.index("; what was pinned") :])
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
    assert (done.returncode, done.stderr) == (1, DIFFERS.format(how=IN_THE_CHAT))
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
    assert done.stderr == "loopwarden: the pin of nightly was altered in the database: see the chat\n"


def test_without_a_chat_an_altered_pin_is_approved_anew(folder: Path, run: Run) -> None:
    run("approve", "nightly")
    with closing(sqlite3.connect(folder / "data" / FILE_NAME)) as database:
        database.execute("UPDATE pin SET entry = '{}'")
        database.commit()
    done = run("verify", "nightly")
    assert (done.returncode, done.stderr) == (
        2,
        f"loopwarden: the pin of nightly was altered in the database: {BY_HAND}\n",
    )
    assert run("approve", "nightly").returncode == 0
    assert run("verify", "nightly").returncode == 1


def test_without_a_database_the_watch_list_counts(folder: Path, run: Run) -> None:
    """It is said that nothing is kept, and that what was pinned is not known."""
    run("verify", "nightly")
    (folder / "loopwarden.toml").write_text(LAX)
    shutil.rmtree(folder / "data")
    (folder / "data").touch()
    done = run("verify", "nightly")
    assert done.returncode == 0
    assert done.stderr.startswith("loopwarden: warning: the verdict is not kept: ")
    assert done.stderr.endswith("; what was pinned is not known, so the watch list counts\n")


@pytest.mark.parametrize("harm", ["locked", "damaged", "of a later release", "out of reach"])
def test_where_what_was_pinned_cannot_be_read_nothing_passes(
    folder: Path, run: Run, harm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever keeps the database from being read would have the file believed. The checks are shown."""
    monkeypatch.setattr(blocking, "_PATIENCE", 0.0)
    run("verify", "nightly")
    (folder / "loopwarden.toml").write_text(LAX)
    with harmed(folder / "data" / FILE_NAME, harm):
        done = run("verify", "nightly")
    assert done.returncode == 2
    assert [line.split()[1] for line in done.stdout.splitlines()] == ["pass"] * 3
    assert done.stderr.startswith("loopwarden: warning: the verdict is not kept: ")
    assert done.stderr.endswith("; what was pinned is not known: this is only what the watch list says\n")


@contextmanager
def harmed(database: Path, harm: str) -> Iterator[None]:
    with closing(sqlite3.connect(database, isolation_level=None)) as holder:
        if harm == "of a later release":
            holder.execute("PRAGMA user_version = 99")
        holder.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if harm == "locked":
            holder.execute("PRAGMA locking_mode = EXCLUSIVE")
            holder.execute("BEGIN EXCLUSIVE")
            yield
            return
    if harm == "damaged":
        database.write_bytes(b"no database" * 1000)
    elif harm == "out of reach":
        database.unlink()
        database.symlink_to(database.parent / "gone" / "gone")
    yield


# ── what it runs ──────────────────────────────────────────────────────────────────────────────────


def copies(folder: Path) -> list[Path]:
    return list((folder / "data/approved").iterdir())


def test_of_a_program_that_was_written_over_the_approved_copy_is_run(folder: Path, run: Run) -> None:
    (folder / "loopwarden.toml").write_text(SCRIPT)
    save_script(folder, "exit 1")
    assert run("verify", "tested").returncode == 1
    save_script(folder, "touch run; exit 0")
    done = run("verify", "tested")
    assert (done.returncode, (folder / "run").exists()) == (1, False)
    assert "warning: the watch list differs" in done.stderr
    said = "ran the approved copy of check.sh, whose file has changed; exit code 1 after"
    assert said in done.stdout


def test_without_that_copy_it_is_not_run(folder: Path, run: Run) -> None:
    """Where none can be kept, nothing else is the worse for it."""
    (folder / "loopwarden.toml").write_text(SCRIPT)
    (folder / "data").mkdir()
    (folder / "data/approved").touch()
    save_script(folder, "exit 0")
    assert run("verify", "tested").returncode == 0
    save_script(folder, "touch run; exit 0")
    done = run("verify", "tested")
    assert (done.returncode, (folder / "run").exists()) == (1, False)
    assert "not the file that was approved" in done.stdout


def test_a_program_that_was_approved_is_copied_in_the_place_of_the_one_before(folder: Path, run: Run) -> None:
    (folder / "loopwarden.toml").write_text(SCRIPT)
    save_script(folder, "exit 1")
    run("verify", "tested")
    save_script(folder, "exit 0")
    assert run("approve", "tested").returncode == 0
    assert [copy.read_text() for copy in copies(folder)] == ["#!/bin/sh\nexit 0\n"]
    save_script(folder, "exit 1")
    assert run("verify", "tested").returncode == 0


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
    assert (done.returncode, done.stderr) == (1, DIFFERS.format(how=BY_HAND))


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
    assert run("approve", "nightly").stdout == "nightly: nothing differs from what is pinned\n"


def test_what_is_new_is_approved_without_a_mark(folder: Path, run: Run) -> None:
    """There is nothing that it could be compared with."""
    (folder / "loopwarden.toml").write_text(SCRIPT)
    save_script(folder, "exit 0")
    done = run("approve", "tested")
    lines = done.stdout.splitlines()
    assert (done.returncode, lines[0]) == (0, "tested: approved")
    assert lines[1] == f"  output: {folder}/out.json"
    assert "  not pinned: {path}, which is another one each time" in lines


def test_what_is_gone_is_removed_only_if_that_is_asked_for(folder: Path, run: Run) -> None:
    """A slip in the watch list must not take a workflow out of force."""
    run("verify", "nightly")
    (folder / "loopwarden.toml").write_text(LAX.replace("nightly", "other"))
    done = run("approve", "nightly")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "loopwarden: nightly is no longer in the watch list: --remove takes it out of force\n"
    )
    assert run("verify", "nightly").returncode == 1
    done = run("approve", "--remove", "nightly")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "nightly: removed")
    assert "  looser     required: removed status, total" in done.stdout.splitlines()
    assert run("verify", "nightly").returncode == 2


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["nightly"], "nightly is in the watch list: what is there is not removed"),
        ([], "--remove: a NAME must follow"),
    ],
)
def test_what_is_not_gone_is_not_removed(folder: Path, run: Run, names: Sequence[str], message: str) -> None:
    run("verify", "nightly")
    done = run("approve", "--remove", *names)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"loopwarden: {message}\n")
    assert len(kept(folder, "id", "pin")) == 1


def test_without_a_name_it_is_shown_what_differs_and_nothing_is_pinned(folder: Path, run: Run) -> None:
    run("verify", "nightly")
    done = run("approve")
    assert (done.returncode, done.stdout) == (0, "nothing differs from what is pinned\n")
    (folder / "loopwarden.toml").write_text(NIGHTLY + 'max_age = "1d"\n' + LAX.replace("nightly", "new"))
    done = run("approve")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "nightly: differs",
        "  looser     max_age: 30 min -> 1 d",
        "new: not pinned yet",
        f"  output: {folder}/out.json",
    ]
    (folder / "loopwarden.toml").write_text(LAX.replace("nightly", "new"))
    assert "nightly: no longer in the watch list" in run("approve").stdout.splitlines()
    assert len(kept(folder, "id", "pin")) == 1


def test_to_show_what_differs_needs_no_database(folder: Path, run: Run) -> None:
    done = run("approve")
    assert (done.returncode, done.stdout.splitlines()[0]) == (1, "nightly: not pinned yet")
    assert not (folder / "data").exists()


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
    """Who has no chat is told the way out."""
    await watched(folder)
    (folder / "loopwarden.toml").write_text(LAX)
    done = run("approve", "nightly")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "loopwarden: a bot has looked at this watch list: what it says is approved in the chat;"
        " without a chat, begin anew with another LOOPWARDEN_DATA_DIR\n"
    )
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


async def test_where_a_bot_has_pinned_nothing_is_approved_by_hand(folder: Path, run: Run) -> None:
    """Also if it did not live long enough to note that it was there, or that was taken out."""
    await watched(folder)
    with closing(sqlite3.connect(folder / "data" / FILE_NAME)) as database:
        database.execute("DELETE FROM presence")
        database.commit()
    (folder / "loopwarden.toml").write_text(LAX)
    done = run("approve", "nightly")
    assert done.returncode == 2
    assert "a bot has looked at this watch list" in done.stderr


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
