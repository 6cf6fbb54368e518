"""What was approved is run, whatever has become of the file that held it."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs import approved_copies
from jobs.approved_copies import LARGEST, ApprovedCopies
from jobs.contents import with_contents
from jobs.killers.command import CommandKiller
from jobs.killers.registry import killers_of
from jobs.ports import Outcome, Stopped
from jobs.runners.command import ProcessRunner
from jobs.verification.checks import Ran
from jobs.verification.spec import CommandCheck, Names, WorkflowSpec
from jobs.watchlist.killers import CommandSpec
from tests.killers.conftest import TARGET

SCRIPT = "#!/bin/sh\necho ran $0 $1"
EXIT_0 = "the command ended with exit code 0"


@pytest.fixture
def copies(tmp_path: Path) -> ApprovedCopies:
    return ApprovedCopies(f"{tmp_path}/approved")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "stop.sh"
    path.write_text(SCRIPT)
    path.chmod(0o755)
    return path


def approved(copies: ApprovedCopies, folder: Path, *argv: str) -> CommandSpec:
    spec = with_contents(CommandSpec(argv=argv, folder=f"{folder}"))
    copies.add([spec])
    return spec


def kept(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "approved").iterdir() if path.is_file())


async def stop(spec: CommandSpec, copies: ApprovedCopies | None) -> Stopped:
    return await killers_of({"cli": spec}, copies)["cli"].stop(TARGET, harder=False)


def instead(path: Path) -> str:
    return f"ran the approved copy of {path.name}, whose file has changed"


def planted(script: Path) -> None:
    script.write_text("#!/bin/sh\necho planted")


def replaced(script: Path) -> None:
    script.unlink()
    script.symlink_to("/bin/true")


def locked(script: Path) -> None:
    script.chmod(0o644)


# ── what is run ───────────────────────────────────────────────────────────────────────────────────


async def test_a_program_that_is_as_it_was_approved_is_run_where_it_is(
    copies: ApprovedCopies, script: Path
) -> None:
    spec = approved(copies, script.parent, "./stop.sh", "{session}")
    stopped = await stop(spec, copies)
    assert stopped == Stopped(outcome=Outcome.STOPPED, detail=f"{EXIT_0}: ran ./stop.sh s-1")


@pytest.mark.parametrize("change", [planted, Path.unlink, replaced, locked])
async def test_of_a_program_that_has_changed_the_approved_copy_is_run(
    copies: ApprovedCopies, tmp_path: Path, script: Path, change: Callable[[Path], object]
) -> None:
    """Whatever an agent does to the file: the stop is carried out, and says how."""
    spec = approved(copies, tmp_path, "./stop.sh", "{session}")
    [copy] = kept(tmp_path)
    change(script)
    assert await stop(spec, copies) == Stopped(
        outcome=Outcome.STOPPED, detail=f"{instead(script)}; {EXIT_0}: ran {copy} s-1"
    )


async def test_a_folder_that_was_moved_away_does_not_keep_a_stop_from_being_carried_out(
    copies: ApprovedCopies, tmp_path: Path
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there/stop.sh").write_text("pwd")
    spec = approved(copies, tmp_path / "there", "sh", "stop.sh")
    assert (await stop(spec, copies)).detail == f"{EXIT_0}: {tmp_path}/there"
    (tmp_path / "there").rename(tmp_path / "elsewhere")
    stopped = await stop(spec, copies)
    detail = f"{instead(tmp_path / 'there/stop.sh')}; {EXIT_0}: /"
    assert stopped == Stopped(outcome=Outcome.STOPPED, detail=detail)


async def test_a_script_that_an_interpreter_is_given_is_replaced_in_its_place(
    copies: ApprovedCopies, tmp_path: Path, script: Path
) -> None:
    """Another word that reads the same, but names no file there, is left as it is."""
    spec = approved(copies, tmp_path, "sh", "stop.sh", "-stop.sh")
    planted(script)
    [copy] = kept(tmp_path)
    stopped = await stop(spec, copies)
    assert stopped.detail == f"{instead(script)}; {EXIT_0}: ran {copy} -stop.sh"


async def test_several_files_are_replaced_and_named(
    copies: ApprovedCopies, tmp_path: Path, script: Path
) -> None:
    (tmp_path / "rules").write_text("of old")
    spec = approved(copies, tmp_path, "cat", "stop.sh", "rules")
    for path in (script, tmp_path / "rules"):
        planted(path)
    assert (await stop(spec, copies)).detail == (
        "ran the approved copies of stop.sh and rules, whose files have changed;"
        f" {EXIT_0}: echo ran $0 $1of old"
    )


async def test_a_program_is_told_the_name_it_was_called_by(
    copies: ApprovedCopies, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that does what it is called for, as busybox does, still does it."""
    monkeypatch.setattr(approved_copies, "LARGEST", 100_000_000)
    shell = Path(shutil.copy("/bin/sh", tmp_path / "echo"))
    spec = approved(copies, tmp_path, "./echo", "-c", "echo called $0")
    replaced(shell)
    assert (await stop(spec, copies)).detail.endswith(f"{EXIT_0}: called ./echo")


@pytest.mark.parametrize("tampering", ["none kept", "kept by nobody", "changed", "gone"])
async def test_without_a_copy_that_is_as_it_was_approved_it_is_refused(
    copies: ApprovedCopies, tmp_path: Path, script: Path, tampering: str
) -> None:
    spec = approved(copies, tmp_path, "./stop.sh")
    [copy] = kept(tmp_path)
    planted(script)
    if tampering == "changed":
        copy.unlink()
        planted(copy)
        copy.chmod(0o755)
    elif tampering == "gone":
        copy.unlink()
    elif tampering == "kept by nobody":
        copies = ApprovedCopies(f"{tmp_path}/nowhere")
    detail = f"{tmp_path}/./stop.sh is not the file that was approved"
    refused = Stopped(outcome=Outcome.REFUSED, detail=detail)
    assert await stop(spec, None if tampering == "none kept" else copies) == refused


async def test_what_was_no_file_when_it_was_approved_has_no_copy(
    copies: ApprovedCopies, tmp_path: Path, script: Path
) -> None:
    """Though another word of the same command has one."""
    spec = approved(copies, tmp_path, "./stop.sh", "late.txt")
    planted(script)
    (tmp_path / "late.txt").touch()
    assert (await stop(spec, copies)).outcome is Outcome.REFUSED


async def test_a_program_that_may_not_be_executed_and_has_no_copy_fails(
    copies: ApprovedCopies, tmp_path: Path, script: Path
) -> None:
    spec = approved(copies, tmp_path, "./stop.sh")
    locked(script)
    failed = Stopped(outcome=Outcome.FAILED, detail="./stop.sh may not be executed")
    assert await stop(spec, None) == failed


async def test_a_copy_that_cannot_be_started_is_named(copies: ApprovedCopies, tmp_path: Path) -> None:
    program = tmp_path / "stop"
    program.write_bytes(b"\x7fnothing that runs")
    spec = approved(copies, tmp_path, f"{program}")
    program.unlink()
    assert await stop(spec, copies) == Stopped(
        outcome=Outcome.FAILED,
        detail=f"{instead(program)}; {program} could not be started: Exec format error",
    )


async def test_what_was_never_looked_at_is_run_as_it_is(copies: ApprovedCopies, script: Path) -> None:
    stopped = await CommandKiller(argv=(f"{script}",), copies=copies).stop(TARGET, harder=False)
    assert stopped == Stopped(outcome=Outcome.STOPPED, detail=f"{EXIT_0}: ran {script}")


# ── a workflow's command ──────────────────────────────────────────────────────────────────────────


def run(copies: ApprovedCopies, folder: Path, *argv: str, change: Callable[[], object]) -> Ran:
    spec = with_contents(WorkflowSpec(command=CommandCheck(argv=argv, folder=f"{folder}")))
    assert spec.command is not None
    copies.add([spec])
    change()
    return ProcessRunner(copies).run(spec.command, "nightly", Names(date="2026-11-30"), "/out/report.json")


def test_so_it_is_with_the_command_of_a_workflow(
    copies: ApprovedCopies, tmp_path: Path, script: Path
) -> None:
    ran = run(copies, tmp_path, "./stop.sh", "{path}", change=lambda: planted(script))
    [copy] = kept(tmp_path)
    assert (ran.exit, ran.note) == (0, instead(script))
    assert ran.last_line == f"ran {copy} /out/report.json"


def test_a_copy_of_it_that_cannot_be_started_is_named_too(copies: ApprovedCopies, tmp_path: Path) -> None:
    program = tmp_path / "check"
    program.write_bytes(b"\x7fnothing that runs")
    ran = run(copies, tmp_path, f"{program}", change=program.unlink)
    assert (ran.exit, ran.trouble) == (None, f"{program} could not be started: Exec format error")
    assert (ran.note, ran.is_refused) == (instead(program), False)


# ── what is kept ──────────────────────────────────────────────────────────────────────────────────


def test_copies_are_for_the_bot_alone(copies: ApprovedCopies, tmp_path: Path, script: Path) -> None:
    approved(copies, tmp_path, "./stop.sh")
    [copy] = kept(tmp_path)
    assert copy.read_text() == script.read_text()
    assert (copy.stat().st_mode & 0o7777, copy.parent.stat().st_mode & 0o7777) == (0o500, 0o700)


def test_only_what_is_still_as_it_was_approved_is_copied(
    copies: ApprovedCopies, tmp_path: Path, script: Path
) -> None:
    spec = with_contents(CommandSpec(argv=("./stop.sh",), folder=f"{tmp_path}"))
    planted(script)
    copies.add([spec, None])
    assert not (tmp_path / "approved").exists()
    script.write_text(SCRIPT)
    copies.add([spec])
    assert len(kept(tmp_path)) == 1


def test_a_file_of_more_than_1_mb_is_not_copied(copies: ApprovedCopies, tmp_path: Path) -> None:
    for name, size in (("most", LARGEST), ("more", LARGEST + 1)):
        (tmp_path / name).write_bytes(b"#" * size)
    approved(copies, tmp_path, "sh", "most", "more")
    assert [copy.stat().st_size for copy in kept(tmp_path)] == [LARGEST]


def test_a_copy_that_was_damaged_is_made_again_while_its_file_is_as_it_was(
    copies: ApprovedCopies, tmp_path: Path, script: Path
) -> None:
    """What a crash in the middle has left behind does not matter."""
    approved(copies, tmp_path, f"{script}")
    [copy] = kept(tmp_path)
    copy.chmod(0o700)
    copy.write_text("")
    (tmp_path / "approved" / f"{copy.name}.{os.getpid()}").touch()
    approved(copies, tmp_path, "./stop.sh")
    assert copy.read_text() == SCRIPT
    assert kept(tmp_path) == [copy]


def test_what_nothing_in_force_holds_is_removed(copies: ApprovedCopies, tmp_path: Path, script: Path) -> None:
    copies.hold([], alone=True)
    (tmp_path / "approved/planted").mkdir(parents=True)
    before = approved(copies, tmp_path, "./stop.sh")
    planted(script)
    after = approved(copies, tmp_path, "./stop.sh")
    assert len(kept(tmp_path)) == 2
    copies.hold([after], alone=False)
    assert len(kept(tmp_path)) == 2
    copies.hold([after], alone=True)
    [copy] = kept(tmp_path)
    assert copy.read_text() == "#!/bin/sh\necho planted"
    copies.hold([before], alone=True)
    assert kept(tmp_path) == []


def test_copying_leaves_nothing_open(copies: ApprovedCopies, tmp_path: Path, script: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    approved(copies, tmp_path, "./stop.sh", f"{script}", "/bin/sh")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
