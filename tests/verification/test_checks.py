"""All checks of a run, in order: the first failure decides, what is after it is not reached, and nothing raises."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.verification.checks import Output, Ran, asked, broken_off, run_checks, with_command
from jobs.verification.spec import (
    DEFAULT_SPEC,
    BandSpec,
    CommandCheck,
    CountSpec,
    FieldSpec,
    Format,
    Kind,
    StatusSpec,
    WorkflowSpec,
)
from jobs.verification.verdict import Artifact, Check, CheckResult, Outcome, Passed, Past
from tests.verification.judging import (
    BARE,
    GOOD,
    NOW,
    SPEC,
    Row,
    assert_judged,
    assert_well_formed,
    each,
    judged,
    output,
    written,
)

EVERYTHING = msgspec.structs.replace(
    SPEC,
    unchanged=True,
    size=BandSpec(within=0.5),
    count=CountSpec(of="items[]", min=1),
    forbid=("Traceback",),
    command=CommandCheck(argv=("true",)),
)


def test_checks_are_listed_in_their_order_and_none_that_is_not_asked_for() -> None:
    assert asked(EVERYTHING, Output()) == tuple(Check)
    assert asked(BARE[Format.JSON], Output()) == (Check.EXISTS, Check.PARSES, Check.FRESH)
    assert asked(DEFAULT_SPEC, Output()) == tuple(Check)[:5]


def test_of_bytes_of_any_kind_only_what_is_packed_must_be_whole() -> None:
    assert asked(BARE[Format.ANY], Output()) == (Check.EXISTS, Check.FRESH)
    damaged = output(b"\x00\xff", damage="the gzip data ends too early, expected the whole")
    found = run_checks(damaged, BARE[Format.ANY], NOW, Past())
    assert_judged(Row(b"", Check.PARSES, "ends too early"), found)


def test_what_cannot_be_unpacked_does_not_parse_in_any_format() -> None:
    for spec in BARE.values():
        found = run_checks(output(b"x", damage="damaged"), spec, NOW, Past())
        assert_judged(Row(b"", Check.PARSES, "damaged"), found)


def at(path: str, size: int = 1) -> Artifact:
    return Artifact(path=path, device=1, inode=1, mtime_ns=int(NOW * 1e9), size=size, sha256="")


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (Output(), "there is no output"),
        (Output(problem="nothing matches out/report-*.json"), "nothing matches out/report-*.json"),
        (Output(artifact=at("/a/b"), problem="it is still being written\n"), "it is still being written "),
        (Output(artifact=at("/a/report.json", size=0)), "report.json is empty, expected some content"),
    ],
)
def test_what_is_not_there_to_be_read_does_not_exist(found: Output, reason: str) -> None:
    verdict = run_checks(found, EVERYTHING, NOW, Past())
    assert_judged(Row(b"", Check.EXISTS, reason), verdict)
    assert verdict.artifact == found.artifact
    assert len(verdict.verdict.results) == len(Check)


def test_an_output_is_named_by_its_last_part_in_printable_characters() -> None:
    found = run_checks(Output(artifact=at("/srv/out/a\nb", 2113), data=b"x"), BARE[Format.ANY], NOW, Past())
    assert found.verdict.results[0].reason == "a b, 2,113 bytes"


# ── status ────────────────────────────────────────────────────────────────────────────────────────


def says(form: Format, field: str = "status") -> WorkflowSpec:
    return msgspec.structs.replace(BARE[form], status=StatusSpec(field=field))


STATUS = Check.STATUS
STATED = (
    Row(b'{"status": "ok"}', None, "ok", says(Format.JSON)),
    Row(b'{"status": "partial"}', None, "partial", says(Format.JSON)),
    Row(b'{"status": "failed"}', None, "failed", says(Format.JSON)),
    Row(b'{"status": "OK"}', STATUS, 'status is "OK", expected ok, partial or failed', says(Format.JSON)),
    Row(b'{"status": "ok "}', STATUS, 'status is "ok "', says(Format.JSON)),
    Row(b'{"status": "success"}', STATUS, 'status is "success"', says(Format.JSON)),
    Row(b'{"status": "completed"}', STATUS, 'status is "completed"', says(Format.JSON)),
    Row(b'{"status": ""}', STATUS, 'status is ""', says(Format.JSON)),
    Row(b'{"status": true}', STATUS, "status is true", says(Format.JSON)),
    Row(b'{"status": 0}', STATUS, "status is 0", says(Format.JSON)),
    Row(b'{"status": null}', STATUS, "status is null", says(Format.JSON)),
    Row(b'{"status": ["ok"]}', STATUS, "status is an array of 1", says(Format.JSON)),
    Row(b"{}", STATUS, "status is missing, expected ok, partial or failed", says(Format.JSON)),
    Row(b'"ok"', STATUS, "status is missing", says(Format.JSON)),
    Row(b'{"run": {"end": "ok"}}', None, "ok", says(Format.JSON, "run.end")),
    Row(b'{"runs": []}', STATUS, "runs[].s holds no value at all", says(Format.JSON, "runs[].s")),
    Row(b'{"status": "failed"}\n{"status": "ok"}', None, "ok", says(Format.JSONL)),
    Row(b'{"status": "ok"}\n{"status": "wip"}', STATUS, 'line 2: status is "wip"', says(Format.JSONL)),
    Row(b'{"status": "ok"}\n{}', STATUS, "line 2: status is missing", says(Format.JSONL)),
    Row(b"status,x\nok,1\n", None, "ok", says(Format.CSV)),
    Row(b"status,x\nok,1\nOk,2\n", STATUS, 'row 3: status is "Ok"', says(Format.CSV)),
    Row(b"status: ok", None, "ok", says(Format.YAML)),
    Row(b"status: yes", STATUS, "status is true", says(Format.YAML)),
    Row(b'status = "partial"', None, "partial", says(Format.TOML)),
    Row(b"status: ok", STATUS, "status is missing", says(Format.TEXT)),
)


@each(STATED)
def test_the_status_is_one_of_those_that_are_allowed(row: Row) -> None:
    assert_judged(row, judged(row.data, row.spec))


def test_an_honest_failure_is_a_valid_output() -> None:
    """It passes, and is told apart: the run says it failed."""
    found = judged(written({**GOOD, "status": "failed"}), SPEC)
    assert found.verdict.outcome is Outcome.PASS
    assert found.verdict.says_failed
    assert not judged(written(GOOD), SPEC).verdict.says_failed


def test_of_several_records_the_last_says_how_the_run_ended() -> None:
    assert judged(b'{"status": "ok"}\n{"status": "failed"}', says(Format.JSONL)).verdict.says_failed
    assert not judged(b'{"status": "failed"}\n{"status": "ok"}', says(Format.JSONL)).verdict.says_failed


def test_an_output_that_fails_is_no_honest_failure() -> None:
    spec = msgspec.structs.replace(SPEC, forbid=("total",))
    verdict = judged(written({**GOOD, "status": "failed"}), spec).verdict
    assert verdict.outcome is Outcome.FAIL
    assert not verdict.says_failed


# ── forbidden patterns ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("form", "data", "patterns", "reason"),
    [
        (Format.TEXT, b"all\nis well", ("Traceback", "^ERROR"), None),
        (
            Format.TEXT,
            b"a\nb\nERROR: x",
            (r"(?m)^ERROR",),
            "line 3 matches (?m)^ERROR, which is forbidden: expected no match",
        ),
        (Format.JSON, b'{"key": "sk-abc123"}', ("x", "sk-[a-z]+"), "line 1 matches sk-[a-z]+"),
        (Format.ANY, b"\xff\xfe\nTODO", ("TODO",), "line 2 matches TODO"),
        (Format.CSV, b"a\nn/a\n", ("n/a",), "line 2 matches n/a"),
    ],
)
def test_nothing_that_is_forbidden_is_found(
    form: Format, data: bytes, patterns: tuple[str, ...], reason: str | None
) -> None:
    spec = msgspec.structs.replace(BARE[form], forbid=patterns)
    assert_judged(Row(b"", Check.FORBID if reason else None, reason or ""), judged(data, spec))


def test_what_is_forbidden_is_not_repeated() -> None:
    """It may be a secret."""
    spec = msgspec.structs.replace(BARE[Format.TEXT], forbid=("sk-[a-z0-9]+",))
    failure = judged(b"key: sk-0123456789", spec).verdict.failure
    assert failure is not None
    assert "0123456789" not in failure.reason


# ── the command ───────────────────────────────────────────────────────────────────────────────────

COMMANDED = msgspec.structs.replace(SPEC, command=CommandCheck(argv=("pytest",)))


@pytest.mark.parametrize(
    ("ran", "fails", "reason"),
    [
        (Ran(exit=0, took=3.25), None, "exit code 0 after 3.25 s"),
        (Ran(exit=0, took=61, last_line="12 passed"), None, "exit code 0 after 1 min 1 s: 12 passed"),
        (Ran(exit=1, took=2, last_line="1 failed\x1b[0m"), Check.COMMAND, r"exit code 1 after 2 s, expected 0: 1 failed\x1b"),
        (Ran(exit=-9, took=2, last_line=" "), Check.COMMAND, "exit code -9 after 2 s, expected 0"),
        (Ran(exit=None, took=60, trouble="the command took longer than 60 s"), Check.COMMAND, "the command took longer than 60 s, expected exit code 0"),
        (Ran(exit=0, took=1, note="ran a copy"), None, "ran a copy; exit code 0 after 1 s"),
        (Ran(exit=1, took=1, note="ran a copy"), Check.COMMAND, "ran a copy; exit code 1 after 1 s, expected 0"),
        (Ran(exit=None, took=0), Check.COMMAND, "the command did not end, expected exit code 0"),
        (Ran(exit=None, took=0, trouble="t.sh is not the file that was approved", is_refused=True), Check.COMMAND, "t.sh is not the file that was approved"),
    ],
)  # fmt: skip
def test_the_command_must_agree(ran: Ran, fails: Check | None, reason: str) -> None:
    before = judged(written({**GOOD, "status": "failed"}), COMMANDED)
    assert before.verdict.outcome is Outcome.PASS
    found = with_command(before, COMMANDED, ran)
    assert_judged(Row(b"", fails, reason), found)
    assert found.verdict.says_failed == (fails is None)


def test_the_command_may_be_expected_to_fail() -> None:
    spec = msgspec.structs.replace(SPEC, command=CommandCheck(argv=("grep", "x"), exit=1))
    found = with_command(judged(written(GOOD), spec), spec, Ran(exit=1, took=1))
    assert_judged(Row(b"", None, "exit code 1"), found)


def test_a_command_that_fails_a_run_has_its_claim_noted() -> None:
    before = judged(written({**GOOD, "note": "all done"}), COMMANDED)
    assert with_command(before, COMMANDED, Ran(exit=1, took=1)).verdict.said_done == "done"
    assert with_command(before, COMMANDED, Ran(exit=0, took=1)).verdict.said_done is None


# ── how it ends ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("passed", range(len(Check)))
def test_a_judging_that_broke_off_fails_the_check_it_was_in(passed: int) -> None:
    """The last of its own, if all had passed: the command is never tried there."""
    results = [CheckResult(check=check, passed=Passed.PASS, reason="fine") for check in list(Check)[:passed]]
    found = broken_off(output(b"{}"), EVERYTHING, results, "took longer than 60 s")
    assert_judged(
        Row(b"", list(Check)[min(passed, len(Check) - 2)], "took longer than 60 s", EVERYTHING), found
    )


def test_a_judging_that_broke_off_after_a_failure_fails_there() -> None:
    results = [CheckResult(check=Check.EXISTS, passed=Passed.FAIL, reason="empty")]
    found = broken_off(output(b"{}"), EVERYTHING, results, "died")
    assert_judged(Row(b"", Check.EXISTS, "empty"), found)


@pytest.mark.parametrize(
    ("error", "reason"),
    [(MemoryError, "it would take more memory than there is"), (RecursionError, "nested too deeply")],
)
def test_a_check_that_is_too_much_for_the_machine_fails(
    error: type[Exception], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def give_up(*_: object) -> str:
        raise error

    monkeypatch.setattr("jobs.verification.checks.fields", give_up)
    assert_judged(Row(b"", Check.FIELDS, reason), judged(written(GOOD), SPEC))


def test_every_result_is_told_as_soon_as_it_is_there() -> None:
    told: list[CheckResult] = []
    found = run_checks(output(b"{}"), SPEC, NOW, Past(), told=told.append)
    assert [result.check for result in told] == [Check.EXISTS, Check.PARSES, Check.FIELDS]
    assert tuple(told) == found.verdict.results[:3]


# ── laws ──────────────────────────────────────────────────────────────────────────────────────────

ASKED_OF_ALL = {
    form: msgspec.structs.replace(
        EVERYTHING,
        format=form,
        fields={
            "a": FieldSpec(type=Kind.INTEGER, min=1, max_length=3, pattern="x"),
            "[].b": FieldSpec(min_length=2),
        },
        schema="/srv/schema.json",
        count=CountSpec(of="", min=1, within=0.5),
    )
    for form in Format
}
PIECES = b'{" "} ": a , [ ] 1 e999 " = : - \xff \x00 null &x *x << { } status ok \t \r !! ---'.split(b" ")
pieces = st.sampled_from([*PIECES, b" ", b"\n", b": ", b"- "])
artifacts = st.binary() | st.lists(pieces, max_size=12).map(b"".join)


@given(st.sampled_from(Format), artifacts, st.booleans(), st.booleans())
def test_any_bytes_in_any_format_have_a_verdict(
    form: Format, data: bytes, is_all_asked: bool, is_later: bool
) -> None:
    spec = ASKED_OF_ALL[form] if is_all_asked else BARE[form]
    past = Past(last_content="c0", sizes=(5, 5, 5), counts=(1, 2, 3)) if is_later else Past()
    found = judged(data, spec, past=past, schema={"type": "object"})
    assert_well_formed(found)
    assert found == msgspec.json.decode(msgspec.json.encode(found), type=type(found))


BREAKING: dict[Check, Callable[[dict[str, object]], object]] = {
    Check.PARSES: lambda report: written(report)[:-1],
    Check.FIELDS: lambda report: {**report, "result": None},
    Check.FRESH: lambda report: {**report, "timestamp": 0},
    Check.STATUS: lambda report: {**report, "status": "done"},
    Check.COUNT: lambda report: {**report, "items": [{"id": 1}] * 9},
    Check.FORBID: lambda report: {**report, "note": "Traceback (most recent call last)"},
}


@given(st.sets(st.sampled_from(list(BREAKING)), min_size=1))
def test_of_several_failures_the_first_decides(broken: set[Check]) -> None:
    spec = msgspec.structs.replace(EVERYTHING, count=CountSpec(of="items[]", max=5))
    report: object = GOOD
    for check in sorted(broken, key=list(Check).index, reverse=True):
        report = BREAKING[check](report) if isinstance(report, dict) else report
    found = judged(report if isinstance(report, bytes) else written(report), spec)
    assert_judged(Row(b"", min(broken, key=list(Check).index)), found)


claims = st.sampled_from(
    ["Completed", "complete", "DONE", "finished", "success", "successful", "successfully"]
)


@given(claims, st.sampled_from([*BREAKING, None]))
def test_words_of_success_change_no_verdict_and_are_noted_beside_one_that_fails(
    claim: str, broken: Check | None
) -> None:
    """Neither those of the output nor those of its reporter."""

    def report(note: str) -> bytes:
        good: dict[str, object] = {**GOOD, "note": note}
        made = BREAKING[broken](good) if broken else good
        return made if isinstance(made, bytes) else written(made)

    spec = msgspec.structs.replace(EVERYTHING, count=CountSpec(of="items[]", max=5), command=None)
    silent = run_checks(output(report("x" * len(claim))), spec, NOW, Past()).verdict
    boasting = run_checks(output(report(claim)), spec, NOW, Past()).verdict
    told = run_checks(output(report("x" * len(claim))), spec, NOW, Past(), said=f"It is {claim}!").verdict
    for verdict in (boasting, told):
        assert msgspec.structs.replace(verdict, said_done=None) == msgspec.structs.replace(
            silent, said_done=None
        )
        if broken not in {None, Check.FORBID, Check.STATUS}:
            assert verdict.said_done == claim
    assert boasting.said_done is None or broken is not None


@pytest.mark.parametrize(
    "text",
    [
        *("incomplete", "undone", "unfinished", "completing", "unsuccessful", "wip"),
        *(
            "not done",
            "Not yet complete",
            "never finished",
            "it isn't quite finished",
            "no success",
            "not-done",
        ),
    ],
)
def test_only_whole_words_that_nothing_denies_are_claims(text: str) -> None:
    assert run_checks(Output(), SPEC, NOW, Past(), said=text).verdict.said_done is None


def test_a_claim_is_what_the_reporter_says_or_else_the_start_of_the_output() -> None:
    late = b'{"a": "' + b"x" * (1 << 16) + b' done"}'
    assert judged(late, SPEC).verdict.said_done is None
    assert judged(b"\xff finished", SPEC).verdict.said_done == "finished"
    found = run_checks(output(b"{} done"), SPEC, NOW, Past(), said="Successfully sent")
    assert found.verdict.said_done == "Successfully"
    assert judged(b"not done, I thought; now finished", SPEC).verdict.said_done == "finished"
