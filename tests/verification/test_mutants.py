"""Whatever a check claims to catch, it catches: every mutant of every good output is detected by the check that claims it."""

import json
from collections import Counter
from typing import Final, NamedTuple

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from jobs.verification.mutants import mutants
from jobs.verification.spec import (
    BandSpec,
    CountSpec,
    FieldSpec,
    Format,
    Kind,
    StatusSpec,
    WorkflowSpec,
)
from jobs.verification.synthetic import synthetic
from jobs.verification.verdict import Check
from tests.verification.detecting import MTIME, is_detected, judged, names, survivors
from tests.verification.good_outputs import cases
from tests.verification.judging import BARE, GOOD, NOW, SPEC, written

GOOD_DATA: Final = written(GOOD)


# ── all are detected ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("form", Format)
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawing=st.data())
def test_every_mutant_is_detected_by_the_check_that_claims_it(form: Format, drawing: st.DataObject) -> None:
    """Of ten specifications of each format, drawn with outputs that meet them."""
    case = drawing.draw(cases(form))
    assert judged(case.good, case.spec).failure is None
    assert survivors(case.good, case.spec, case.spec) == []
    told = Counter((mutant.check, mutant.name) for mutant in mutants(case.good, case.spec, NOW, MTIME))
    assert set(told.values()) == {1}


@pytest.mark.parametrize("form", Format)
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawing=st.data())
def test_an_output_made_up_after_a_specification_passes_and_every_mutant_of_it_is_detected(
    form: Format, drawing: st.DataObject
) -> None:
    """Of fields and of a schema apart: what both ask for at once is not always known."""
    spec = drawing.draw(cases(form)).spec
    for part in (replace(spec, schema=None, schema_text=None), replace(spec, fields={})):
        good = synthetic(part, NOW)
        assert good is not None
        assert judged(good, part, mtime=NOW).failure is None
        assert survivors(good, part, part) == []


def test_the_nightly_report_is_made_bad_in_78_ways() -> None:
    found = list(mutants(GOOD_DATA, SPEC, NOW, MTIME))
    assert survivors(GOOD_DATA, SPEC, SPEC) == []
    assert Counter(mutant.check for mutant in found) == {
        Check.EXISTS: 2,
        Check.PARSES: 15,
        Check.FIELDS: 42,
        Check.FRESH: 8,
        Check.STATUS: 11,
    }


# ── a check that has gone lenient is found out ────────────────────────────────────────────────────


class Lenient(NamedTuple):
    """What was approved, what the verifier goes by instead, and what that lets pass."""

    approved: WorkflowSpec
    judged_by: WorkflowSpec
    check: Check
    passing: set[str] | None
    """None: all that the check claims."""
    good: bytes = GOOD_DATA


def json_spec(**criteria: object) -> WorkflowSpec:
    return msgspec.convert(criteria, WorkflowSpec)


TYPED: Final = json_spec(fields={"result.total": FieldSpec(type=Kind.INTEGER, min=10, max=20)})
LINES: Final = b"one\ntwo\nthree\nfour\n"
FOUR: Final = replace(BARE[Format.TEXT], count=CountSpec(min=4, within=0.5))
SCHEMA: Final = {"type": "object", "required": ["status"], "properties": {"status": {"enum": ["ok"]}}}


def by_schema(schema: object) -> WorkflowSpec:
    return WorkflowSpec(schema="/srv/schema.json", schema_text=json.dumps(schema))


def by_pattern(pattern: str) -> WorkflowSpec:
    return WorkflowSpec(fields={"status": FieldSpec(pattern=pattern)})


LENIENCIES: Final = (
    Lenient(BARE[Format.JSON], BARE[Format.ANY], Check.PARSES, None),
    Lenient(
        WorkflowSpec(required=("status", "result")),
        WorkflowSpec(required=("status",)),
        Check.FIELDS,
        {
            "result removed",
            "result nulled",
            "result blank",
            "result whitespace",
            "result invisible",
            'result says " NULL "',
            'result says " N/A "',
            'result says " NONE "',
            "result says that in full width",
            "result says that with something invisible in it",
        },
    ),
    Lenient(
        SPEC,
        replace(SPEC, placeholders=("null", "none")),
        Check.FIELDS,
        {f'{path} says " N/A "' for path in SPEC.required},
    ),
    Lenient(
        TYPED,
        WorkflowSpec(fields={"result.total": FieldSpec(type=Kind.INTEGER, min=10)}),
        Check.FIELDS,
        {"result.total above max"},
    ),
    Lenient(
        TYPED,
        WorkflowSpec(fields={"result.total": FieldSpec(type=Kind.INTEGER, min=9, max=20)}),
        Check.FIELDS,
        {"result.total below min"},
    ),
    Lenient(
        TYPED,
        WorkflowSpec(fields={"result.total": FieldSpec(type=Kind.NUMBER, max=20)}),
        Check.FIELDS,
        {"result.total is 0.5", "result.total below min"},
    ),
    Lenient(
        by_schema(SCHEMA), by_schema(SCHEMA | {"required": []}), Check.FIELDS, {"schema: status removed"}
    ),
    Lenient(
        by_schema(SCHEMA), by_schema(SCHEMA | {"properties": {}}), Check.FIELDS, {"schema: status of no enum"}
    ),
    *(
        Lenient(by_pattern("^ok$"), by_pattern(lenient), Check.FIELDS, {f"status {how}" for how in passing})
        for lenient, passing in (
            ("(?i)^ok$", {"in other case"}),
            ("ok$", {"with more before"}),
            ("^ok", {"with more after", "with another line"}),
            ("(?m)^ok$", {"with another line"}),
        )
    ),
    Lenient(SPEC, replace(SPEC, max_age=SPEC.max_age + 2), Check.FRESH, {"timestamp aged"}),
    Lenient(BARE[Format.JSON], replace(BARE[Format.JSON], max_age=1802), Check.FRESH, {"file aged"}),
    Lenient(
        SPEC,
        replace(SPEC, status=StatusSpec(allowed=("ok", "completed"))),
        Check.STATUS,
        {'status renamed "completed"'},
    ),
    Lenient(
        SPEC,
        replace(SPEC, status=StatusSpec(allowed=("ok", "OK"))),
        Check.STATUS,
        {'status in other case "OK"'},
    ),
    Lenient(
        SPEC,
        replace(SPEC, status=StatusSpec(allowed=("ok", "error", "okx"))),
        Check.STATUS,
        {'status says "error"', 'status longer "okx"'},
    ),
    Lenient(replace(SPEC, unchanged=True), SPEC, Check.UNCHANGED, None),
    Lenient(
        replace(SPEC, size=BandSpec(within=0.5)),
        replace(SPEC, size=BandSpec(within=0.51)),
        Check.SIZE,
        {"grown", "shrunk"},
    ),
    Lenient(FOUR, replace(FOUR, count=CountSpec(min=3, within=0.5)), Check.COUNT, {"items dropped"}, LINES),
    Lenient(FOUR, replace(FOUR, count=CountSpec(min=4)), Check.COUNT, {"items added"}, LINES),
    Lenient(
        replace(SPEC, forbid=("Traceback", "ERROR")),
        replace(SPEC, forbid=("Traceback",)),
        Check.FORBID,
        {"holds ERROR", "holds ERROR in the middle"},
    ),
)


@pytest.mark.parametrize("case", LENIENCIES, ids=[f"{at} {case.check}" for at, case in enumerate(LENIENCIES)])
def test_what_a_lenient_check_lets_pass_survives_and_nothing_else(case: Lenient) -> None:
    assert survivors(case.good, case.approved, case.approved) == []
    found = survivors(case.good, case.approved, case.judged_by)
    assert {mutant.check for mutant in found} == {case.check}
    claimed = names(case.good, case.approved, case.check)
    assert {mutant.name for mutant in found} == set(claimed if case.passing is None else case.passing)


def test_a_verifier_that_looks_at_an_older_output_where_there_is_none_is_found_out() -> None:
    found = list(mutants(GOOD_DATA, SPEC, NOW, MTIME))
    passing = [
        mutant for mutant in found if not is_detected(replace(mutant, data=mutant.data or GOOD_DATA), SPEC)
    ]
    assert [(mutant.check, mutant.name) for mutant in passing] == [
        (Check.EXISTS, "missing"),
        (Check.EXISTS, "emptied"),
    ]


def test_the_leniencies_are_of_every_check_that_has_mutants() -> None:
    assert {case.check for case in LENIENCIES} == set(Check) - {Check.EXISTS, Check.COMMAND}
