"""Files that are renamed, copied, truncated and replaced: nothing is lost, nothing is read twice."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sources.log_reader import SMALL, LogReader, append, lines, reader


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


@pytest.fixture
def following(log: Path) -> LogReader:
    """A reader that has read calls 1 to 3."""
    log.write_bytes(lines(1, 2, 3))
    following = reader(log)
    assert following.look() == [1, 2, 3]
    return following


# ── renamed ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["log.jsonl.1", "log-2026-01-01.jsonl", "log1.jsonl", "log.jsonl~"])
def test_a_renamed_file_is_read_to_its_end_before_its_successor(
    log: Path, following: LogReader, name: str
) -> None:
    append(log, lines(4))
    log.rename(log.with_name(name))
    log.write_bytes(lines(5))
    assert following.look() == [4, 5]
    assert following.look() == []
    append(log, lines(6))
    assert following.look() == [6]


def test_a_file_renamed_to_something_else_is_over(log: Path, following: LogReader) -> None:
    append(log, lines(4))
    log.rename(log.with_name("old.jsonl"))
    log.write_bytes(lines(5))
    assert following.look() == [5]


@pytest.mark.parametrize("has_successor", [False, True])
def test_a_writer_that_still_holds_the_renamed_file_is_followed(
    log: Path, following: LogReader, *, has_successor: bool
) -> None:
    """Until the new file holds something: the writer is told of the rotation only afterwards."""
    rotated = log.rename(log.with_name("log.jsonl.1"))
    if has_successor:
        log.touch()
    for n in (4, 5):
        append(rotated, lines(n))
        assert following.look() == [n]
    append(rotated, lines(6))
    append(log, lines(7))
    assert following.look() == [6, 7]


def test_a_look_broken_off_between_a_renamed_file_and_its_successor_goes_on(
    log: Path, following: LogReader
) -> None:
    append(log, lines(4))
    log.rename(log.with_name("log.jsonl.1"))
    log.write_bytes(lines(5))
    batches = following.source.read_new(following.cursors, now=0)
    following.keep([next(batches)])
    assert following.look() == [5]


def test_a_deleted_file_leaves_its_cursor_and_no_problem(log: Path, following: LogReader) -> None:
    before = following.cursors
    log.unlink()
    assert following.look() == []
    assert following.batches == []
    assert following.source.problems() == ()
    log.write_bytes(lines(4))
    assert following.cursors == before
    assert following.look() == [4]


def test_a_folder_that_is_gone_leaves_no_problem(tmp_path: Path) -> None:
    log = tmp_path / "inner" / "log.jsonl"
    log.parent.mkdir()
    log.write_bytes(lines(1))
    following = reader(log)
    following.look()
    shutil.rmtree(log.parent)
    assert following.look() == []
    log.parent.write_bytes(b"a file now")
    assert following.look() == []
    assert following.source.problems() == ()


def test_what_lies_beside_a_lost_file_is_looked_at_with_care(log: Path, following: LogReader) -> None:
    """Pipes, folders, strangers and links to nowhere may have a name like a rotated file's."""
    log.unlink()
    os.mkfifo(log.with_name("log.jsonl.1"))
    log.with_name("log.jsonl.2").mkdir()
    log.with_name("log.jsonl.3").write_bytes(lines(7, 8, 9, 10))
    log.with_name("log.jsonl.4").symlink_to("nowhere")
    log.with_name("log.jsonl.5").write_bytes(lines(1))
    log.write_bytes(lines(6))
    assert following.look() == [6]
    assert following.source.problems() == ()


def test_a_link_is_followed_to_where_its_file_was_rotated(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    target, link = tmp_path / "data" / "agent.jsonl", tmp_path / "log.jsonl"
    target.write_bytes(lines(1))
    link.symlink_to(target)
    following = reader(link)
    assert following.look() == [1]
    append(target, lines(2))
    target.rename(target.with_name("agent.jsonl.1"))
    target.write_bytes(lines(3))
    assert following.look() == [2, 3]


# ── truncated and rewritten ───────────────────────────────────────────────────────────────────────


def rewritten(log: Path, content: bytes) -> None:
    """In place: the inode stays."""
    inode = log.stat().st_ino
    with log.open("r+b") as file:
        file.truncate(0)
        file.write(content)
    assert log.stat().st_ino == inode


@pytest.mark.parametrize(
    "numbers",
    [(7,), (7, 8, 9), (7, 8, 9, 10), (1, 2, 9, 10), (1, 2, 9)],
    ids=["shorter", "as long", "longer", "longer with the same beginning", "as long with the same beginning"],
)
def test_a_file_rewritten_in_place_is_read_from_its_start(
    log: Path, following: LogReader, numbers: tuple[int, ...]
) -> None:
    rewritten(log, lines(*numbers))
    assert following.look() == list(numbers)
    append(log, lines(11))
    assert following.look() == [11]


def test_a_rewrite_beyond_the_head_is_noticed(log: Path) -> None:
    """The first 1024 bytes are the same, and the file has grown."""
    log.write_bytes(lines(*range(100)))
    following = reader(log)
    following.look()
    rewritten(log, lines(*range(50), *range(200, 300)))
    assert following.look() == [*range(50), *range(200, 300)]


def test_a_file_replaced_by_a_smaller_one_is_read_from_its_start(log: Path, following: LogReader) -> None:
    other = log.with_name("other")
    other.write_bytes(lines(4))
    other.replace(log)
    assert following.look() == [4]


def test_an_inode_that_is_given_out_again_is_a_new_file(log: Path) -> None:
    """Whether or not the file system does so at once: the cursor is made to say so."""
    log.write_bytes(lines(1, 2, 3))
    following = reader(log)
    following.look()
    before = following.cursors[str(log)]
    log.unlink()
    log.write_bytes(lines(4, 5, 6, 7))
    following.look()
    now = following.cursors[str(log)]
    kept = b'"inode":%d' % now.inode
    following.kept = following.kept.replace(b'"offset":%d' % now.offset, b'"offset":%d' % before.offset)
    following.kept = following.kept.replace(now.head.encode(), before.head.encode())
    following.kept = following.kept.replace(now.tail.encode(), before.tail.encode())
    assert kept in following.kept
    assert following.look() == [4, 5, 6, 7]


def test_copytruncate_loses_nothing_if_the_copy_lies_beside_the_log(log: Path, following: LogReader) -> None:
    append(log, lines(4, 5))
    shutil.copy(log, log.with_name("log.jsonl.1"))
    rewritten(log, lines(6))
    assert following.look() == [4, 5, 6]
    assert following.look() == []
    append(log, lines(7))
    assert following.look() == [7]


def test_the_count_of_unreadable_lines_outlives_a_rotation(log: Path, following: LogReader) -> None:
    append(log, b"?\n")
    log.rename(log.with_name("log.jsonl.1"))
    log.write_bytes(b"?\n")
    following.look()
    assert following.unreadable == 2
    rewritten(log, b"??\n")
    following.look()
    assert following.unreadable == 3


# ── under a pattern that finds the rotated files too ──────────────────────────────────────────────


@pytest.fixture
def all_of_them(log: Path) -> LogReader:
    """A reader of `log.jsonl*` that has read calls 1 to 3."""
    log.write_bytes(lines(1, 2, 3))
    following = reader(log.with_name("log.jsonl*"))
    assert following.look() == [1, 2, 3]
    return following


def test_a_rotated_file_that_is_found_is_not_read_twice(log: Path, all_of_them: LogReader) -> None:
    append(log, lines(4))
    log.rename(log.with_name("log.jsonl.1"))
    log.write_bytes(lines(5) + b"?\n")
    assert all_of_them.look() == [4, 5]
    assert all_of_them.look() == []
    assert all_of_them.unreadable == 1
    assert all_of_them.cursors.keys() == {str(log), f"{log}.1"}


def test_a_copy_that_is_found_is_not_read_twice(log: Path, all_of_them: LogReader) -> None:
    append(log, lines(4))
    shutil.copy(log, log.with_name("log.jsonl.1"))
    rewritten(log, lines(5, 6, 7, 8, 9))
    assert all_of_them.look() == [4, 5, 6, 7, 8, 9]
    assert all_of_them.look() == []


def test_a_compressed_file_is_passed_over(log: Path, all_of_them: LogReader) -> None:
    log.with_name("log.jsonl.2.gz").write_bytes(b"\x1f\x8b\n" + lines(4))
    assert all_of_them.look() == []
    assert all_of_them.unreadable == 0


def test_a_stale_cursor_of_the_same_inode_does_not_mislead(log: Path, all_of_them: LogReader) -> None:
    """A file long gone, whose inode the log was given, had been read further."""
    stale = all_of_them.kept.replace(b"log.jsonl", b"log.jsonl.old").replace(b'"offset":', b'"offset":9')
    all_of_them.now = log.stat().st_ctime + 60
    all_of_them.look()
    all_of_them.kept = all_of_them.kept[:-1] + b"," + stale[1:]
    append(log, lines(4))
    log.rename(log.with_name("log.jsonl.1"))
    log.write_bytes(lines(5))
    assert all_of_them.look() == [4, 5]


@pytest.mark.parametrize("link", [os.link, os.symlink], ids=["hard", "symbolic"])
def test_a_file_with_two_names_is_read_once(
    log: Path, all_of_them: LogReader, link: Callable[[Path, Path], None]
) -> None:
    other = log.with_name("log.jsonl.link")
    link(log, other)
    append(log, lines(4))
    assert all_of_them.look() == [4]
    assert len(all_of_them.batches) == 1
    log.rename(log.with_name("elsewhere"))
    append(log.with_name("elsewhere"), lines(5))
    if not other.is_symlink():
        assert all_of_them.look() == [5]


def test_a_file_read_under_a_link_stays_with_it(tmp_path: Path) -> None:
    following = reader(tmp_path / "*.jsonl")
    old, current = tmp_path / "2026-01-01.jsonl", tmp_path / "current.jsonl"
    old.write_bytes(lines(1))
    current.symlink_to(old)
    assert following.look() == [1]
    append(old, lines(2))
    new = tmp_path / "2026-01-02.jsonl"
    new.write_bytes(lines(3))
    os.utime(new, ns=(0, old.stat().st_mtime_ns + 1))
    current.unlink()
    current.symlink_to(new)
    assert following.look() == [2, 3]
    assert following.look() == []


def test_a_path_that_the_pattern_no_longer_finds_is_left_alone(log: Path, following: LogReader) -> None:
    elsewhere = reader(log.with_name("other.jsonl"))
    elsewhere.kept = following.kept
    log.rename(log.with_name("log.jsonl.1"))
    append(log.with_name("log.jsonl.1"), lines(4))
    assert elsewhere.look() == []


def rename(log: Path, rotations: int) -> None:
    shift(log, rotations)
    if log.exists():
        log.rename(f"{log}.1")


def copy_and_truncate(log: Path, rotations: int) -> None:
    shift(log, rotations)
    if log.exists():
        shutil.copy2(log, f"{log}.1")
        os.truncate(log, 0)


def shift(log: Path, rotations: int) -> None:
    for n in range(rotations, 0, -1):
        older = Path(f"{log}.{n}")
        if older.exists():
            older.rename(f"{log}.{n + 1}")


@given(
    st.lists(
        st.one_of(st.integers(1, 40), st.sampled_from(["look", "rename", "copy and truncate"])), max_size=20
    )
)
def test_however_logs_are_rotated_each_call_is_read_once_and_in_order(events: list[int | str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log.jsonl")
        following = reader(Path(folder, "log.jsonl*"), SMALL)
        written = rotations = 0
        read: list[int] = []
        for clock, event in enumerate([*events, "look"]):
            match event:
                case int():
                    append(log, lines(*range(written, written + event)))
                    os.utime(log, (clock, clock))
                    written += event
                case "look":
                    read += following.look()
                case "rename":
                    rename(log, rotations)
                    rotations += 1
                case _:
                    copy_and_truncate(log, rotations)
                    rotations += 1
        assert read == list(range(written))
