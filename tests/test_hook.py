"""`loopwarden hook`: a line for every call that is over, and not a word whatever happens."""

import fcntl
import json
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from jobs.sources.gateway import parse
from jobs.sources.registry import FORMATS, HOOKED
from tests.environment import unmeasured

SAMPLES: Final = Path(__file__).parent / "data" / "hook"
RECORDED: Final = Path(__file__).parents[2] / "shared" / "data" / "agents"
"""What the hooks of real programs were given; absent in a clone."""
FOLDERS: Final = {"claude-code": "claude", "codex": "codex", "gemini-cli": "gemini", "opencode": "opencode"}
ROOT: Final = Path(__file__).parents[1]
AGENT: Final = 812
"""A process id that a program names itself."""

Json = dict[str, Any]


def samples(program: str) -> list[Json]:
    return [json.loads(line) for line in (SAMPLES / f"{program}.jsonl").read_text().splitlines()]


def a_call(program: str = "claude-code", **changes: object) -> bytes:
    """What a hook is given when a call is over."""
    given = next(sample["stdin"] for sample in samples(program) if sample["told"])
    return json.dumps({**given, **changes}).encode()


def environment(data_dir: Path, *, is_measured: bool = True, **more: str) -> dict[str, str]:
    """What the hook of a program finds."""
    return {
        **(os.environ if is_measured else unmeasured()),
        "HOME": "/home/me",
        "XDG_DATA_HOME": "",
        "LOOPWARDEN_DATA_DIR": str(data_dir),
        "CLAUDE_PID": f"{AGENT}",
        **more,
    }


def hook(
    data_dir: Path,
    *arguments: str,
    given: bytes = b"",
    before: Callable[[], None] | None = None,
) -> None:
    """Run it as a program does; it says nothing and exits with 0."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "bot", "hook", *arguments],
        input=given,
        capture_output=True,
        env=environment(data_dir, is_measured=before is None),
        preexec_fn=before,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def file_of(data_dir: Path, program: str = "claude-code") -> Path:
    return data_dir / "hook" / f"{program}.jsonl"


def lines(data_dir: Path, program: str = "claude-code") -> list[Json]:
    """The lines of its log, each a call that the gateway's format reads."""
    written = file_of(data_dir, program).read_bytes().splitlines(keepends=True)
    assert all(line.endswith(b"\n") and parse(line) for line in written)
    return [json.loads(line) for line in written]


# ── what each program tells ───────────────────────────────────────────────────────────────────────


def test_each_program_is_called_as_the_format_of_its_logs() -> None:
    assert set(FORMATS) >= HOOKED


@pytest.mark.parametrize("program", sorted(HOOKED))
def test_a_call_that_is_over_is_one_line_and_nothing_else_is(program: str, tmp_path: Path) -> None:
    expected = []
    for sample in samples(program):
        hook(tmp_path, program, given=json.dumps(sample["stdin"]).encode())
        if sample["told"]:
            expected.append(sample["told"])
    told = lines(tmp_path, program)
    for line in told:
        assert line.pop("ts") > 0
        assert len(line.pop("result_hash")) == 16
        assert line["pid"] == AGENT or program in {"codex", "gemini-cli"}
        if "pid" not in expected[0]:
            del line["pid"]
    assert told == expected


@pytest.mark.skipif(not RECORDED.exists(), reason="no recorded events here")
@pytest.mark.parametrize("program", sorted(HOOKED))
def test_all_that_real_programs_have_told_is_kept_under_the_right_ids(program: str, tmp_path: Path) -> None:
    """Of every finished call, and of nothing else."""
    events = [
        json.loads(line)
        for file in sorted((RECORDED / FOLDERS[program]).glob("hook_events*.jsonl"))
        for line in file.read_text().splitlines()
    ]
    given = [event.get("stdin", event) for event in events]
    with ThreadPoolExecutor(4) as several:
        list(several.map(lambda each: hook(tmp_path, program, given=json.dumps(each).encode()), given))
    if program == "opencode":
        over = [(e["input"]["sessionID"], e["input"]["callID"]) for e in given if e["ev"] == "after"]
    else:
        names = {"PostToolUse", "PostToolUseFailure", "AfterTool"}
        over = [
            (e.get("agent_id") or e["session_id"], e.get("tool_use_id"))
            for e in given
            if e["hook_event_name"] in names
        ]
    told = lines(tmp_path, program)
    assert sorted((each["sessionId"], each.get("callId") or "") for each in told) == sorted(
        (session, call or "") for session, call in over
    )
    assert sum(each["is_error"] for each in told) == (1 if program in {"claude-code", "gemini-cli"} else 0)


def test_equal_answers_have_equal_hashes_though_times_and_process_ids_differ(tmp_path: Path) -> None:
    for milliseconds in (1, 2):
        response = {"filenames": ["a.csv"], "durationMs": milliseconds}
        hook(tmp_path, "claude-code", given=a_call(tool_response=response))
        content = f"Output: pending\nProcess Group PGID: {milliseconds}\n</untrusted_context>"
        hook(tmp_path, "gemini-cli", given=a_call("gemini-cli", tool_response={"llmContent": content}))
        text = f"Chunk ID: {milliseconds}\nWall time: {milliseconds} seconds\nOutput:\npending"
        hook(tmp_path, "codex", given=a_call("codex", tool_response=text))
    for program in ("claude-code", "gemini-cli", "codex"):
        assert len({line["result_hash"] for line in lines(tmp_path, program)}) == 1


# ── the process ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("program", ["claude-code", "codex", "gemini-cli"])
@pytest.mark.parametrize("shell", ["", "true; {}; true"])
def test_the_process_is_the_one_that_has_started_the_hook_past_a_shell(
    program: str, shell: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "bot", "hook", program]
    argv = ["/bin/sh", "-c", shell.format(" ".join(command))] if shell else command
    env = environment(tmp_path, CLAUDE_PID="")
    subprocess.run(argv, input=a_call(program), env=env, check=True)  # noqa: S603
    (line,) = lines(tmp_path, program)
    assert line["pid"] == os.getpid()


def test_a_process_id_that_cannot_be_an_agents_is_left_out(tmp_path: Path) -> None:
    for pid in (None, True, 0, 1, -5, "x", [2], 2**31):
        hook(tmp_path, "opencode", given=a_call("opencode", pid=pid))
    assert [line.get("pid") for line in lines(tmp_path, "opencode")] == [None] * 8


# ── the file ──────────────────────────────────────────────────────────────────────────────────────


def test_folder_and_file_are_its_users_alone(tmp_path: Path) -> None:
    data_dir = tmp_path / "new" / "data"
    hook(data_dir, "codex", given=a_call("codex"))
    file = file_of(data_dir, "codex")
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (data_dir, file.parent, file)]
    assert modes == [0o700, 0o700, 0o600]


def test_fifty_hooks_at_once_write_fifty_whole_lines(tmp_path: Path) -> None:
    texts = [f"{n}" * 20_000 for n in range(10, 60)]
    with ThreadPoolExecutor(50) as many:
        list(
            many.map(
                lambda text: hook(tmp_path, "claude-code", given=a_call(tool_input={"command": text})), texts
            )
        )
    assert sorted(line["args"]["command"] for line in lines(tmp_path)) == texts


def test_a_large_file_is_moved_away_first(tmp_path: Path) -> None:
    hook(tmp_path, "claude-code", given=a_call())
    file = file_of(tmp_path)
    with file.open("r+b") as written:
        written.truncate(64 << 20)
    before = file.stat().st_ino
    hook(tmp_path, "claude-code", given=a_call())
    assert len(lines(tmp_path)) == 1
    assert file.with_name("claude-code.jsonl.1").stat().st_ino == before


def test_a_line_that_does_not_fit_on_the_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    hook(tmp_path, "claude-code", given=a_call())
    before = file_of(tmp_path).read_bytes()
    limit = len(before) + 100
    hook(
        tmp_path,
        "claude-code",
        given=a_call(),
        before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert file_of(tmp_path).read_bytes() == before


def test_a_line_that_was_cut_off_spoils_no_other(tmp_path: Path) -> None:
    """A machine that lost its power may leave such a one."""
    hook(tmp_path, "claude-code", given=a_call())
    with file_of(tmp_path).open("ab") as file:
        file.write(b'{"ts": 17672')
    hook(tmp_path, "claude-code", given=a_call())
    first, cut, second = file_of(tmp_path).read_bytes().splitlines(keepends=True)
    assert parse(first)
    assert parse(second)
    assert cut == b'{"ts": 17672\n'


def test_a_hook_that_holds_the_file_for_long_does_not_keep_the_others_from_it(tmp_path: Path) -> None:
    hook(tmp_path, "claude-code", given=a_call())
    with file_of(tmp_path).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        hook(tmp_path, "claude-code", given=a_call())
    assert len(lines(tmp_path)) == 2


def test_very_long_arguments_are_kept_as_their_hash(tmp_path: Path) -> None:
    """A line of them would be too long to be read."""
    for text in ("a" * (9 << 20), "a" * (9 << 20), "b" * (9 << 20)):
        hook(tmp_path, "claude-code", given=a_call(tool_input={"content": text}))
    first, again, other = (line["args_hash"] for line in lines(tmp_path))
    assert first == again != other


# ── trouble ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "given",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"PostToolUse"',
        b"\xff\xfe\x00",
        b'{"hook_event_name": "PostToolUse"}',
        b'{"hook_event_name": ["PostToolUse"], "session_id": 7}',
        b'{"hook_event_name": "PostToolUse", "session_id": "", "tool_name": "Bash", "tool_input": {}}',
        b'{"hook_event_name": "PostToolUse", "session_id": "s", "tool_name": 7, "tool_input": {}}',
        b'{"hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "t", "tool_input": '
        + b"[" * 100_000,
        b'{"input": 1, "output": {}}',
        b'{"hook_event_name": "AfterTool"}',
    ],
)
def test_what_makes_no_sense_is_passed_over(given: bytes, tmp_path: Path) -> None:
    for program in ("claude-code", "opencode"):
        hook(tmp_path, program, given=given)
    assert not list(tmp_path.rglob("*.jsonl"))


@pytest.mark.parametrize(
    "arguments", [[], ["goose"], ["claude-code", "more"], ["../claude-code"], [""], ["--x"]]
)
def test_a_program_that_is_not_known_is_passed_over(arguments: list[str], tmp_path: Path) -> None:
    hook(tmp_path, *arguments, given=a_call())
    assert not list(tmp_path.iterdir())


def test_odd_text_does_not_hide_a_call(tmp_path: Path) -> None:
    """Halves of characters, bytes that are no text."""
    given = a_call(tool_input={"command": "HERE"})
    for odd in (rb"\ud83d", b"\xff\xfe"):
        hook(tmp_path, "claude-code", given=given.replace(b"HERE", odd))
    assert len(lines(tmp_path)) == 2


def test_a_number_that_json_has_not_hides_no_call(tmp_path: Path) -> None:
    """It is kept as it was written, so that calls that differ in it differ."""
    given, long = a_call(tool_input={"n": "HERE"}), "7" * 5000
    for odd in ("NaN", "-Infinity", "1e999", "-2e999", long, "12", "0.5"):
        hook(tmp_path, "claude-code", given=given.replace(b'"HERE"', odd.encode()))
    told = [line["args"]["n"] for line in lines(tmp_path)]
    assert told == ["NaN", "-Infinity", "1e999", "-2e999", long, 12, 0.5]


def test_an_input_beyond_all_measure_is_read_and_given_up(tmp_path: Path) -> None:
    """Its writer does not get a broken pipe for it."""
    hook(tmp_path, "claude-code", given=a_call(tool_input={"content": "a" * (17 << 20)}))
    assert not list(tmp_path.iterdir())


@pytest.mark.prove
def test_an_end_that_is_never_closed_is_not_waited_for(tmp_path: Path) -> None:
    """What has come by then is kept."""
    command = [sys.executable, "-m", "bot", "hook", "claude-code"]
    reading, writing = os.pipe()
    os.write(writing, a_call())
    done = subprocess.run(  # noqa: S603
        command, stdin=reading, capture_output=True, env=environment(tmp_path), check=False, timeout=120
    )
    os.close(reading)
    os.close(writing)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert len(lines(tmp_path)) == 1


def test_an_input_without_end_is_given_up(tmp_path: Path) -> None:
    with Path("/dev/zero").open("rb") as endless:
        done = subprocess.run(
            [sys.executable, "-m", "bot", "hook", "claude-code"],
            stdin=endless,
            capture_output=True,
            env=environment(tmp_path),
            check=False,
            timeout=60,
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("closed", [[0], [1], [2], [0, 1, 2]])
def test_closed_ends_disturb_nobody(closed: list[int], tmp_path: Path) -> None:
    def close() -> None:
        for end in closed:
            os.close(end)

    hook(tmp_path, "claude-code", given=a_call(), before=close)
    assert file_of(tmp_path).exists() is (0 not in closed)


def test_a_folder_that_cannot_be_written_to_disturbs_nobody(tmp_path: Path) -> None:
    (tmp_path / "hook").write_text("in the way")
    hook(tmp_path, "claude-code", given=a_call())
    hook(tmp_path / "hook", "claude-code", given=a_call())
    hook(Path("/proc/nowhere"), "claude-code", given=a_call())
    assert (tmp_path / "hook").read_text() == "in the way"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_of_somebody_else_disturbs_nobody(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    hook(tmp_path, "claude-code", given=a_call())
    tmp_path.chmod(0o700)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("target", ["precious.txt", "nothing.txt"])
def test_a_link_in_the_files_place_is_not_followed(target: str, tmp_path: Path) -> None:
    file_of(tmp_path).parent.mkdir()
    (tmp_path / "precious.txt").write_text("precious")
    file_of(tmp_path).symlink_to(tmp_path / target)
    hook(tmp_path, "claude-code", given=a_call())
    assert (tmp_path / "precious.txt").read_text() == "precious"
    assert not (tmp_path / "nothing.txt").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_a_file_of_somebody_else_in_the_files_place_is_left_alone(tmp_path: Path) -> None:
    file_of(tmp_path).parent.mkdir()
    file_of(tmp_path).touch()
    os.chown(file_of(tmp_path), 65534, 65534)
    hook(tmp_path, "claude-code", given=a_call())
    assert file_of(tmp_path).read_bytes() == b""


@pytest.mark.parametrize("data_dir", ["data", "./data", "~no-such-user/data"])
def test_no_folder_appears_where_the_agent_works(data_dir: str, tmp_path: Path) -> None:
    """A relative data directory counts from there, not from where the bot was started."""
    subprocess.run(
        [sys.executable, "-m", "bot", "hook", "claude-code"],
        input=a_call(),
        cwd=tmp_path,
        env=environment(tmp_path, LOOPWARDEN_DATA_DIR=data_dir, PYTHONPATH=str(ROOT)),
        check=True,
    )
    assert not list(tmp_path.iterdir())


def test_a_pipe_in_the_files_place_does_not_hold_it_up(tmp_path: Path) -> None:
    file_of(tmp_path).parent.mkdir()
    os.mkfifo(file_of(tmp_path))
    hook(tmp_path, "claude-code", given=a_call())
    assert stat.S_ISFIFO(file_of(tmp_path).stat().st_mode)


# ── what it costs ─────────────────────────────────────────────────────────────────────────────────


def test_next_to_nothing_is_imported(tmp_path: Path) -> None:
    """An agent waits for it at every call."""
    code = (
        "import sys; from bot.__main__ import main; main(['hook', 'claude-code']);"
        "print(sorted({'argparse', 'asyncio', 'logging', 'msgspec', 'pathlib', 'subprocess'} & set(sys.modules)))"
    )
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code],
        input=a_call(),
        check=True,
        capture_output=True,
        env=environment(tmp_path, is_measured=False),
    )
    assert done.stdout == b"[]\n"
    assert len(lines(tmp_path)) == 1
