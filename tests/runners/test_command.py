"""A workflow's command is run without a shell, for a limited time, and what it says last is kept."""

import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest

from jobs.ports import CommandRunner
from jobs.runners.command import ProcessRunner
from jobs.verification.checks import Ran
from jobs.verification.spec import CommandCheck, Names

NAMES = Names(date="2026-11-30", run="r-7")
SHELL = ("sh", "-c")


def run(*argv: str, names: Names = NAMES, path: str = "/out/report.json", **how: object) -> Ran:
    runner: CommandRunner = ProcessRunner()
    command = CommandCheck(argv=argv, **how)  # type: ignore[arg-type]
    return runner.run(command, "nightly", names, path)


def outcome(ran: Ran) -> tuple[int | None, str | None, str]:
    return ran.exit, ran.trouble, ran.last_line


def open_descriptors() -> list[str]:
    return sorted(os.listdir("/proc/self/fd"))  # noqa: PTH208 - the names are all there is


@contextmanager
def held_open(path: Path) -> Iterator[int]:
    """A pipe in the file system: reads end only when every process that opened it is gone."""
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        os.set_blocking(descriptor, True)
        yield descriptor
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo all 12 tests passed", (0, None, "all 12 tests passed")),
        ("exit 0", (0, None, "")),
        ("echo first; echo last; echo", (0, None, "last")),
        ("echo 1 test failed >&2; exit 3", (3, None, "1 test failed")),
        ("kill -9 $$", (None, "the command was ended by signal 9", "")),
        ("printf 'caf\\303'", (0, None, "caf�")),
        ("cat; echo nothing to read", (0, None, "nothing to read")),
    ],
)
def test_its_exit_code_and_its_last_line_are_told(script: str, expected: tuple[int, str, str]) -> None:
    assert outcome(run(*SHELL, script)) == expected


def test_placeholders_are_filled_in_each_inside_its_argument() -> None:
    code = "import sys; print(sys.argv[1:])"
    templates = ("{path}", "of {workflow}", "--run={run}", "{date}")
    ran = run(sys.executable, "-c", code, *templates, path="/out/a b; $(id)\n.json")
    assert ran.last_line == r"['/out/a b; $(id)\n.json', 'of nightly', '--run=r-7', '2026-11-30']"


def test_a_run_without_an_id_has_none_to_fill_in() -> None:
    ran = run("echo", "{run}", names=Names(date="2026-11-30"))
    assert outcome(ran) == (None, "the run is empty", "")


def test_an_option_made_by_an_id_is_refused() -> None:
    ran = run("echo", "{run}", names=Names(date="2026-11-30", run="--all"))
    assert outcome(ran) == (None, '"--all" would be read as an option', "")


def test_it_runs_in_the_folder_of_the_watch_list(tmp_path: Path) -> None:
    assert run("pwd", folder=str(tmp_path)).last_line == str(tmp_path)


def test_the_bots_own_settings_are_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPWARDEN_TOKEN", "secret")
    monkeypatch.setenv("OTHER_SETTING", "inherited")
    ran = run(*SHELL, "echo $OTHER_SETTING $(env | grep -ci ^loopwarden)")
    assert ran.last_line == "inherited 0"


def test_much_output_is_drained_and_its_end_kept() -> None:
    """Far more than any pipe holds, on both streams: it would stand still if nobody read on."""
    code = "import sys; sys.stdout.write('x' * 5_000_000); sys.stderr.write('y' * 5_000_000 + '\\nthe end')"
    assert outcome(run(sys.executable, "-c", code)) == (0, None, "the end")


def test_a_long_last_line_is_cut() -> None:
    assert run(sys.executable, "-c", "print('z' * 100_000)").last_line == f"{'z' * 199}…"


def test_what_a_command_leaves_behind_is_killed(tmp_path: Path) -> None:
    """Whether or not it keeps the output open; nobody waits for it."""
    for silence in ("", ">&- 2>&-"):
        pipe = tmp_path / f"held{len(silence)}"
        with held_open(pipe) as held:
            ran = run(*SHELL, f"exec 3>{pipe}; sleep 600 {silence} & echo started; exit 7")
            assert os.read(held, 1024) == b""
        assert outcome(ran) == (7, None, "started")
        assert ran.took < 60


def test_output_closed_early_is_not_the_end(tmp_path: Path) -> None:
    ran = run(
        *SHELL, f"echo closing; exec >&- 2>&-; while [ ! -e {tmp_path}/there ]; do :; done", timeout=0.3
    )
    assert outcome(ran) == (None, "the command did not end within 0.3 s and was killed", "closing")
    ran = run(*SHELL, f"exec >&- 2>&-; echo x > {tmp_path}/there; exit 5")
    assert outcome(ran) == (5, None, "")
    assert (tmp_path / "there").exists()


def test_after_its_time_the_whole_group_is_killed(tmp_path: Path) -> None:
    with held_open(tmp_path / "held") as held:
        ran = run(*SHELL, f"exec 3>{tmp_path}/held; sleep 600 & echo testing; sleep 600", timeout=1)
        assert os.read(held, 1024) == b""
    assert outcome(ran) == (None, "the command did not end within 1 s and was killed", "testing")
    assert 1 <= ran.took < 30


def test_endless_output_ends_with_its_time() -> None:
    ran = run("yes", timeout=0.5)
    assert outcome(ran) == (None, "the command did not end within 0.5 s and was killed", "y")


def test_a_missing_program() -> None:
    assert outcome(run("no-such-program-here")) == (
        None,
        "no-such-program-here was not found, or the interpreter its first line names",
        "",
    )


def test_a_file_that_is_no_program(tmp_path: Path) -> None:
    file = tmp_path / "check"
    file.write_bytes(b"\x7fnothing that runs")
    assert run(str(file)).trouble == f"{file} may not be executed"
    file.chmod(0o755)
    assert run(str(file)).trouble == f"{file} could not be started: Exec format error"


def test_a_file_that_is_not_the_one_that_was_approved_is_not_run(tmp_path: Path) -> None:
    """Nor what was no file then; contents that nobody has filled in are whatever they are."""
    script = tmp_path / "check.sh"
    script.write_text(f"echo ran; touch {tmp_path}/ran")
    argv, folder = ("sh", "check.sh"), str(tmp_path)
    approved = {f"{script}": sha256(script.read_bytes()).hexdigest()}
    for files in ({f"{script}": "0" * 64}, {}):
        ran = run(*argv, folder=folder, files=files)
        assert outcome(ran) == (None, f"{script} is not the file that was approved", "")
        assert ran.is_refused
    assert not (tmp_path / "ran").exists()
    assert outcome(run(*argv, folder=folder, files=approved)) == (0, None, "ran")
    assert outcome(run(*argv, folder=folder)) == (0, None, "ran")
    script.write_text("exit 0")
    assert run(*argv, folder=folder, files=approved).exit is None


def test_no_descriptor_left() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        ran = run("true")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert ran.trouble == "true could not be started: Too many open files"


def test_nothing_stays_open() -> None:
    before = open_descriptors()
    for argv in (("true",), ("no-such-program-here",), (*SHELL, "kill -9 $$")):
        run(*argv)
    assert open_descriptors() == before
