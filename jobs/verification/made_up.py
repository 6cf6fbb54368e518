"""Values made up after what is specified of them."""

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from jobs.verification.fields import flaw
from jobs.verification.pattern_text import alike
from jobs.verification.real import folded, is_real
from jobs.verification.spec import FieldSpec, Kind
from jobs.verification.spots import cut, lengthened

_KINDS: Final[Mapping[str, Kind]] = {"object": Kind.TABLE} | {kind.value: kind for kind in Kind}
"""By their names in a JSON Schema."""
_SAMPLES: Final = ("made up", "x-1", "7", 1, True, ["made up"], {"made": "up"})
_LONGEST: Final = 10_000
"""Of what is made as long as it should be."""


def made(spec: FieldSpec, placeholders: tuple[str, ...] = ()) -> Any:
    """Return a real value that is as specified; None if none is found."""
    unreal = folded(placeholders)
    return next(
        (value for value in _candidates(spec) if is_real(value, unreal) and not flaw(value, spec)), None
    )


def _candidates(spec: FieldSpec) -> Iterator[Any]:
    if spec.pattern is not None:
        for text in alike(spec.pattern):
            yield from (text, fitted(text, spec))
    yield from (fitted(sample, spec) for sample in _SAMPLES)
    limits = [limit for limit in (spec.min, spec.max) if limit is not None]
    yield from (rounded(limit) for limit in limits for rounded in (math.ceil, math.floor))
    yield from limits


def fitted(value: Any, spec: FieldSpec) -> Any:
    """Return a value as long as it is to be, if it has a length."""
    if not isinstance(value, str | list | dict):
        return value
    least = max(len(value), min(spec.min_length or 0, _LONGEST))
    return cut(lengthened(value, least), least if spec.max_length is None else spec.max_length)


def time_made(spec: FieldSpec, now: float) -> Any:
    """Return the last full second in whichever way of telling it is as specified."""
    second = math.floor(now)
    text = datetime.fromtimestamp(second, UTC).isoformat()
    ways = (text, text.replace("+00:00", "Z"), second, second * 1000, f"{second}", f"{second * 1000}")
    return next((way for way in ways if not flaw(way, spec)), text)


def of_schema(schema: Any) -> Any:
    """Return a value of a JSON Schema, as far as it is told by the plainest of its words."""
    if not isinstance(schema, dict):
        return made(FieldSpec())
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return next((value for value in schema["enum"] if value is not None), None)
    match _type(schema):
        case "object":
            return _table_of(schema)
        case "array":
            number = max(1, min(schema.get("minItems", 1), _LONGEST))
            return ([of_schema(schema.get("items"))] * number)[: schema.get("maxItems")]
        case kind:
            return None if kind == "null" else made(_field(schema, kind))


def _type(schema: Mapping[str, Any]) -> str | None:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), "null")
    if kind is None and ("properties" in schema or "required" in schema):
        return "object"
    return kind


def _table_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties", {})
    names = dict.fromkeys((*schema.get("required", ()), *properties))
    return {name: of_schema(properties.get(name)) for name in names}


def _field(schema: Mapping[str, Any], kind: str | None) -> FieldSpec:
    return FieldSpec(
        type=None if kind is None else _KINDS.get(kind),
        min=schema.get("minimum"),
        max=schema.get("maximum"),
        min_length=schema.get("minLength"),
        max_length=schema.get("maxLength"),
        pattern=schema.get("pattern"),
    )
