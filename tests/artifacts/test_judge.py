"""An output is found, read and judged, here or in a process of its own, and whatever lies there gives a verdict."""

import gzip
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.artifacts import judge as judge_module
from jobs.artifacts.judge import ArtifactJudge
from jobs.ports import Judge
from jobs.verification.checks import Ran
from jobs.verification.spec import CommandCheck, FieldSpec, Format, Names, StatusSpec, WorkflowSpec
from jobs.verification.verdict import Check, CheckResult, Judged, Outcome, Passed, Past
from tests.artifacts.conftest import NOW, RecordedCommands, Report

TODAY = Names(date="2026-11-30")
SPEC = WorkflowSpec(
    name="nightly",
    required=("status", "result.total", "timestamp"),
    timestamp="timestamp",
    status=StatusSpec(),
)
APART: Final[Mapping[str, Mapping[str, object]]] = {
    "patterns": {"fields": {"status": FieldSpec(pattern="^o")}},
    "forbidden": {"forbid": ("password",)},
    "schema": {"schema": "/dev/null"},
    "yaml": {"format": Format.YAML},
    "toml": {"format": Format.TOML},
}


def changed(spec: WorkflowSpec = SPEC, /, **fields: object) -> WorkflowSpec:
    return msgspec.structs.replace(spec, **fields)


def judge(spec: WorkflowSpec, path: Path | str | None = None, *, said: str = "") -> Judged:
    judging: Judge = ArtifactJudge(RecordedCommands())
    return judging.judge(spec, TODAY, NOW, Past(), path=None if path is None else str(path), said=said)


def failure(judged: Judged) -> CheckResult:
    assert judged.verdict.outcome is Outcome.FAIL
    assert judged.verdict.failure is not None
    return judged.verdict.failure


@pytest.fixture
def never_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Judged:
        raise AssertionError("not so cheap")

    monkeypatch.setattr(judge_module, "_judge_apart", refuse)


# ── which ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_newest_match_is_judged(report: Report, tmp_path: Path) -> None:
    old, new = report("report-1.json", status="lost"), report("report-2.json")
    os.utime(old, (NOW - 900, NOW - 900))
    judged = judge(changed(output=str(tmp_path / "report-*.json")))
    assert judged.verdict.outcome is Outcome.PASS
    assert judged.artifact is not None
    assert judged.artifact.path == str(new)


def test_or_the_path_that_is_given(report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report("other.json", status="lost")
    monkeypatch.chdir(tmp_path)
    judged = judge(changed(output=str(report())), "other.json")
    assert failure(judged).check is Check.STATUS
    assert judged.artifact is not None
    assert judged.artifact.path == str(tmp_path / "other.json")


def test_where_nothing_matches_that_is_told(tmp_path: Path) -> None:
    judged = judge(changed(output=str(tmp_path / "*.json")))
    assert failure(judged).check is Check.EXISTS
    assert failure(judged).reason == f"nothing matches {tmp_path}/*.json, expected a regular file"
    assert judged.artifact is None


def test_an_id_that_would_lead_elsewhere_is_told(tmp_path: Path) -> None:
    spec = changed(output=str(tmp_path / "{run}.json"))
    judged = ArtifactJudge(RecordedCommands()).judge(spec, Names(date="x", run="../secret"), NOW, Past())
    assert failure(judged).check is Check.EXISTS
    assert "id" in failure(judged).reason


def test_a_path_in_a_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert failure(judge(SPEC, "report.json")).reason == "report.json does not exist, expected a regular file"


# ── where ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("never_apart")
def test_what_is_cheap_is_judged_here(report: Report) -> None:
    assert judge(SPEC, report()).verdict.outcome is Outcome.PASS
    assert failure(judge(SPEC, report(status=None))).check is Check.FIELDS
    assert failure(judge(SPEC, "/dev/zero")).check is Check.EXISTS
    assert failure(judge(SPEC, "a\0b")).check is Check.EXISTS


@pytest.mark.parametrize("fields", [changes for name, changes in APART.items() if name != "toml"], ids=str)
@pytest.mark.usefixtures("never_apart")
def test_what_may_be_dear_is_not(report: Report, fields: Mapping[str, object]) -> None:
    with pytest.raises(AssertionError, match="not so cheap"):
        judge(changed(**fields), report())


@pytest.mark.usefixtures("never_apart")
def test_nor_is_what_is_large_or_compressed(report: Report, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="not so cheap"):
        judge(SPEC, report(more="x" * 1_000_000))
    (tmp_path / "packed").write_bytes(gzip.compress(b"{}"))
    with pytest.raises(AssertionError, match="not so cheap"):
        judge(SPEC, tmp_path / "packed")


def test_what_has_become_large_since_it_was_looked_at_is_not_read_here(
    report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be replaced by any other at any time."""
    large, asked = report(more="x" * 1_000_000), list[str]()

    def record(path: str, *_: object) -> Judged:
        asked.append(path)
        return judge(SPEC, report("small.json"))

    monkeypatch.setattr(judge_module, "_is_cheap", lambda *_: True)
    monkeypatch.setattr(judge_module, "_judge_apart", record)
    judge(SPEC, large)
    assert asked == [str(large)]


@pytest.mark.parametrize("name", ["patterns", "forbidden", "yaml"])
def test_the_verdict_is_the_same_wherever_it_is_given(report: Report, name: str) -> None:
    """But for the checks that are only tried there."""
    spec = changed(unchanged=True)
    for path in (report(), report(status="lost"), report(timestamp=NOW - 4000), report(result=None)):
        here, apart = judge(spec, path), judge(changed(spec, **APART[name]), path)
        assert (apart.artifact, apart.content) == (here.artifact, here.content)
        assert apart.verdict.outcome is here.verdict.outcome
        told = {result.check: result for result in apart.verdict.results}
        for result in here.verdict.results:
            if result.check is not Check.PARSES:
                assert told[result.check].passed is result.passed
        if here.verdict.failure:
            assert failure(apart) == here.verdict.failure


def test_what_its_reporter_says_reaches_it_everywhere(report: Report) -> None:
    path = report(status="lost")
    for spec in (SPEC, changed(forbid=("password",))):
        assert judge(spec, path, said="Done! \ud800").verdict.said_done == "Done"


# ── the command ───────────────────────────────────────────────────────────────────────────────────

TESTED = changed(command=CommandCheck(argv=("test",)))


def test_the_command_is_asked_last(report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands, path = RecordedCommands(), report()
    monkeypatch.chdir(tmp_path)
    judged = ArtifactJudge(commands).judge(TESTED, TODAY, NOW, Past(), path=path.name)
    assert commands.paths == [str(path)]
    assert judged.verdict.outcome is Outcome.PASS
    assert judged.verdict.results[-1].check is Check.COMMAND


def test_its_failure_is_the_verdicts(report: Report) -> None:
    commands = RecordedCommands(Ran(exit=1, last_line="2 tests failed", took=3.0))
    judged = ArtifactJudge(commands).judge(TESTED, TODAY, NOW, Past(), path=str(report()))
    assert failure(judged).check is Check.COMMAND
    assert "2 tests failed" in failure(judged).reason


def test_what_was_written_while_it_ran_was_not_judged(report: Report) -> None:
    """The command may have seen another output than the checks: a good one may have been put in a bad one's place."""

    @dataclass
    class Rewriting(RecordedCommands):
        def run(self, command: CommandCheck, workflow: str, names: Names, path: str) -> Ran:
            report("other.json").replace(path)
            return super().run(command, workflow, names, path)

    spec = changed(command=CommandCheck(argv=("check",)))
    judged = ArtifactJudge(Rewriting()).judge(spec, TODAY, NOW, Past(), path=str(report()))
    assert failure(judged).check is Check.COMMAND
    assert failure(judged).reason == "the output changed while the command ran, expected exit code 0"


def test_nor_was_what_was_taken_away(report: Report) -> None:
    @dataclass
    class Removing(RecordedCommands):
        def run(self, command: CommandCheck, workflow: str, names: Names, path: str) -> Ran:
            os.unlink(path)  # noqa: PTH108 - a text
            return super().run(command, workflow, names, path)

    spec = changed(command=CommandCheck(argv=("check",)))
    judged = ArtifactJudge(Removing()).judge(spec, TODAY, NOW, Past(), path=str(report()))
    assert failure(judged).reason == "the output changed while the command ran, expected exit code 0"


@pytest.mark.skipif(not os.supports_bytes_environ, reason="names are texts")
def test_a_name_that_is_no_text_is_the_same_after_the_command(report: Report, tmp_path: Path) -> None:
    path = tmp_path / "report-\udcff.json"
    report().replace(path)
    assert judge(changed(command=CommandCheck(argv=("check",))), path).verdict.outcome is Outcome.PASS


def test_it_is_not_asked_after_a_failure(report: Report) -> None:
    commands = RecordedCommands()
    judged = ArtifactJudge(commands).judge(TESTED, TODAY, NOW, Past(), path=str(report(status=None)))
    assert commands.paths == []
    assert judged.verdict.results[-1] == CheckResult(check=Check.COMMAND, passed=Passed.NOT_REACHED)


# ── whatever lies there ───────────────────────────────────────────────────────────────────────────


@given(
    content=st.binary(max_size=200),
    form=st.sampled_from([Format.JSON, Format.JSONL, Format.CSV, Format.TEXT]),
)
def test_any_bytes_give_a_verdict(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, form: Format
) -> None:
    path = tmp_path_factory.getbasetemp() / "any bytes"
    path.write_bytes(content)
    judged = judge(changed(format=form, unchanged=True), path)
    assert judged.verdict.results[0].check is Check.EXISTS
    assert (judged.verdict.outcome is Outcome.PASS) == (judged.verdict.failure is None)


@pytest.mark.parametrize("form", [Format.JSON, Format.JSONL, Format.YAML, Format.TOML])
@pytest.mark.parametrize(
    "content", ["[" * 1_000_000, '{"a":' * 1_000_000, "a = " + "[" * 1_000_000, "1" * 100_000]
)
def test_depth_and_length_are_no_way_out(tmp_path: Path, form: Format, content: str) -> None:
    path = tmp_path / "report"
    path.write_text(content)
    assert failure(judge(changed(format=form), path)).check in {Check.PARSES, Check.FIELDS}
