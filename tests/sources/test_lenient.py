"""Records that do not fit, and records that hold too much."""

import json
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.sources.lenient import MOST_PARTS, decode, is_overfull
from jobs.sources.registry import FORMATS

LINE: Final = 8 << 20
"""Bytes: nothing longer is read."""


class Part(msgspec.Struct):
    text: str | None = None
    inner: list[int] | None = None


class Record(msgspec.Struct, rename="camel"):
    name: str | None = None
    part: Part | None = None
    all_parts: list[Part | str] | str | None = None


DECODER: Final = msgspec.json.Decoder(Record)
read = partial(decode, DECODER)


# ── what fits ─────────────────────────────────────────────────────────────────────────────────────


def test_an_odd_field_hides_no_other_and_an_odd_part_no_other_part() -> None:
    line = b'{"name": 7, "part": {"text": [1], "inner": [1, "x", 2]}, "allParts": ["a", 1, {"text": 2}], "x": {}}'
    assert read(line) == Record(part=Part(inner=[1, 2]), all_parts=["a", Part()])


def test_halves_of_characters_hide_no_field() -> None:
    assert read(rb'{"name": "\ud83d", "part": {"text": "x"}}') == Record(name="\ufffd", part=Part(text="x"))


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"7", b"null", b"[" * 100_000, b'{"name": "\xff"}'])
def test_what_is_no_object_is_no_record(line: bytes) -> None:
    assert read(line) in (None, Record())


# ── what is too much ──────────────────────────────────────────────────────────────────────────────


def of_parts(count: int) -> bytes:
    return json.dumps({"allParts": [{"text": "x"}] * count}).encode()


def test_a_record_has_so_many_parts_and_no_more() -> None:
    assert not is_overfull(Record, of_parts(MOST_PARTS))
    full = read(of_parts(MOST_PARTS))
    assert full is not None
    assert len(full.all_parts or ()) == MOST_PARTS
    assert is_overfull(Record, of_parts(MOST_PARTS + 1))
    assert read(of_parts(MOST_PARTS + 1)) is None


@given(lists=st.lists(st.integers(0, MOST_PARTS), max_size=4))
def test_the_parts_of_all_lists_count_together(lists: list[int]) -> None:
    record = {"name": "x" * 2 * MOST_PARTS, "allParts": [{"inner": [1] * length} for length in lists]}
    line = json.dumps(record).encode()
    assert is_overfull(Record, line) is (len(lists) + sum(lists) > MOST_PARTS)


def test_what_is_in_texts_and_in_fields_that_nobody_asks_for_is_no_part() -> None:
    line = json.dumps({"name": "[1,1]," * MOST_PARTS, "other": [1] * 2 * MOST_PARTS}).encode()
    record = read(line)
    assert record is not None
    assert record.name == "[1,1]," * MOST_PARTS


def whole(beginning: bytes, part: bytes, end: bytes) -> bytes:
    """The longest line that is read, full of parts."""
    count = (LINE - len(beginning) - len(end)) // len(part)
    return beginning + part * (count - 1) + part.rstrip(b",") + end


HOSTILE: Final = [
    whole(b'{"allParts":[', b"1,", b"]}"),
    whole(b'{"allParts":[', b"{},", b"]}"),
    whole(b'{"allParts":[', b'{"inner":[1]},', b"]}"),
    whole(b'{"part":{"inner":[', b"1,", b"]}}"),
    whole(b'{"name":1,"other":[', b"1,", b"]}"),
    b'{"name":1,' + b",".join(b'"%d":0' % number for number in range(500_000)) + b"}",
]


@pytest.mark.parametrize("line", HOSTILE, ids=range(len(HOSTILE)))
def test_a_line_that_is_full_takes_little_more_than_its_own_memory(line: bytes) -> None:
    read(line)
    tracemalloc.start()
    try:
        read(line)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 3 * LINE


# ── in every format ───────────────────────────────────────────────────────────────────────────────

OF_CLAUDE: Final = (
    b'{"type":"assistant","sessionId":"x","timestamp":"2026-01-01T12:00:00Z","message":{"content":['
)
OF_GEMINI: Final = b'{"id":"m","timestamp":"2026-01-01T12:00:00Z","type":"gemini","toolCalls":['
OF_OPENCLAW: Final = b'{"type":"message","message":{"role":"assistant","timestamp":1767268800000,"content":['


@pytest.mark.parametrize(
    ("format_name", "beginning", "part", "end"),
    [
        ("claude-code", OF_CLAUDE, b'{"type":"tool_use","name":"a"},', b"]}}"),
        ("claude-code", OF_CLAUDE, b"1,", b"]}}"),
        ("gemini-cli", OF_GEMINI, b"1,", b"]}"),
        ("gemini-cli", OF_GEMINI, b'{"id":"c","name":"n"},', b"]}"),
        ("gemini-cli", b'{"$set":{"messages":[', b"{},", b"]}}"),
        ("gemini-cli", b'{"$set":{"messages":[', b'{"toolCalls":[1]},', b"]}}"),
        ("openclaw", OF_OPENCLAW, b'{"type":1},', b"]}}"),
    ],
)
def test_an_overfull_record_counts_as_one_line_that_cannot_be_read(
    format_name: str, beginning: bytes, part: bytes, end: bytes, tmp_path: Path
) -> None:
    (tmp_path / "x.jsonl").write_bytes(b"\n".join([whole(beginning, part, end), b"{", b""]))
    source = FORMATS[format_name](name="agents", pattern=str(tmp_path / "*.jsonl"))
    batches = list(source.read_new({}, now=0))
    assert sum(len(batch.calls) + len(batch.usages) for batch in batches) == 0
    assert batches[-1].cursor.unreadable == 2
