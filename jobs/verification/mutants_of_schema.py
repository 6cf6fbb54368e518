"""Outputs that a JSON Schema forbids, as far as it is told by the plainest of its words."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple, TypeGuard

import msgspec

from jobs.verification.pattern_text import UNLIKE, unlike
from jobs.verification.spec import Format
from jobs.verification.specimen import Bad, Specimen, in_turn, others
from jobs.verification.spots import Spot, at, cut, lengthened, unused
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
_NAMES: Final = frozenset(("$id", "id"))
_ESCAPED: Final = frozenset("/~%")
"""What would not stand for itself in a reference."""


class _Part(NamedTuple):
    """A value, and the part of the schema that it is to meet."""

    schema: Mapping[str, Any]
    spot: Spot


_Change = Callable[[Mapping[str, Any], Any], Iterator[tuple[str, object]]]
"""What a value may become that its part of the schema forbids, and words for that."""
_Way = Callable[[_Part], Iterator[Bad]]


def of_schema(good: Specimen) -> Iterator[Bad]:
    """Yield what the approved schema forbids; of many records or elements one is changed, mostly the last."""
    if good.spec.schema is None or good.spec.schema_text is None:
        return
    schema = json.loads(good.spec.schema_text)
    # The third draft has other words for the same.
    if isinstance(schema, dict) and "draft-03" not in f"{schema.get('$schema')}":
        parts = _Parts(good=good, root=schema, defined=_defined(schema))
        ways = [partial(_changed, good, way) for way in _WAYS if way is not _not_const or _has_const(schema)]
        ways += [partial(_removed, good), partial(_added, good)]
        whole = [*parts.below({"items": schema} if good.form.has_records else schema, ())]
        yield from in_turn(whole, [*ways, partial(parts.elsewhere, ways)])


def _defined(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return parts of a schema by the references that lead to them."""
    tables = {word: schema.get(word) for word in ("$defs", "definitions")}
    return {
        f"#/{word}/{name}": part
        for word, table in tables.items()
        if isinstance(table, dict)
        for name, part in table.items()
        if _ESCAPED.isdisjoint(name)
    }


def _has_const(schema: Mapping[str, Any]) -> bool:
    return "draft-04" not in f"{schema.get('$schema')}"


class _Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What each value of a good output is to meet."""

    good: Specimen
    root: Mapping[str, Any]
    defined: Mapping[str, Any]

    def below(self, schema: object, spot: Spot) -> Iterator[_Part]:
        """Yield the value at a spot and those in it; of many elements the last."""
        plain = self._plain(schema)
        if plain is None:
            return
        yield _Part(plain, spot)
        value = at(self.good.root, spot)
        inner = plain.get("properties", {})
        for key in _keys(value, inner):
            yield from self.below(inner[key], (*spot, key))
        if _has_elements(plain, value):
            yield from self.below(plain["items"], (*spot, len(value) - 1))

    def _plain(self, schema: object) -> Mapping[str, Any] | None:
        """Return the part itself where a reference to it stands; None if it is not told plainly what is to be met."""
        # In what has a name of its own a reference leads elsewhere.
        while isinstance(schema, dict) and (schema is self.root or _NAMES.isdisjoint(schema)):
            # In older drafts a reference is all that counts where it stands.
            if "$ref" not in schema:
                return schema
            schema = self.defined.get(schema["$ref"])
        return None

    def elsewhere(self, ways: Sequence[_Way], part: _Part) -> Iterator[Bad]:
        """Yield it with another element than the last made bad."""
        value = at(self.good.root, part.spot)
        for _, index in others(range(len(value))[::-1]) if _has_elements(part.schema, value) else ():
            inner = [*self.below(part.schema["items"], (*part.spot, index))]
            yield from islice((bad for way in ways for each in inner for bad in way(each)), 1)


def _has_elements(schema: Mapping[str, Any], value: object) -> bool:
    return isinstance(value, list) and bool(value) and "items" in schema and "prefixItems" not in schema


def _keys(value: object, keys: Iterable[str]) -> list[str]:
    return [key for key in keys if key in value] if isinstance(value, dict) else []


# ── ways ──────────────────────────────────────────────────────────────────────────────────────────


def _name(spot: Spot) -> str:
    return f"schema: {'.'.join(map(str, spot)) or 'the whole'}"


def _changed(good: Specimen, change: _Change, part: _Part) -> Iterator[Bad]:
    # The format's own decides what may stand there: a row of csv, the whole of toml.
    if len(part.spot) > {Format.CSV: 1, Format.TOML: 0}.get(good.form, -1):
        for how, other in change(part.schema, at(good.root, part.spot)):
            yield from good.changed(f"{_name(part.spot)} {how}", part.spot, other)


def _removed(good: Specimen, part: _Part) -> Iterator[Bad]:
    for key in _keys(at(good.root, part.spot), part.schema.get("required", [])):
        yield from good.without(f"{_name((*part.spot, key))} removed", (*part.spot, key))


def _added(good: Specimen, part: _Part) -> Iterator[Bad]:
    value = at(good.root, part.spot)
    is_closed = part.schema.get("additionalProperties") is False and "patternProperties" not in part.schema
    if is_closed and isinstance(value, dict) and good.form is not Format.CSV:
        key = next(unused(value | part.schema.get("properties", {})))
        yield from good.changed(f"{_name(part.spot)} with something added", part.spot, {**value, key: ""})


def _of_other_type(schema: Mapping[str, Any], _: Any) -> Iterator[tuple[str, object]]:
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and _TYPES.issuperset(types):
        samples = (sample for name, sample in _SAMPLES.items() if name not in types)
        yield from ((f"is {shown(sample)}", sample) for sample in islice(samples, _SOME))


def _of_no_enum(schema: Mapping[str, Any], _: Any) -> Iterator[tuple[str, object]]:
    if _STRANGER not in schema.get("enum", [_STRANGER]):
        yield "of no enum", _STRANGER


def _not_const(schema: Mapping[str, Any], _: Any) -> Iterator[tuple[str, object]]:
    if schema.get("const", _STRANGER) != _STRANGER:
        yield "not the constant", _STRANGER


def _out_of_range(
    word: str, how: str, beyond: Callable[[float], int], schema: Mapping[str, Any], value: Any
) -> Iterator[tuple[str, object]]:
    # In the fourth draft an exclusive limit is a truth value beside the other one.
    if _is_number(value) and _is_number(limit := schema.get(word)):
        yield how, beyond(limit)


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _too_short(kind: type, word: str, schema: Mapping[str, Any], value: Any) -> Iterator[tuple[str, object]]:
    if isinstance(value, kind) and schema.get(word, 0) > 0:
        yield "too short", cut(value, math.ceil(schema[word]) - 1)


def _too_long(kind: type, word: str, schema: Mapping[str, Any], value: Any) -> Iterator[tuple[str, object]]:
    if isinstance(value, kind) and schema.get(word, _LONGEST) < _LONGEST:
        yield "too long", lengthened(value, math.floor(schema[word]) + 1)


def _unlike(how: str, schema: Mapping[str, Any], value: Any) -> Iterator[tuple[str, object]]:
    if isinstance(value, str) and "pattern" in schema:
        yield from ((how, text) for text in unlike(schema["pattern"], value, how))


_WAYS: Final[tuple[_Change, ...]] = (
    _of_other_type,
    _of_no_enum,
    _not_const,
    # Whole numbers are exact, however large the limit is.
    partial(_out_of_range, "minimum", "below minimum", lambda least: math.ceil(least) - 1),
    partial(_out_of_range, "maximum", "above maximum", lambda most: math.floor(most) + 1),
    partial(_out_of_range, "exclusiveMinimum", "not above minimum", math.floor),
    partial(_out_of_range, "exclusiveMaximum", "not below maximum", math.ceil),
    partial(_too_short, str, "minLength"),
    partial(_too_long, str, "maxLength"),
    partial(_too_short, list, "minItems"),
    partial(_too_long, list, "maxItems"),
    *(partial(_unlike, how) for how in UNLIKE),
)
