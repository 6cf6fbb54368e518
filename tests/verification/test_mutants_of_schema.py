"""A schema is broken word by word, by what it forbids in every draft that has the word."""

import json
from typing import Final

import pytest
from msgspec.structs import replace

from jobs.verification.spec import Format, WorkflowSpec
from jobs.verification.verdict import Check
from tests.verification.detecting import judged, names, survivors
from tests.verification.judging import BARE


def of_schema(good: bytes, schema: object, form: Format = Format.JSON) -> list[str]:
    spec = replace(BARE[form], schema="/srv/schema.json", schema_text=json.dumps(schema))
    assert judged(good, spec).failure is None
    assert survivors(good, spec, spec) == []
    return [name.removeprefix("schema: ") for name in names(good, spec, Check.FIELDS)]


ROW: Final = {
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^a"},
        "n": {"type": ["integer", "null"], "minimum": 0, "maximum": 9},
        "kind": {"enum": ["x", "y"]},
    },
}


def test_a_schema_is_broken_word_by_word() -> None:
    assert set(of_schema(b'{"id": "ab", "n": 9, "kind": "x"}', ROW)) == {
        'the whole is "seven"',
        "the whole is true",
        "id removed",
        "id is true",
        "id is null",
        "id too short",
        "id too long",
        "id unlike its pattern",
        "id in other case",
        "id with more before",
        'n is "seven"',
        "n is true",
        "n below minimum",
        "n above maximum",
        "kind of no enum",
    }
    rows = {"type": "array", "items": ROW, "minItems": 1, "maxItems": 2}
    found = of_schema(b'[{"id": "ab"}, {"id": "ac"}]', rows)
    assert {"the whole too short", "the whole too long", "1.id removed"} <= set(found)


def test_a_schema_is_broken_as_far_as_the_format_can_say() -> None:
    assert set(of_schema(b"id,b\nab,1\n", ROW, Format.CSV)) == {
        "0.id removed",
        "0.id too short",
        "0.id too long",
        "0.id unlike its pattern",
        "0.id in other case",
        "0.id with more before",
    }
    assert "the whole is true" not in of_schema(b'id = "ab"', ROW, Format.TOML)
    assert "0 is true" in of_schema(b'{"id": "ab"}\n', ROW, Format.JSONL)


DRAFT_4: Final = {"$schema": "http://json-schema.org/draft-04/schema#"}
PROPERTIES: Final[dict[str, object]] = {
    "kind": {"const": "report"},
    "n": {"exclusiveMinimum": 0.5, "exclusiveMaximum": 2},
    "sub": {"$ref": "#/$defs/sub"},
    "list": {"items": {"$ref": "#/definitions/sub"}},
}
NEW: Final = {
    "properties": PROPERTIES,
    "additionalProperties": False,
    "$defs": {"sub": {"$ref": "#/definitions/sub"}},
    "definitions": {"sub": {"required": ["x"]}, "a/b": {}},
}


def test_constants_exclusive_limits_references_and_what_may_not_be_added() -> None:
    good = b'{"kind": "report", "n": 1, "sub": {"x": 1}, "list": [{"x": 1}, {"x": 2}]}'
    found = {
        "kind not the constant",
        "n not above minimum",
        "n not below maximum",
        "sub.x removed",
        "list.0.x removed",
        "list.1.x removed",
        "the whole with something added",
    }
    assert set(of_schema(good, NEW)) == found
    assert set(of_schema(good, NEW | {"$id": "https://example.org/new"})) == found
    # The fourth draft has no constants, and its limits are exclusive by a truth value.
    limits = {"exclusiveMinimum": True, "minimum": 0}
    old = NEW | DRAFT_4 | {"properties": PROPERTIES | {"n": limits}}
    assert set(of_schema(good, old)) == found - {
        "kind not the constant",
        "n not above minimum",
        "n not below maximum",
    } | {"n below minimum"}


def test_nothing_can_be_added_to_one_row_of_csv_and_a_pattern_may_allow_what_is_added() -> None:
    closed = {"additionalProperties": False, "properties": {"a": {}}}
    assert of_schema(b"a\n1\n", closed, Format.CSV) == []
    assert of_schema(b"a = 1", closed, Format.TOML) == ["the whole with something added"]
    assert of_schema(b'{"a": 1}', closed | {"patternProperties": {"^a": {}}}) == []
    assert of_schema(b"[1]", closed) == []


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {"$schema": "http://json-schema.org/draft-03/schema#", "properties": {"a": {"required": True}}},
        {"$ref": "#/$defs/any", "$defs": {"any": {}}, "type": "array"},
        {"type": ["any"]} | {"$schema": "http://json-schema.org/draft-03/schema#"},
        {"properties": {"a": True, "b": {"minimum": 3, "minLength": 9}}},
        {"properties": {"a": {"prefixItems": [{}], "items": False, "maxItems": 9999999, "minItems": 0}}},
        {"properties": {"b": {"$id": "https://example.org/b", "$ref": "#/$defs/c", "$defs": {"c": {}}}}}
        | {"$defs": {"c": {"type": "boolean"}}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "$defs": [], "properties": {"b": {}}},
    ],
    ids=range(8),
)
def test_what_a_schema_does_not_plainly_forbid_is_no_mutant(schema: object) -> None:
    good = b'{"a": [1], "b": true}'
    if isinstance(schema, dict) and "$ref" in schema:
        schema = schema | {"$schema": "http://json-schema.org/draft-07/schema#"}
    assert of_schema(good, schema) == []


def test_a_schema_that_was_not_approved_with_its_text_has_no_mutants() -> None:
    spec = WorkflowSpec(schema="/srv/schema.json")
    assert names(b"{}", spec, Check.FIELDS) == []
