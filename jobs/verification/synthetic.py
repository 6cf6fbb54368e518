"""An output made up after a specification, where there is no good one to be had."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from jobs.verification.fields import flaw
from jobs.verification.made_up import fitted, made, of_schema, time_made
from jobs.verification.path import Path, column, has_each, parse_path
from jobs.verification.rewriting import rewritten
from jobs.verification.spec import CountSpec, FieldSpec, Format, Kind, WorkflowSpec
from jobs.verification.spots import cut, lengthened, mapped

_USUAL: Final = 3
"""Items, where as many may be: from so many on some can be dropped."""
_MOST: Final = 10_000
"""Items: of so many none are made up."""

_Making = Callable[[Any], Any]
"""What is to stand at a path, made of what stands there already; None of nothing."""


def synthetic(spec: WorkflowSpec, now: float) -> bytes | None:
    """Return an output that should pass, written at `now`; None where none can be thought of.

    What it does not know, such as the rarer words of a schema, it passes over: whether it is good is for the checks to say.
    """
    if spec.count and spec.count.of and spec.count.max == 0:
        spec = replace(spec, count=None)  # there are none of what nothing else asks for
    number = _number(spec.count)
    if not spec.format.has_fields:
        return b"made up\n" * number or None
    root = _base(spec)
    # The longest first: what is to be an array, or a table, is made of what there is to be in it.
    for path, making in sorted(_wanted(spec, now), key=lambda each: -len(each[0])):
        root = _grown(root, path, making)
    if root is None:
        root = {"made": "up"}
    if counted := _counted(spec):
        array = counted[: len(counted) - 1 - counted[::-1].index(None)]
        root, number = mapped(root, array, partial(_of_number, number)), 1
    return _written(root, number, spec.format)


def _number(count: CountSpec | None) -> int:
    """Return how many items there are to be where they are counted."""
    if count is None:
        return 1
    most = _MOST if count.max is None else min(count.max, _MOST)
    return min(max(_USUAL, count.min or 0), most)


def _base(spec: WorkflowSpec) -> Any:
    """Return what the schema asks for, of one record if there are records."""
    if spec.schema is None or spec.schema_text is None:
        return None
    return of_schema(json.loads(spec.schema_text))


def _wanted(spec: WorkflowSpec, now: float) -> Iterator[tuple[Path, _Making]]:
    """Yield every path of the specification, from a record if there are records."""
    for text in dict.fromkeys((*spec.required, *spec.fields)):
        yield _path(text, spec), partial(_real, spec, text)
    if spec.timestamp is not None:
        yield _path(spec.timestamp, spec), partial(_time, spec.fields.get(spec.timestamp, FieldSpec()), now)
    if spec.status:
        yield _path(spec.status.field, spec), partial(_said, spec.status.allowed[0])
    if counted := _counted(spec):
        yield counted, partial(_real, spec, "")


def _counted(spec: WorkflowSpec) -> Path:
    """Return the way to each item that is counted; none if the records are, or nothing is."""
    if spec.count is None or spec.format is Format.CSV or (spec.format.has_records and not spec.count.of):
        return ()
    path = parse_path(spec.count.of) if spec.count.of else ()
    return path if has_each(path) else (*path, None)


def _path(text: str, spec: WorkflowSpec) -> Path:
    path = parse_path(text)
    return (column(path),) if spec.format is Format.CSV else path


def _said(value: object, _: object) -> object:
    return value


def _time(field: FieldSpec, now: float, found: object) -> object:
    # What the schema has asked for.
    is_number = field.type is None and isinstance(found, int | float)
    return time_made(replace(field, type=Kind.NUMBER) if is_number else field, now)


def _real(spec: WorkflowSpec, text: str, found: Any) -> Any:
    field = spec.fields.get(text, FieldSpec())
    kept = fitted(found, field)
    return made(field, spec.placeholders) if kept is None or flaw(kept, field) else kept


def _grown(root: Any, path: Path, making: _Making) -> Any:
    """Return values with something at a path, and the tables and arrays on the way there."""
    if not path:
        return making(root)
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        table = root if isinstance(root, dict) else {}
        return {**table, step: _grown(table.get(step), rest, making)}
    array = root if isinstance(root, list) and root else [None]
    array = lengthened(array, max(len(array), min(step or 0, _MOST) + 1))
    return [_grown(each, rest, making) for each in array]


def _of_number(number: int, array: Any) -> Any:
    return cut(lengthened(array, max(number, len(array))), number) if isinstance(array, list) else array


def _written(root: Any, number: int, form: Format) -> bytes | None:
    header: tuple[str, ...] = ()
    if form is Format.CSV:
        root = {name: _cell(value) for name, value in root.items()} if isinstance(root, dict) else {}
        header = tuple(root)
    try:
        data = rewritten([root] * number if form.has_records else root, form, header)
    except (TypeError, AttributeError):
        return None  # not every format can say everything
    return data if data.strip() else None


def _cell(value: object) -> str:
    return f"{value}".lower() if isinstance(value, bool) else f"{value}"
