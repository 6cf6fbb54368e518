"""Specifications drawn at random, each with an output that meets it: the output is drawn first, and the limits round it."""

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, NamedTuple

import tomli_w
import yaml
from hypothesis import strategies as st
from msgspec.structs import replace

from jobs.verification.spec import BandSpec, CountSpec, FieldSpec, Format, Kind, StatusSpec, WorkflowSpec
from tests.verification.judging import NOW


class Case(NamedTuple):
    spec: WorkflowSpec
    good: bytes


KEYS = ("id", "total", "größe", "two words", "a.b", "x[0]", "7", "null")
WORDS = st.sampled_from(
    ("alpha", "beta gamma", "Ωmega", 'say "hi"', "a,b;c", "tab\there", "😀", "x" * 60, "- 1", "#", "12")
)
FORBIDDEN = (
    "Traceback",
    r"^ERROR\b",
    r"(?i)api[_-]?key\s*[:=]",
    r"\b\d{4}-\d{4}-\d{4}\b",
    r"sorry, (I|we) can(not|'t)",
)
WITHIN = st.sampled_from((0.1, 0.5, 0.9, 1.5))
TYPES = {
    bool: Kind.BOOLEAN,
    int: Kind.INTEGER,
    float: Kind.NUMBER,
    str: Kind.STRING,
    list: Kind.ARRAY,
    dict: Kind.TABLE,
}
IN_SCHEMA = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


ITEMS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"id": WORDS}, optional={"n": st.integers(0, 9)}
)


def quoted(key: str) -> str:
    return f'"{key}"' if re.search(r"[.\[\]\"]", key) else key


@st.composite
def cases(draw: st.DrawFn, form: Format) -> Case:
    """Draw a specification of a format, and an output that it lets pass as of NOW."""
    case = draw(with_fields(form)) if form.has_fields else draw(of_lines(form))
    text = case.good.decode()
    forbid = draw(st.lists(st.sampled_from(FORBIDDEN), max_size=3, unique=True))
    spec = replace(
        case.spec,
        unchanged=draw(st.booleans()),
        size=draw(st.none() | st.builds(BandSpec, within=WITHIN)),
        forbid=tuple(pattern for pattern in forbid if not re.search(pattern, text)),
        max_age=draw(st.sampled_from((60.0, 1800.0, 1e6))),
    )
    return Case(spec, case.good)


@st.composite
def of_lines(draw: st.DrawFn, form: Format) -> Case:
    lines = draw(st.lists(WORDS, min_size=1, max_size=12))
    count = draw(st.none() | counts(len(lines), ""))
    end = draw(st.sampled_from(("", "\n")))
    return Case(WorkflowSpec(name="drawn", format=form, count=count), ("\n".join(lines) + end).encode())


@st.composite
def with_fields(draw: st.DrawFn, form: Format) -> Case:
    flat = form is Format.CSV
    values = (
        scalars()
        if flat
        else scalars() | st.lists(WORDS, max_size=4) | st.dictionaries(WORDS, WORDS, max_size=3)
    )
    extra = draw(st.dictionaries(st.sampled_from(KEYS), values, min_size=1))
    stamp, status = draw(st.none() | times()), draw(st.none() | st.sampled_from(("ok", "Failed", "7")))
    record = dict(extra)
    if stamp is not None:
        record["made at"] = stamp
    if status is not None:
        record["status"] = status
    items = draw(st.lists(ITEMS, max_size=0 if form is Format.CSV else 6))
    if items:
        record["items"] = items
    specified = draw(st.lists(st.sampled_from(sorted(extra)), unique=True))
    spec = WorkflowSpec(
        name="drawn",
        format=form,
        required=(*draw(required(record)), *(["items[].id"] if bool(items) and draw(st.booleans()) else [])),
        placeholders=draw(st.sampled_from((("null", "n/a", "none"), ("TODO", "größe?"), ()))),
        fields={quoted(key): draw(field_of(extra[key])) for key in specified},
        timestamp=None if stamp is None else quoted("made at"),
        status=None if status is None else StatusSpec(allowed=draw(allowed(status))),
    )
    return draw(written(spec, record, items))


def scalars() -> st.SearchStrategy[Any]:
    return WORDS | st.integers(-(10**20), 10**20) | st.booleans() | st.floats(-1e300, 1e300)


@st.composite
def times(draw: st.DrawFn) -> object:
    at = NOW - draw(st.integers(0, 50))
    zone = timezone(timedelta(hours=draw(st.integers(-12, 12))))
    return draw(
        st.sampled_from(
            (
                datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                datetime.fromtimestamp(at, zone).isoformat(" "),
                int(at),
                int(at) * 1000,
                at + 0.25,
                f"{at * 1000:.0f}",
            )
        )
    )


@st.composite
def required(draw: st.DrawFn, record: Mapping[str, object]) -> list[str]:
    keys = draw(st.lists(st.sampled_from(sorted(record)), unique=True))
    return [quoted(key) for key in keys]


@st.composite
def allowed(draw: st.DrawFn, status: str) -> tuple[str, ...]:
    return tuple(
        draw(st.permutations((status, *draw(st.sampled_from(((), ("partial",), ("completed", "OK")))))))
    )


@st.composite
def counts(draw: st.DrawFn, number: int, of: str) -> CountSpec:
    least = draw(st.none() | st.integers(0, number))
    most = draw(st.none() | st.integers(number, number + 3))
    return CountSpec(
        of=of,
        min=least,
        max=most,
        within=draw(WITHIN if (least, most) == (None, None) else st.none() | WITHIN),
    )


@st.composite
def field_of(draw: st.DrawFn, value: Any) -> FieldSpec:
    """Draw what a value is specified to be, with limits that are often the value itself."""
    spec = FieldSpec(type=draw(st.none() | st.just(TYPES[type(value)])))
    if isinstance(value, int | float) and not isinstance(value, bool):
        near = st.sampled_from((0, 1, 1000))
        least, most = value - draw(near), value + draw(near)
        spec = replace(
            spec, min=draw(st.sampled_from((None, float(least) if float(least) <= value else None)))
        )
        spec = replace(spec, max=draw(st.sampled_from((None, float(most) if float(most) >= value else None))))
    elif isinstance(value, str | list | dict):
        least, most = draw(st.integers(0, len(value))), draw(st.integers(len(value), len(value) + 5))
        spec = replace(
            spec,
            min_length=draw(st.sampled_from((None, least))),
            max_length=draw(st.sampled_from((None, most))),
        )
    if isinstance(value, str):
        spec = replace(
            spec,
            pattern=draw(st.sampled_from((None, "^" + re.escape(value[:3]), r"\S", "(?i)[a-zω]|.", "^.+$"))),
        )
    return spec


@st.composite
def written(draw: st.DrawFn, spec: WorkflowSpec, record: dict[str, Any], items: list[dict[str, Any]]) -> Case:
    """Draw how many records there are, what is counted, a schema, and how all that is written."""
    form = spec.format
    is_list = form.has_records or (form in {Format.JSON, Format.YAML} and draw(st.booleans()))
    number = draw(st.integers(1, 4)) if is_list else 1
    if is_list and not form.has_records:
        spec = below_elements(spec)
    starts = "[]." if is_list and not form.has_records else ""
    if counted := countable(items, number, starts, is_list=is_list):
        of, count = draw(st.sampled_from(counted))
        spec = replace(spec, count=draw(st.none() | counts(count, of)))
    if draw(st.booleans()):
        schema = schema_of(record, is_csv=form is Format.CSV)
        whole = {"type": "array", "items": schema} if is_list and not form.has_records else schema
        spec = replace(spec, schema="/srv/schema.json", schema_text=json.dumps(whole))
    root = [record] * number if is_list else record
    return Case(spec, draw(WRITERS[form](root)).encode())


def below_elements(spec: WorkflowSpec) -> WorkflowSpec:
    """The same, asked of every element of an array."""
    return replace(
        spec,
        required=tuple(f"[].{path}" for path in spec.required),
        fields={f"[].{path}": field for path, field in spec.fields.items()},
        timestamp=None if spec.timestamp is None else f"[].{spec.timestamp}",
        status=None if spec.status is None else replace(spec.status, field=f"[].{spec.status.field}"),
    )


def countable(
    items: list[dict[str, Any]], number: int, starts: str, *, is_list: bool
) -> list[tuple[str, int]]:
    """What can be counted, and how many of that there are."""
    found = [("", number)] if is_list else []
    if items:
        found += [(f"{starts}{of}", len(items) * number) for of in ("items[]", "items[].id")]
        found.append((f"{starts}items[].n", sum("n" in item for item in items) * number))
        # Behind `[]`, an array is one value.
        found.append((f"{starts}items", number if starts else len(items) * number))
    return found


def schema_of(record: Mapping[str, Any], *, is_csv: bool) -> dict[str, object]:
    properties = {key: property_of(key, f"{value}" if is_csv else value) for key, value in record.items()}
    return {"type": "object", "required": sorted(record), "properties": properties}


def property_of(key: str, value: Any) -> dict[str, object]:
    schema: dict[str, object] = {"type": IN_SCHEMA[type(value)]}
    match value:
        case _ if key in {"made at", "status", "items"}:
            return schema  # others say more about them
        case str():
            return schema | {"minLength": len(value), "pattern": r"\S"}
        case bool() | dict():
            return schema | {"enum": [value]}
        case int() | float():
            return schema | {"minimum": value, "maximum": value}
        case _:
            return schema | {"maxItems": len(value), "items": True}


@st.composite
def in_json(draw: st.DrawFn, root: object) -> str:
    return json.dumps(root, indent=draw(st.sampled_from((None, 1))), ensure_ascii=draw(st.booleans())) + "\n"


@st.composite
def in_jsonl(draw: st.DrawFn, root: list[object]) -> str:
    end = draw(st.sampled_from(("", "\n")))
    return "\n".join(json.dumps(record, ensure_ascii=draw(st.booleans())) for record in root) + end


@st.composite
def in_csv(draw: st.DrawFn, root: list[dict[str, object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(
        text,
        lineterminator=draw(st.sampled_from(("\n", "\r\n"))),
        quoting=csv.QUOTE_ALL if draw(st.booleans()) else csv.QUOTE_MINIMAL,
    )
    writer.writerow(root[0])
    writer.writerows(
        [f"{value}".lower() if value in (True, False) else value for value in record.values()]
        for record in root
    )
    return text.getvalue()


@st.composite
def in_toml(draw: st.DrawFn, root: dict[str, object]) -> str:
    return tomli_w.dumps(root, indent=draw(st.sampled_from((0, 4))))


@st.composite
def in_yaml(draw: st.DrawFn, root: object) -> str:
    text: str = yaml.safe_dump(
        root, default_flow_style=draw(st.sampled_from((None, True, False))), allow_unicode=draw(st.booleans())
    )
    return text


WRITERS: Mapping[Format, Callable[[Any], st.SearchStrategy[str]]] = {
    Format.JSON: in_json,
    Format.JSONL: in_jsonl,
    Format.CSV: in_csv,
    Format.TOML: in_toml,
    Format.YAML: in_yaml,
}
