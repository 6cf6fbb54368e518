"""Files that are renamed, copied and truncated while one looks: what one look cannot tell, the next one reads."""

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from jobs.ports import Cursor
from jobs.sources import gateway
from jobs.sources.log_files import EachLine, LogFiles
from jobs.sources.reading import Sight
from tests.sources.log_reader import SMALL, LogReader, append, lines, number, reader

Event = Callable[[], object]


@dataclass(kw_only=True)
class Disturbed(LogFiles):
    """Things happen while it looks."""

    once_listed: list[Event] = field(default_factory=list)
    """Between listing the files and looking at each of them: at the first, the second ... listing."""
    once_seen: list[Event] = field(default_factory=list)
    """Between looking at the files and deciding what to read."""

    def _matching(self, problems: list[str]) -> set[str]:
        found = LogFiles._matching(self, problems)
        if self.once_listed:
            self.once_listed.pop(0)()
        return found

    def _look(self, cursors: Mapping[str, Cursor]) -> tuple[dict[str, Sight], list[str]]:
        seen = LogFiles._look(self, cursors)
        if self.once_seen:
            self.once_seen.pop(0)()
        return seen


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


@pytest.fixture
def disturbed(log: Path) -> Disturbed:
    """A source of `log.jsonl*`."""
    return Disturbed(name="gateway", pattern=f"{log}*", format=EachLine(gateway.parse))


@pytest.fixture
def all_of_them(log: Path, disturbed: Disturbed) -> LogReader:
    """A reader of calls 0 to 3, the first of them from `log.jsonl.1`."""
    log.with_name("log.jsonl.1").write_bytes(lines(0))
    os.utime(log.with_name("log.jsonl.1"), (0, 0))
    log.write_bytes(lines(1, 2, 3))
    following = LogReader(source=disturbed)
    assert following.look() == [0, 1, 2, 3]
    return following


def rotate(log: Path, successor: bytes = b"") -> None:
    for n in (2, 1):
        if log.with_name(f"log.jsonl.{n}").exists():
            log.with_name(f"log.jsonl.{n}").rename(log.with_name(f"log.jsonl.{n + 1}"))
    log.rename(log.with_name("log.jsonl.1"))
    if successor:
        log.write_bytes(successor)


def copy_and_truncate(log: Path, successor: bytes = b"") -> None:
    shutil.copy(log, log.with_name("log.jsonl.1"))
    os.truncate(log, 0)
    append(log, successor)


# ── between listing the files and looking at each ─────────────────────────────────────────────────


def test_files_that_are_rotated_while_they_are_listed_keep_their_places(
    log: Path, disturbed: Disturbed, all_of_them: LogReader
) -> None:
    append(log, lines(4))
    disturbed.once_listed.append(lambda: rotate(log, lines(5)))
    assert all_of_them.look() == [4, 5]
    assert all_of_them.look() == []


def test_they_do_if_that_happens_again_and_again(
    log: Path, disturbed: Disturbed, all_of_them: LogReader
) -> None:
    append(log, lines(4))
    disturbed.once_listed += [partial(rotate, log, lines(n)) for n in (5, 6)]
    assert all_of_them.look() == [4, 5, 6]
    assert all_of_them.look() == []


def test_a_folder_that_never_rests_is_read_as_it_was_seen_last(
    log: Path, disturbed: Disturbed, all_of_them: LogReader
) -> None:
    append(log, lines(4))
    rotate(log, lines(5))
    disturbed.once_listed += [log.with_name(f"log.jsonl.new.{n}").touch for n in range(20)]
    assert all_of_them.look() == [4, 5]
    assert 0 < len(disturbed.once_listed) < 20


def test_a_file_renamed_without_successor_while_it_is_listed_is_read_at_the_next_look(
    log: Path, disturbed: Disturbed, all_of_them: LogReader
) -> None:
    append(log, lines(4))
    log.with_name("log.jsonl.1").unlink()
    disturbed.once_listed.append(lambda: rotate(log))
    assert all_of_them.look() == []
    assert all_of_them.look() == [4]
    assert all_of_them.look() == []


def test_a_log_copied_and_truncated_while_it_is_listed_is_read_once(
    log: Path, disturbed: Disturbed, all_of_them: LogReader
) -> None:
    append(log, lines(4))
    disturbed.once_listed.append(lambda: copy_and_truncate(log, lines(5)))
    assert all_of_them.look() == [4, 5]
    assert all_of_them.look() == []


# ── between looking at them and deciding what to read ─────────────────────────────────────────────


def test_a_log_truncated_since_it_was_seen_leaves_its_growing_copy_alone(
    log: Path, disturbed: Disturbed, all_of_them: LogReader
) -> None:
    """The copy, seen when it was not yet all there, would be taken for a file of its own."""
    append(log, lines(4))
    copy = log.with_name("log.jsonl.1")
    copy.write_bytes(lines(1, 2))
    disturbed.once_seen.append(lambda: copy_and_truncate(log, lines(5)))
    assert all_of_them.look() == []
    assert all_of_them.look() == [4, 5]
    assert all_of_them.look() == []


def test_a_path_waits_if_its_former_file_is_left_alone(
    log: Path, disturbed: Disturbed, all_of_them: LogReader
) -> None:
    """Its place would be lost otherwise."""
    other = log.with_name("b.jsonl")
    disturbed.pattern = str(log.with_name("*.jsonl*"))
    other.write_bytes(lines(6))
    assert all_of_them.look() == [6]
    append(other, lines(7))
    other.rename(log.with_name("log.jsonl.2"))
    other.write_bytes(lines(8))
    disturbed.once_seen.append(lambda: copy_and_truncate(log, lines(4)))
    assert all_of_them.look() == []
    assert all_of_them.look() == [7, 8, 4]
    assert all_of_them.look() == []


def test_a_file_that_comes_back_since_is_read_where_it_is_then(
    log: Path, disturbed: Disturbed, all_of_them: LogReader
) -> None:
    append(log, lines(4))
    away = log.rename(log.with_name("away"))
    log.write_bytes(lines(5))
    disturbed.once_seen.append(lambda: away.rename(log.with_name("log.jsonl.2")))
    assert all_of_them.look() == []
    assert all_of_them.look() == [4, 5]
    assert all_of_them.look() == []


# ── between that and reading ──────────────────────────────────────────────────────────────────────


@pytest.fixture
def following(log: Path) -> LogReader:
    """A reader of `a.jsonl`, which is older, and `log.jsonl` that has read calls 1 to 3 of the latter."""
    log.with_name("a.jsonl").touch()
    os.utime(log.with_name("a.jsonl"), (0, 0))
    log.write_bytes(lines(1, 2, 3))
    following = reader(log.with_name("*.jsonl"))
    assert following.look() == [1, 2, 3]
    return following


def halfway(following: LogReader, between: Event) -> list[int]:
    """Look at `a.jsonl`, which is older, then let something happen before the others are read."""
    batches = following.source.read_new(following.cursors, now=0)
    read = [next(batches)]
    assert Path(read[0].path).name == "a.jsonl"
    between()
    read += batches
    following.keep(read)
    return [number(batch, index) for batch in read for index in range(len(batch.calls))]


def test_a_rotated_file_that_moves_on_meanwhile_is_read_at_the_next_look(
    log: Path, following: LogReader
) -> None:
    """Its successor is not read before it."""
    append(log, lines(4))
    rotated = log.rename(log.with_name("log.jsonl.1"))
    log.write_bytes(lines(5))
    assert halfway(following, lambda: rotated.rename(log.with_name("log.jsonl.2"))) == []
    assert following.look() == [4, 5]


def test_a_log_that_is_truncated_meanwhile_is_read_at_the_next_look(log: Path, following: LogReader) -> None:
    append(log, lines(4))

    def copy_and_truncate_it() -> None:
        shutil.copy(log, log.with_name("log.jsonl.1"))
        os.truncate(log, 0)
        append(log, lines(5, 6, 7, 8, 9))

    assert halfway(following, copy_and_truncate_it) == []
    assert following.look() == [4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("successor", [b"", lines(5)], ids=["no successor yet", "a successor"])
def test_a_log_that_is_renamed_meanwhile_is_read_at_the_next_look(
    log: Path, following: LogReader, successor: bytes
) -> None:
    append(log, lines(4))

    def rename_it() -> None:
        log.rename(log.with_name("log.jsonl.1"))
        if successor:
            log.write_bytes(successor)

    assert halfway(following, rename_it) == []
    assert following.look() == ([4, 5] if successor else [4])


def test_a_log_that_shrinks_while_it_is_read_is_read_as_far_as_it_goes(log: Path) -> None:
    log.write_bytes(lines(*range(100)))
    following = reader(log, SMALL)
    batches = following.source.read_new({}, now=0)
    read = [next(batches)]
    os.truncate(log, len(lines(*range(10))))
    read += batches
    following.keep(read)
    assert sum(len(batch.calls) for batch in read) == 10
    append(log, lines(10))
    assert following.look() == [10]
