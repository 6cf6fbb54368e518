"""Which mutants there are follows from the format and from what is asked for: what may still be good is none."""

import json
import re
from typing import Final

import pytest
from msgspec.structs import replace

from jobs.verification.mutants import mutants
from jobs.verification.rewriting import rewritten
from jobs.verification.spec import BandSpec, CountSpec, FieldSpec, Format, Kind, StatusSpec, WorkflowSpec
from jobs.verification.verdict import Check
from tests.verification.detecting import MTIME, judged, names, survivors
from tests.verification.judging import BARE, NOW

DEEP: Final = b"[" * 150 + b"]" * 150
UNUSUAL: Final = (
    (Format.JSON, b"12"),
    (Format.JSON, b" true\n"),
    (Format.JSON, b'"text, with: marks"'),
    (Format.JSON, b"null"),
    (Format.JSON, b"[]"),
    (Format.JSON, b"{}"),
    (Format.JSON, b'\n[1e300, -0.0, 123456789012345678901234567890, "\\ud83d\\ude00"]\n'),
    (Format.JSON, b'{"\\u0041\\"": "a\\\\", "b": {}}'),
    (Format.JSON, DEEP),
    (Format.JSONL, b'1\n"x"'),
    (Format.JSONL, b'{"a": 1}\r\n{"a": [2, 3]}\r\n'),
    (Format.JSONL, DEEP),
    (Format.CSV, b"a,b\n"),
    (Format.CSV, b"a\n1\n\n"),
    (Format.CSV, b"a,b\r1,2\r"),
    (Format.CSV, b'"a, b","c ""d"""\n"1\n2",\n'),
    (Format.TOML, b"# nothing yet\n"),
    (Format.TOML, b"[a.b]\n"),
    (Format.TOML, b'at = 2026-01-01T00:00:00Z\n"a = b" = """\nc = d\n"""\n[[x]]\ny = [[1], [{z = 2.5e3}]]'),
    (Format.TOML, b"a = " + DEEP[50:-50]),
    (Format.YAML, b"text"),
    (Format.YAML, b"--- {}\n...\n"),
    (Format.YAML, b"[]"),
    (Format.YAML, b"1: x\n'': ~\n'<<': 0x10\nat: 2026-01-01\ntext: |\n  a\n  b\n"),
    (Format.YAML, b'a: &a {b: [1.5e+3, yes, "\\x85"]}\nc: *a\nd: [*a, *a]\ne:\n  <<: *a\n'),
    (Format.YAML, b"? " + b"k" * 2000 + b"\n: v\n"),
    (Format.YAML, DEEP),
    (Format.TEXT, "Ω\nΩ".encode()),
    (Format.TEXT, b"\n\nx"),
    (Format.ANY, b"\xff\x00"),
)


@pytest.mark.parametrize(("form", "good"), UNUSUAL, ids=range(len(UNUSUAL)))
def test_unusual_outputs_are_made_bad_as_well(form: Format, good: bytes) -> None:
    spec = replace(
        BARE[form],
        unchanged=True,
        size=BandSpec(within=0.5),
        count=CountSpec(within=0.3) if form.has_records or not form.has_fields else None,
        forbid=("Traceback",),
    )
    assert judged(good, spec).failure is None
    assert survivors(good, spec, spec) == []
    assert {mutant.check for mutant in mutants(good, spec, NOW, MTIME)} >= {Check.UNCHANGED, Check.FORBID}


def test_an_output_of_any_bytes_cannot_be_told_from_one_that_is_cut() -> None:
    found = mutants(b"\xff\x00", BARE[Format.ANY], NOW, MTIME)
    assert [(mutant.check, mutant.name) for mutant in found] == [
        (Check.EXISTS, "missing"),
        (Check.EXISTS, "emptied"),
        (Check.FRESH, "file aged"),
        (Check.FRESH, "file dated ahead"),
    ]


def test_what_is_larger_than_it_may_be_is_a_mutant_of_that_alone() -> None:
    good = b'{"a": [1, 2, 3]}'
    spec = WorkflowSpec(max_size=20, size=BandSpec(within=0.5), count=CountSpec(of="a", within=9))
    assert survivors(good, spec, spec) == []
    assert names(good, spec, Check.EXISTS) == ["missing", "emptied", "larger than max_size"]
    assert names(good, spec, Check.SIZE) == ["shrunk"]
    assert names(good, spec, Check.COUNT) == []


def test_what_is_left_of_a_bare_number_is_one_too() -> None:
    assert not any("cut" in name for name in names(b"12", BARE[Format.JSON], Check.PARSES))
    assert {"last byte cut", "cut in the middle"} <= set(names(b"[12]", BARE[Format.JSON], Check.PARSES))


def test_a_csv_cut_at_a_line_end_is_a_mutant_only_where_rows_are_counted() -> None:
    good, spec = b"a,b\n1,2\n3,4\n", BARE[Format.CSV]
    assert not any("dropped" in mutant.name for mutant in mutants(good, spec, NOW, MTIME))
    counted = [mutant.data for mutant in mutants(good, replace(spec, count=CountSpec(min=2)), NOW, MTIME)]
    assert counted[-1] == b"a,b\r\n1,2\r\n"


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (CountSpec(min=1), []),
        (CountSpec(min=3, max=9), ["items dropped", "items added"]),
        (CountSpec(within=0.5), ["items dropped", "items added"]),
        (CountSpec(within=1), ["items added"]),
        (CountSpec(max=3), ["items added"]),
        (CountSpec(max=10**9), []),
    ],
    ids=repr,
)
def test_items_are_dropped_and_added_where_the_number_then_leaves_what_is_allowed(
    count: CountSpec, expected: list[str]
) -> None:
    good = b'{"id": 1}\n{"id": 2}\n{"id": 3}\n'
    spec = replace(BARE[Format.JSONL], count=count)
    assert names(good, spec, Check.COUNT) == expected
    assert survivors(good, spec, spec) == []


@pytest.mark.parametrize(
    ("good", "of", "expected"),
    [
        (b'{"n": 1}', "n", ["items dropped"]),
        (b'{"n": {"a": 1, "b": 2}}', "n", ["items dropped", "items added"]),
        (b'{"n": [[1], [2, 3], []]}', "n[][]", ["items dropped", "items added"]),
        (b'{"n": [{"a": [7, 8]}, {}, {"a": [9]}]}', "n[].a[1]", []),
        (b'[[], ["x"]]', "[][0]", []),
        (b'[["x", "y"], ["z"]]', "[1]", []),
        (b'{"n": []}', "n", []),
        (b"[7]", "", ["items dropped", "items added", "no array"]),
    ],
)
def test_what_is_counted_is_dropped_where_nothing_takes_its_place(
    good: bytes, of: str, expected: list[str]
) -> None:
    spec = WorkflowSpec(count=CountSpec(of=of, within=0.5))
    assert names(good, spec, Check.COUNT) == expected
    assert survivors(good, spec, spec) == []


@pytest.mark.parametrize(
    ("within", "expected"), [(0.5, ["shrunk", "grown"]), (1, ["grown"]), (1e9, [])], ids=repr
)
def test_a_size_that_the_band_allows_is_no_mutant(within: float, expected: list[str]) -> None:
    assert names(b"[1]", WorkflowSpec(size=BandSpec(within=within)), Check.SIZE) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"Traceback \(most", ["", " in the middle"]),
        (r"(?i)sorry, i can't", ["", " in other case", " in the middle"]),
        (r"(?m)^ERROR", ["", " in the middle"]),
        (r"^ERROR", [""]),
        (r"\"error\":", ["", " in the middle"]),
        (r"\AERROR\Z", [""]),
        (r"key\s*=\s*[\"'][^\"']+", ["", " in the middle"]),
        (r"a(?!b)\Bc(?<=b)", []),
        (r"x++y", []),
    ],
)
def test_a_text_of_a_forbidden_pattern_is_put_where_it_is_found(pattern: str, expected: list[str]) -> None:
    """In another case, and in the middle, only if it is found there as well."""
    for form, good in (
        (Format.JSON, b"{}"),
        (Format.JSON, b"7"),
        (Format.CSV, b"a\nb\n"),
        (Format.TEXT, b"x"),
        (Format.TEXT, b"first\nsecond\nlast\n"),
    ):
        spec = replace(BARE[form], forbid=(pattern,))
        assert names(good, spec, Check.FORBID) == [f"holds {pattern}{where}" for where in expected]
        assert survivors(good, spec, spec) == []


def test_a_pattern_that_every_text_matches_has_no_mutant() -> None:
    good = b'{"a": "x"}'
    for pattern in (".*", "|x", r"(?s)^.{0,9}"):
        spec = WorkflowSpec(fields={"a": FieldSpec(pattern=pattern)})
        assert names(good, spec, Check.FIELDS) == ["a is null"]


def test_a_cell_of_csv_has_no_type_but_what_it_can_be_read_as() -> None:
    kinds = {
        "a": FieldSpec(type=Kind.INTEGER),
        "b": FieldSpec(type=Kind.STRING),
        "c": FieldSpec(max_length=0),
    }
    spec = replace(BARE[Format.CSV], required=("a",), fields=kinds)
    assert set(names(b"a,b,c\n1,2,\n", spec, Check.FIELDS)) == {
        "a removed",
        "a blank",
        "a whitespace",
        "a invisible",
        'a says " NULL "',
        'a says " N/A "',
        'a says " NONE "',
        "a says that in full width",
        "a says that with something invisible in it",
        'a is "0.5"',
        'a is "seven"',
        "c too long",
    }


def test_no_value_is_missing_where_a_format_has_no_null_and_no_key_where_a_path_has_none() -> None:
    toml = replace(BARE[Format.TOML], required=("a",), status=StatusSpec(field="a", allowed=("x",)))
    assert not any("null" in mutant.name for mutant in mutants(b'a = "x"\nb = 1', toml, NOW, MTIME))
    assert "[0] removed" not in names(b"[1, 2]", WorkflowSpec(required=("[0]",)), Check.FIELDS)
    assert names(b'a = "x"', toml, Check.STATUS)[0] != "a removed"


@pytest.mark.parametrize(
    "stamp",
    [1767225590, 1767225590000, 1767225590.25, "1767225590", "1767225590000", "2026-01-01 01:00:00+01:00"],
    ids=repr,
)
def test_a_time_is_written_anew_as_it_was(stamp: object) -> None:
    spec = WorkflowSpec(timestamp="t", max_age=1e9)
    good = json.dumps({"t": stamp}).encode()
    aged = next(mutant for mutant in mutants(good, spec, NOW, MTIME) if mutant.name == "t aged")
    told = json.loads(aged.data or b"")["t"]
    assert isinstance(told, str) is isinstance(stamp, str)
    assert survivors(good, spec, spec) == []


def test_a_time_before_the_first_year_of_the_epoch_is_told_in_seconds() -> None:
    spec = WorkflowSpec(timestamp="t", max_age=1e10)
    assert survivors(b'{"t": "2026-01-01T00:00:00Z"}', spec, spec) == []
    assert survivors(b'{"t": 1767225590000}', spec, spec) == []


def test_an_output_dated_ahead_of_its_narrowed_check_is_no_hindrance() -> None:
    """Where its own timestamp counts, its file may be of any time."""
    spec = WorkflowSpec(timestamp="t", status=StatusSpec())
    good = b'{"t": "2026-01-01T00:00:00Z", "status": "ok"}'
    found = list(mutants(good, spec, NOW, NOW + 9000))
    assert all(mutant.mtime <= NOW for mutant in found)


def wide(number: int) -> tuple[WorkflowSpec, ...]:
    """Specifications of as many fields `f0`, `f1` ..."""
    keys = [f"f{at}" for at in range(number)]
    text = {"type": "string", "minLength": 2, "maxLength": 9, "pattern": "^val$"}
    schema = {"required": keys, "additionalProperties": False, "properties": dict.fromkeys(keys, text)}
    field = FieldSpec(type=Kind.STRING, min_length=2, max_length=9, pattern="^val$")
    return (
        WorkflowSpec(required=tuple(keys)),
        WorkflowSpec(fields=dict.fromkeys(keys, field)),
        WorkflowSpec(schema="/srv/schema.json", schema_text=json.dumps(schema)),
    )


@pytest.mark.parametrize("number", [24, 60, 300])
def test_of_a_wide_specification_no_way_of_being_bad_is_left_out(number: int) -> None:
    """Though there is a bounded number of mutants of each kind."""
    for narrow, spec in zip(wide(1), wide(number), strict=True):
        found = names(json.dumps({f"f{at}": "val" for at in range(number)}).encode(), spec, Check.FIELDS)
        assert len(found) == 50
        assert {re.sub(r"f\d+", "f0", name) for name in found} == set(
            names(b'{"f0": "val"}', narrow, Check.FIELDS)
        )


def test_of_a_wide_specification_many_fields_have_their_turn() -> None:
    table = {f"f{at}": "x" for at in range(300)}
    spec = WorkflowSpec(required=tuple(table)[:40], fields=dict.fromkeys(table, FieldSpec(max_length=1)))
    found = names(json.dumps(table).encode(), spec, Check.FIELDS)
    assert len({name.split()[0] for name in found[:50]}) > 30
    assert len({name.split()[0] for name in found[50:]}) == 50


# ── many values ───────────────────────────────────────────────────────────────────────────────────


CHECKS: Final = (Check.FIELDS, Check.FRESH, Check.STATUS)


@pytest.mark.parametrize("form", [Format.JSON, Format.JSONL, Format.CSV, Format.YAML])
@pytest.mark.parametrize(
    ("number", "wheres"), [(1, []), (2, ["first"]), (3, ["middle", "first"]), (9, ["middle", "first"])]
)
def test_of_many_values_the_last_the_first_and_one_in_the_middle_are_made_bad(
    form: Format, number: int, wheres: list[str]
) -> None:
    """What looks only at some of them is found out."""
    rows = [{"a": f"{at}", "s": "ok", "t": "2026-01-01T00:00:00Z"} for at in range(number)]
    before = "" if form.has_records else "[]."
    schema = {"properties": {"a": {"pattern": "^[0-9]$"}}}
    spec = replace(
        BARE[form],
        required=(f"{before}a",),
        fields={f"{before}a": FieldSpec(max_length=1)},
        schema="/srv/schema.json",
        schema_text=json.dumps(schema if form.has_records else {"items": schema}),
        timestamp=f"{before}t",
        status=StatusSpec(field=f"{before}s"),
    )
    good = rewritten(rows, form)
    assert survivors(good, spec, spec) == []
    found = [name for check in CHECKS for name in names(good, spec, check)]
    for where in ("first", "middle"):
        some = [name.split()[0].removeprefix(before) for name in found if name.endswith(f" in the {where}")]
        assert sorted(some) == (["a", "a", "s", "t"] if where in wheres else [])
    changed = {name.split()[1] for name in found if name.startswith("schema: ")}
    assert changed == {f"{at}.a" for at in {0, number // 2, number - 1}}


def test_what_is_nowhere_in_a_good_output_is_not_made_bad() -> None:
    spec = WorkflowSpec(fields={"b": FieldSpec(type=Kind.STRING)})
    assert names(b'{"a": 1}', spec, Check.FIELDS) == []


def test_a_value_that_is_there_is_preferred() -> None:
    spec = replace(BARE[Format.CSV], fields={"a": FieldSpec(min_length=2)})
    assert names(b"a,b\nxx,1\n,2\n", spec, Check.FIELDS) == ["a too short"]


# ── a long output ─────────────────────────────────────────────────────────────────────────────────


def test_the_middle_of_a_long_array_is_left_out_if_the_rest_is_as_good() -> None:
    rows = [{"id": f"{at}", "tags": list(range(50)), "at": NOW - at} for at in range(900)]
    good = json.dumps({"rows": rows}).encode()
    spec = WorkflowSpec(required=("rows[].id",), timestamp="rows[].at")
    longest = max(len(mutant.data or b"") for mutant in mutants(good, spec, NOW, MTIME))
    assert longest < 20_000
    assert survivors(good, spec, spec) == []
    counting = replace(spec, count=CountSpec(of="rows", min=600))
    assert max(len(mutant.data or b"") for mutant in mutants(good, counting, NOW, MTIME)) > longest
    assert survivors(good, counting, counting) == []


def test_a_long_array_stays_whole_if_the_rest_alone_is_no_good_output() -> None:
    rows = [{"id": at, "at": NOW - abs(450 - at) * 60} for at in range(9000)]
    good = json.dumps({"rows": rows}).encode()
    spec = WorkflowSpec(
        timestamp="rows[].at",
        schema="/srv/s",
        schema_text=json.dumps({"properties": {"rows": {"minItems": 9000}}}),
    )
    grown = [mutant.data for mutant in mutants(good, spec, NOW, MTIME) if mutant.check is Check.PARSES]
    assert min(len(data or b"") for data in grown[1:]) > len(good) / 3
    assert survivors(good, spec, spec) == []
