"""Of entries that find the same files the first has them."""

import json
from pathlib import Path

import pytest

from jobs.sources.registry import build_source
from jobs.watchlist.sources import AUTO, SourceSpec
from tests.sources.databases import DATA

GATEWAY = '{"ts":1767225600,"agentId":"main","tool":"exec","args":{}}\n'


def read(folder: Path, *entries: tuple[str, str]) -> list[set[str]]:
    """The files that each entry, a format and a pattern, reads calls in."""
    specs = [
        SourceSpec(name=f"{place}", format=name, path=f"{folder}/{pattern}")
        for place, (name, pattern) in enumerate(entries)
    ]
    sources = [build_source(spec, earlier=specs[:place]) for place, spec in enumerate(specs)]
    return [
        {Path(batch.path).name for batch in source.read_new({}, now=0) if batch.calls} for source in sources
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.jsonl", "b.jsonl", "deep/c.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(GATEWAY)
    (tmp_path / "rollout.jsonl").write_bytes((DATA / "codex" / "calls.jsonl").read_bytes())
    return tmp_path


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (("gateway", "a*"), ("gateway", "*.jsonl"), [{"a.jsonl"}, {"b.jsonl"}]),
        (("gateway", "*.jsonl"), ("gateway", "a*"), [{"a.jsonl", "b.jsonl"}, set()]),
        (("gateway", "*"), ("gateway", "**/*"), [{"a.jsonl", "b.jsonl"}, {"c.jsonl"}]),
        ((AUTO, "*.jsonl"), ("gateway", "**/*"), [{"a.jsonl", "b.jsonl", "rollout.jsonl"}, {"c.jsonl"}]),
        (("gateway", "*.jsonl"), (AUTO, "**/*"), [{"a.jsonl", "b.jsonl"}, {"c.jsonl", "rollout.jsonl"}]),
        ((AUTO, "a*"), (AUTO, "*"), [{"a.jsonl"}, {"b.jsonl", "rollout.jsonl"}]),
    ],
)
def test_a_file_is_read_once(
    folder: Path, first: tuple[str, str], second: tuple[str, str], expected: list[set[str]]
) -> None:
    assert read(folder, first, second) == expected


def test_an_entry_of_another_format_hides_nothing(folder: Path) -> None:
    """It makes nothing of the file."""
    assert read(folder, ("codex", "*"), ("gateway", "*")) == [{"rollout.jsonl"}, {"a.jsonl", "b.jsonl"}]


def test_entries_in_other_folders_do_not_matter(folder: Path) -> None:
    assert read(folder, ("gateway", "deep/*"), ("gateway", "a*")) == [{"c.jsonl"}, {"a.jsonl"}]


def test_what_a_hook_tells_counts_for_the_entry_that_reads_the_log(tmp_path: Path) -> None:
    hooks = tmp_path / "hook"
    hooks.mkdir()
    line = json.loads(GATEWAY) | {"log": f"{tmp_path}/projects/s.jsonl"}
    (hooks / "claude-code.jsonl").write_text(json.dumps(line) + "\n")
    specs = [
        SourceSpec(name=name, format=name, path=f"{tmp_path}/projects/*") for name in ("claude-code", AUTO)
    ]
    sources = [build_source(spec, str(hooks), specs[:place]) for place, spec in enumerate(specs)]
    told = [[len(batch.calls) for batch in source.read_new({}, now=0)] for source in sources]
    assert told == [[1], [0]]
