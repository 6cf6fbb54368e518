"""Where there is no good output, one is made up: of a real value at every path, with the limits of each."""

import json

import pytest
from msgspec.structs import replace

from jobs.verification.rewriting import rewritten
from jobs.verification.spec import (
    DEFAULT_SPEC,
    BandSpec,
    CountSpec,
    FieldSpec,
    Format,
    Kind,
    StatusSpec,
    WorkflowSpec,
)
from jobs.verification.synthetic import synthetic
from tests.verification.detecting import judged, survivors
from tests.verification.judging import BARE, NOW, SPEC


def made_up(spec: WorkflowSpec) -> bytes:
    """What is made up, after it has been judged and every mutant of it detected."""
    good = synthetic(spec, NOW)
    assert good is not None
    assert judged(good, spec, mtime=NOW).failure is None
    assert survivors(good, spec, spec) == []
    return good


def test_an_example() -> None:
    assert json.loads(made_up(DEFAULT_SPEC)) == {
        "status": "ok",
        "result": "made up",
        "timestamp": "2026-01-01T00:00:00+00:00",
    }
    assert json.loads(made_up(SPEC))["items"] == [{"id": "made up"}]


@pytest.mark.parametrize("form", Format)
def test_whatever_the_format_there_is_something_in_it(form: Format) -> None:
    assert made_up(BARE[form])
    assert made_up(replace(BARE[form], size=BandSpec(within=0.5), forbid=("Traceback",), unchanged=True))


@pytest.mark.parametrize(
    "field",
    [
        FieldSpec(),
        FieldSpec(type=Kind.STRING, min_length=9, max_length=9),
        FieldSpec(max_length=3),
        FieldSpec(pattern=r"^[a-z]+-\d{3}$", max_length=30),
        FieldSpec(pattern="^x", min_length=5),
        FieldSpec(type=Kind.INTEGER, min=2.5),
        FieldSpec(type=Kind.INTEGER, max=-2.5),
        FieldSpec(type=Kind.NUMBER, min=0.2, max=0.3),
        FieldSpec(min=7),
        FieldSpec(type=Kind.BOOLEAN),
        FieldSpec(type=Kind.ARRAY, min_length=4),
        FieldSpec(type=Kind.TABLE, min_length=2, max_length=3),
        FieldSpec(type=Kind.ARRAY, max_length=0),
    ],
    ids=repr,
)
def test_a_value_is_of_the_type_range_length_and_pattern(field: FieldSpec) -> None:
    for required in ((), ("a.b",), ("list[2].c",)):
        path = "".join(required) or "x"
        made_up(WorkflowSpec(required=required, fields={path: field}))


def test_cells_of_csv_are_read_as_what_they_are_to_be() -> None:
    kinds = {"a": FieldSpec(type=Kind.BOOLEAN), "b.c": FieldSpec(min=0.5), "d": FieldSpec(type=Kind.STRING)}
    spec = replace(BARE[Format.CSV], required=("d",), fields=kinds, count=CountSpec(of="d", min=2, max=2))
    assert made_up(spec) == b"d,a,b.c\r\nmade up,true,1\r\nmade up,true,1\r\n"


@pytest.mark.parametrize(
    "field", [FieldSpec(type=Kind.INTEGER), FieldSpec(min=1e12), FieldSpec(pattern="Z$")]
)
def test_a_time_is_told_as_it_is_to_be(field: FieldSpec) -> None:
    made_up(WorkflowSpec(timestamp="t", fields={"t": field}))
    schema = {"properties": {"t": {"type": "integer"}}}
    made_up(WorkflowSpec(timestamp="t", schema="/srv/s", schema_text=json.dumps(schema)))


@pytest.mark.parametrize(
    ("form", "count"),
    [
        (Format.JSON, CountSpec(min=4)),
        (Format.JSON, CountSpec(of="rows[].items[]", max=2)),
        (Format.JSON, CountSpec(of="rows[].id", min=30, max=40)),
        (Format.JSON, CountSpec(of="rows", within=0.5)),
        (Format.JSON, CountSpec(of="rows", max=0)),
        (Format.JSON, CountSpec(of="rows[].items[].id", min=5)),
        (Format.JSONL, CountSpec(min=4)),
        (Format.JSONL, CountSpec(of="rows[]", min=4)),
        (Format.CSV, CountSpec(min=4)),
        (Format.CSV, CountSpec(max=0)),
        (Format.YAML, CountSpec(min=4)),
        (Format.TOML, CountSpec(of="rows", min=4)),
        (Format.TEXT, CountSpec(min=4)),
    ],
    ids=repr,
)
def test_there_are_as_many_as_there_are_to_be(form: Format, count: CountSpec) -> None:
    made_up(replace(BARE[form], count=count))


def test_what_there_must_be_none_of_takes_nothing_else_with_it() -> None:
    spec = WorkflowSpec(required=("rows[].id",), count=CountSpec(of="rows[].error", max=0))
    assert json.loads(made_up(spec)) == {"rows": [{"id": "made up"}]}


def test_words_that_stand_for_nothing_are_not_used() -> None:
    spec = WorkflowSpec(
        required=("a",), placeholders=("Made Up", "x-1"), status=StatusSpec(allowed=("fine",))
    )
    assert json.loads(made_up(spec)) == {"a": "7", "status": "fine"}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "required": ["a", "b"], "properties": {"b": {"type": "integer", "minimum": 3}}},
        {"properties": {"a": {"const": 5}, "b": {"enum": [None, "x"]}, "c": {"type": ["null", "boolean"]}}},
        {
            "required": ["a"],
            "properties": {"a": {"type": "array", "items": {"type": "number"}, "minItems": 2}},
        },
        {
            "properties": {
                "a": {"type": "array", "maxItems": 0},
                "b": {"type": "null"},
                "c": {"type": ["null"]},
            }
        },
        {"properties": {"a": {"properties": {"b": {"type": "string", "pattern": "^a", "maxLength": 3}}}}},
        {"type": "array", "items": {"type": "string", "minLength": 12}},
        True,
    ],
    ids=range(7),
)
def test_a_schema_is_met(schema: object) -> None:
    made_up(WorkflowSpec(schema="/srv/schema.json", schema_text=json.dumps(schema)))


def test_a_value_of_a_schema_gives_way_to_what_is_specified() -> None:
    schema = {"properties": {"a": {"type": "string"}, "b": {"type": "array"}}}
    spec = WorkflowSpec(
        fields={"a": FieldSpec(pattern="^x")},
        required=("b[].id",),
        schema="/srv/s",
        schema_text=json.dumps(schema),
    )
    assert json.loads(made_up(spec)) == {"a": "x", "b": [{"id": "made up"}]}


@pytest.mark.parametrize(
    ("form", "schema", "count"),
    [
        (Format.TOML, {"type": "array"}, None),
        (Format.TOML, {"properties": {"a": {"type": "null"}}}, None),
        (Format.CSV, {"type": "array"}, None),
        (Format.JSONL, True, CountSpec(max=0)),
        (Format.TEXT, True, CountSpec(max=0)),
    ],
    ids=range(5),
)
def test_nothing_is_made_up_that_a_format_cannot_say(
    form: Format, schema: object, count: CountSpec | None
) -> None:
    spec = replace(BARE[form], schema="/srv/s", schema_text=json.dumps(schema), count=count)
    assert synthetic(spec, NOW) is None


@pytest.mark.parametrize(
    "spec",
    [
        WorkflowSpec(required=("a",), fields={"a": FieldSpec(type=Kind.INTEGER, pattern="x")}),
        WorkflowSpec(fields={"a": FieldSpec(type=Kind.TABLE)}, count=CountSpec(of="a[].b[]", min=1)),
        WorkflowSpec(required=("a",), schema="/srv/s", schema_text='{"not": {}}'),
        WorkflowSpec(required=("a",), schema="/srv/s"),
        WorkflowSpec(count=CountSpec(of="a", min=10**9)),
    ],
    ids=range(5),
)
def test_what_cannot_be_met_or_known_is_left_to_the_checks(spec: WorkflowSpec) -> None:
    good = synthetic(spec, NOW)
    assert good is not None
    assert judged(good, spec, mtime=NOW).failure is not None


def test_an_index_beyond_all_bounds_makes_no_array_of_that_length() -> None:
    good = synthetic(WorkflowSpec(required=("a[999999999]",)), NOW)
    assert good is not None
    assert len(good) < 200_000


def test_bytes_that_hold_no_values_cannot_be_written_as_any() -> None:
    with pytest.raises(ValueError, match="text has no values"):
        rewritten({}, Format.TEXT)
