"""Outputs whose values are not real, or not as specified; each is so by the specification."""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, Final

from jobs.verification.pattern_text import UNLIKE, unlike
from jobs.verification.spec import FieldSpec, Format, Kind
from jobs.verification.specimen import Bad, Place, Specimen, in_turn
from jobs.verification.spots import Spot, at, cut, lengthened
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

_Way = Callable[[FieldSpec, Any], Iterator[tuple[str, object]]]
"""What a value may become that is not as specified, and words for that."""


def of_required(good: Specimen) -> Iterator[Bad]:
    """Yield what does not hold a real value where it should; of many values one is changed, mostly the last."""

    def removed(place: Place) -> Iterator[Bad]:
        return good.without(f"{place.text} removed", place.last)

    def without_any(place: Place) -> Iterator[Bad]:
        return good.emptied(f"{place.text} without any", place.text)

    def unreal(how: str, value: object, place: Place) -> Iterator[Bad]:
        return good.changed(f"{place.text} {how}", place.last, value)

    def elsewhere(place: Place) -> Iterator[Bad]:
        for where, spot in place.others:
            yield from good.changed(f"{place.text} blank{where}", spot, "")

    said = (partial(unreal, how, value) for how, value in (*_UNREAL, *_placeholders(good)))
    return in_turn(list(good.places(good.spec.required)), [removed, without_any, elsewhere, *said])


def _placeholders(good: Specimen) -> Iterator[tuple[str, object]]:
    for word in good.spec.placeholders[:1]:
        yield "says that in full width", word.translate(_FULL_WIDTH)
        yield "says that with something invisible in it", _INVISIBLE.join(word)
    for word in good.spec.placeholders:
        # Beyond ASCII another case is not always the same word.
        written = f" {word.swapcase() if word.isascii() else word} "
        yield f"says {shown(written)}", written


def of_fields(good: Specimen) -> Iterator[Bad]:
    """Yield what is not of the type, range, length or pattern that is specified; of many values one is changed."""
    ways = _ways(good.form)

    def elsewhere(place: Place) -> Iterator[Bad]:
        for where, spot in place.others:
            every = (bad for way in ways for bad in _spoiled(good, way, place.text, spot, where))
            yield from islice(every, 1)

    def at_last(way: _Way, place: Place) -> Iterator[Bad]:
        return _spoiled(good, way, place.text, place.last)

    return in_turn(list(good.places(good.spec.fields)), [*(partial(at_last, way) for way in ways), elsewhere])


def _spoiled(good: Specimen, way: _Way, text: str, spot: Spot, where: str = "") -> Iterator[Bad]:
    for how, value in way(good.spec.fields[text], at(good.root, spot)):
        # An empty cell of csv is no value at all.
        if value != "" or good.form is not Format.CSV:
            yield from good.changed(f"{text} {how}{where}", spot, value)


def _ways(form: Format) -> list[_Way]:
    is_csv = form is Format.CSV
    others = _OTHER_CELLS if is_csv else _OTHER_TYPES
    return [
        *(partial(_of_type, kind, other) for kind, some in others.items() for other in some),
        _nulled,
        partial(_below_min, str if is_csv else int),
        partial(_above_max, str if is_csv else int),
        _too_short,
        _too_long,
        *(partial(_unlike, how) for how in UNLIKE),
    ]


def _of_type(kind: Kind, other: object, spec: FieldSpec, _: Any) -> Iterator[tuple[str, object]]:
    if spec.type is kind:
        yield f"is {shown(other)}", other


def _nulled(spec: FieldSpec, _: Any) -> Iterator[tuple[str, object]]:
    if spec != FieldSpec():
        yield "is null", None


def _below_min(written: Callable[[int], object], spec: FieldSpec, _: Any) -> Iterator[tuple[str, object]]:
    # Whole numbers are exact, however large the limit is.
    if spec.min is not None:
        yield "below min", written(math.ceil(spec.min) - 1)


def _above_max(written: Callable[[int], object], spec: FieldSpec, _: Any) -> Iterator[tuple[str, object]]:
    if spec.max is not None:
        yield "above max", written(math.floor(spec.max) + 1)


def _too_short(spec: FieldSpec, value: Any) -> Iterator[tuple[str, object]]:
    if spec.min_length:
        yield "too short", cut(value, spec.min_length - 1)


def _too_long(spec: FieldSpec, value: Any) -> Iterator[tuple[str, object]]:
    if spec.max_length is not None and spec.max_length < _LONGEST:
        yield "too long", lengthened(value, spec.max_length + 1)


def _unlike(how: str, spec: FieldSpec, value: Any) -> Iterator[tuple[str, object]]:
    if spec.pattern is not None:
        yield from ((how, text) for text in unlike(spec.pattern, value, how))
