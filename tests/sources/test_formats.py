"""What every log format must keep: its samples are `tests/data/<format>/{calls,unreadable}.jsonl`."""

import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.ports import CallSource, Cursor
from jobs.sources.registry import FORMATS, build_source
from jobs.thrash.call import LoggedCall
from jobs.watchlist import SourceSpec

DATA = Path(__file__).parents[1] / "data"

every_format = pytest.mark.parametrize("name", FORMATS)


def source(name: str, path: Path) -> CallSource:
    return build_source(SourceSpec(name="agents", format=name, path=str(path)))


def sample(name: str) -> bytes:
    return (DATA / name / "calls.jsonl").read_bytes()


def calls_in(source: CallSource, cursors: dict[str, Cursor]) -> list[LoggedCall]:
    """Look once; the cursors are moved on, through JSON."""
    calls: list[LoggedCall] = []
    for batch in source.read_new(dict(cursors), now=0):
        cursors[batch.path] = msgspec.json.decode(msgspec.json.encode(batch.cursor), type=Cursor)
        calls += batch.calls
    return calls


@every_format
def test_a_source_bears_its_name_and_has_no_problem_with_its_sample(name: str) -> None:
    path = DATA / name / "calls.jsonl"
    reading, cursors = source(name, path), dict[str, Cursor]()
    calls = calls_in(reading, cursors)
    assert reading.name == "agents"
    assert len(calls) >= 5
    assert reading.problems() == ()
    assert [(cursor.unreadable, cursor.offset) for cursor in cursors.values()] == [(0, path.stat().st_size)]


@every_format
def test_every_unreadable_line_counts(name: str) -> None:
    path = DATA / name / "unreadable.jsonl"
    cursors = dict[str, Cursor]()
    assert calls_in(source(name, path), cursors) == []
    assert cursors[str(path)].unreadable == len(path.read_bytes().splitlines())


@every_format
def test_calls_are_sound(name: str, tmp_path: Path) -> None:
    """They own their arguments, which are JSON, and their names can be stored."""
    log = tmp_path / "log.jsonl"
    log.write_bytes(sample(name))
    for call in calls_in(source(name, log), {}):
        assert type(call.args) is bytes
        msgspec.json.decode(call.args)
        assert call.session.encode()
        assert call.agent.encode()
        assert call.tool.encode()
        assert 1e9 < call.ts < 1e10


@every_format
@given(cuts=st.lists(st.floats(0, 1)))
def test_a_sample_split_anywhere_gives_the_same_calls(name: str, cuts: list[float]) -> None:
    content = sample(name)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log.jsonl")
        log.write_bytes(content)
        expected = calls_in(source(name, log), {})
        log.write_bytes(b"")
        cursors, calls = dict[str, Cursor](), list[LoggedCall]()
        places = sorted(int(cut * len(content)) for cut in cuts)
        for stop in [*places, len(content)]:
            log.write_bytes(content[:stop])
            calls += calls_in(source(name, log), cursors)
        assert calls == expected


@every_format
@given(data=st.data())
def test_a_parser_never_raises(name: str, data: st.DataObject) -> None:
    """Not for any bytes, and not for a line of its own with a piece missing or replaced."""
    line = data.draw(st.sampled_from(sample(name).splitlines()))
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(line))] * 2)))
    damaged = line[:start] + data.draw(st.binary(max_size=20)) + line[stop:]
    for call in FORMATS[name](damaged) or ():
        assert call.session.encode()
        assert call.agent.encode()
        assert call.tool.encode()
