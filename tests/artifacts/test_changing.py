"""What changes while it is read is read again or named: what is judged was all there at one moment."""

import hashlib
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from jobs.artifacts import snapshot
from jobs.artifacts.snapshot import Snapshot, take_snapshot
from tests.artifacts.conftest import MOST, problem


@contextmanager
def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> Iterator[None]:
    """Let something happen between the reading of a file and the look whether it is as it was."""
    read = snapshot._content

    def read_then_act(descriptor: int, size: int) -> bytes:
        content = read(descriptor, size)
        act()
        return content

    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "_content", read_then_act)
        yield


def test_growing_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.json"
    path.write_text("{}")
    with path.open("a") as file:
        file.write(" ")
        with meanwhile(monkeypatch, file.flush):
            assert problem(path) == "is still being written: it had 2 bytes, then 3, expected a finished file"


def test_cut_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.json"
    path.write_text("{}")
    with meanwhile(monkeypatch, lambda: os.truncate(path, 0)):
        assert problem(path) == "is still being written: it had 2 bytes, then 0, expected a finished file"


def test_written_over_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.json"
    path.write_text("{}")
    with meanwhile(monkeypatch, lambda: os.utime(path, ns=(7, 7))):
        assert (
            problem(path) == "is still being written: it changed while it was read, expected a finished file"
        )


def test_written_over_and_given_its_old_time_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.json"
    path.write_text("{}")
    before = path.stat()

    def write_over() -> None:
        while path.stat().st_ctime_ns == before.st_ctime_ns:
            path.write_text("[]")
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    with meanwhile(monkeypatch, write_over):
        assert (
            problem(path) == "is still being written: it changed while it was read, expected a finished file"
        )


def test_growing_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found larger than it was when it was opened, and is read no further."""
    path = tmp_path / "report.json"
    path.write_text("{}")
    read = snapshot._content

    def grow_then_read(descriptor: int, size: int) -> bytes:
        os.truncate(path, 10**12)
        content = read(descriptor, size)
        assert len(content) == size + 1
        return content

    monkeypatch.setattr(snapshot, "_content", grow_then_read)
    assert (
        problem(path)
        == "is still being written: it had 2 bytes, then 1,000,000,000,000, expected a finished file"
    )


def test_vanishing_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.json"
    path.write_text("{}")
    with meanwhile(monkeypatch, path.unlink):
        assert problem(path) == "vanished while it was read, expected it to stay"


def test_what_is_replaced_meanwhile_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, beside = tmp_path / "report.json", tmp_path / "report.json.tmp"
    path.write_text("old")
    beside.write_text("new")

    def replace_once() -> None:
        if beside.exists():
            beside.rename(path)

    with meanwhile(monkeypatch, replace_once):
        assert take_snapshot(str(path), MOST).data == b"new"


def test_what_is_replaced_all_the_time_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.json"
    path.write_text("0")

    def replace() -> None:
        (tmp_path / "beside").write_text("1")
        (tmp_path / "beside").rename(path)

    with meanwhile(monkeypatch, replace):
        assert (
            problem(path)
            == "is still being written: it was replaced 3 times while it was read, expected a finished file"
        )


def test_a_device_put_in_its_place_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look and the opening."""
    path = tmp_path / "report.json"
    path.write_text("{}")
    opened = snapshot._opened

    def replaced_then_opened(path_: str) -> object:
        path.unlink()
        path.symlink_to("/dev/zero")
        return opened(path_)

    monkeypatch.setattr(snapshot, "_opened", replaced_then_opened)
    assert problem(path) == "is a device, expected a regular file"


def _append_for_ever(path: Path, started: threading.Event) -> None:
    with path.open("ab", buffering=0) as file:
        while True:
            file.write(b"x" * 1000)
            started.set()
            if file.tell() > 2_000_000:
                file.truncate(1000)


def _replace_for_ever(path: Path, started: threading.Event) -> None:
    beside = path.with_suffix(".tmp")
    for number in count():
        beside.write_bytes((b"a", b"b")[number % 2] * 300_000)
        beside.rename(path)
        started.set()


def _is_whole(taken: Snapshot) -> bool:
    artifact = taken.artifact
    return artifact is not None and artifact.sha256 == hashlib.sha256(taken.data).hexdigest()


@pytest.mark.parametrize("write", [_append_for_ever, _replace_for_ever])
def test_beside_a_writer_it_is_whole_or_it_says_so(
    tmp_path: Path, write: Callable[[Path, threading.Event], None]
) -> None:
    path, spawn = tmp_path / "report.json", multiprocessing.get_context("spawn")
    started = spawn.Event()
    writer = spawn.Process(target=write, args=(path, started), daemon=True)
    writer.start()
    try:
        assert started.wait(60)
        taken = [take_snapshot(str(path), MOST) for _ in range(300)]
    finally:
        writer.kill()
        writer.join()
    for each in taken:
        if each.problem is None:
            assert _is_whole(each)
            assert write is _append_for_ever or each.data in {b"a" * 300_000, b"b" * 300_000}
        else:
            assert "is still being written" in each.problem or "is empty" in each.problem
