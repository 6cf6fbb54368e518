"""What every log format keeps. Its samples are in `tests/data/<format>`: a new format needs no test of its own here.

`labels.json` says what each log tells; `calls.jsonl` and the like are logs of lines, `events.jsonl` rows of a database.
`unknown.jsonl` holds records that a later release might write, `unreadable.jsonl` such as no release writes.
"""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.replay.event import EventKind
from jobs.replay.reading import read_all
from jobs.replay.replay import Replay
from jobs.sources.registry import FORMATS
from jobs.thrash.fingerprint import fingerprint
from jobs.thrash.policy import ThrashPolicy
from tests.sources.contract import SHARED, Follower, Told, in_order_of_time, piece, read_at_once
from tests.sources.databases import DATA, OpenClaw, OpenCode, Row, openclaw_rows, opencode_rows

UNTYPED = frozenset({"gateway"})
"""Formats each of whose lines is a call, or a mistake."""
ENOUGH = 8
"""Identical calls in a row: a loop of the real logs has more of them, and nothing else has as many."""
MAIN = "ses_0000000000000000000000main"


class Labels(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a log tells of one session."""

    agent: str
    parent: str | None
    calls: int
    answers: int
    errors: int
    tokens: int
    longest_identical_run: int


@dataclass(frozen=True, slots=True)
class Sample:
    """One log, in a store that its program uses."""

    format: str
    log: str
    """A pattern in the format's folder."""
    is_database: bool = False

    def __str__(self) -> str:
        return f"{self.format}-{'rows of ' * self.is_database}{self.log.partition('/')[0]}"

    @property
    def labels(self) -> dict[str, Labels]:
        """By session."""
        return labels_of(self.format)[self.log]


@cache
def labels_of(name: str) -> dict[str, dict[str, Labels]]:
    """By log and session."""
    return msgspec.json.decode((DATA / name / "labels.json").read_bytes(), type=dict[str, dict[str, Labels]])


def samples_of(name: str) -> Iterator[Sample]:
    """Every log of a format, in each store that it may be in."""
    for log in labels_of(name):
        if (DATA / name / "calls.jsonl").exists():
            yield Sample(name, log)
        if FORMATS[name].tables:
            yield Sample(name, log, is_database=True)


SAMPLES = [sample for name in sorted(FORMATS) for sample in samples_of(name)]
every_sample = pytest.mark.parametrize("sample", SAMPLES, ids=str)
every_store = pytest.mark.parametrize(
    "sample", {(sample.format, sample.is_database): sample for sample in SAMPLES}.values(), ids=str
)
cut_anywhere = given(cuts=st.lists(st.floats(0, 1), max_size=6))


# ── how programs write ────────────────────────────────────────────────────────────────────────────


class Log(Protocol):
    """Is written piece by piece: a file's pieces are bytes, a database's are rows."""

    size: int
    pattern: str

    def write(self, start: int, stop: int) -> None: ...
    def close(self) -> None: ...


class Files:
    """Lines, in the order of their times across all files; what lies beside the logs is there before them."""

    def __init__(
        self, folder: Path, root: Path, pattern: str, change: "Change" = lambda lines: lines
    ) -> None:
        """Write in `folder` what is in `root`, changed."""
        self.pattern = str(folder / pattern)
        for path in root.rglob("*.meta.json"):
            copy = folder / path.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
        paths = [path for path in sorted(root.glob(pattern)) if path.is_file()]
        written = in_order_of_time({folder / path.relative_to(root): path.read_bytes() for path in paths})
        self.lines = list(
            zip([path for path, _ in written], change([line for _, line in written]), strict=True)
        )
        self.size = sum(len(line) for _, line in self.lines)

    def write(self, start: int, stop: int) -> None:
        for path, content in piece(self.lines, start, stop).items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as file:
                file.write(content)

    def close(self) -> None:
        """All is written."""


class Rows:
    """Of a database whose writer is in the midst of a transaction whenever one looks."""

    def __init__(
        self, writer: OpenClaw | OpenCode, rows: Iterable[Row], change: "Change" = lambda rows: rows
    ) -> None:
        """Write the rows, their events changed."""
        rows = list(rows)
        events = change([row.event for row in rows])
        self.writer, self.pattern = writer, str(writer.path)
        self.rows = [replace(row, event=event) for row, event in zip(rows, events, strict=True)]
        self.size = len(self.rows)

    def write(self, start: int, stop: int) -> None:
        self.commit()
        self.writer.run("BEGIN IMMEDIATE")
        for row in self.rows[start:stop]:
            self.writer.add(row)

    def commit(self) -> None:
        if self.writer.database.in_transaction:
            self.writer.run("COMMIT")

    def close(self) -> None:
        self.commit()
        self.writer.close()


Change = Callable[[list[bytes]], list[bytes]]


def begin(sample: Sample, folder: Path, change: Change = lambda contents: contents) -> Log:
    """A log in which nothing is yet."""
    if not sample.is_database:
        return Files(folder / sample.format, DATA / sample.format, sample.log, change)
    if sample.format == "opencode":
        code = OpenCode(folder / "opencode.db")
        code.session(MAIN)
        code.session(MAIN.replace("0main", "00sub"), parent=MAIN, title="Count the rows (@general subagent)")
        return Rows(code, opencode_rows(sample.log), change)
    session = next(iter(labels_of("openclaw")["calls.jsonl"]))
    claw = OpenClaw(folder / "agents/reports/agent/openclaw-agent.sqlite", packed_from=400)
    claw.session(session, "agent:reports:main")
    return Rows(claw, openclaw_rows(session, sample.log), change)


def grow(name: str, log: Log, places: Iterable[int] = ()) -> Told:
    """Write a log, look at each of the places, as after a restart, and once more when all is done."""
    follower = Follower(format=name, pattern=log.pattern)
    for start, stop in pairwise([0, *sorted(places), log.size]):
        log.write(start, stop)
        follower.look()
    log.close()
    follower.look()
    return follower.told


def read(sample: Sample, folder: Path, change: Change = lambda contents: contents) -> Told:
    return grow(sample.format, begin(sample, folder, change))


def shown(told: Told) -> dict[str, Labels]:
    """What would have to be in the labels."""
    return {session: labels_in(told.of(session)) for session in told.parents}


def labels_in(told: Told) -> Labels:
    [(agent, parent)] = {(call.agent, call.parent) for call in told.calls}
    return Labels(
        agent=agent,
        parent=parent,
        calls=len(told.calls),
        answers=len(told.answers),
        errors=told.errors,
        tokens=counted(told),
        longest_identical_run=told.longest_identical_run,
    )


def counted(told: Told) -> int:
    """The tokens as the scan adds them up: with a call, or beside it."""
    of_calls = sum(call.tokens or 0 for call in told.calls)
    return of_calls + sum(usage.tokens for usage in told.usages if not usage.has_call)


# ── the contract ──────────────────────────────────────────────────────────────────────────────────


@every_sample
def test_a_log_read_at_once_tells_what_its_labels_say(sample: Sample, tmp_path: Path) -> None:
    """Its calls, its tree, its tokens and its errors; tokens are told once, however they are counted."""
    told = read(sample, tmp_path)
    assert shown(told) == sample.labels
    assert told.unreadable == 0
    assert not told.usages or told.tokens == counted(told)


@every_sample
@settings(max_examples=8, deadline=None)
@cut_anywhere
def test_a_log_grown_in_any_parts_tells_the_same(sample: Sample, cuts: list[float]) -> None:
    """With a restart before each look: the source is a new one, and its cursors come from JSON."""
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as parts:
        expected, log = read(sample, Path(whole)), begin(sample, Path(parts))
        told = grow(sample.format, log, [int(cut * log.size) for cut in cuts])
    assert shown(told) == sample.labels
    assert told.in_any_order() == expected.in_any_order()
    assert told.unreadable == 0


@pytest.mark.parametrize("is_database", [False, True], ids=["bytes", "rows"])
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_the_smallest_log_grown_piece_by_piece_tells_the_same(
    name: str, is_database: bool, tmp_path: Path
) -> None:
    """A restart after every byte, or after every row."""
    logs = {
        sample: begin(sample, tmp_path / str(number))
        for number, sample in enumerate(samples_of(name))
        if sample.is_database is is_database
    }
    if not logs:
        pytest.skip("no such log is of this format")
    smallest = min(logs, key=lambda sample: logs[sample].size)
    told = grow(name, logs[smallest], range(logs[smallest].size))
    assert shown(told) == smallest.labels
    assert told.in_any_order() == read(smallest, tmp_path / "whole").in_any_order()
    assert told.unreadable == 0


def test_every_format_has_its_samples() -> None:
    for name in FORMATS:
        assert any(labels_of(name).values())
        assert (DATA / name / "unreadable.jsonl").exists()
        assert (DATA / name / "unknown.jsonl").exists() is (name not in UNTYPED)


@every_store
def test_records_of_unknown_types_are_ignored(sample: Sample, tmp_path: Path) -> None:
    if sample.format in UNTYPED:
        pytest.skip("each line is a call, or a mistake")
    told = read(replace(sample, log="unknown.jsonl"), tmp_path)
    assert told == Told()


@every_store
@settings(max_examples=5, deadline=None)
@cut_anywhere
def test_every_malformed_record_counts_once(sample: Sample, cuts: list[float]) -> None:
    """However the log is cut."""
    sample = replace(sample, log="unreadable.jsonl")
    with tempfile.TemporaryDirectory() as folder:
        log = begin(sample, Path(folder))
        told = grow(sample.format, log, [int(cut * log.size) for cut in cuts])
    lines = (DATA / sample.format / "unreadable.jsonl").read_bytes().splitlines()
    assert told == Told(unreadable=len(lines))


@every_sample
def test_calls_are_sound(sample: Sample, tmp_path: Path) -> None:
    """They own their arguments, which are JSON, and their times are of this century."""
    told = read(sample, tmp_path)
    assert_sound(told)
    for call in told.calls:
        assert type(call.args) is bytes
        msgspec.json.decode(call.args)
        assert 1e9 < call.ts < 1e10
    assert {answer.session for answer in told.answers} <= told.parents.keys()


@every_sample
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_no_damage_is_an_exception(sample: Sample, data: st.DataObject) -> None:
    """Some records have a piece missing or replaced, whatever the bytes are; what is told then is sound all the same."""

    def damage(contents: list[bytes]) -> list[bytes]:
        for _ in range(data.draw(st.integers(1, 4))):
            number = data.draw(st.integers(0, len(contents) - 1))
            content = contents[number]
            start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(content))] * 2)))
            contents[number] = content[:start] + data.draw(PIECES) + content[stop:]
        return contents

    with tempfile.TemporaryDirectory() as folder:
        assert_sound(read(sample, Path(folder), damage))


# A log that begins as a database does is taken for one, and named as a problem.
PIECES = st.binary(max_size=20).filter(lambda piece: not piece.startswith(b"SQLite")) | st.sampled_from(
    [b"", b"null", b'"', b"{}", b"[", b"1e400", b"-1", b"\\ud800"]
)


def assert_sound(told: Told) -> None:
    """Names can be stored, and arguments compared: damaged ones need not be JSON."""
    for call in told.calls:
        assert fingerprint(call.args, ThrashPolicy().longest_args)
        "".join((call.session, call.agent, call.tool, call.call_id or "", call.parent or "")).encode()
    for answer in told.answers:
        (answer.session + answer.call_id + answer.digest).encode()


# ── what the programs have really written ─────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Real:
    """A run of a real program."""

    format: str
    name: str
    logs: dict[str, dict[str, Any]]
    """Labels by file, or by session of the one database."""
    home: Path
    database: str | None = None

    def __str__(self) -> str:
        return f"{self.format}-{self.name}"

    def pattern(self, log: str) -> str:
        return str(self.home / (self.database or log))

    def told(self, log: str) -> Told:
        told = read_at_once(self.format, self.pattern(log))
        return told.of(log) if self.database else told


PROGRAMS = {"claude": "claude-code", "codex": "codex", "gemini": "gemini-cli", "opencode": "opencode"}


def real_runs() -> Iterator[Real]:
    agents, openclaw = SHARED / "agents", SHARED / "openclaw"
    if (agents / "labels.json").exists():
        for name, run in json.loads((agents / "labels.json").read_bytes()).items():
            program, _, run_name = name.partition("/")
            logs = run.get("files") or run["sessions"]
            yield Real(PROGRAMS[program], run_name, logs, agents / program, run.get("db"))
    if (openclaw / "labels.json").exists():
        for name, labels in json.loads((openclaw / "labels.json").read_bytes()).items():
            counts = {each: labels.get(f"tool_{each}") for each in ("calls", "results")}
            yield Real("openclaw", name, {f"{name}.jsonl": labels | counts}, openclaw / "transcripts")


REAL = list(real_runs())
every_real_run = pytest.mark.parametrize(
    "run", REAL or [pytest.param(None, marks=pytest.mark.skip("real logs are not part of a clone"))], ids=str
)


@every_real_run
def test_a_real_run_tells_what_its_labels_say(run: Real) -> None:
    """A label that is not there says nothing. Failed commands are errors beside those that the log itself flags."""
    for log, labels in run.logs.items():
        told = run.told(log)
        found = {
            "calls": len(told.calls),
            "results": len(told.answers),
            "distinct_calls": len({(call.tool, call.args) for call in told.calls}),
            "longest_identical_run": told.longest_identical_run,
        }
        assert found == {
            key: value if labels.get(key) is None else labels[key] for key, value in found.items()
        }
        assert told.errors >= labels.get("errors", 0)
        assert len(told.parents) == 1
        assert told.unreadable == 0
        assert told.tokens == counted(told)
        assert_sound(told)


@every_real_run
def test_real_sub_agents_hang_on_their_session(run: Real) -> None:
    """Of several logs of a run those with a label of their own are sub-agents'."""
    told = [run.told(log) for log in run.logs]
    is_child = [len(run.logs) > 1 and "label" in labels for labels in run.logs.values()]
    roots = [each.parents for each, is_other in zip(told, is_child, strict=True) if not is_other]
    assert [*roots[0].values()] == [None]
    for each, is_sub_agent in zip(told, is_child, strict=True):
        assert [*each.parents.values()] == [next(iter(roots[0])) if is_sub_agent else None]


@every_real_run
def test_the_shipped_rule_alerts_on_every_real_loop(run: Real) -> None:
    """And on nothing else."""
    for log in run.logs:
        told = run.told(log)
        is_loop = told.longest_identical_run >= ENOUGH
        assert (told.parents.keys() <= alerted(run.format, run.pattern(log))) is is_loop


@cache
def alerted(name: str, pattern: str) -> set[str]:
    play, events = Replay(source=name, policy=ThrashPolicy()), []
    for batch in read_all(Follower(format=name, pattern=pattern).source(), now=0):
        events += play.hear(batch)
    events += play.end()
    return {event.session for event in events if event.event is EventKind.ALERT}


HOMES = {
    "claude-code": ("agents/claude", ".claude/projects/**/*.jsonl"),
    "codex": ("agents/codex", ".codex/sessions/**/*.jsonl"),
    "gemini-cli": ("agents/gemini", ".gemini/tmp/*/chats/**/*.jsonl"),
    "openclaw": ("openclaw", "transcripts/*.jsonl"),
}
"""Of the formats that have files of lines."""


@pytest.mark.parametrize("name", HOMES)
@settings(max_examples=3, deadline=None)
@cut_anywhere
def test_real_logs_grown_in_any_parts_tell_the_same(name: str, cuts: list[float]) -> None:
    home, pattern = HOMES[name]
    if not (SHARED / home).exists():
        pytest.skip("real logs are not part of a clone")
    with tempfile.TemporaryDirectory() as folder:
        log = Files(Path(folder), SHARED / home, pattern)
        told = grow(name, log, [int(cut * log.size) for cut in cuts])
    assert told.in_any_order() == read_at_once(name, SHARED / home / pattern).in_any_order()
    assert told.unreadable == 0
