"""What values must be: real where they are required, and of the type, range, length and pattern that is specified."""

import math
import re
from functools import partial
from typing import Final, TypeGuard, assert_never

from jobs.verification.parsing import Document
from jobs.verification.path import ABSENT, parse_path
from jobs.verification.real import folded, is_real, what_is_wrong
from jobs.verification.spec import FieldSpec, Format, Kind, WorkflowSpec
from jobs.verification.wording import UnmetError, listed, number, one_line, shown

_NUMBER: Final = r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?"
_LONGEST_NUMBER: Final = 400
"""Characters."""


def fields(document: Document, spec: WorkflowSpec, schema: object | None) -> str:
    """Say that all fields are as specified. Raises UnmetError for the first that is not."""
    reasons = []
    if spec.required:
        reasons.append(_required(document, spec))
    if spec.fields:
        reasons.append(_specified(document, spec.fields))
    if spec.schema is not None:
        from jobs.verification.schema import conforms  # noqa: PLC0415 - only where it is needed: to start quickly

        reasons.append(conforms(document, schema))
    return "; ".join(reasons)


def _required(document: Document, spec: WorkflowSpec) -> str:
    complaint = partial(_unreal, folded(spec.placeholders))
    for text in spec.required:
        if not document.checked(parse_path(text), complaint):
            raise UnmetError(f"{text} holds no value at all, expected at least one")
    return f"{listed(spec.required, 'and')} hold{'s a value' if len(spec.required) == 1 else ' values'}"


def _unreal(placeholders: frozenset[str], value: object) -> str | None:
    return None if is_real(value, placeholders) else f" {what_is_wrong(value)}, expected a real value"


def _specified(document: Document, specs: dict[str, FieldSpec]) -> str:
    for text, spec in specs.items():
        document.checked(parse_path(text), partial(_unlike_its_spec, spec, document.format))
    return f"{listed(specs, 'and')} as specified"


def _unlike_its_spec(spec: FieldSpec, form: Format, value: object) -> str | None:
    if value is ABSENT or (form is Format.CSV and value == ""):
        return None
    wrong = flaw(_typed(value, spec, form), spec)
    return f" {wrong}" if wrong else None


def _typed(value: object, spec: FieldSpec, form: Format) -> object:
    """Return the value of a csv cell, which has no type of its own, as the type that is asked for, if it can be read so."""
    if form is not Format.CSV or not isinstance(value, str):
        return value
    if spec.type is Kind.BOOLEAN:
        return {"true": True, "false": False}.get(value.lower(), value)
    if spec.type is None and spec.min is None and spec.max is None:
        return value
    return _read(value) if spec.type is not Kind.STRING else value


def _read(cell: str) -> object:
    parts = re.fullmatch(_NUMBER, cell) if len(cell) <= _LONGEST_NUMBER else None
    if parts is None:
        return cell
    if not (parts[2] or parts[3]):
        return int(cell)
    return float(cell) if math.isfinite(float(cell)) else cell


def flaw(value: object, spec: FieldSpec) -> str | None:
    """Return in what a value, which is not a cell of csv, differs from what is specified; None if in nothing."""
    if spec.type is not None and not is_kind(value, spec.type):
        article = "an" if spec.type[0] in "aeiou" else "a"
        return f"is {shown(value)}, expected {article} {spec.type}"
    return _out_of_range(value, spec) or _of_wrong_length(value, spec) or _unlike(value, spec)


def is_kind(value: object, kind: Kind) -> bool:
    """Whether a value is of a type."""
    match kind:
        case Kind.STRING:
            return isinstance(value, str)
        case Kind.INTEGER:
            return _is_number(value) and value == round(value)
        case Kind.NUMBER:
            return _is_number(value)
        case Kind.BOOLEAN:
            return isinstance(value, bool)
        case Kind.ARRAY:
            return isinstance(value, list)
        case Kind.TABLE:
            return isinstance(value, dict)
    assert_never(kind)


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _out_of_range(value: object, spec: FieldSpec) -> str | None:
    if spec.min is None and spec.max is None:
        return None
    if not _is_number(value):
        return f"is {shown(value)}, expected a number"
    if spec.min is not None and value < spec.min:
        return f"is {shown(value)}, expected at least {number(spec.min)}"
    if spec.max is not None and value > spec.max:
        return f"is {shown(value)}, expected at most {number(spec.max)}"
    return None


def _of_wrong_length(value: object, spec: FieldSpec) -> str | None:
    if spec.min_length is None and spec.max_length is None:
        return None
    if not isinstance(value, str | list | dict):
        return f"is {shown(value)}, which has no length, expected a string, an array or a table"
    if spec.min_length is not None and len(value) < spec.min_length:
        return f"has a length of {number(len(value))}, expected at least {number(spec.min_length)}"
    if spec.max_length is not None and len(value) > spec.max_length:
        return f"has a length of {number(len(value))}, expected at most {number(spec.max_length)}"
    return None


def _unlike(value: object, spec: FieldSpec) -> str | None:
    if spec.pattern is None or (isinstance(value, str) and re.search(spec.pattern, value)):
        return None
    return f"is {shown(value)}, expected a match of {one_line(spec.pattern, 60)}"
