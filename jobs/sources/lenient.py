"""Reads a record field by field where it does not fit its type as a whole: one odd field must not hide a call."""

import functools
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

from jobs.sources.fields import paired

Record = TypeVar("Record", bound=msgspec.Struct)

MOST_PARTS: Final = 10_000
"""In all lists of a record together. A line of 8 MB has room for millions of parts, each of which takes fifty times
its bytes: a record with more is none that can be read."""
SHORTEST_OVERFULL: Final = 2 * MOST_PARTS
"""Bytes of a record that has more; nearly all are too short to be looked at."""


def decode(decoder: msgspec.json.Decoder[Record], line: bytes) -> Record | None:
    """Return a record with its odd fields left out, or None if it is no JSON object or is overfull. Never raises."""
    if len(line) >= SHORTEST_OVERFULL and is_overfull(decoder.type, line):
        return None
    try:
        return decoder.decode(line)
    except (ValueError, RecursionError):
        pass
    try:
        found = _fitting(decoder.type, Raw(paired(line)))
    except (ValueError, RecursionError):
        return None
    return typing.cast("Record", found)


def is_overfull(kind: Any, line: bytes) -> bool:
    """Whether a record of that kind has more than `MOST_PARTS`. Never raises."""
    if len(line) < SHORTEST_OVERFULL or line.count(b",") < MOST_PARTS:
        return False
    try:
        return _left(kind, msgspec.json.decode(line, type=Raw), MOST_PARTS) < 0
    except (ValueError, RecursionError):
        return False


# ── how many there are ────────────────────────────────────────────────────────────────────────────


def _left(kind: Any, raw: Raw, most: int) -> int:
    """Return how many of `most` parts a value leaves for others; less than 0 if it has more."""
    if most < 0:
        return most
    match bytes(memoryview(raw)[:1]):
        case b"{" if struct := _struct_in(kind):
            for field, value in _fields_of(struct, raw):
                most = _left(field.type, value, most)
        case b"[" if (items := _items_in(kind)) is not None:
            found = _parts(raw, most + 1)
            most -= len(found)
            for part in found:
                most = _left(items, part, most)
        case _:
            pass
    return most


def _parts(raw: Raw, most: int) -> Sequence[Raw]:
    """Return the first parts of a list, no more than that and `MOST_PARTS`; whatever follows takes no memory."""
    found = msgspec.structs.astuple(_decoder_of_parts()(raw))
    return found[: found.index(None)][:most] if None in found else found[:most]


@functools.cache
def _decoder_of_parts() -> Callable[[Raw], Any]:
    fields = [(f"part_{number}", Raw, None) for number in range(MOST_PARTS + 1)]
    return msgspec.json.Decoder(msgspec.defstruct("Parts", fields, array_like=True)).decode


# ── as much as fits ───────────────────────────────────────────────────────────────────────────────


def _fitting(kind: Any, raw: Raw) -> Any:
    """Return as much of `raw` as is of that kind. Raises ValueError if nothing is."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except ValueError:
        pass
    if struct := _struct_in(kind):
        fitting = ((field.name, _or_none(field.type, value)) for field, value in _fields_of(struct, raw))
        return struct(**{name: value for name, value in fitting if value is not None})  # all have defaults
    if (items := _items_in(kind)) is not None:
        parts = msgspec.json.decode(raw, type=list[Raw])
        return [found for part in parts if (found := _or_none(items, part)) is not None]
    raise ValueError("of another kind")


def _or_none(kind: Any, raw: Raw) -> Any:
    try:
        return _fitting(kind, raw)
    except ValueError:
        return None


def _fields_of(struct: Any, raw: Raw) -> list[tuple[msgspec.structs.FieldInfo, Raw]]:
    """Return the fields of an object that the struct has, undecoded; all others take no memory."""
    fields, decode_fields = _undecoded(struct)
    values = msgspec.structs.astuple(decode_fields(raw))
    return [(field, value) for field, value in zip(fields, values, strict=True) if value is not None]


@functools.cache
def _undecoded(struct: Any) -> tuple[Sequence[msgspec.structs.FieldInfo], Callable[[Raw], Any]]:
    fields = msgspec.structs.fields(struct)
    raw = msgspec.defstruct(
        "Undecoded",
        [(field.name, Raw, None) for field in fields],
        rename={field.name: field.encode_name for field in fields},
    )
    return fields, msgspec.json.Decoder(raw).decode


@functools.cache
def _struct_in(kind: Any) -> Any:
    """Return the struct that a type is, or may be."""
    return next((one for one in _kinds(kind) if isinstance(one, type(msgspec.Struct))), None)


@functools.cache
def _items_in(kind: Any) -> Any:
    """Return the type of a list's parts, if a type is one, or may be."""
    found = next((one for one in _kinds(kind) if typing.get_origin(one) is list), None)
    return None if found is None else typing.get_args(found)[0]


def _kinds(kind: Any) -> Sequence[Any]:
    is_union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    return typing.get_args(kind) if is_union else [kind]
