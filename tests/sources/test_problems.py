"""What cannot be read is named in a sentence and never keeps the scan waiting."""

import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from jobs.sources.tail import ReadLimits, continues, last_line_end, read_new
from tests.sources.log_reader import append, line, lines, reader

NOBODY = 65534


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that another user can enter."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def as_anyone() -> Iterator[None]:
    """Root is denied nothing, so root becomes another user meanwhile."""
    if os.geteuid():
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_permission_lost_keeps_the_cursor_and_given_back_goes_on(folder: Path) -> None:
    log = folder / "log.jsonl"
    log.write_bytes(lines(1))
    following = reader(log)
    following.look()
    append(log, lines(2))
    log.chmod(0)
    before = following.cursors
    with as_anyone():
        assert following.look() == []
    assert following.source.problems() == (f"{log} cannot be read: Permission denied.",)
    assert following.cursors == before
    log.chmod(0o644)
    with as_anyone():
        assert following.look() == [2]
    assert following.source.problems() == ()


def test_a_file_that_has_not_changed_since_the_last_look_is_not_even_opened(folder: Path) -> None:
    """Shown by one that may not be opened: whether it has changed is for its stat to say."""
    log = folder / "log.jsonl"
    log.write_bytes(lines(1))
    following = reader(log)
    following.now = log.stat().st_ctime + 60
    following.look()
    log.chmod(0)
    with as_anyone():
        assert following.look() == []
    assert following.source.problems() == ()


def test_a_folder_that_may_not_be_entered_or_listed_is_named(folder: Path) -> None:
    closed = folder / "closed"
    closed.mkdir()
    log = closed / "log.jsonl"
    log.write_bytes(lines(1))
    known, unknown = reader(closed / "*.jsonl"), reader(closed / "log.jsonl")
    known.look()
    closed.chmod(0)
    with as_anyone():
        assert known.look() == []
        assert unknown.look() == []
    assert known.source.problems() == (
        f"{closed} cannot be listed: Permission denied.",
        f"{log} cannot be read: Permission denied.",
    )
    assert unknown.source.problems() == (f"{log} cannot be read: Permission denied.",)
    closed.chmod(0o755)
    append(log, lines(2))
    with as_anyone():
        assert known.look() == [2]
        assert unknown.look() == [1, 2]


def test_a_file_beside_a_lost_one_that_may_not_be_read_is_no_rest(folder: Path) -> None:
    log = folder / "log.jsonl"
    log.write_bytes(lines(1))
    following = reader(log)
    following.look()
    append(log, lines(2))
    log.rename(folder / "log.jsonl.1").chmod(0)
    log.write_bytes(lines(3))
    log.chmod(0o644)
    with as_anyone():
        assert following.look() == [3]


def test_a_rotated_file_that_may_not_be_read_does_not_keep_its_successor_waiting(folder: Path) -> None:
    log, rotated = folder / "log.jsonl", folder / "log.jsonl.1"
    log.write_bytes(lines(1))
    following = reader(folder / "log.jsonl*")
    following.look()
    append(log, lines(2))
    log.rename(rotated).chmod(0)
    log.write_bytes(lines(3))
    log.chmod(0o644)
    with as_anyone():
        assert following.look() == [3]
    assert following.source.problems() == (f"{rotated} cannot be read: Permission denied.",)


def test_what_is_no_regular_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's path is short
    Path("a").mkdir()
    os.mkfifo("b")
    Path("c").symlink_to("/dev/null")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("d")
    Path("e").symlink_to("e")
    Path("f").write_bytes(lines(1))
    following = reader(tmp_path / "[a-z]")
    assert following.look() == [1]
    assert following.source.problems() == (
        f"{tmp_path}/a is not read: it is a directory, not a regular file.",
        f"{tmp_path}/b is not read: it is a named pipe, not a regular file.",
        f"{tmp_path}/c is not read: it is a device, not a regular file.",
        f"{tmp_path}/d is not read: it is a socket, not a regular file.",
        f"{tmp_path}/e cannot be read: Too many levels of symbolic links.",
    )


def test_a_link_to_nowhere_is_a_file_that_may_come(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.symlink_to(tmp_path / "target")
    following = reader(log)
    assert following.look() == []
    assert following.source.problems() == ()
    (tmp_path / "target").write_bytes(lines(1))
    assert following.look() == [1]


def test_a_name_that_is_no_text_is_named_and_passed_over(tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/\xff.jsonl"
    Path(os.fsdecode(odd)).write_bytes(lines(1))
    (tmp_path / "log.jsonl").write_bytes(lines(2))
    following = reader(tmp_path / "*.jsonl")
    assert following.look() == [2]
    assert following.source.problems() == (f"{odd!r} is not read: its name is not UTF-8.",)


def test_a_file_deleted_while_others_are_read_is_no_problem(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(lines(1))
    source = reader(tmp_path / "[ab]").source
    batches = source.read_new({}, now=0)
    first = next(batches)
    (tmp_path / ({"a", "b"} - {Path(first.path).name}).pop()).unlink()
    assert list(batches) == []
    assert source.problems() == ()


KINDS = pytest.mark.parametrize(
    "replace",
    [os.mkfifo, os.mkdir, lambda log: log.symlink_to("/dev/zero"), lambda log: log.write_bytes(lines(2))],
    ids=["a pipe that nobody writes to", "a folder", "a device without end", "another file"],
)


@KINDS
def test_a_file_replaced_since_it_was_found_is_left_for_the_next_look(
    tmp_path: Path, replace: Callable[[Path], object]
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(lines(1))
    following = reader(log)
    following.look()
    seen = log.stat()
    log.rename(tmp_path / "old")
    replace(log)
    for cursor in (None, following.cursors[str(log)]):
        with pytest.raises(FileNotFoundError):
            list(read_new(str(log), seen, cursor, 0, ReadLimits()))


@KINDS
def test_a_file_replaced_between_two_looks_keeps_its_place_until_it_is_back(
    tmp_path: Path, replace: Callable[[Path], object]
) -> None:
    log, away = tmp_path / "log.jsonl", tmp_path / "away"
    log.write_bytes(lines(1))
    following = reader(log)
    following.look()
    append(log, lines(2))
    log.rename(away)
    replace(log)
    is_file = log.is_file()
    assert following.look() == ([2] if is_file else [])
    assert len(following.source.problems()) == (0 if is_file else 1)
    shutil.rmtree(log) if log.is_dir() else log.unlink()
    away.rename(log)
    assert following.look() == ([1, 2] if is_file else [2])


@KINDS
def test_a_file_replaced_while_one_decides_where_to_read_raises_at_most(
    tmp_path: Path, replace: Callable[[Path], object]
) -> None:
    """And never waits for a writer."""
    log, longer = tmp_path / "log.jsonl", tmp_path / "log"
    log.write_bytes(lines(1))
    longer.write_bytes(lines(1, 2))
    following = reader(log)
    following.look()
    seen = log.stat()
    log.unlink()
    replace(log)
    with suppress(OSError):
        assert not continues(str(log), seen, following.cursors[str(log)])
    with suppress(OSError):
        assert last_line_end(str(log), seen, str(longer), longer.stat(), 0) is None


def test_a_copy_whose_original_may_not_be_read_is_read_itself(folder: Path) -> None:
    log = folder / "log.jsonl"
    log.write_bytes(lines(1, 2))
    shutil.copy(log, folder / "log.jsonl.1")
    log.chmod(0)
    following = reader(folder / "log.jsonl*")
    with as_anyone():
        assert following.look() == [1, 2]
    assert following.source.problems() == (f"{log} cannot be read: Permission denied.",)


def test_a_look_that_is_broken_off_closes_its_file(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"".join(line(n, 1000) for n in range(3000)))
    batches = reader(log).source.read_new({}, now=0)
    next(batches)
    assert is_open(log)
    del batches
    assert not is_open(log)


def is_open(path: Path) -> bool:
    return any(os.path.realpath(link) == str(path) for link in Path("/proc/self/fd").iterdir())
