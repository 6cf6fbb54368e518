"""One file that grows: every complete line is read once, whenever one looks."""

import tempfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.sources.tail import ReadLimits
from tests.sources.log_reader import SMALL, append, line, lines, reader

MIB = 1 << 20

readable = st.builds(line, st.integers(0, 999), st.sampled_from([0, 0, 0, 200, 511, 512, 513, 2047, 2048]))
unreadable = st.sampled_from(
    [b"{}\n", b"\xff\n", b"\0\n", b"[" * 3000 + b"\n", b"x" * 2049 + b"\n", b"y" * 5000 + b"\n"]
)
blank = st.sampled_from([b"\n", b" \t\r\n"])
logs = st.lists(st.one_of(readable, readable, unreadable, blank)).map(b"".join)
torn = st.sampled_from([b"", b"{", line(1)[:-1], b"z" * 3000])


@given(logs, torn, st.lists(st.floats(0, 1)), st.floats(0, 1e10))
def test_a_log_split_anywhere_gives_the_same_calls_as_the_whole(
    log: bytes, end: bytes, cuts: list[float], now: float
) -> None:
    """Whatever was there at each look, and whether or not the clock says that it may have changed."""
    content = log + end
    with tempfile.TemporaryDirectory() as folder:
        whole, grown = Path(folder, "whole"), Path(folder, "grown")
        whole.write_bytes(content)
        at_once = reader(whole, SMALL)
        expected = at_once.look()

        step_by_step, calls = reader(grown, SMALL), []
        step_by_step.now = now
        places = sorted(int(cut * len(content)) for cut in cuts)
        for start, stop in zip([0, *places], [*places, len(content)], strict=True):
            append(grown, content[start:stop])
            calls += step_by_step.look()

        assert calls == expected
        assert step_by_step.unreadable == at_once.unreadable
        assert sum(cursor.offset for cursor in step_by_step.cursors.values()) <= len(content)


def test_only_what_is_new_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    following = reader(log)
    log.write_bytes(lines(1, 2))
    assert following.look() == [1, 2]
    assert following.look() == []
    append(log, lines(3))
    assert following.look() == [3]


def test_a_torn_line_waits_for_its_end(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    following = reader(log)
    log.write_bytes(lines(1) + line(2)[:-1])
    assert following.look() == [1]
    assert following.look() == []
    append(log, b"\n")
    assert following.look() == [2]
    assert following.unreadable == 0


def test_a_file_that_appears_later_is_read_from_its_start(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "log.jsonl"
    following = reader(log)
    assert following.look() == []
    assert following.source.problems() == ()
    log.parent.mkdir()
    log.write_bytes(lines(1))
    assert following.look() == [1]


def test_an_empty_file_and_an_unchanged_one_yield_one_empty_batch(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.touch()
    following = reader(log)
    for now in (1.0, 2.0):
        following.now = now
        assert following.look() == []
        assert [batch.cursor.read_at for batch in following.batches] == [now]
    append(log, lines(1))
    following.look()
    following.now = log.stat().st_ctime + 60
    following.look()
    assert [(batch.calls, batch.cursor.read_at) for batch in following.batches] == [([], following.now)]


def test_batches_hold_a_chunk_of_whole_lines_at_most(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"".join(line(n, 100) for n in range(50)) + line(50, 2000))
    following = reader(log, SMALL)
    assert following.look() == list(range(51))
    assert {len(batch.calls) for batch in following.batches[:-1]} == {5}
    offsets = [batch.cursor.offset for batch in following.batches]
    assert offsets == sorted(offsets)


def test_a_look_that_is_broken_off_goes_on_where_its_last_kept_batch_ended(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"".join(line(n, 100) for n in range(50)))
    following = reader(log, SMALL)
    batches = following.source.read_new({}, now=0)
    following.keep([next(batches)])
    following.now = log.stat().st_ctime + 60
    assert following.look() == list(range(5, 50))


def test_unreadable_lines_are_counted_and_skipped(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(lines(1) + b'{"torn": \n\n \r\n' + lines(2) + b"[1]\n" + b"\xff\xfe\n" + lines(3))
    following = reader(log)
    assert following.look() == [1, 2, 3]
    append(log, b"nonsense\n")
    following.look()
    assert following.unreadable == 4
    assert following.source.problems() == ()


@pytest.mark.parametrize(
    ("size", "is_read"), [(511, True), (512, True), (2048, True), (2049, False), (9000, False)]
)
def test_a_line_is_read_up_to_the_longest(tmp_path: Path, size: int, *, is_read: bool) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(line(1) + line(2, size) + line(3))
    following = reader(log, SMALL)
    assert following.look() == ([1, 2, 3] if is_read else [1, 3])
    assert following.unreadable == (0 if is_read else 1)


def test_a_line_of_10_mb_is_skipped_and_one_of_7_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(line(1) + line(2, 10 * MIB) + line(3) + line(4, 7 * MIB) + line(5))
    following = reader(log)
    assert following.look() == [1, 3, 4, 5]
    assert following.unreadable == 1


def test_a_line_that_never_ends_costs_a_chunk_of_memory_and_counts_once(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    piece = b"x" * (3 * MIB)
    following = reader(log)
    log.write_bytes(lines(1))
    assert following.look() == [1]
    for _ in range(6):
        append(log, piece)
        tracemalloc.start()
        assert following.look() == []
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 4 * MIB
    assert [cursor.in_long_line for cursor in following.cursors.values()] == [True]
    append(log, b"\n" + lines(2))
    assert following.look() == [2]
    assert following.unreadable == 1


def test_a_long_log_is_read_in_bounded_memory(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"".join(line(n, 1000) for n in range(20_000)))
    following = reader(log)
    tracemalloc.start()
    count = sum(len(batch.calls) for batch in following.source.read_new({}, now=0))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 20_000
    assert peak < 8 * MIB


def test_the_limits_are_a_mebibyte_and_eight() -> None:
    assert ReadLimits() == ReadLimits(chunk=1 << 20, longest_line=8 << 20)
