"""Does it parse? The whole of it, strictly, in every format; and what is wrong is named, with its place."""

import csv
import dataclasses
import io
import json
from contextlib import nullcontext, suppress

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from jobs.verification.json_text import _flaw
from jobs.verification.parsing import parse
from jobs.verification.path import ABSENT
from jobs.verification.rows import Rows
from jobs.verification.spec import Format
from jobs.verification.verdict import Check
from jobs.verification.wording import UnmetError
from tests.verification.judging import BARE, GOOD, Row, assert_judged, each, judged, rows, written

BOM = b"\xef\xbb\xbf"
DEEP = 100_000

JSON = (
    (b'{"a": 1}', None),
    (b'  {"a": 1}\r\n', None),
    (b"[]", None),
    (b'"a text"', None),
    (b"0", None),
    (b"null", None),
    (b"-0.0e-5", None),
    (b"1e308", None),
    (b"1" * 309, None),
    (b"1" * 4300, None),
    (b"0." + b"3" * 10_000, None),
    (b"1e-999", None),
    (b'"1e999"', None),
    (b'["a, 1e999 , b"]', None),
    (b'["' + b"9" * 400 + b'"]', None),
    (b'{"sha": "12e4000ff", "n": 1e300}', None),
    (b"[" * 200 + b"]" * 200, None),
    (b'"' + b"x" * 1_000_000 + b'"', None),
    ('{"é": "日本 🎉"}'.encode(), None),
    (b'"\\ud83c\\udf89"', None),
    (b'{"a": 1, "A": 1}', None),
    (b'[{"a": 1}, {"a": 2}]', None),
    (b" \n", "blank"),
    (BOM + b"{}", "byte order mark (BOM) of UTF-8"),
    ("{}".encode("utf-16"), "byte order mark (BOM) of UTF-16"),
    ("{}".encode("utf-16-be"), "looks like UTF-16"),
    ("{}".encode("utf-16-le"), "looks like UTF-16"),
    ("{}".encode("utf-32"), "byte order mark (BOM) of UTF-32"),
    ("{}".encode("utf-32-be"), "looks like UTF-32"),
    ("{}".encode("utf-32-le"), "looks like UTF-32"),
    (b'\xfe\xff\x00"', "UTF-16"),
    (b'{"a":\n "caf\xe9"}', "byte 0xe9 at offset 11 (line 2) is not UTF-8"),
    (b'"\xc0\x80"', "byte 0xc0 at offset 1"),
    (b'"\xed\xa0\x80"', "is not UTF-8, expected UTF-8 without a byte order mark"),
    (b'{"a": 1}\x00\x00', "NUL byte at offset 8"),
    (b'"\x01"', "control character"),
    (b'"\n"', "at line 1 column 2, expected JSON"),
    (b'{"a": NaN}', "line 1 column 7, found NaN"),
    (b'{"a": -Infinity}', "line 1 column"),
    (b'{"a": Infinity}', "found Infinity"),
    (b"[1,\n2,\n  nope]", "line 3 column 4, found nope"),
    (b"1e999", "larger than 1.8e308"),
    (b'{"a":\n-1e999}', "a number at line 2 is larger"),
    (b'["1e999", 1E+400]', "larger than 1.8e308"),
    (b"9" * 309 + b".5", "larger than 1.8e308"),
    (b"9" * 308 + b"e1", "larger than 1.8e308"),
    (b" " * (1 << 20) + b"1e999", "larger than 1.8e308"),
    (b"1" * 10_000, "a number of more than 4,300 digits at line 1 column 4302, more than can be held"),
    (b'{"a": 1, "a": 1}', 'duplicate key "a"'),
    (b'[{"x": [{"a": 1, "b": 2,\n "a": 3}]}]', 'duplicate key "a" at line 2'),
    (b'{"\\u0061": 1, "a": 2}', 'duplicate key "a"'),
    (b"{}{}", "trailing characters"),
    (b"{} x", "trailing characters at line 1 column 4"),
    (b"{}\n// note", "trailing characters at line 2"),
    (b'{"a": 1', "cut short"),
    (b'{"a": 1\n', "cut short: it ends within an object at line 1 column 8, expected JSON"),
    (b'{"a":\n\n', "cut short: it ends within a value at line 2 column 1"),
    (b"[1,]\n", "not JSON: trailing comma at line 1 column 4, expected JSON"),
    (b'["abc', "cut short"),
    (b"[1,]", "trailing comma"),
    (b'{"a": 1,}', "trailing comma"),
    (b"{'a': 1}", "key must be a string"),
    (b"{a: 1}", "key must be a string"),
    (b"01", "invalid number"),
    (b"+1", "expected value"),
    (b".5", "expected value"),
    (b"1.", "cut short"),
    (b"0x10", "trailing characters"),
    (b'"\\x41"', "invalid escape"),
    (b'"\\ud800"', "hex escape"),
    (b'"\\ud800\\u0041"', "line 1"),
    (b"\xa0{}", "byte 0xa0 at offset 0"),
    ("\u00a0{}".encode(), "expected value at line 1 column 1"),
    (b"True", "found True"),
    (b"<html>502 Bad Gateway</html>", "found <"),
    (b"```json\n{}\n```", "found `"),
    (b"[" * DEEP, "nested deeper than 200 levels"),
    (b'{"a":' * DEEP, "nested deeper than 200 levels"),
    (b"[" * 202 + b"]" * 202, "nested deeper than 200 levels"),
)

JSONL = (
    (b'{"a": 1}\n{"b": 2}\n', None),
    (b'{"a": 1}\r\n{"b": 2}', None),
    (b"1\n2\n3", None),
    ('"a\u2028b"\n'.encode(), None),
    (b"\n", "blank"),
    (b"{}\n\n{}", "line 2: blank"),
    (b"{}\n{}\n\n", "line 3: blank"),
    (b'{}\n{"a": ', "cut short: it ends within a value at line 2"),
    (b'{}\n{"a": 1, "a": 2}', 'duplicate key "a" at line 2'),
    (b"{}\n{} {}", "trailing characters at line 2"),
    (b"{}\n[1, 1e999]", "a number at line 2"),
    (b"{}\n{}\n\xff", "byte 0xff at offset 6 (line 3)"),
    (b"{}\rnull", "trailing characters"),
    (b'{\n"a": 1\n}', "at line 1"),
    (BOM + b"{}\n", "BOM"),
)

CSV = (
    (b"a,b\n1,2\n", None),
    (b"a,b\r\n1,2\r\n3,4", None),
    (b"a,b", None),
    (b"a\n\n1\n", None),
    (b'"a","b"\n"",""', None),
    (b'a,b\n"x ""y"", z\nw",2\n', None),
    (b'a,b\n"' + b"x" * 200_000 + b'",2', None),
    (b"a;b\n1;2", None),
    ('naïve,b\n"日",2'.encode(), None),
    (b"a,b\n1\n", "row 2 has 1 value, expected 2"),
    (b"a,b\n1,2\n1,2,3\n", "row 3 has 3 values, expected 2"),
    (b"a,b\n1,2\n\n", "row 3 has 0 values"),
    (b"a,b\n1,2\n3,", None),
    (b"a,b\n1,2\n3", "row 3 has 1 value"),
    (b"a,a\n", 'the header names "a" twice, expected each name once'),
    (b"a, \n", "column 2 of 2 has no name"),
    (b"a,b,\n1,2,3\n", "column 3 of 3 has no name"),
    (b"\na,b\n", "the first line is blank"),
    (b'a,b\n"x,2\n', "a value at line 2 has a quote out of place or is not closed"),
    (b'a,b\nx"y,2\n', "line 2 has a quote out of place"),
    (b'a,b\n1,2\n"x"y,2\n', "line 3 has a quote out of place"),
    (b'a,b\n1, "2"\n', "line 2 has a quote out of place"),
    (b'"a,b\n1,2', "line 1 has a quote out of place"),
    (b"a,b\n1,\x00\n", "NUL byte"),
    (BOM + b"a,b\n", "BOM"),
    (b"a,b\n\xe9,2\n", "byte 0xe9 at offset 4 (line 2)"),
    (b"  \n", "blank"),
)

YAML = (
    (b"a: 1\nb: [1, 2]\n", None),
    (b"---\na: 1\n...\n", None),
    (b"a: &x [1]\nb: *x\n", None),
    (b"base: &b {x: 1}\nc:\n  <<: *b\n  y: 2\n", None),
    (b"c:\n  <<: [{x: 1}, {x: 2, y: 3}]\n  y: 4\n", None),
    (b"a: 2026-01-01T00:00:00Z\nb: 2026-13-99\n", None),
    (b"a: << \nb: =\n", None),
    (b"a: !!str 1\nb: !!set {x}\nc: ! x\nd: !!binary aGk=", None),
    (b"a: !!binary |\n  aGkg\n  aGk=\n", None),
    (b"1: x\n~: y\n", None),
    (b"&k a: 1\n", None),
    (b"- " * 150 + b"x", None),
    (b"just words", None),
    (b"# nothing else\n", "holds no document"),
    (b" \n", "blank"),
    (b"a: 1\na: 2\n", 'the key "a" a second time at line 2 column 1'),
    (b"a: {b: {c: 1, c: 2}}", 'the key "c" a second time'),
    (b"a: 1\n'a': 2\n", 'the key "a" a second time'),
    (b"a: 1\n---\nb: 2\n", "a second document at line 2"),
    (b"a: .nan", '".nan" at line 1 column 4 is no finite number'),
    (b"a: -.INF", "no finite number"),
    (b"a: 1.0e+999", "no finite number"),
    (b"a: !!float x", '"x" at line 1 column 4 is no float'),
    (b"a: !!bool maybe", "is no bool"),
    (b"a: 0x_", "is no int"),
    (
        b"a:\n- 0x" + b"f" * 3600,
        "a number of more than 4,300 digits at line 2 column 3, more than can be held",
    ),
    (b"a: -0x" + b"f" * 3600, "a number of more than 4,300 digits"),
    (b'a: !!binary "!!!"', '"!!!" at line 1 column 4 is no binary, expected base64'),
    (b"a: !!binary aGk", "expected base64"),
    (b"a: !!binary \xc3\xa9", "expected base64"),
    (b"a: " + b"1" * 5000, "is no int"),
    (b"a: !!python/object/apply:os.system [id]", "is none of YAML's own"),
    (b"a: !secret x", 'the tag "!secret" at line 1 column 4'),
    (b"a:\n\tb: 1", "at line 2 column 1"),
    (b"a: b: c", "mapping values are not allowed"),
    (b'a: "x', "not YAML"),
    (b"a: [1, 2", "not YAML"),
    (b"%YAML 9.9\n---\na: 1", "incompatible"),
    (b"a: \x01", "not YAML"),
    (b'a: "\\ud800"', "not YAML"),
    (b"? [1]\n: 2", "a key at line 1 column 3 is no plain value"),
    (b"? {a: 1}\n: 2", "is no plain value"),
    (b"&a a: 1\n*a : 2", "is no plain value"),
    (b"a: *b", "stands for nothing that came before"),
    (b"a: &a [*a]", "stands for nothing that came before"),
    (b"<<: 1", "<< is no table"),
    (b"[" * DEEP, "nest"),
    (b"- " * DEEP, "nested deeper than 200 levels"),
    (BOM + b"a: 1", "BOM"),
    ("a: 1".encode("utf-16"), "UTF-16"),
    (b"a: \xff", "byte 0xff at offset 3"),
)

TOML = (
    (b"a = 1\n[b]\nc = [1, 2.5]\n", None),
    (b"# nothing\n", None),
    (b"t = 2026-01-01T00:00:00Z\nd = 2026-01-01\nl = 07:32:00\n", None),
    (b"a = 1\na = 2\n", "not TOML: cannot overwrite a value"),
    (b"a = nan", "nan is no finite number"),
    (b"a = -inf", "is no finite number"),
    (b"a = 1e999", "1e999 is no finite number"),
    (b"a = " + b"[" * DEEP, "nested too deeply"),
    (b"a = " + b"1" * 5000, "a number of more than 4,300 digits, more than can be held"),
    (b"[a", "not TOML: expected ']' at the end of a table declaration"),
    (b'a = "x', "not TOML"),
    (b"a = 2026-13-01", "not TOML"),
    (b"a = 1 b = 2", "line 1"),
    (b"a: 1", "not TOML"),
    (BOM + b"a = 1", "BOM"),
    (b" ", "blank"),
    (b'a = "\xff"', "byte 0xff at offset 5"),
    (b"a = [0x" + b"f" * 3600 + b"]", "a number of more than 4,300 digits, more than can be held"),
)

TEXT = (
    (b"done", None),
    ("日本\n".encode(), None),
    (b"\x1b[1mbold", None),
    (b" \n\t", "blank"),
    ("\u3000\n".encode(), "blank"),
    (BOM + b"done", "byte order mark (BOM) of UTF-8"),
    ("done".encode("utf-16"), "BOM"),
    ("done".encode("utf-16-le"), "looks like UTF-16"),
    (b"\xe9t\xe9", "byte 0xe9 at offset 0 (line 1) is not UTF-8"),
    ("\u200b\u2060 \n".encode(), "blank, expected some text"),
    (b"a\nb\x00", "NUL byte at offset 3 (line 2)"),
)

BATTERY = [
    *rows(Format.JSON, JSON),
    *rows(Format.JSONL, JSONL),
    *rows(Format.CSV, CSV),
    *rows(Format.YAML, YAML),
    *rows(Format.TOML, TOML),
    *rows(Format.TEXT, TEXT),
]


@each(BATTERY)
def test_the_whole_of_it_parses_strictly_or_what_is_wrong_is_named(row: Row) -> None:
    assert_judged(row, judged(row.data, row.spec))


@each(rows(Format.YAML, YAML))
def test_where_yaml_is_parsed_in_python_the_same_is_refused(
    row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In other words."""
    monkeypatch.setattr("jobs.verification.yaml_text._Loader", yaml.SafeLoader)
    assert_judged(dataclasses.replace(row, reason=""), judged(row.data, row.spec))


def laughs(levels: int) -> bytes:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9)}]" for at in range(1, levels)]
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    ("levels", "reason"), [(5, None), (10, "aliases stand for more than 1,000,000 values")]
)
def test_aliases_may_stand_for_so_many_values_and_no_more(levels: int, reason: str | None) -> None:
    (row,) = rows(Format.YAML, [(laughs(levels), reason)])
    assert_judged(row, judged(row.data, row.spec))


CUT = (
    (Format.JSON, written(GOOD)),
    (Format.JSONL, written(GOOD) + b"\n" + written(GOOD)),
    (Format.CSV, b'a,b\n"x ""y""",2\n3,"4"'),
    (Format.TOML, b'a = "x"\nb = [1, 2]\n[c]\nd = { e = 1 }\n'),
    (Format.YAML, b'a: "x"\nb: [1, {c: 2}]\n'),
)


@pytest.mark.parametrize(("form", "data"), CUT)
def test_a_cut_artifact_parses_only_if_what_is_left_is_whole_by_itself(form: Format, data: bytes) -> None:
    """The whole and every beginning of it: what parses is what an unrelated reading takes for whole, too."""
    parse(data, form)
    for end in range(len(data)):
        verdict = judged(data[:end], BARE[form]).verdict
        failure = verdict.failure
        assert failure is None or failure.check in {Check.EXISTS, Check.PARSES}
        if form in {Format.JSON, Format.JSONL}:
            assert (failure is None) == is_whole(data[:end], form)


def is_whole(data: bytes, form: Format) -> bool:
    texts = data.decode().splitlines() if form is Format.JSONL else [data.decode()]
    try:
        return bool([json.loads(text) for text in texts])
    except ValueError:
        return False


@given(st.sampled_from(Format), st.binary() | st.text().map(str.encode))
def test_any_bytes_have_a_value_or_are_refused(form: Format, data: bytes) -> None:
    with suppress(UnmetError):
        parse(data, form)


numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**400), 10**400)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_json_says_what_any_other_reader_says(value: object) -> None:
    assert parse(written(value), Format.JSON).root == json.loads(json.dumps(value))


@given(st.from_regex(rb"-?(0|[1-9][0-9]{0,320})(\.[0-9]{1,320})?([eE][+-]?[0-9]{1,4})?", fullmatch=True))
def test_a_number_is_refused_exactly_if_it_is_larger_than_a_float_can_be(number: bytes) -> None:
    """A whole number may be as long as the interpreter takes it."""
    is_whole = number.lstrip(b"-").isdigit()
    is_refused = not is_whole and abs(float(number)) == float("inf")
    for data in (number, b'{"a":' + number + b"}", b'["1e5", ' + number + b"\n]", b"[" + number + b',"e"]'):
        with pytest.raises(UnmetError, match=r"1\.8e308") if is_refused else nullcontext():
            parse(data, Format.JSON)


def test_what_the_parser_says_without_a_place_is_told_as_it_is() -> None:
    assert str(_flaw(b"{}", "out of\nluck")) == "not JSON: out of luck, expected JSON"


cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(cells, min_size=width, max_size=width))))
def test_csv_says_what_was_written(rows: list[list[str]]) -> None:
    header = ["a", "b.c", "d", "e"][: len(rows[0]) if rows else 1]
    file = io.StringIO()
    csv.writer(file, quoting=csv.QUOTE_ALL).writerows([header, *rows])
    document = parse(file.getvalue().encode(), Format.CSV)
    assert isinstance(document.root, Rows)
    assert list(document.root.tables()) == [dict(zip(header, row, strict=True)) for row in rows]
    for at, name in enumerate(header):
        assert document.values((name,)) == [row[at] for row in rows]
    assert document.values(("x",)) == [ABSENT] * len(rows)


def test_a_csv_may_have_any_number_of_different_values() -> None:
    numbers = [f"{number}" for number in range(123_456)]
    document = parse("\n".join(["a", *numbers]).encode(), Format.CSV)
    assert document.values(("a",)) == numbers


def test_yaml_is_read_as_it_is_meant() -> None:
    data = b"""
base: &base {x: 1, y: [a, ~]}
copy: *base
merged: {y: own, <<: *base}
several:
  <<: [*base, {x: 2, z: 3}]
at: 2026-01-01 00:00:00 +01:00
on: yes
1.5: 0x10
quoted: "no"
"""
    assert parse(data, Format.YAML).root == {
        "base": {"x": 1, "y": ["a", None]},
        "copy": {"x": 1, "y": ["a", None]},
        "merged": {"x": 1, "y": "own"},
        "several": {"x": 1, "y": ["a", None], "z": 3},
        "at": "2026-01-01 00:00:00 +01:00",
        "on": True,
        "1.5": 16,
        "quoted": "no",
    }


def test_times_of_toml_are_texts_as_in_all_other_formats() -> None:
    data = b"a = [2026-01-01T01:00:00+01:00, 2026-01-01T00:00:00]\nb = { c = 2026-01-01, d = 07:32:00 }"
    assert parse(data, Format.TOML).root == {
        "a": ["2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00"],
        "b": {"c": "2026-01-01", "d": "07:32:00"},
    }
