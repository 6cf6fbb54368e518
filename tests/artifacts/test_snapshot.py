"""An output is read once, whole and as it is at one moment, whatever lies at its path."""

import errno
import hashlib
import os
import socket
from pathlib import Path

import pytest

from jobs.artifacts.snapshot import take_snapshot
from tests.artifacts.conftest import MOST, problem
from tests.killers.conftest import acting_as, as_root

# ── what can be read ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("content", [b"{}", b"\0", b"x" * 5_000_000])
def test_it_holds_the_bytes_and_their_hash(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(content)
    taken, seen = take_snapshot(str(path), MOST), path.stat()
    assert (taken.problem, taken.data) == (None, content)
    assert taken.artifact is not None
    assert taken.artifact.sha256 == hashlib.sha256(content).hexdigest()
    assert (taken.artifact.size, taken.artifact.mtime_ns) == (len(content), seen.st_mtime_ns)
    assert (taken.artifact.device, taken.artifact.inode) == (seen.st_dev, seen.st_ino)


def test_a_link_to_a_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "report-7.json").write_text("{}")
    (tmp_path / "latest.json").symlink_to("report-7.json")
    taken = take_snapshot(str(tmp_path / "latest.json"), MOST)
    assert (taken.problem, taken.data) == (None, b"{}")


def test_a_file_as_large_as_it_may_be(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_bytes(b"x" * 10)
    assert take_snapshot(str(tmp_path / "report.json"), 10).problem is None
    assert take_snapshot(str(tmp_path / "report.json"), 9).problem is not None


@pytest.mark.parametrize("name", ["line\nend.json", "caf\udce9.json", " \t ", "x" * 255])
def test_any_name(tmp_path: Path, name: str) -> None:
    """What is kept of it can be stored."""
    (tmp_path / name).write_text("{}")
    taken = take_snapshot(str(tmp_path / name), MOST)
    assert (taken.problem, taken.data) == (None, b"{}")
    assert taken.artifact is not None
    assert taken.artifact.path.encode()


# ── what cannot ───────────────────────────────────────────────────────────────────────────────────


def test_nothing(tmp_path: Path) -> None:
    assert problem(tmp_path / "report.json") == "does not exist, expected a regular file"
    assert problem(tmp_path / "no folder" / "report.json") == "does not exist, expected a regular file"
    (tmp_path / "file").touch()
    assert problem(tmp_path / "file" / "report.json") == "does not exist, expected a regular file"


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "report.json").touch()
    assert problem(tmp_path / "report.json") == "is empty, expected some content"
    assert take_snapshot(str(tmp_path / "report.json"), MOST).artifact is not None


def test_a_directory(tmp_path: Path) -> None:
    assert problem(tmp_path) == "is a directory, expected a regular file"


def test_a_named_pipe_that_nobody_writes_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert problem(tmp_path / "pipe") == "is a named pipe, expected a regular file"


def test_a_named_pipe_with_a_writer_is_not_touched(tmp_path: Path) -> None:
    """Whoever waits for a reader goes on waiting for it."""
    os.mkfifo(tmp_path / "pipe")
    assert problem(tmp_path / "pipe") == "is a named pipe, expected a regular file"
    with pytest.raises(OSError, match="No such device") as raised:
        os.open(tmp_path / "pipe", os.O_WRONLY | os.O_NONBLOCK)
    assert raised.value.errno == errno.ENXIO


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full", "/dev/null", "/dev/random", "/dev/tty"])
def test_a_device(device: str) -> None:
    assert problem(device) == "is a device, expected a regular file"


def test_a_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # its address may not be long
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        assert problem(tmp_path / "socket") == "is a socket, expected a regular file"


def test_links(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert problem(tmp_path / "a") == "is a link that leads in a circle, expected a regular file"
    (tmp_path / "c").symlink_to("nothing")
    assert problem(tmp_path / "c") == "is a link to a file that does not exist, expected a regular file"
    (tmp_path / "d").symlink_to("/dev/zero")
    assert problem(tmp_path / "d") == "is a device, expected a regular file"


@as_root
def test_a_file_of_another_user(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("{}")
    path.chmod(0o600)
    with acting_as(65534):
        assert problem(path) == "may not be read by this user, expected a file that may"


def test_a_terabyte(tmp_path: Path) -> None:
    """Of which nothing is read."""
    path = tmp_path / "report.json"
    with path.open("wb") as file:
        file.truncate(10**12)
    assert problem(path) == "has 1,000,000,000,000 bytes, expected at most 256,000,000 (max_size)"
    artifact = take_snapshot(str(path), MOST).artifact
    assert artifact is not None
    assert (artifact.size, artifact.sha256) == (10**12, "")


@pytest.mark.parametrize("path", ["a\0b", "\ud800", ""])
def test_what_is_no_path(path: str) -> None:
    assert take_snapshot(path, MOST).problem in {
        " does not exist, expected a regular file",
        "a\\x00b cannot be the path of a file, expected a regular file",
        "\\ud800 cannot be the path of a file, expected a regular file",
    }


@pytest.mark.parametrize("name", ["x" * 256, "y/" * 3000])
def test_a_name_too_long_is_cut_in_front(tmp_path: Path, name: str) -> None:
    told = take_snapshot(f"{tmp_path}/{name}", MOST).problem
    assert told is not None
    assert told.startswith("…")
    assert told.endswith(f"{name[-100:]} cannot be read, expected a regular file: File name too long")
    assert len(told) < 250


def test_a_line_end_in_a_name_stays_on_the_line(tmp_path: Path) -> None:
    assert (
        take_snapshot(f"{tmp_path}/a\nb\x1b[31m", MOST).problem
        == f"{tmp_path}/a b\\x1b[31m does not exist, expected a regular file"
    )
