"""One file that grows: every complete line is read once, whenever one looks."""

import os
import tempfile
import tracemalloc
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.ports import Batch
from jobs.sources.tail import ReadLimits, near_end
from tests.sources.log_reader import SMALL, append, line, lines, number, reader

MIB = 1 << 20
TINY_LOOKS = ReadLimits(chunk=512, longest_line=2048, look=600)

readable = st.builds(line, st.integers(0, 999), st.sampled_from([0, 0, 0, 200, 511, 512, 513, 2047, 2048]))
unreadable = st.sampled_from(
    [b"{}\n", b"\xff\n", b"\0\n", b"[" * 3000 + b"\n", b"x" * 2049 + b"\n", b"y" * 5000 + b"\n"]
)
blank = st.sampled_from([b"\n", b" \t\r\n"])
beginning = st.sampled_from([b"", b"", b"\0", b"\0\n", b"\0" * 600, b"\0" * 5000])
logs = st.builds(
    lambda first, rest: first + b"".join(rest),
    beginning,
    st.lists(st.one_of(readable, readable, unreadable, blank)),
)
torn = st.sampled_from([b"", b"{", line(1)[:-1], b"z" * 3000])


@given(logs, torn, st.lists(st.floats(0, 1)), st.floats(0, 1e10), st.sampled_from([SMALL, TINY_LOOKS]))
def test_a_log_split_anywhere_gives_the_same_calls_as_the_whole(
    log: bytes, end: bytes, cuts: list[float], now: float, limits: ReadLimits
) -> None:
    """Whatever was there at each look, however little one look takes, and whatever the clock says of changes."""
    content = log + end
    with tempfile.TemporaryDirectory() as folder:
        whole, grown = Path(folder, "whole"), Path(folder, "grown")
        whole.write_bytes(content)
        at_once = reader(whole, SMALL)
        expected = at_once.look()

        step_by_step, calls = reader(grown, limits), []
        step_by_step.now = now
        places = sorted(int(cut * len(content)) for cut in cuts)
        for start, stop in zip([0, *places], [*places, len(content)], strict=True):
            append(grown, content[start:stop])
            calls += step_by_step.look()
        while step_by_step.is_behind:
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


def test_a_very_long_log_is_read_in_several_looks(tmp_path: Path) -> None:
    """Until its end is reached what comes next is no news, and the status says so."""
    log, other = tmp_path / "log.jsonl", tmp_path / "other.jsonl"
    log.write_bytes(b"".join(line(n, 199) for n in range(10)))
    other.write_bytes(lines(11))
    following = reader(tmp_path / "*.jsonl", ReadLimits(chunk=512, longest_line=2048, look=1500))
    assert following.look() == [0, 1, 2, 3, 4, 5, 11]
    assert following.cursors[str(log)].is_behind
    assert not following.cursors[str(other)].is_behind
    assert following.source.problems() == (f"{log} is very long: the rest of it is left for the next look.",)
    assert following.look() == [6, 7, 8, 9]
    assert not following.is_behind
    assert following.source.problems() == ()


@pytest.mark.parametrize("content", [b"\n", b"{\n", b"[]\n"])
def test_lines_count_for_more_than_their_bytes(tmp_path: Path, content: bytes) -> None:
    """A file of the shortest there are would otherwise take many times as long as any other."""
    log = tmp_path / "log.jsonl"
    log.write_bytes(content * 10_000)
    following = reader(log, ReadLimits(chunk=512, longest_line=2048, look=100_000))
    following.look()
    assert following.cursors[str(log)].offset < 3 * 1024
    assert following.is_behind


@pytest.mark.parametrize("content", [b"", line(1)], ids=["from its start", "after a line"])
def test_a_hole_of_a_terabyte_keeps_no_other_file_waiting(tmp_path: Path, content: bytes) -> None:
    hole = tmp_path / "hole.jsonl"
    hole.write_bytes(content)
    os.truncate(hole, 1 << 40)
    (tmp_path / "log.jsonl").write_bytes(lines(2))
    following = reader(tmp_path / "*.jsonl", ReadLimits(look=20 * MIB))
    assert following.look() == ([1, 2] if content else [2])
    assert following.cursors[str(hole)].offset == 1 << 40
    append(hole, b"\n" + line(3))
    assert following.look() == [3]


@pytest.mark.parametrize("content", [b"", line(1)], ids=["from its start", "after a line"])
def test_zeros_that_were_written_keep_no_other_file_waiting(tmp_path: Path, content: bytes) -> None:
    """They take as long to read as anything."""
    zeros = tmp_path / "zeros.jsonl"
    zeros.write_bytes(content + bytes(9 * MIB) + b"\n" + line(3))
    (tmp_path / "log.jsonl").write_bytes(lines(2))
    following = reader(tmp_path / "*.jsonl", ReadLimits(longest_line=MIB, look=4 * MIB))
    assert following.look() == ([1, 2] if content else [2])
    offset = following.cursors[str(zeros)].offset
    assert 4 * MIB <= offset < 6 * MIB
    assert following.look() == []
    assert following.look() == [3]


def test_a_hole_between_lines_is_passed_wherever_a_look_ends(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(line(1) + b'{"begun')
    following = reader(log, ReadLimits(longest_line=MIB, look=1))
    assert following.look() == [1]
    os.truncate(log, 1 << 40)
    append(log, b"\n" + line(2))
    read = list(chain.from_iterable(following.look() for _ in range(20)))
    assert (read, following.is_behind) == ([2], False)
    assert following.cursors[str(log)].unreadable == 1


@pytest.mark.parametrize("torn_at", [0, 10, 700], ids=["a line", "a line's end", "a long line's end"])
def test_what_comes_while_one_reads_is_left_for_the_next_look(tmp_path: Path, torn_at: int) -> None:
    first, log, late = tmp_path / "a.jsonl", tmp_path / "b.jsonl", line(2, 1000)
    first.write_bytes(lines(0))
    os.utime(first, (0, 0))
    log.write_bytes(lines(1) + late[:torn_at])
    following = reader(tmp_path / "*.jsonl", SMALL)
    batches = following.source.read_new({}, now=0)
    read = [next(batches)]
    append(log, late[torn_at:])
    read += batches
    assert [number(batch, 0) for batch in read if batch.calls] == [0, 1]
    following.keep(read)
    assert following.look() == [2]


def test_many_files_are_each_read_once(tmp_path: Path) -> None:
    for n in range(1000):
        (tmp_path / f"{n}.jsonl").write_bytes(line(n))
    following = reader(tmp_path / "*.jsonl")
    assert sorted(following.look()) == list(range(1000))
    assert following.look() == []
    append(tmp_path / "7.jsonl", line(1000))
    assert following.look() == [1000]
    assert len(following.batches) == 1000


def test_one_may_begin_near_the_end(tmp_path: Path) -> None:
    """The line in which one begins is passed over."""
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"".join(line(n, 99) for n in range(10)))
    following = reader(log)
    following.keep([Batch(path=str(log), cursor=near_end(str(log), log.stat(), 250, 0), calls=())])
    assert following.look() == [8, 9]
    following.keep([Batch(path=str(log), cursor=near_end(str(log), log.stat(), 5000, 0), calls=())])
    assert following.look() == list(range(10))
    assert following.unreadable == 0


def test_the_limits_are_a_quarter_of_a_mebibyte_eight_and_two_gibibytes() -> None:
    assert ReadLimits() == ReadLimits(chunk=1 << 18, longest_line=8 << 20, look=2 << 30)


def test_where_nothing_is_new_for_certain_the_cursor_is_the_very_one_given(tmp_path: Path) -> None:
    """The scan need not write it down again."""
    log = tmp_path / "log.jsonl"
    log.write_bytes(lines(1))
    source = reader(log).source
    now = log.stat().st_ctime
    (first,) = source.read_new({}, now)
    (second,) = source.read_new({first.path: first.cursor}, now + 60)
    (third,) = source.read_new({first.path: second.cursor}, now + 120)
    assert second.cursor is not first.cursor
    assert third.cursor is second.cursor
    append(log, lines(2))
    (fourth,) = source.read_new({first.path: third.cursor}, now + 180)
    assert [number(fourth, 0)] == [2]
