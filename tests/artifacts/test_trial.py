"""A good output is made bad in every way, in a process of its own, to which it can do what it wants."""

import bz2
import gzip
import io
import json
import lzma
import os
import resource
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
import psutil
import pytest
import zstandard

from jobs.artifacts import apart, trial
from jobs.artifacts.apart import Limits
from jobs.artifacts.trial import ApartTester
from jobs.verification.mutants import mutants
from jobs.verification.spec import CommandCheck, CountSpec, Format, Names, StatusSpec, WorkflowSpec
from jobs.verification.trial import GoodOutput, MadeOf, Trials
from jobs.verification.verdict import Check
from tests.artifacts.conftest import GOOD, NOW
from tests.environment import unmeasured

JSON: Final = json.dumps(GOOD).encode()
STATUS: Final = StatusSpec()
SPEC: Final = WorkflowSpec(name="nightly", required=("status",), timestamp="timestamp", status=STATUS)
PLAIN: Final = WorkflowSpec(name="nightly")
SHORT: Final = Limits(seconds=1)
CATASTROPHE: Final = "(x+x+)+y"
DEAD_SLOW: Final = json.dumps({**GOOD, "more": "x" * 100}).encode()
FORMATS: Final = {
    Format.JSON: JSON,
    Format.JSONL: JSON + b"\n" + JSON + b"\n",
    Format.CSV: b"status,timestamp\nok,%d\npartial,%d\n" % (NOW - 60, NOW - 90),
    Format.TOML: b'status = "ok"\ntimestamp = %d\n' % (NOW - 60),
    Format.YAML: b"status: ok\ntimestamp: %d\n" % (NOW - 60),
}


def spec(of: WorkflowSpec = SPEC, **fields: object) -> WorkflowSpec:
    return msgspec.structs.replace(of, **fields)


def good(data: bytes = JSON, path: str = "/out/report.json") -> GoodOutput:
    return GoodOutput(
        workflow="nightly",
        run_id=1,
        path=path,
        sha256="",
        mtime_ns=int((NOW - 30) * 1e9),
        judged_as_of=NOW,
        names=Names(date="2026-05-28"),
        data=data,
    )


def tried(
    asked: WorkflowSpec = SPEC, output: GoodOutput | None = None, limits: Limits = trial.LIMITS
) -> tuple[MadeOf, Trials]:
    # A year after the last good run.
    return ApartTester(limits).test(asked, output, NOW + 365 * 86_400)


def number_of(data: bytes, asked: WorkflowSpec = SPEC) -> int:
    return len(list(mutants(data, asked, NOW, NOW - 30)))


def child_that(monkeypatch: pytest.MonkeyPatch, *statements: str) -> None:
    """Let something happen in the process before it begins."""
    code = "\n".join(("import os, signal, sys", "from jobs.artifacts import child, trial_child", *statements))
    monkeypatch.setattr(trial, "_ARGV", (sys.executable, "-c", f"{code}\ntrial_child.main()"))


# ── what is tried ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("form", FORMATS)
def test_every_mutant_of_a_good_output_is_detected(form: Format) -> None:
    """As of when it was judged, however long ago that was."""
    asked, data = spec(format=form), FORMATS[form]
    assert tried(asked, good(data)) == (MadeOf.OUTPUT, Trials(detected=number_of(data, asked)))


@pytest.mark.parametrize("form", [Format.TEXT, Format.ANY])
def test_so_is_what_has_no_fields(form: Format) -> None:
    asked = spec(PLAIN, format=form, forbid=("Traceback",))
    data = b"first\nlast\n"
    assert tried(asked, good(data)) == (MadeOf.OUTPUT, Trials(detected=number_of(data, asked)))


def _zipped(data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("report", data)
    return file.getvalue()


PACKERS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "report.json.gz": gzip.compress,
    "in parts.gz": lambda data: gzip.compress(data[:5]) + gzip.compress(data[5:]),
    "padded.gz": lambda data: gzip.compress(data) + bytes(512),
    "report.json.bz2": bz2.compress,
    "report.json.xz": lzma.compress,
    "report.json.zst": zstandard.ZstdCompressor().compress,
    "told by its name.zst": lambda data: b"\x50\x2a\x4d\x18\0\0\0\0" + zstandard.compress(data),
}


@pytest.mark.parametrize("name", PACKERS)
def test_what_is_packed_is_unpacked_first_and_cutting_it_is_one_mutant_more(name: str) -> None:
    packed = PACKERS[name](JSON)
    assert tried(SPEC, good(packed, f"/out/{name}")) == (
        MadeOf.OUTPUT,
        Trials(detected=number_of(JSON) + 1),
    )


def test_an_archive() -> None:
    asked = spec(PLAIN, format=Format.ANY)
    made_of, result = tried(asked, good(_zipped(b"first\nlast\n"), "/out/report.zip"))
    assert (made_of, result.survivors, result.trouble) == (MadeOf.OUTPUT, (), "")
    assert result.detected == number_of(b"first\nlast\n", asked) + 1


def test_what_is_packed_twice_is_not_taken_for_what_it_holds() -> None:
    """Its mutants would be unpacked again."""
    twice = gzip.compress(gzip.compress(b"text"))
    asked = spec(PLAIN, format=Format.ANY, forbid=("x",))
    assert tried(asked, good(twice, "/out/report.gz"))[0] is not MadeOf.OUTPUT


def test_no_command_is_run(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    asked = spec(command=CommandCheck(argv=("/usr/bin/touch", str(marker))))
    assert tried(asked, good()) == (MadeOf.OUTPUT, Trials(detected=number_of(JSON, asked)))
    assert not marker.exists()


def test_the_output_itself_is_not_touched(tmp_path: Path) -> None:
    """Whatever lies there."""
    path = tmp_path / "report.json"
    os.mkfifo(path)
    before = path.stat()
    assert tried(SPEC, good(path=str(path)))[0] is MadeOf.OUTPUT
    assert path.stat() == before


def test_on_a_system_that_has_no_files_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    child_that(monkeypatch, "del os.memfd_create")
    assert tried(SPEC, good()) == (MadeOf.OUTPUT, Trials(detected=number_of(JSON)))


# ── where there is no good output ─────────────────────────────────────────────────────────────────


def test_without_a_good_output_one_is_made_up() -> None:
    made_of, result = tried()
    assert (made_of, result.survivors, result.trouble) == (MadeOf.SPECIFICATION, (), "")
    assert result.detected


def test_so_it_is_where_the_specification_has_become_stricter() -> None:
    made_of, result = tried(spec(required=("status", "author")), good())
    assert (made_of, result.survivors, result.trouble) == (MadeOf.SPECIFICATION, (), "")


def test_what_is_large_once_it_is_unpacked_is_not_used() -> None:
    """A bomb, for example."""
    asked = spec(PLAIN, format=Format.TEXT)
    assert tried(asked, good(gzip.compress(b"0" * 20_000_000)))[0] is MadeOf.SPECIFICATION


def test_why_nothing_could_be_tried() -> None:
    asked = spec(count=CountSpec(of="items[]", min=3, max=2))
    made_of, result = tried(asked, good())
    assert (made_of, result.total) == (MadeOf.NOTHING, 0)
    assert result.trouble


def test_a_schema_that_cannot_be_used() -> None:
    """By none of the outputs can be told whether the verifier works."""
    made_of, result = tried(spec(schema="/no/schema.json"), good())
    assert (made_of, result.total) == (MadeOf.NOTHING, 0)
    assert result.trouble


# ── a verifier that does not see ──────────────────────────────────────────────────────────────────

LENIENT: Final = (
    "from jobs.verification import checks",
    "checks.status = lambda document, spec: 'seems fine'",
)


def test_what_survives_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    child_that(monkeypatch, *LENIENT)
    _, result = tried(SPEC, good())
    assert {survivor.check for survivor in result.survivors} == {Check.STATUS}
    assert all(survivor.mutant and not survivor.is_detected for survivor in result.survivors)
    assert "it passes: seems fine" in {survivor.found for survivor in result.survivors}
    assert result.total == number_of(JSON)
    assert result.detected == result.total - len(result.survivors)


def test_a_mutant_that_another_check_stops_has_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check that claims to catch it was not reached."""
    child_that(
        monkeypatch,
        "from jobs.verification import checks",
        "from jobs.verification.wording import UnmetError",
        "parse = checks.parse",
        "def strange(data, form):",
        "    if b'\"ok\"' in data: return parse(data, form)",
        "    raise UnmetError('not a word of it')",
        "checks.parse = strange",
    )
    _, result = tried(SPEC, good())
    of_status = [survivor for survivor in result.survivors if survivor.check is Check.STATUS]
    assert of_status
    assert {survivor.found for survivor in of_status} == {"parses fails instead: not a word of it"}


# ── whatever it does to the process ───────────────────────────────────────────────────────────────


def test_a_pattern_that_never_ends() -> None:
    _, result = tried(spec(forbid=(CATASTROPHE,)), good(DEAD_SLOW), SHORT)
    assert result.trouble == "not all could be judged within 1 s, the most that it may take"


def test_a_number_that_no_process_can_be_told() -> None:
    _, result = tried(spec(count=CountSpec(min=2**64)), good())
    assert result.trouble.startswith("no process can be told what to try: ")


def test_little_memory() -> None:
    _, result = tried(SPEC, good(), Limits(memory=30_000_000))
    assert (
        result.trouble == "not all could be judged with 30,000,000 bytes of memory, the most that it may take"
    )


@pytest.mark.parametrize("form", [Format.JSON, Format.YAML, Format.TOML])
def test_deep_nesting_harms_nobody(form: Format) -> None:
    """It is no good output, or its mutants are judged, or that is cut short."""
    deep = b"[" * 400 + b"]" * 400
    content = b'{"status": "ok", "timestamp": %d, "deep": %s}' % (NOW - 60, deep)
    if form is Format.TOML:
        content = b'status = "ok"\ntimestamp = %d\ndeep = %s\n' % (NOW - 60, deep)
    _, result = tried(spec(format=form), good(content))
    assert result.survivors == ()
    assert result.detected or result.trouble


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", ": the process that did ended with signal 9"),
        ("sys.exit(7)", ": the process that did ended with exit code 7"),
    ],
)
def test_what_was_tried_before_a_sudden_end_counts(
    monkeypatch: pytest.MonkeyPatch, statement: str, reason: str
) -> None:
    """And what was not is told."""
    child_that(
        monkeypatch,
        "tried = trial_child._tried",
        "def once(*told):",
        "    trial_child._tried = last",
        "    return tried(*told)",
        f"def last(*_): {statement}",
        "trial_child._tried = once",
    )
    made_of, result = tried(SPEC, good())
    assert (made_of, result.detected) == (MadeOf.OUTPUT, 1)
    assert result.trouble == f"not all could be judged{reason}"


def test_a_process_that_does_not_end_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "_OWN_END", 0.1)
    child_that(monkeypatch, "os.kill(os.getpid(), signal.SIGSTOP)")
    before = psutil.Process().children()
    made_of, result = tried(SPEC, good(), Limits(seconds=0.5))
    assert made_of is MadeOf.NOTHING
    assert result.trouble == "not all could be judged within 0.5 s, the most that it may take"
    assert psutil.Process().children() == before


def test_no_descriptor_left() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        made_of, result = tried(SPEC, good())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (made_of, result.trouble) == (
        MadeOf.NOTHING,
        "no process can be started: Too many open files",
    )


ENDED_WITH_ITS_CHILD: Final = """
import sys
from jobs.artifacts import trial
from jobs.verification.spec import WorkflowSpec
trial._ARGV = (sys.executable, "-c", sys.argv[1], sys.argv[2])
trial.ApartTester(trial.Limits(seconds=2)).test(WorkflowSpec(), None, 0)
"""
HANGING: Final = """
import sys, time
from jobs.artifacts import trial_child
def hang(request):
    held = open(sys.argv[1], "w")
    with trial_child._file(b"mutant", 0):
        print("up", file=held, flush=True)
        time.sleep(600)
trial_child._answer = hang
trial_child.main()
"""


def test_killed_with_the_bot_it_ends_and_leaves_no_file_behind(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    argv = [sys.executable, "-c", ENDED_WITH_ITS_CHILD, HANGING, str(tmp_path / "pipe")]
    bot = subprocess.Popen(argv, cwd=temporary, env={**unmeasured(), "TMPDIR": str(temporary)})  # noqa: S603 - ours
    with (tmp_path / "pipe").open() as held:
        assert held.readline() == "up\n"
        bot.kill()
        bot.wait()
        assert held.read() == ""  # whoever held it is gone
    assert list(temporary.iterdir()) == []
