"""Patterns: a shell's wildcards, and any number of folders."""

import os
from pathlib import Path

import pytest

from jobs.pattern import could_match, find_files, matches

FILES = [
    "a.jsonl",
    "b.jsonl.1",
    ".hidden.jsonl",
    "x/a.jsonl",
    "x/y/c.jsonl",
    "x/y/z/a.jsonl",
    "x/.y/d.jsonl",
    "x[1]/e",
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a.jsonl", ["a.jsonl"]),
        ("*.jsonl", ["a.jsonl"]),
        ("*.jsonl*", ["a.jsonl", "b.jsonl.1"]),
        (".*.jsonl", [".hidden.jsonl"]),
        ("*", ["a.jsonl", "b.jsonl.1"]),
        ("?.jsonl", ["a.jsonl"]),
        ("[!a].jsonl*", ["b.jsonl.1"]),
        ("x/*/c.jsonl", ["x/y/c.jsonl"]),
        ("x/.*/d.jsonl", ["x/.y/d.jsonl"]),
        ("*/a.jsonl", ["x/a.jsonl"]),
        ("*/*.jsonl", ["x/a.jsonl"]),
        ("x[[]1]/e", ["x[1]/e"]),
        ("**/a.jsonl", ["a.jsonl", "x/a.jsonl", "x/y/z/a.jsonl"]),
        ("**/*.jsonl", ["a.jsonl", "x/a.jsonl", "x/y/c.jsonl", "x/y/z/a.jsonl"]),
        ("x/**/y/**/*.jsonl", ["x/y/c.jsonl", "x/y/z/a.jsonl"]),
        ("x/**", ["x/a.jsonl", "x/y/c.jsonl", "x/y/z/a.jsonl"]),
        ("missing/**/*.jsonl", []),
        ("a.jsonl/*", []),
        ("x//a.jsonl", ["x/a.jsonl"]),
    ],
)
def test_a_pattern_finds_what_a_shell_would(tree: Path, pattern: str, expected: list[str]) -> None:
    problems: list[str] = []
    found = {path for path in find_files(f"{tree}/{pattern}", problems) if Path(path).exists()}
    assert found == {f"{tree}/{name}" for name in expected}
    assert problems == []
    assert all(could_match(path, f"{tree}/{pattern.replace('//', '/')}") for path in found)
    assert [name for name in sorted(FILES) if matches(f"{tree}/{name}", f"{tree}/{pattern}")] == sorted(
        expected
    )


def test_a_path_without_wildcards_is_found_before_it_is_there(tmp_path: Path) -> None:
    assert find_files(f"{tmp_path}/missing", []) == {f"{tmp_path}/missing"}


def test_links_that_lead_back_do_not_make_it_endless(tree: Path) -> None:
    for name in ("p", "q", "r"):
        (tree / "x" / name).symlink_to(tree)
    assert find_files(f"{tree}/**/c.jsonl", []) >= {f"{tree}/x/y/c.jsonl"}
    assert len(find_files(f"{tree}/**/*.jsonl", [])) == 4


def test_a_folder_may_be_a_link(tree: Path) -> None:
    (tree / "link").symlink_to(tree / "x")
    assert find_files(f"{tree}/l*/*.jsonl", []) == {f"{tree}/link/a.jsonl"}


def test_folders_nested_beyond_measure_are_named(tmp_path: Path) -> None:
    """A path has at most 4096 bytes; what lies deeper has none."""
    name = "d" * 250
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(17):
        os.mkdir(name, dir_fd=folder)
        folder, outer = os.open(name, os.O_RDONLY, dir_fd=folder), folder
        os.close(outer)
    os.close(folder)
    problems: list[str] = []
    assert find_files(f"{tmp_path}/**/*.jsonl", problems) == set()
    assert {problem.rpartition(": ")[2] for problem in problems} == {"File name too long."}


def test_the_root_can_be_listed() -> None:
    assert "/etc/hosts" in find_files("/e*/hosts", [])


@pytest.mark.parametrize("pattern", ["/", "//"])
def test_the_root_is_a_folder_like_any_other(pattern: str) -> None:
    assert find_files(pattern, []) == {"/"}


def test_a_slash_too_many_makes_no_difference(tree: Path) -> None:
    pattern = f"{tree}//x//*.jsonl"
    assert find_files(pattern, []) == {f"{tree}/x/a.jsonl"}
    assert could_match(f"{tree}/x/a.jsonl", pattern)


def test_links_that_cannot_be_followed_are_found_by_any_pattern(tree: Path) -> None:
    """Whoever reads them says what is wrong."""
    (tree / "circle").symlink_to("circle")
    (tree / "nowhere").symlink_to("missing")
    found = {f"{tree}/{name}" for name in ("a.jsonl", "b.jsonl.1", "circle", "nowhere")}
    assert find_files(f"{tree}/*", []) == found
    assert find_files(f"{tree}/**", []) >= found
    assert find_files(f"{tree}/*/a.jsonl", []) >= {f"{tree}/x/a.jsonl"}
