"""Outputs whose values are not real, or not as specified; each is so by the specification."""

import math
from collections.abc import Iterator, Mapping
from itertools import islice, zip_longest
from typing import Any, Final

from jobs.verification.pattern_text import unlike
from jobs.verification.spec import FieldSpec, Format, Kind
from jobs.verification.specimen import Bad, Specimen
from jobs.verification.spots import at, cut, lengthened
from jobs.verification.wording import shown

_INVISIBLE: Final = "\u200b"
_FULL_WIDTH: Final = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
_UNREAL: Final[tuple[tuple[str, object], ...]] = (
    ("nulled", None),
    ("blank", ""),
    ("whitespace", " \t "),
    ("invisible", _INVISIBLE),
)
_OTHER_TYPES: Final[Mapping[Kind, tuple[object, ...]]] = {
    Kind.STRING: (7, ["seven"]),
    Kind.INTEGER: (0.5, "7", True),
    Kind.NUMBER: ("7", True),
    Kind.BOOLEAN: ("true", 1),
    Kind.ARRAY: ("seven", {}),
    Kind.TABLE: ("seven", []),
}
_OTHER_CELLS: Final[Mapping[Kind, tuple[object, ...]]] = {
    Kind.INTEGER: ("0.5", "seven"),
    Kind.NUMBER: ("seven",),
    Kind.BOOLEAN: ("seven",),
}
"""A cell of csv has the type that it can be read as."""
_LONGEST: Final = 1_000_000
"""Of what is made too long."""


def of_required(good: Specimen) -> Iterator[Bad]:
    """Yield what does not hold a real value where it should; of many values the last is changed."""
    last = {text: spot for text in good.spec.required for spot in islice(good.spots(text), 1)}
    for text, spot in last.items():
        yield from good.without(f"{text} removed", spot)
    for text in last:
        yield from good.emptied(f"{text} without any", text)
    for how, value in (*_UNREAL, *_placeholders(good)):
        for text, spot in last.items():
            yield from good.changed(f"{text} {how}", spot, value)


def _placeholders(good: Specimen) -> Iterator[tuple[str, object]]:
    for word in good.spec.placeholders:
        # Beyond ASCII another case is not always the same word.
        written = f" {word.swapcase() if word.isascii() else word} "
        yield f"says {shown(written)}", written
    for word in good.spec.placeholders[:1]:
        yield "says that in full width", word.translate(_FULL_WIDTH)
        yield "says that with something invisible in it", _INVISIBLE.join(word)


def of_fields(good: Specimen) -> Iterator[Bad]:
    """Yield what is not of the type, range, length or pattern that is specified; of many values the last is changed."""
    # One of each field before the second of any: there may be many fields.
    for some in zip_longest(*(_of_field(good, text, spec) for text, spec in good.spec.fields.items())):
        yield from (bad for bad in some if bad is not None)


def _of_field(good: Specimen, text: str, spec: FieldSpec) -> Iterator[Bad]:
    there = (spot for spot in good.spots(text) if _is_there(at(good.root, spot), good.form))
    for spot in islice(there, 1):
        for how, value in _unlike(spec, at(good.root, spot), good.form):
            if _is_there(value, good.form):
                yield from good.changed(f"{text} {how}", spot, value)


def _is_there(value: object, form: Format) -> bool:
    """Whether it is a value at all, which an empty cell of csv is not."""
    return value != "" or form is not Format.CSV


def _unlike(spec: FieldSpec, value: Any, form: Format) -> Iterator[tuple[str, object]]:
    for other in _of_other_type(spec, form):
        yield f"is {shown(other)}", other
    for how, number in _out_of_range(spec):
        yield how, str(number) if form is Format.CSV else number
    yield from _of_wrong_length(spec, value)
    if spec.pattern is not None:
        for text in unlike(spec.pattern):
            yield "unlike its pattern", text


def _of_other_type(spec: FieldSpec, form: Format) -> Iterator[object]:
    others = _OTHER_CELLS if form is Format.CSV else _OTHER_TYPES
    if spec.type:
        yield from others.get(spec.type, ())
    if spec != FieldSpec():
        yield None


def _out_of_range(spec: FieldSpec) -> Iterator[tuple[str, int]]:
    # Whole numbers are exact, however large the limit is.
    if spec.min is not None:
        yield "below min", math.ceil(spec.min) - 1
    if spec.max is not None:
        yield "above max", math.floor(spec.max) + 1


def _of_wrong_length(spec: FieldSpec, value: Any) -> Iterator[tuple[str, object]]:
    if spec.min_length:
        yield "too short", cut(value, spec.min_length - 1)
    if spec.max_length is not None and spec.max_length < _LONGEST:
        yield "too long", lengthened(value, spec.max_length + 1)
