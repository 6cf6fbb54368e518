"""What was judged is read once more, if it is still what was judged."""

import os
from pathlib import Path

import msgspec
import pytest

from jobs.artifacts.copying import FileCopier
from jobs.artifacts.snapshot import take_snapshot
from jobs.verification.verdict import Artifact


def judged(path: Path) -> Artifact:
    artifact = take_snapshot(str(path), 10_000_000).artifact
    assert artifact
    return artifact


def test_the_same_bytes(tmp_path: Path) -> None:
    """Written again or not."""
    path = tmp_path / "report.json"
    path.write_bytes(b"good")
    artifact = judged(path)
    os.utime(path, (1, 1))
    assert FileCopier().copy(artifact) == b"good"


@pytest.mark.parametrize("size", [1_000_000, 1_000_001])
def test_at_most_a_megabyte(tmp_path: Path, size: int) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(b"x" * size)
    copied = FileCopier().copy(judged(path))
    assert (copied is not None) == (size <= 1_000_000)


def test_another_output_lies_there_by_now(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(b"good")
    artifact = judged(path)
    path.write_bytes(b"evil")
    os.utime(path, ns=(artifact.mtime_ns, artifact.mtime_ns))
    assert FileCopier().copy(artifact) is None


def test_nothing_lies_there_any_more(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(b"good")
    artifact = judged(path)
    path.unlink()
    assert FileCopier().copy(artifact) is None


def test_what_was_not_read_to_its_end_is_not_known(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(b"good")
    assert FileCopier().copy(msgspec.structs.replace(judged(path), sha256="")) is None
