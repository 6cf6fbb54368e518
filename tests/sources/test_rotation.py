"""Files that are renamed, copied, truncated and replaced: nothing is lost, nothing is read twice."""

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.sources.tail import ReadLimits
from tests.sources.log_reader import SMALL, LogReader, append, line, lines, reader


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


def test_the_renamed_file_itself_goes_before_a_copy_of_it(log: Path, following: LogReader) -> None:
    append(log, lines(4))
    shutil.copy(log, log.with_name("log.jsonl-copy"))
    append(log, lines(5))
    log.rename(log.with_name("log.jsonl.1"))
    log.write_bytes(lines(6))
    assert following.look() == [4, 5, 6]


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


def test_a_link_that_is_turned_to_the_next_file_leaves_nothing_unread(tmp_path: Path) -> None:
    """As writers do that begin a file of another name every day."""
    yesterday, today, link = (tmp_path / name for name in ("mon.jsonl", "tue.jsonl", "current"))
    yesterday.write_bytes(lines(1))
    link.symlink_to(yesterday)
    following = reader(link)
    assert following.look() == [1]
    append(yesterday, lines(2))
    today.write_bytes(lines(3))
    link.unlink()
    link.symlink_to(today)
    assert following.look() == [2, 3]
    assert following.look() == []


def test_a_successor_that_begins_alike_is_another_file(log: Path) -> None:
    """As logs do whose first line is always the same."""
    log.write_bytes(b"# calls\n")
    following = reader(log)
    assert following.look() == []
    append(log, lines(1))
    log.rename(log.with_name("log.jsonl.1"))
    log.write_bytes(b"# calls\n" + lines(2))
    assert following.look() == [1, 2]
    assert following.look() == []


@pytest.mark.parametrize("name", ["log.jsonl", "log", ".log"])
def test_a_log_that_is_put_in_place_anew_is_still_the_same(tmp_path: Path, name: str) -> None:
    """As after a restart of the machine that gives the disk another number. A copy beside it is no rest of it."""
    log, other = tmp_path / name, tmp_path / f"{name}.bak"
    log.write_bytes(lines(1, 2))
    following = reader(log)
    assert following.look() == [1, 2]
    append(log, lines(3))
    shutil.copy(log, other)
    shutil.copy(log, tmp_path / "new")
    (tmp_path / "new").rename(log)
    assert following.look() == [3]


# ── truncated and rewritten ───────────────────────────────────────────────────────────────────────


def rewritten(log: Path, content: bytes) -> None:
    """In place: the inode stays."""
    inode = log.stat().st_ino
    with log.open("r+b") as file:
        file.truncate(0)
        file.write(content)
    assert log.stat().st_ino == inode


DIFFERENT = pytest.mark.parametrize(
    "numbers",
    [(7,), (7, 8, 9), (7, 8, 9, 10), (1, 2, 9, 10), (1, 2, 9)],
    ids=["shorter", "as long", "longer", "longer with the same beginning", "as long with the same beginning"],
)


@DIFFERENT
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


@DIFFERENT
def test_copytruncate_loses_nothing_if_the_copy_lies_beside_the_log(
    log: Path, following: LogReader, numbers: tuple[int, ...]
) -> None:
    append(log, lines(4, 5))
    shutil.copy(log, log.with_name("log.jsonl.1"))
    rewritten(log, lines(*numbers))
    assert following.look() == [4, 5, *numbers]
    assert following.look() == []
    append(log, lines(11))
    assert following.look() == [11]


@pytest.mark.parametrize("size", [1, 600, 5000])
def test_a_writer_that_keeps_its_place_leaves_zeros_when_its_log_is_truncated(log: Path, size: int) -> None:
    """They are no line, and hide none."""
    with log.open("wb", buffering=0) as writer:
        writer.write(line(1, size))
        following = reader(log, SMALL)
        following.look()
        unreadable = following.unreadable
        os.truncate(log, 0)
        writer.write(lines(2, 3))
        assert following.look() == [2, 3]
        writer.write(lines(4))
        assert following.look() == [4]
        assert following.unreadable == unreadable


def test_unread_lines_that_are_cut_off_are_gone_and_the_rest_goes_on(log: Path, following: LogReader) -> None:
    append(log, lines(4, 5))
    os.truncate(log, len(lines(1, 2, 3, 4)))
    assert following.look() == [4]
    append(log, lines(6) + line(7)[:-1])
    assert following.look() == [6]
    os.truncate(log, log.stat().st_size - 5)
    append(log, b"\n" + lines(8))
    assert following.look() == [8]
    assert following.unreadable == 1


def test_a_log_cut_shorter_than_what_was_read_is_read_from_its_start(log: Path, following: LogReader) -> None:
    """Nobody can tell it from one that was written anew."""
    os.truncate(log, len(lines(1, 2)))
    assert following.look() == [1, 2]


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


def test_a_renamed_file_that_is_found_is_not_read_from_its_copy_too(log: Path, following: LogReader) -> None:
    """The copy's name is not one that the pattern finds."""
    all_logs = replace(following, source=reader(log.with_name("*.jsonl")).source)
    append(log, lines(4))
    shutil.copy(log, log.with_name("log.jsonl.bak"))
    log.rename(log.with_name("log-1.jsonl"))
    assert all_logs.look() == [4]
    assert all_logs.look() == []


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


# ── while they are copied ─────────────────────────────────────────────────────────────────────────


def test_a_copy_beside_its_original_is_not_read_too(log: Path, all_of_them: LogReader) -> None:
    append(log, lines(4))
    copy = log.with_name("log.jsonl.bak")
    shutil.copy(log, copy)
    assert all_of_them.look() == [4]
    assert all_of_them.look() == []
    append(log, lines(5))
    log.rename(log.with_name("log.jsonl.1"))
    log.write_bytes(lines(6))
    assert all_of_them.look() == [5, 6]
    append(copy, lines(7))
    assert all_of_them.look() == [7]


def test_neither_is_one_found_together_with_its_original(log: Path) -> None:
    log.write_bytes(lines(1, 2))
    shutil.copy(log, log.with_name("log-before-the-update.jsonl"))
    following = reader(log.with_name("*.jsonl"))
    assert following.look() == [1, 2]


def test_two_that_hold_the_same_are_read_once(log: Path) -> None:
    log.write_bytes(lines(1, 2))
    shutil.copy(log, log.with_name("log.jsonk"))
    assert reader(log.with_name("log.json?")).look() == [1, 2]


@pytest.mark.parametrize("size", [1, 150, 270, 1 << 20])
def test_one_may_look_while_a_log_is_copied_before_it_is_truncated(
    log: Path, all_of_them: LogReader, size: int
) -> None:
    copy = log.with_name("log.jsonl.1")
    append(log, lines(4))
    copy.write_bytes(log.read_bytes()[:size])
    assert all_of_them.look() == [4]
    append(log, lines(5))
    shutil.copy(log, copy)
    rewritten(log, lines(6))
    assert sorted(all_of_them.look()) == [5, 6]
    assert all_of_them.look() == []
    assert all_of_them.unreadable == 0


def test_a_copy_that_ends_in_a_very_long_line_is_not_read_either(log: Path) -> None:
    append(log, lines(1))
    append(log, b"x" * (3 << 20))
    following = reader(log.with_name("log.jsonl*"))
    following.look()
    shutil.copy(log, log.with_name("log.jsonl.1"))
    append(log, b"xxx\n" + lines(2))
    assert following.look() == [2]
    unreadable = following.unreadable
    append(log.with_name("log.jsonl.1"), b"xxx\n" + lines(3))
    assert following.look() == [3]
    assert following.unreadable == unreadable


@pytest.mark.parametrize("time", [0, 1 << 32], ids=["older", "newer"])
def test_a_copy_waits_until_its_original_has_been_read(log: Path, time: int) -> None:
    log.write_bytes(lines(1, 2, 3))
    shutil.copy(log, log.with_name("log.jsonl.1"))
    os.utime(log.with_name("log.jsonl.1"), (time, time))
    following = reader(log.with_name("log.jsonl*"), ReadLimits(chunk=100, look=100))
    assert following.look() == [1]
    assert following.cursors.keys() == {str(log)}
    rewritten(log, lines(4))
    assert sorted(following.look() + following.look()) == [2, 3, 4]


# ── however it happens ────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True, kw_only=True)
class Writer:
    """Writes a log and lets it be rotated, by renaming or by copying and truncating; time is what it says."""

    log: Path
    clock: int = 0
    written: int = 0
    rotations: int = 0
    is_copying: bool = False

    def write(self, count: int) -> None:
        append(self.log, lines(*range(self.written, self.written + count)))
        self._touch(self.log)
        self.written += count

    def rename(self) -> None:
        self.truncate()
        self._shift()
        if self.log.exists():
            self.log.rename(f"{self.log}.1")

    def copy(self) -> None:
        """A part of it first, all of it when called again."""
        if not self.log.exists():
            return
        content = self.log.read_bytes()
        if not self.is_copying:
            self._shift()
        Path(f"{self.log}.1").write_bytes(content if self.is_copying else content[: len(content) * 2 // 3])
        self._touch(Path(f"{self.log}.1"))
        self.is_copying = True

    def truncate(self) -> None:
        """End what `copy` began."""
        if self.is_copying:
            self.copy()
            os.truncate(self.log, 0)
            self.is_copying = False

    def _shift(self) -> None:
        for n in range(self.rotations, 0, -1):
            if Path(f"{self.log}.{n}").exists():
                Path(f"{self.log}.{n}").rename(f"{self.log}.{n + 1}")
        self.rotations += 1

    def _touch(self, path: Path) -> None:
        self.clock += 1
        os.utime(path, (self.clock, self.clock))


events = st.one_of(st.integers(1, 40), st.sampled_from(["look", "rename", "copy", "truncate"]))


@pytest.mark.parametrize("pattern", ["log.jsonl*", "log.jsonl"])
@given(happened=st.lists(events, max_size=20))
def test_however_logs_are_rotated_each_call_is_read_once_and_in_order(
    pattern: str, happened: list[int | str]
) -> None:
    """If rotated files are not found by the pattern: as long as one looks between two rotations."""
    with tempfile.TemporaryDirectory() as folder:
        writer = Writer(log=Path(folder, "log.jsonl"))
        following = reader(Path(folder, pattern), SMALL)
        read: list[int] = []
        for event in [*happened, "look"]:
            if event in {"rename", "truncate"} and not pattern.endswith("*"):
                read += following.look()
            match event:
                case int():
                    writer.write(event)
                case "look":
                    read += following.look()
                case "rename":
                    writer.rename()
                case "copy":
                    writer.copy()
                case _:
                    writer.truncate()
        assert read == list(range(writer.written))
        assert following.unreadable == 0
