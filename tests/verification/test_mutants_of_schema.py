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
    assert of_schema(b'{"id": "ab", "n": 9, "kind": "x"}', ROW) == [
        'the whole is "seven"',
        "the whole is true",
        "id removed",
        "id is true",
        "id is null",
        "id too short",
        "id too long",
        "id unlike its pattern",
        'n is "seven"',
        "n is true",
        "n below minimum",
        "n above maximum",
        "kind of no enum",
    ]
    rows = {"type": "array", "items": ROW, "minItems": 1, "maxItems": 2}
    found = of_schema(b'[{"id": "ab"}, {"id": "ac"}]', rows)
    assert {"the whole too short", "the whole too long", "1.id removed"} <= set(found)


def test_a_schema_is_broken_as_far_as_the_format_can_say() -> None:
    assert of_schema(b"id,b\nab,1\n", ROW, Format.CSV) == [
        "0.id removed",
        "0.id too short",
        "0.id too long",
        "0.id unlike its pattern",
    ]
    assert "the whole is true" not in of_schema(b'id = "ab"', ROW, Format.TOML)
    assert "0 is true" in of_schema(b'{"id": "ab"}\n', ROW, Format.JSONL)


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {"$schema": "http://json-schema.org/draft-03/schema#", "properties": {"a": {"required": True}}},
        {"$ref": "#/$defs/any", "$defs": {"any": {}}, "type": "array"},
        {"type": ["any"]} | {"$schema": "http://json-schema.org/draft-03/schema#"},
        {"properties": {"a": True, "b": {"minimum": 3, "minLength": 9}}},
        {"properties": {"a": {"prefixItems": [{}], "items": False, "maxItems": 9999999, "minItems": 0}}},
    ],
    ids=range(6),
)
def test_what_a_schema_does_not_plainly_forbid_is_no_mutant(schema: object) -> None:
    good = b'{"a": [1], "b": true}'
    if isinstance(schema, dict) and "$ref" in schema:
        schema = schema | {"$schema": "http://json-schema.org/draft-07/schema#"}
    assert of_schema(good, schema) == []


def test_a_schema_that_was_not_approved_with_its_text_has_no_mutants() -> None:
    spec = WorkflowSpec(schema="/srv/schema.json")
    assert names(b"{}", spec, Check.FIELDS) == []
