"""A run beside the earlier ones: a stale copy, an unusual size, an unusual count."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.verification.checks import run_checks
from jobs.verification.spec import BandSpec, CountSpec, Format, WorkflowSpec
from jobs.verification.verdict import Check, Past
from tests.verification.judging import BARE, GOOD, NOW, SPEC, Row, assert_judged, judged, output, written

UNCHANGED = msgspec.structs.replace(SPEC, unchanged=True)


def after(data: bytes, spec: WorkflowSpec = UNCHANGED) -> Past:
    """What is known after a run with this content."""
    return Past(last_content=judged(data, spec).content, last_run=41)


def test_the_first_run_has_nothing_to_be_a_copy_of() -> None:
    found = judged(written(GOOD), UNCHANGED)
    assert_judged(Row(b"", None, "there is no earlier run"), found)
    assert found.content


@pytest.mark.parametrize("stamp", ["2025-12-31T23:59:00Z", NOW, "2026-01-01T01:00:00+01:00"])
def test_the_same_content_under_a_new_time_is_a_stale_copy(stamp: object) -> None:
    """Neither the order of keys nor the layout makes it another."""
    copy = json.dumps({key: GOOD[key] for key in reversed(GOOD)} | {"timestamp": stamp}, indent=2).encode()
    found = judged(copy, UNCHANGED, past=after(written(GOOD)))
    assert_judged(Row(b"", Check.UNCHANGED, "the same content as run 41's under a new time"), found)


def test_another_content_is_none() -> None:
    other = written({**GOOD, "result": {"total": 13}})
    found = judged(other, UNCHANGED, past=after(written(GOOD)))
    assert_judged(Row(b"", None, "another content than run 41's"), found)


def test_the_content_of_a_failing_run_is_known_as_well() -> None:
    """A copy of it is no better."""
    old = written({**GOOD, "timestamp": 0})
    assert after(old).last_content == after(written(GOOD)).last_content
    assert not judged(b"{", UNCHANGED).content
    assert not judged(written(GOOD), SPEC).content


@pytest.mark.parametrize(
    ("form", "data", "copy", "path"),
    [
        (Format.JSONL, b'{"a": 1, "t": 5}\n', b'{"t": 6, "a": 1}', "t"),
        (Format.CSV, b"a,t\n1,5\n", b'a,t\r\n"1",6', "t"),
        (Format.CSV, b"a,at.end\n1,5\n", b"a,at.end\n1,6\n", "at.end"),
        (Format.YAML, b"a: {b: 1, t: 5}", b"a:\n  t: 6\n  b: 0x1\n", "a.t"),
        (Format.TOML, b"a = 1\nt = 2026-01-01T00:00:00Z", b"t = 2026-01-01T00:00:01Z\na = 1", "t"),
        (Format.JSON, b'[{"t": 1}, {"t": 2}]', b'[{"t": 3}, {"t": 4}]', "[].t"),
        (Format.JSON, b'{"n": 1' + b"0" * 400 + b', "t": 1}', b'{"t": 2, "n": 1' + b"0" * 400 + b"}", "t"),
        (Format.TEXT, b"report", b"report", None),
        (Format.ANY, b"\x00\xff", b"\x00\xff", None),
    ],
)
def test_the_content_is_the_values_in_every_format_that_has_some(
    form: Format, data: bytes, copy: bytes, path: str | None
) -> None:
    spec = msgspec.structs.replace(BARE[form], unchanged=True, timestamp=path, max_age=1e12)
    known = after(data, spec)
    assert judged(copy, spec).content == known.last_content


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(values, values)
def test_two_outputs_are_of_one_content_exactly_if_they_say_the_same(one: object, other: object) -> None:
    spec = msgspec.structs.replace(BARE[Format.JSON], unchanged=True)
    same = judged(written(one), spec).content == judged(written(other), spec).content
    assert same == (json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True))


SIZED = msgspec.structs.replace(BARE[Format.ANY], size=BandSpec(within=0.5))


@pytest.mark.parametrize(
    ("size", "sizes", "fails", "reason"),
    [
        (100, (), None, "100 bytes; only 0 runs so far to compare with"),
        (9999, (100,), None, "only 1 run so far"),
        (9999, (100, 100), None, "only 2 runs so far"),
        (100, (100, 100, 100), None, "the median of the last 3 good runs is 100"),
        (50, (100, 100, 100), None, ""),
        (150, (100, 100, 100), None, ""),
        (49, (100, 100, 100), Check.SIZE, "49 bytes, expected 50 to 150: the median of the last 3 good runs is 100"),
        (151, (100, 100, 100), Check.SIZE, "151 bytes, expected 50 to 150"),
        (150, (1, 100, 9999), None, "is 100"),
        (150, (9999, 1, 90, 110), None, "is 100"),
        (75, (1, 99, 100, 9999), None, "is 99.5"),
        (1, (1000,) * 10, Check.SIZE, "1 byte, expected 500 to 1,500"),
    ],
)  # fmt: skip
def test_the_size_lies_within_a_band_around_the_median_of_the_last_good_runs(
    size: int, sizes: tuple[int, ...], fails: Check | None, reason: str
) -> None:
    """From three of them on."""
    assert_judged(Row(b"", fails, reason), judged(b"x" * size, SIZED, past=Past(sizes=sizes)))


def test_a_band_wider_than_the_median_has_no_lower_end() -> None:
    spec = msgspec.structs.replace(SIZED, size=BandSpec(within=2))
    found = judged(b"x" * 400, spec, past=Past(sizes=(100, 100, 100)))
    assert_judged(Row(b"", Check.SIZE, "expected 0 to 300"), found)


ITEMS = written({"items": [1, 2, None], "none": [], "table": {"a": 1, "b": 2}, "n": 5})


@pytest.mark.parametrize(
    ("form", "data", "of", "counted"),
    [
        (Format.JSON, ITEMS, "items[]", 3),
        (Format.JSON, ITEMS, "items", 3),
        (Format.JSON, ITEMS, "none[]", 0),
        (Format.JSON, ITEMS, "table", 2),
        (Format.JSON, ITEMS, "n", 1),
        (Format.JSON, ITEMS, "nowhere", 0),
        (Format.JSON, ITEMS, "items[].id", 0),
        (Format.JSON, b"[1, 2]", "", 2),
        (Format.YAML, b"- 1\n- 2\n- 3", "", 3),
        (Format.JSONL, b"1\n2\n3\n", "", 3),
        (Format.JSONL, b'{"a": [1, 2]}\n{"a": [3]}', "a[]", 3),
        (Format.JSONL, b'{"a": [1, 2]}\n{"a": [3]}', "a", 3),
        (Format.CSV, b"a,b\n1,2\n3,4\n", "", 2),
        (Format.CSV, b"a,b\n", "", 0),
        (Format.TEXT, b"one\ntwo", "", 2),
        (Format.TEXT, b"one\ntwo\n", "", 2),
        (Format.ANY, b"\xff\n\x00\n", "", 2),
    ],
)
def test_what_is_counted(form: Format, data: bytes, of: str, counted: int) -> None:
    spec = msgspec.structs.replace(BARE[form], count=CountSpec(of=of))
    found = judged(data, spec)
    assert found.count == counted
    assert_judged(Row(b"", None, f"{counted} at {of}" if of else f"{counted} counted"), found)


@pytest.mark.parametrize("data", [b"{}", b"7", b"null"])
def test_without_a_path_there_must_be_an_array(data: bytes) -> None:
    spec = msgspec.structs.replace(BARE[Format.JSON], count=CountSpec())
    assert_judged(Row(b"", Check.COUNT, "expected an array"), judged(data, spec))


@pytest.mark.parametrize(
    ("spec", "counts", "fails", "reason"),
    [
        (CountSpec(min=3, max=3), (), None, "3 counted"),
        (CountSpec(min=4), (), Check.COUNT, "3 counted, expected at least 4"),
        (CountSpec(max=2), (), Check.COUNT, "3 counted, expected at most 2"),
        (CountSpec(within=0.1), (5, 5), None, "only 2 runs so far"),
        (CountSpec(within=0.1), (3, 3, 3), None, "the median of the last 3 good runs is 3"),
        (CountSpec(within=0.1), (5, 5, 5), Check.COUNT, "3 counted, expected 4.5 to 5.5"),
        (CountSpec(min=4, within=9), (5, 5, 5), Check.COUNT, "expected at least 4"),
    ],
)
def test_there_are_as_many_as_there_should_be(
    spec: CountSpec, counts: tuple[int, ...], fails: Check | None, reason: str
) -> None:
    workflow = msgspec.structs.replace(BARE[Format.JSON], count=spec)
    found = run_checks(output(b"[1, 2, 3]"), workflow, NOW, Past(counts=counts))
    assert_judged(Row(b"", fails, reason), found)
