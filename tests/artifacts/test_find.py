"""The output is the regular file that was written last of those that match."""

import os
from pathlib import Path

import pytest

from jobs.artifacts.find import FoundOutputs, NothingFoundError, locate
from jobs.ports import Outputs
from jobs.verification.spec import Names, WorkflowSpec
from tests.killers.conftest import acting_as, as_root

TODAY = Names(date="2026-11-30")


def write(path: Path, mtime: int = 1_000) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    os.utime(path, ns=(mtime, mtime))
    return path


def newest(output: Path | str, names: Names = TODAY) -> str | None:
    outputs: Outputs = FoundOutputs()
    sighting = outputs.newest(WorkflowSpec(output=str(output)), names)
    return None if sighting is None else sighting.path


def nothing(output: Path | str, names: Names = TODAY) -> str:
    with pytest.raises(NothingFoundError) as raised:
        locate(WorkflowSpec(output=str(output)), names)
    return str(raised.value)


def test_a_sighting_tells_when_a_file_was_written_again(tmp_path: Path) -> None:
    spec, path = WorkflowSpec(output=str(tmp_path / "report.json")), tmp_path / "report.json"
    write(path)
    first = FoundOutputs().newest(spec, TODAY)
    assert first == FoundOutputs().newest(spec, TODAY)
    write(path, mtime=2_000)
    second = FoundOutputs().newest(spec, TODAY)
    assert first is not None
    assert second is not None
    assert (first.mtime_ns, second.mtime_ns) == (1_000, 2_000)
    assert (first.path, first.size, first.inode) == (str(path), 2, path.stat().st_ino)


def test_what_was_written_in_place_differs_though_it_has_its_old_size_and_time(tmp_path: Path) -> None:
    spec, path = WorkflowSpec(output=str(tmp_path / "report.json")), tmp_path / "report.json"
    write(path)
    first = FoundOutputs().newest(spec, TODAY)
    while path.stat().st_ctime_ns == (first.ctime_ns if first else 0):
        path.write_text("[]")
        os.utime(path, ns=(1_000, 1_000))
    second = FoundOutputs().newest(spec, TODAY)
    assert first is not None
    assert second is not None
    assert (first.mtime_ns, first.size, first.inode) == (second.mtime_ns, second.size, second.inode)
    assert first != second


def test_the_one_written_last_of_those_that_match(tmp_path: Path) -> None:
    for name, mtime in (("report-a.json", 2_000), ("report-b.json", 3_000), ("report-c.json", 1_000)):
        write(tmp_path / name, mtime)
    write(tmp_path / "other.json", 9_000)
    assert newest(tmp_path / "report-*.json") == str(tmp_path / "report-b.json")


def test_of_two_written_in_the_same_instant_always_the_same(tmp_path: Path) -> None:
    for name in ("b", "c", "a"):
        write(tmp_path / name)
    assert newest(tmp_path / "?") == str(tmp_path / "c")


def test_date_and_run_are_filled_in(tmp_path: Path) -> None:
    path = write(tmp_path / "2026-11-30" / "r[1]*.json")
    write(tmp_path / "2026-11-30" / "r1x.json", 9_000)
    output = tmp_path / "{date}" / "{run}.json"
    assert newest(output, Names(date="2026-11-30", run="r[1]*")) == str(path)
    assert newest(output, Names(date="2026-12-01", run="r[1]*")) is None


def test_a_run_without_an_id_is_any(tmp_path: Path) -> None:
    write(tmp_path / "run-1.json", 1_000)
    write(tmp_path / "run-2.json", 2_000)
    assert newest(tmp_path / "run-{run}.json") == str(tmp_path / "run-2.json")


def test_other_braces_stand_for_themselves(tmp_path: Path) -> None:
    path = write(tmp_path / "{x}{{}")
    assert newest(tmp_path / "{x}{{}") == str(path)


@pytest.mark.parametrize("run", ["../secret", "a/b", "..", "a\0b"])
def test_an_id_leads_to_no_other_folder(tmp_path: Path, run: str) -> None:
    write(tmp_path / "secret")
    write(tmp_path / "out" / "a" / "b")
    (tmp_path / "out" / "x").mkdir()
    output, names = tmp_path / "out" / "x" / "{run}", Names(date="2026-11-30", run=run)
    assert newest(output, names) is None
    assert "expected what may be a part of a file's name" in nothing(output, names)


def test_an_id_may_be_anything_where_no_name_asks_for_it(tmp_path: Path) -> None:
    path = write(tmp_path / "report.json")
    assert newest(path, Names(date="2026-11-30", run="cron/2026/../7")) == str(path)


def test_only_regular_files_are_outputs(tmp_path: Path) -> None:
    write(tmp_path / "a.json")
    (tmp_path / "b.json").mkdir()
    os.mkfifo(tmp_path / "c.json")
    (tmp_path / "d.json").symlink_to("d.json")
    (tmp_path / "e.json").symlink_to("/dev/null")
    assert newest(tmp_path / "*.json") == str(tmp_path / "a.json")


def test_a_link_to_a_file_is_one(tmp_path: Path) -> None:
    write(tmp_path / "report-7.json")
    (tmp_path / "latest.json").symlink_to("report-7.json")
    assert newest(tmp_path / "latest.json") == str(tmp_path / "latest.json")


def test_where_no_file_is_what_lies_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "report.json").mkdir()
    for output in (tmp_path / "report.json", tmp_path / "*.json"):
        assert locate(WorkflowSpec(output=str(output)), TODAY) == str(tmp_path / "report.json")


def test_a_plain_path_is_located_whether_or_not_it_is_there(tmp_path: Path) -> None:
    path = str(tmp_path / "report-{date}.json")
    assert locate(WorkflowSpec(output=path), TODAY) == str(tmp_path / "report-2026-11-30.json")


def test_what_matches_nothing_is_named(tmp_path: Path) -> None:
    assert (
        nothing(tmp_path / "report-{date}-*.json")
        == f"nothing matches {tmp_path}/report-2026-11-30-*.json, expected a regular file"
    )


@as_root
def test_a_folder_that_cannot_be_listed_is_named(tmp_path: Path) -> None:
    write(tmp_path / "closed" / "report.json")
    (tmp_path / "closed").chmod(0o000)
    with acting_as(65534):
        message = nothing(tmp_path / "closed" / "*.json")
    assert message == (
        f"nothing matches {tmp_path}/closed/*.json, expected a regular file: {tmp_path}/closed cannot be listed: Permission denied"
    )


def test_thousands_of_matches(tmp_path: Path) -> None:
    for number in range(5_000):
        (tmp_path / f"{number}.json").touch()
    write(tmp_path / "old.json", mtime=1)
    os.utime(tmp_path / "1234.json", ns=(2**61, 2**61))
    assert newest(tmp_path / "*.json") == str(tmp_path / "1234.json")
