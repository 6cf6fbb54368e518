"""Do the fields hold real values, of the type, range, length and pattern that is asked for?"""

import sys
from typing import Any
from unicodedata import category

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.verification.path import parse_path
from jobs.verification.real import folded, is_real
from jobs.verification.spec import FieldSpec, Format, Kind, WorkflowSpec
from jobs.verification.verdict import Check
from tests.verification.judging import BARE, GOOD, NOW, SPEC, Row, assert_judged, each, judged, written

FIELDS = Check.FIELDS


def required(*paths: str, form: Format = Format.JSON) -> WorkflowSpec:
    return msgspec.structs.replace(BARE[form], required=paths)


def changed(**fields: object) -> bytes:
    return written({**GOOD, **fields})


REQUIRED = (
    Row(written(GOOD), None, "hold values"),
    Row(changed(result={"total": 0}), None),
    Row(changed(result={"total": False}), None),
    Row(changed(result={"total": []}), None),
    Row(changed(result={"total": {}}), None),
    Row(changed(result={"total": "nullify"}), None),
    Row(changed(result={"total": "none of them"}), None),
    Row(changed(result={"total": "."}), None),
    Row(changed(result={"total": "…"}), None),
    Row(changed(result={"total": "\u200b0"}), None),
    Row(changed(result={"total": "x" * 1_000_000}), None),
    Row(b"{}", FIELDS, "status is missing, expected a real value"),
    Row(b"[]", FIELDS, "status is missing"),
    Row(b'"status"', FIELDS, "status is missing"),
    Row(b"null", FIELDS, "status is missing"),
    Row(changed(status=None), FIELDS, "status is null, expected a real value"),
    Row(changed(status=""), FIELDS, "status is blank, expected a real value"),
    Row(changed(status=" \t\n"), FIELDS, "status is blank"),
    Row(changed(status="\u00a0\u3000"), FIELDS, "status is blank"),
    Row(changed(status="\u200b\ufeff\u2060"), FIELDS, "status is blank"),
    Row(changed(status="\u2800\u3164"), FIELDS, "status is blank"),
    Row(changed(status="\x00\x1f"), FIELDS, "status is blank"),
    Row(changed(status="\u034f\ufe0f\U000e0020"), FIELDS, "status is blank"),
    Row(changed(status="\u200b" * 1_000_000), FIELDS, "status is blank"),
    Row(changed(status="null"), FIELDS, 'status is the placeholder "null", expected a real value'),
    Row(changed(status="NULL"), FIELDS, 'the placeholder "NULL"'),
    Row(changed(status="N/A"), FIELDS, 'the placeholder "N/A"'),
    Row(changed(status="n/a"), FIELDS, "placeholder"),
    Row(changed(status="None"), FIELDS, "placeholder"),
    Row(changed(status="  nOnE\n"), FIELDS, "placeholder"),
    Row(changed(status="\u200bnull\ufeff"), FIELDS, "placeholder"),
    Row(changed(status="n\u200b/\u2060a"), FIELDS, "placeholder"),
    Row(changed(status="\uff4e\uff4f\uff4e\uff45"), FIELDS, "placeholder"),
    Row(changed(result={"total": "no\u00a0ne"}), None, ""),
    Row(changed(result=None), FIELDS, "result.total is missing"),
    Row(changed(result=[{"total": 1}]), FIELDS, "result.total is missing"),
    Row(changed(result={"Total": 1}), FIELDS, "result.total is missing"),
    Row(changed(result={"total": None}), FIELDS, "result.total is null"),
    Row(changed(items=[]), FIELDS, "items[].id holds no value at all, expected at least one"),
    Row(changed(items=None), FIELDS, "items[] is missing"),
    Row(changed(items={"id": 1}), FIELDS, "items[] is missing"),
    Row(changed(items=[{"id": 1}, {"id": "n/a"}]), FIELDS, 'items[1].id is the placeholder "n/a"'),
    Row(changed(items=[{"id": 1}, {}]), FIELDS, "items[1].id is missing"),
    Row(changed(items=[{"id": 1}, None]), FIELDS, "items[1].id is missing"),
    Row(changed(timestamp=None), FIELDS, "timestamp is null"),
    Row(b'{"a.b": 1}', None, "", required('"a.b"')),
    Row(b'{"a": {"b": 1}}', FIELDS, '"a.b" is missing', required('"a.b"')),
    Row(b'{"a.b": 1}', FIELDS, "a.b is missing", required("a.b")),
    Row(b'[{"id": 1}]', None, "", required("[].id")),
    Row(b"[]", FIELDS, "[].id holds no value", required("[].id")),
    Row(b'{"a": [[1], []]}', None, "a[][] holds a value", required("a[][]")),
    Row(b'{"a": [[1], [null]]}', FIELDS, "a[1][0] is null", required("a[][]")),
    Row(b'{"a": [1]}', FIELDS, "a[1] is missing", required("a[1]")),
    Row(b'{"id": 1}\n{"id": 2}', None, "", required("id", form=Format.JSONL)),
    Row(b'{"id": 1}\n{"id": ""}', FIELDS, "line 2: id is blank", required("id", form=Format.JSONL)),
    Row(b'{"id": 1}\n7', FIELDS, "line 2: id is missing", required("id", form=Format.JSONL)),
    Row(b'{"a": []}\n{"a": [1]}', None, "", required("a[]", form=Format.JSONL)),
    Row(b"id,n\nx,1\n", None, "", required("id", "n", form=Format.CSV)),
    Row(b"id,n\nx,1\n,2\n", FIELDS, "row 3: id is blank", required("id", form=Format.CSV)),
    Row(b"id,n\nx,N/A\n", FIELDS, 'row 2: n is the placeholder "N/A"', required("n", form=Format.CSV)),
    Row(b"id,n\nx,1\n", FIELDS, "row 2: m is missing", required("m", form=Format.CSV)),
    Row(b"id,n\n", FIELDS, "id holds no value at all", required("id", form=Format.CSV)),
    Row(b"id,by.day\nx,1\n", None, "", required("by.day", form=Format.CSV)),
    Row(b"a:\n  b: ~\n", FIELDS, "a.b is null", required("a.b", form=Format.YAML)),
    Row(b"a:\n", FIELDS, "a is null", required("a", form=Format.YAML)),
    Row(b"a: no\n", None, "", required("a", form=Format.YAML)),
    Row(b"---\n", FIELDS, "a is missing", required("a", form=Format.YAML)),
    Row(b"a = 2026-01-01\n", None, "", required("a", form=Format.TOML)),
    Row(b'a = ""\n', FIELDS, "a is blank", required("a", form=Format.TOML)),
)


@each(REQUIRED)
def test_required_fields_hold_real_values_everywhere(row: Row) -> None:
    assert_judged(row, judged(row.data, row.spec))


def test_the_placeholders_are_the_workflows_own() -> None:
    spec = msgspec.structs.replace(SPEC, placeholders=("TODO", " - "))
    assert_judged(Row(b"", None), judged(changed(result={"total": "n/a"}), spec))
    assert_judged(Row(b"", FIELDS, "placeholder"), judged(changed(result={"total": "todo"}), spec))
    assert_judged(Row(b"", FIELDS, "placeholder"), judged(changed(result={"total": "-"}), spec))


unreal = st.sampled_from([None, "", " ", "\t", "\u200b"]) | st.tuples(
    st.sampled_from(["", " ", "\n"]), st.sampled_from(["null", "n/a", "none"]), st.booleans()
).map(lambda parts: parts[0] + (parts[1].upper() if parts[2] else parts[1].title()) + parts[0])


@given(st.sampled_from(SPEC.required), unreal | st.just(...), st.integers(0, 1))
def test_a_good_report_without_one_of_its_required_values_always_fails_by_its_fields(
    text: str, value: object, index: int
) -> None:
    """Removed, null, blank or a placeholder, wherever it is required."""
    report: Any = msgspec.json.decode(written(GOOD))
    *steps, last = (index if step is None else step for step in parse_path(text))
    holder = report
    for step in steps:
        holder = holder[step]
    if value is ...:
        del holder[last]
    else:
        holder[last] = value
    failure = judged(written(report), SPEC).verdict.failure
    assert failure is not None
    assert failure.check is FIELDS
    assert str(last) in failure.reason


@given(st.text(), st.text(" \n\t\u200b\u2060\u3164"), st.sampled_from(["null", "n/a", "none"]))
def test_what_does_not_show_makes_no_difference(text: str, around: str, placeholder: str) -> None:
    placeholders = folded(("null", "n/a", "none"))
    assert is_real(text, placeholders) == is_real(around + text + around, placeholders)
    assert not is_real(around + placeholder + around, placeholders)
    assert not is_real(around, placeholders)


def test_no_space_or_control_character_shows_and_every_letter_and_digit_does() -> None:
    for character in map(chr, range(sys.maxunicode + 1)):
        kind = category(character)
        if kind in {"Cc", "Zs", "Zl", "Zp"}:
            assert not is_real(character, frozenset()), hex(ord(character))
        elif kind in {"Ll", "Lu", "Nd", "So", "Po"} and character != "\u2800":
            assert is_real(character, frozenset()), hex(ord(character))


def specified(spec: FieldSpec, path: str = "a", form: Format = Format.JSON) -> WorkflowSpec:
    return msgspec.structs.replace(BARE[form], fields={path: spec})


EXAMPLES: dict[Kind, tuple[str, ...]] = {
    Kind.STRING: ('""', '"1"'),
    Kind.INTEGER: ("1", "1.0", "-0", "1e2", "1" + "0" * 400),
    Kind.NUMBER: ("1.5", "1", "1.0", "1e2", "1e-9"),
    Kind.BOOLEAN: ("true", "false"),
    Kind.ARRAY: ("[]", "[1]"),
    Kind.TABLE: ("{}", '{"a": 1}'),
}
CORPUS = sorted({text for texts in EXAMPLES.values() for text in texts} | {"null"})


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("text", CORPUS, ids=lambda text: text[:10])
def test_a_type_is_that_of_the_value_and_no_other(kind: Kind, text: str) -> None:
    """A boolean is no number, a whole number is an integer however it is written, and null is of no type."""
    is_one = text in EXAMPLES[kind] or (kind is Kind.NUMBER and text in EXAMPLES[Kind.INTEGER])
    row = Row(b"", None if is_one else FIELDS, "" if is_one else f" {kind}")
    assert_judged(row, judged(f'{{"a": {text}}}'.encode(), specified(FieldSpec(type=kind))))


SPECIFIED = (
    Row(b'{"a": 5}', None, "a as specified", specified(FieldSpec(min=5, max=5))),
    Row(b"{}", None, "", specified(FieldSpec(type=Kind.STRING, min=5, pattern="x"))),
    Row(b'{"a": 4.9}', FIELDS, "a is 4.9, expected at least 5", specified(FieldSpec(min=5))),
    Row(b'{"a": 5.1}', FIELDS, "a is 5.1, expected at most 5", specified(FieldSpec(max=5))),
    Row(b'{"a": "5"}', FIELDS, 'a is "5", expected a number', specified(FieldSpec(min=5))),
    Row(b'{"a": true}', FIELDS, "a is true, expected a number", specified(FieldSpec(max=5))),
    Row(b'{"a": null}', FIELDS, "a is null, expected a number", specified(FieldSpec(max=5))),
    Row(b'{"a": 1' + b"0" * 4000 + b"}", FIELDS, "a huge number", specified(FieldSpec(max=5))),
    Row(b'{"a": "abc"}', None, "", specified(FieldSpec(min_length=3, max_length=3))),
    Row(b'{"a": "ab"}', FIELDS, "a has a length of 2, expected at least 3", specified(FieldSpec(min_length=3))),
    Row(b'{"a": [1, 2]}', FIELDS, "a has a length of 2, expected at most 1", specified(FieldSpec(max_length=1))),
    Row(b'{"a": {"b": 1}}', None, "", specified(FieldSpec(max_length=1))),
    Row(b'{"a": 12}', FIELDS, "a is 12, which has no length", specified(FieldSpec(max_length=1))),
    Row(b'{"a": "run-7"}', None, "", specified(FieldSpec(pattern="^run-[0-9]+$"))),
    Row(b'{"a": "x run-7"}', FIELDS, 'a is "x run-7", expected a match of ^run', specified(FieldSpec(pattern="^run"))),
    Row(b'{"a": 7}', FIELDS, "a is 7, expected a match of 7", specified(FieldSpec(pattern="7"))),
    Row(b'{"a": [1, 2, "x"]}', FIELDS, 'a[2] is "x", expected an integer', specified(FieldSpec(type=Kind.INTEGER), "a[]")),
    Row(b'{"a": []}', None, "", specified(FieldSpec(type=Kind.INTEGER), "a[]")),
    Row(b'{"a": 1}\n{"a": "1"}', FIELDS, 'line 2: a is "1"', specified(FieldSpec(type=Kind.NUMBER), form=Format.JSONL)),
)  # fmt: skip

CELLS = (
    (b"1", FieldSpec(type=Kind.INTEGER, min=1), None),
    (b"-1.0", FieldSpec(type=Kind.INTEGER), None),
    (b"1.5e3", FieldSpec(type=Kind.NUMBER, max=1500), None),
    (b"7", FieldSpec(max=7), None),
    (b"true", FieldSpec(type=Kind.BOOLEAN), None),
    (b"FALSE", FieldSpec(type=Kind.BOOLEAN), None),
    (b"1", FieldSpec(type=Kind.STRING, pattern="^1$"), None),
    (b"", FieldSpec(type=Kind.INTEGER), None),
    (b"1.5", FieldSpec(type=Kind.INTEGER), "row 2: a is 1.5, expected an integer"),
    (b"nan", FieldSpec(type=Kind.NUMBER), 'row 2: a is "nan", expected a number'),
    (b"1_0", FieldSpec(type=Kind.NUMBER), 'row 2: a is "1_0", expected a number'),
    (b"1e999", FieldSpec(type=Kind.INTEGER), "expected an integer"),
    (b"1" * 5000, FieldSpec(type=Kind.INTEGER), "expected an integer"),
    (b"yes", FieldSpec(type=Kind.BOOLEAN), 'row 2: a is "yes", expected a boolean'),
    (b"8", FieldSpec(max=7), "row 2: a is 8, expected at most 7"),
    (b"x", FieldSpec(max=7), 'row 2: a is "x", expected a number'),
    (b"x", FieldSpec(pattern="y"), 'row 2: a is "x", expected a match of y'),
)


@each(SPECIFIED)
def test_values_are_as_specified_where_they_are_present(row: Row) -> None:
    assert_judged(row, judged(row.data, row.spec))


@pytest.mark.parametrize(("cell", "spec", "reason"), CELLS)
def test_a_cell_of_csv_is_of_the_type_that_it_can_be_read_as(
    cell: bytes, spec: FieldSpec, reason: str | None
) -> None:
    """A blank one is not present."""
    row = Row(b"", FIELDS if reason else None, reason or "")
    assert_judged(row, judged(b"a,b\n" + cell + b",x\n", specified(spec, form=Format.CSV)))


SCHEMA: dict[str, object] = {
    "type": "object",
    "required": ["id"],
    "properties": {"id": {"type": "integer"}, "tags": {"items": {"enum": ["a", "b"]}}},
    "additionalProperties": False,
}
RECURSIVE: dict[str, object] = {"$ref": "#"}
CONFORMING: tuple[tuple[bytes, object, str | None], ...] = (
    (b'{"id": 1, "tags": ["a"]}', SCHEMA, None),
    (b'{"id": 1}', True, None),
    (b'{"id": 1}', False, "the whole is a table of 1"),
    (b'{"id": "1"}', SCHEMA, 'id is "1", which the schema\'s type "integer" forbids'),
    (b'{"id": true}', SCHEMA, "id is true"),
    (b'{"id": 1, "tags": ["a", "c"]}', SCHEMA, 'tags[1] is "c", which the schema\'s enum a b forbids'),
    (b'{"tags": []}', SCHEMA, "the whole is a table of 1, which the schema's required id forbids"),
    (b'{"id": 1, "x": 1}', SCHEMA, "additionalProperties false forbids"),
    (b'{"id": 1}', {"minProperties": 2}, "minProperties 2 forbids"),
    (b'{"id": 1}', {"allOf": [{"required": ["x"]}]}, "required x forbids"),
    (b'{"id": 1}', {"anyOf": [{"required": ["x"]}, {"type": "null"}]}, "anyOf an array of 2 forbids"),
    (b'{"id": 1}', None, "the schema is none"),
    (b'{"id": 1}', [], "the schema is none"),
    (b'{"id": 1}', {"type": "strnig"}, "the schema itself is wrong at $.type"),
    (b'{"id": 1}', {"$ref": "https://example.org/s.json"}, 'the schema refers to "https://example.org/s.json"'),
    (b'{"id": 1}', {"$ref": "#/$defs/x"}, 'the schema refers to "/$defs/x"'),
    (b'{"id": 1}', RECURSIVE, "nested too deeply"),
    (b'{"id": 1}', {"$schema": "http://json-schema.org/draft-04/schema#", "required": ["x"]}, "required x"),
    (b'{"id": "x"}', {"properties": {"id": {"pattern": "["}}}, "the schema"),
    (b'{"id": 1' + b"0" * 400 + b"}", {"properties": {"id": {"multipleOf": 0.1}}}, "the schema cannot be applied"),
)  # fmt: skip


@pytest.mark.parametrize(("data", "schema", "reason"), CONFORMING, ids=lambda value: repr(value)[:50])
def test_the_output_conforms_to_the_schema_and_nothing_is_fetched_for_it(
    data: bytes, schema: object, reason: str | None
) -> None:
    spec = msgspec.structs.replace(BARE[Format.JSON], schema="/srv/schema.json")
    row = Row(b"", None if reason is None else FIELDS, reason or "the schema is met")
    assert_judged(row, judged(data, spec, schema=schema))


def test_an_output_that_does_not_conform_is_no_fault_of_the_schema() -> None:
    spec = msgspec.structs.replace(BARE[Format.JSON], schema="/srv/schema.json")
    failure = judged(b'{"id": "1"}', spec, schema=SCHEMA).verdict.failure
    assert failure is not None
    assert failure.reason == 'id is "1", which the schema\'s type "integer" forbids'


def test_every_record_conforms_to_the_schema() -> None:
    spec = msgspec.structs.replace(BARE[Format.JSONL], schema="/srv/schema.json")
    assert_judged(Row(b"", None), judged(b'{"id": 1}\n{"id": 2}', spec, schema=SCHEMA))
    row = Row(b"", FIELDS, 'line 2: id is "2"')
    assert_judged(row, judged(b'{"id": 1}\n{"id": "2"}', spec, schema=SCHEMA))


def test_every_row_conforms_to_the_schema() -> None:
    """A row is a table of texts."""
    spec = msgspec.structs.replace(BARE[Format.CSV], schema="/srv/schema.json")
    schema = {"required": ["id", "a.b"], "properties": {"id": {"maxLength": 1}}}
    assert_judged(Row(b"", None), judged(b"id,a.b\n1,2\n3,4", spec, schema=schema))
    row = Row(b"", FIELDS, 'row 3: id is "33"')
    assert_judged(row, judged(b"id,a.b\n1,2\n33,4", spec, schema=schema))


def test_all_that_is_asked_of_the_fields_is_one_check() -> None:
    spec = msgspec.structs.replace(SPEC, fields={"status": FieldSpec(type=Kind.STRING)}, schema="/s.json")
    row = Row(b"", None, "hold values; status as specified; the schema is met")
    report = written({**GOOD, "timestamp": NOW})
    found = judged(report, spec, schema=True)
    (fields,) = (result for result in found.verdict.results if result.check is FIELDS)
    assert fields.reason.endswith(row.reason)
