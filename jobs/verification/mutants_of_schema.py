"""Outputs that a JSON Schema forbids, as far as it is told by the plainest of its words."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from jobs.verification.pattern_text import unlike
from jobs.verification.spec import Format
from jobs.verification.specimen import Bad, Specimen
from jobs.verification.spots import Spot, at, cut, lengthened, spots
from jobs.verification.wording import shown

_SAMPLES: Final[Mapping[str, object]] = {
    "string": "seven",
    "boolean": True,
    "null": None,
    "array": [],
    "object": {},
}
"""Something of each type. Not of those for numbers: which is an integer differs from draft to draft."""
_TYPES: Final = frozenset((*_SAMPLES, "number", "integer"))
_STRANGER: Final = "none of these"
_LONGEST: Final = 1_000_000
"""Of what is made too long."""
_SOME: Final = 2


def of_schema(good: Specimen) -> Iterator[Bad]:
    """Yield what the approved schema forbids; of many records or elements the last is changed."""
    if good.spec.schema is None or good.spec.schema_text is None:
        return
    schema = json.loads(good.spec.schema_text)
    # The third draft has other words for the same.
    if isinstance(schema, dict) and "draft-03" not in f"{schema.get('$schema')}":
        for whole in islice(spots(good.root, (None,) if good.form.has_records else ()), 1):
            yield from _of_part(good, schema, whole)


def _of_part(good: Specimen, schema: Any, spot: Spot) -> Iterator[Bad]:
    # In older drafts a reference is all that counts where it stands.
    if not isinstance(schema, dict) or "$ref" in schema:
        return
    value = at(good.root, spot)
    if _is_free(good, spot):
        for how, other in (*_of_other_type(schema), *_out_of_limits(schema, value)):
            yield from good.changed(f"{_name(spot)} {how}", spot, other)
    for key in _keys(value, schema.get("required", [])):
        yield from good.without(f"{_name((*spot, key))} removed", (*spot, key))
    inner = schema.get("properties", {})
    for key in _keys(value, inner):
        yield from _of_part(good, inner[key], (*spot, key))
    if isinstance(value, list) and value and "prefixItems" not in schema:
        yield from _of_part(good, schema.get("items"), (*spot, len(value) - 1))


def _is_free(good: Specimen, spot: Spot) -> bool:
    """Whether it is the format's own that decides what may stand there: a row of csv, the whole of toml."""
    return len(spot) > {Format.CSV: 1, Format.TOML: 0}.get(good.form, -1)


def _name(spot: Spot) -> str:
    return f"schema: {'.'.join(map(str, spot)) or 'the whole'}"


def _keys(value: object, keys: Iterable[str]) -> list[str]:
    return [key for key in keys if key in value] if isinstance(value, dict) else []


def _of_other_type(schema: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and _TYPES.issuperset(types):
        others = (sample for name, sample in _SAMPLES.items() if name not in types)
        yield from ((f"is {shown(sample)}", sample) for sample in islice(others, _SOME))


def _out_of_limits(schema: Mapping[str, Any], value: Any) -> Iterator[tuple[str, object]]:
    if _STRANGER not in schema.get("enum", [_STRANGER]):
        yield "of no enum", _STRANGER
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield from _out_of_range(schema)
    if isinstance(value, str):
        yield from _of_wrong_length(schema, value, "minLength", "maxLength")
        yield from (
            ("unlike its pattern", text) for each in _given(schema, "pattern") for text in unlike(each)
        )
    if isinstance(value, list):
        yield from _of_wrong_length(schema, value, "minItems", "maxItems")


def _out_of_range(schema: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    # Whole numbers are exact, however large the limit is.
    for least in _given(schema, "minimum"):
        yield "below minimum", math.ceil(least) - 1
    for most in _given(schema, "maximum"):
        yield "above maximum", math.floor(most) + 1


def _of_wrong_length(
    schema: Mapping[str, Any], value: Any, shortest: str, longest: str
) -> Iterator[tuple[str, object]]:
    for least in _given(schema, shortest):
        if least > 0:
            yield "too short", cut(value, math.ceil(least) - 1)
    for most in _given(schema, longest):
        if most < _LONGEST:
            yield "too long", lengthened(value, math.floor(most) + 1)


def _given(schema: Mapping[str, Any], word: str) -> list[Any]:
    return [schema[word]] if word in schema else []
