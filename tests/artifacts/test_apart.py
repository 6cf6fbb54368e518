"""Whatever an output does to the process that judges it becomes the failure of the check it was in."""

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType

import msgspec
import psutil
import pytest

from jobs.artifacts import apart
from jobs.artifacts.apart import Limits, judge_apart
from jobs.verification.spec import CommandCheck, FieldSpec, Format, StatusSpec, WorkflowSpec
from jobs.verification.verdict import Check, CheckResult, Judged, Outcome, Passed, Past
from tests.artifacts.conftest import NOW, Report

SPEC = WorkflowSpec(required=("status",), timestamp="timestamp", status=StatusSpec(), forbid=("password",))
CATASTROPHE = "(x+x+)+y"
DEAD_SLOW = "x" * 100
SHORT = Limits(seconds=1)


def spec(**fields: object) -> WorkflowSpec:
    return msgspec.structs.replace(SPEC, **fields)


def judge(path: Path, asked: WorkflowSpec = SPEC, limits: Limits = SHORT, said: str = "") -> Judged:
    return judge_apart(str(path), asked, NOW, Past(), said=said, limits=limits)


def failure(judged: Judged) -> CheckResult:
    assert judged.verdict.outcome is Outcome.FAIL
    assert judged.verdict.failure is not None
    return judged.verdict.failure


def child_that(monkeypatch: pytest.MonkeyPatch, *statements: str) -> None:
    """Let the process do something in the place of the checks."""
    code = "\n".join(
        (
            "import os, signal, sys",
            "from jobs.artifacts import child",
            "def run_checks(output, *_, told, **__):",
            *(f"    {statement}" for statement in statements),
            "child.run_checks = run_checks",
            "child.main()",
        )
    )
    monkeypatch.setattr(apart, "_ARGV", (sys.executable, "-c", code))


def output_of(*argv: str) -> str:
    return subprocess.run(argv, stdout=subprocess.PIPE, check=True, text=True).stdout  # noqa: S603 - ours


# ── time ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_pattern_that_never_ends(report: Report) -> None:
    judged = judge(report(more=DEAD_SLOW), spec(forbid=(CATASTROPHE,)))
    assert failure(judged) == CheckResult(
        check=Check.FORBID,
        passed=Passed.FAIL,
        reason="it could not be judged within 1 s, the most that it may take",
    )
    assert [result.passed for result in judged.verdict.results[:-1]] == [Passed.PASS] * 5
    assert all(result.reason for result in judged.verdict.results)
    assert judged.artifact is not None
    assert judged.artifact.sha256


def test_a_field_pattern_that_never_ends(report: Report) -> None:
    asked = spec(fields={"more": FieldSpec(pattern=CATASTROPHE)}, command=CommandCheck(argv=("true",)))
    judged = judge(report(more=DEAD_SLOW), asked)
    assert failure(judged).check is Check.FIELDS
    after = [(result.check, result.passed) for result in judged.verdict.results[3:]]
    checks = (Check.FRESH, Check.STATUS, Check.FORBID, Check.COMMAND)
    assert after == [(check, Passed.NOT_REACHED) for check in checks]


def test_a_schema_that_never_ends(report: Report, tmp_path: Path) -> None:
    levels = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 10} for n in range(30)}
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps({"$ref": "#/$defs/l0", "$defs": {**levels, "l30": {"type": "object"}}}))
    assert failure(judge(report(), spec(schema=str(schema)))).check is Check.FIELDS


def test_a_process_that_does_not_end_by_itself(monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    monkeypatch.setattr(apart, "_OWN_END", 0.1)
    child_that(monkeypatch, "os.kill(os.getpid(), signal.SIGSTOP)")
    judged = judge(report(status="lost"), limits=Limits(seconds=0.5), said="all done")
    assert failure(judged).check is Check.EXISTS
    assert failure(judged).reason == "it could not be judged within 0.5 s, the most that it may take"
    assert judged.verdict.said_done == "done"
    assert psutil.Process().children() == []


def test_interrupted_it_leaves_nothing_behind(report: Report) -> None:
    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            judge(report(more=DEAD_SLOW), spec(forbid=(CATASTROPHE,)), Limits(seconds=600))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert psutil.Process().children() == []


# ── memory ────────────────────────────────────────────────────────────────────────────────────────

MEASURED = """
import resource, sys
from jobs.artifacts.apart import Limits, judge_apart
from jobs.verification.spec import Format, WorkflowSpec
from jobs.verification.verdict import Past
spec = WorkflowSpec(format=Format(sys.argv[2]))
judged = judge_apart(sys.argv[1], spec, 0, Past(), said="", limits=Limits(memory=250_000_000, memory_per_byte=0))
print(judged.verdict.failure.check, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
print(judged.verdict.failure.reason)
"""
HOGS = {
    "tables in a json": (Format.JSON, b"[" + b"{}," * 8_000_000 + b"{}]"),
    "numbers in a json": (Format.JSON, b"[" + b"1e9," * 8_000_000 + b"1]"),
    "lines of a jsonl": (Format.JSONL, b"{}\n" * 8_000_000),
    "rows of a csv": (Format.CSV, b"a,b\n" + b"".join(b"%d,%d\n" % (n, -n) for n in range(2_500_000))),
    "values in a toml": (Format.TOML, b"a = [" + b"{}," * 8_000_000 + b"]"),
}


@pytest.mark.parametrize("name", HOGS)
def test_memory_is_bounded(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUST_BACKTRACE", "1")
    form, content = HOGS[name]
    (tmp_path / "hog").write_bytes(content)
    argv = [sys.executable, "-c", MEASURED, str(tmp_path / "hog"), form]
    found, reason = output_of(*argv).splitlines()
    check, peak = found.split()
    assert check == Check.PARSES
    assert int(peak) < 260_000_000
    assert "memory" in reason


def test_values_that_are_written_again_and_again_take_little_memory(tmp_path: Path) -> None:
    """A csv of a million rows fits where a table for each of them would not."""
    path = tmp_path / "table.csv"
    path.write_bytes(b"name,city,score\n" + b"worker,some city,1.25\n" * 1_000_000)
    os.utime(path, (NOW, NOW))
    asked = WorkflowSpec(format=Format.CSV, required=("name", "city"))
    judged = judge(path, asked, Limits(memory=250_000_000, memory_per_byte=0))
    assert judged.verdict.outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("name", "more", "waits"),
    [("report.json", "", False), ("report.json", "x" * 4_000_000, True), ("report.json.gz", "", True)],
)
def test_what_may_be_large_waits_for_its_turn(
    report: Report, monkeypatch: pytest.MonkeyPatch, name: str, more: str, *, waits: bool
) -> None:
    """So that no two of them take the memory at once."""
    taken = list[bool]()

    def answer(*_: object) -> tuple[bytes, int]:
        taken.append(apart._turn.locked())
        return b"", 0

    monkeypatch.setattr(apart, "_answer", answer)
    judge(report(name, more=more))
    assert taken == [waits]
    assert not apart._turn.locked()


# ── sudden ends ───────────────────────────────────────────────────────────────────────────────────


def test_a_process_that_is_killed(monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    child_that(monkeypatch, "os.kill(os.getpid(), signal.SIGKILL)")
    assert failure(judge(report())) == CheckResult(
        check=Check.EXISTS,
        passed=Passed.FAIL,
        reason="it could not be judged: the process that did ended with signal 9",
    )


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("sys.exit(7)", "it could not be judged: the process that did ended with exit code 7"),
        ("raise KeyError('secret')", "it could not be judged: the process that did ended with exit code 1"),
        (
            "raise MemoryError",
            "it could not be judged with 3,024,000,000 bytes of memory, the most that it may take",
        ),
        (
            "os.abort()",
            "it could not be judged with 3,024,000,000 bytes of memory, the most that it may take",
        ),
        ("sys.stdout.write('{\\n'); sys.exit(2)", "the process that did ended with exit code 2"),
    ],
)
def test_a_process_that_fails(
    monkeypatch: pytest.MonkeyPatch, report: Report, statement: str, reason: str
) -> None:
    child_that(monkeypatch, statement)
    assert reason in failure(judge(report())).reason


def test_a_process_that_leaves_no_core(monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    """It would hold what the output held."""
    child_that(monkeypatch, "import resource", "sys.exit(resource.getrlimit(resource.RLIMIT_CORE)[0] + 40)")
    assert "exit code 40" in failure(judge(report())).reason


@pytest.mark.skipif(
    not Path("/proc/self/oom_score_adj").exists(), reason="only Linux kills for memory by a score"
)
def test_where_memory_is_short_it_is_killed_before_all_others(
    monkeypatch: pytest.MonkeyPatch, report: Report
) -> None:
    child_that(monkeypatch, "sys.exit(40 + (open('/proc/self/oom_score_adj').read().strip() == '1000'))")
    assert "exit code 41" in failure(judge(report())).reason


def test_no_descriptor_left() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        judged = judge(Path("/dev/null"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert failure(judged).reason == "it could not be judged: no process can be started: Too many open files"


# ── what it gets ──────────────────────────────────────────────────────────────────────────────────


def test_no_module_comes_from_the_folder_it_is_run_in(
    monkeypatch: pytest.MonkeyPatch, report: Report, tmp_path: Path
) -> None:
    """Agents may write there."""
    for name in ("jobs", "msgspec", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not this one')")
    monkeypatch.chdir(tmp_path)
    assert judge(report()).verdict.outcome is Outcome.PASS


def test_the_bots_own_settings_are_not_inherited(monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    monkeypatch.setenv("LOOPWARDEN_TOKEN", "secret")
    child_that(monkeypatch, "sys.exit(40 + ('LOOPWARDEN_TOKEN' in os.environ))")
    assert "exit code 40" in failure(judge(report())).reason


def test_a_lower_limit_stays(report: Report) -> None:
    """Of processor time, set by whoever started the bot."""
    code = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (30, 30))\n"
        "from jobs.artifacts.apart import Limits, judge_apart\n"
        "from jobs.verification.spec import WorkflowSpec\n"
        "from jobs.verification.verdict import Past\n"
        f"print(judge_apart({str(report())!r}, WorkflowSpec(), 0, Past(), said='', limits=Limits()).verdict.outcome)"
    )
    assert output_of(sys.executable, "-c", code) == "fail\n"


@pytest.mark.parametrize("name", ["line\nend.json", "caf\udce9.json", "x" * 255])
def test_any_name(report: Report, name: str) -> None:
    judged = judge(report(name))
    assert judged.verdict.outcome is Outcome.PASS
    assert judged.artifact is not None
    assert judged.artifact.path.endswith(os.fsencode(name).decode(errors="replace"))


# ── the schema ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "schema.json does not exist"),
        ("", "schema.json is empty, expected some content"),
        ("{", "schema.json is no JSON"),
        ("[" * 100_000, "schema.json is no JSON"),
    ],
)
def test_a_schema_that_cannot_be_used_fails_the_fields(
    report: Report, tmp_path: Path, content: str | None, reason: str
) -> None:
    schema = tmp_path / "schema.json"
    if content is not None:
        schema.write_text(content)
    judged = judge(report(), spec(schema=str(schema)))
    assert failure(judged).check is Check.FIELDS
    assert failure(judged).reason.startswith(f"the schema cannot be used: {tmp_path}")
    assert reason in failure(judged).reason
    assert [result.passed for result in judged.verdict.results[:2]] == [Passed.PASS] * 2


def test_an_earlier_failure_goes_before_it(report: Report, tmp_path: Path) -> None:
    path = report()
    path.write_text("{")
    assert failure(judge(path, spec(schema=f"{tmp_path}/no schema"))).check is Check.PARSES


def test_a_schema_is_applied(report: Report, tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"properties": {"result": {"properties": {"total": {"minimum": 3}}}}}')
    assert judge(report(), spec(schema=str(schema))).verdict.outcome is Outcome.PASS
    judged = judge(report(result={"total": 2}), spec(schema=str(schema)))
    assert failure(judged).check is Check.FIELDS


def test_a_schema_that_is_pinned_is_applied_whatever_its_file_says(report: Report, tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    pinned = spec(schema=str(schema), schema_text='{"properties": {"result": {"required": ["total"]}}}')
    for content in (None, "{}", "{"):
        if content is not None:
            schema.write_text(content)
        assert judge(report(), pinned).verdict.outcome is Outcome.PASS
        assert failure(judge(report(result={"sum": 2}), pinned)).check is Check.FIELDS


def test_a_schema_that_is_too_large_cannot_be_used(report: Report, tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text("{}" + " " * 250_000)
    reason = failure(judge(report(), spec(schema=str(schema)))).reason
    assert reason.startswith("the schema cannot be used: ")
    assert "has 250,002 bytes, expected at most 250,000" in reason
