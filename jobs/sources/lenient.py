"""Reads a record field by field where it does not fit its type as a whole: one odd field must not hide a call."""

import typing
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from jobs.sources.fields import paired

Record = TypeVar("Record", bound=msgspec.Struct)


def decode(decoder: msgspec.json.Decoder[Record], line: bytes) -> Record | None:
    """Return a record with its odd fields left out, or None if it is no JSON object. Never raises."""
    try:
        return decoder.decode(line)
    except (ValueError, RecursionError):
        pass
    try:
        found = _fitting(decoder.type, Raw(paired(line)))
    except (ValueError, RecursionError):
        return None
    return typing.cast("Record", found)


def _fitting(kind: Any, raw: Raw) -> Any:
    """Return as much of `raw` as is of that kind. Raises ValueError if nothing is."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except ValueError:
        pass
    inner = [kind, *typing.get_args(kind)]
    if struct := next((one for one in inner if isinstance(one, type(msgspec.Struct))), None):
        return _struct_of(struct, msgspec.json.decode(raw, type=dict[str, Raw]))
    if items := next((one for one in inner if typing.get_origin(one) is list), None):
        parts = msgspec.json.decode(raw, type=list[Raw])
        return [found for part in parts if (found := _or_none(typing.get_args(items)[0], part)) is not None]
    raise ValueError("of another kind")


def _struct_of(struct: Any, given: dict[str, Raw]) -> Any:
    values = {
        field.name: value
        for field in msgspec.structs.fields(struct)
        if field.encode_name in given
        and (value := _or_none(field.type, given[field.encode_name])) is not None
    }
    return struct(**values)  # its fields all have defaults


def _or_none(kind: Any, raw: Raw) -> Any:
    try:
        return _fitting(kind, raw)
    except ValueError:
        return None
