"""What every log format must keep: however a log is cut into looks, and whenever the bot restarts, it tells the same."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import pairwise
from pathlib import Path

import msgspec

from jobs.ports import CallSource, Cursor
from jobs.sources.registry import build_source
from jobs.thrash.call import Answer, LoggedCall, Usage
from jobs.watchlist.sources import SourceSpec

SHARED = Path(__file__).parents[3] / "shared" / "data"
"""Logs that real programs have written; absent in a clone."""
NO_LOGS = frozenset({"labels.json", "unknown.jsonl", "unreadable.jsonl"})
"""What a format's folder of samples holds beside the logs: what they tell, and records that tell nothing."""
TIME = re.compile(rb'"(?:timestamp|startTime)": ?"([^"]+)"')


@dataclass(slots=True, kw_only=True)
class Told:
    """All that a source has told, in its order."""

    calls: list[LoggedCall] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    usages: list[Usage] = field(default_factory=list)
    unreadable: int = 0

    def of(self, session: str) -> "Told":
        """Leave out what is of other sessions."""
        return Told(
            calls=[call for call in self.calls if call.session == session],
            answers=[answer for answer in self.answers if answer.session == session],
            usages=[usage for usage in self.usages if usage.session == session],
        )

    @property
    def errors(self) -> int:
        return sum(call.is_error for call in self.calls) + sum(answer.is_error for answer in self.answers)

    @property
    def tokens(self) -> int:
        return sum(usage.tokens for usage in self.usages)

    @property
    def parents(self) -> dict[str, str | None]:
        """By session."""
        return {call.session: call.parent for call in self.calls}

    @property
    def signatures(self) -> list[tuple[str, bytes, str | None]]:
        """Tool, arguments and answer of every call."""
        digests = {(answer.session, answer.call_id): answer.digest for answer in self.answers}
        return [
            (call.tool, call.args, digests.get((call.session, call.call_id or ""))) for call in self.calls
        ]

    @property
    def longest_identical_run(self) -> int:
        longest = run = 1 if self.calls else 0
        for before, after in pairwise(self.signatures):
            run = run + 1 if before == after else 1
            longest = max(longest, run)
        return longest

    def in_any_order(self) -> tuple[object, ...]:
        """For comparing looks that read several files in different orders."""
        calls = Counter(
            (c.session, c.agent, c.ts, c.tool, c.call_id, c.args, c.parent, c.tokens) for c in self.calls
        )
        return (
            calls,
            Counter(map(msgspec.json.encode, self.answers)),
            Counter(map(msgspec.json.encode, self.usages)),
        )


@dataclass(slots=True, kw_only=True)
class Follower:
    """Looks at a log as the scan does; each look with a source of its own, as after a restart."""

    format: str
    pattern: str
    kept: bytes = b"{}"
    told: Told = field(default_factory=Told)

    def look(self) -> None:
        source = self.source()
        cursors = msgspec.json.decode(self.kept, type=dict[str, Cursor])
        for batch in source.read_new(dict(cursors), now=0):
            cursors[batch.path] = batch.cursor
            self.told.calls += batch.calls
            self.told.answers += batch.answers
            self.told.usages += batch.usages
        assert source.problems() == ()
        self.told.unreadable = sum(cursor.unreadable for cursor in cursors.values())
        self.kept = msgspec.json.encode(cursors)

    def source(self) -> CallSource:
        return build_source(SourceSpec(name="agents", format=self.format, path=self.pattern))


def read_at_once(format_name: str, pattern: Path | str) -> Told:
    follower = Follower(format=format_name, pattern=str(pattern))
    follower.look()
    return follower.told


def parts(files: dict[Path, bytes], cuts: Sequence[float]) -> Iterator[dict[Path, bytes]]:
    """Cut what is written one line after the other, whichever file that is in; an empty file comes last."""
    lines = in_order_of_time(files)
    size = sum(len(line) for _, line in lines)
    for start, stop in pairwise([0, *sorted(int(cut * size) for cut in cuts), size]):
        yield piece(lines, start, stop) | (
            {path: b"" for path in files if not files[path]} if stop == size else {}
        )


def piece(lines: Sequence[tuple[Path, bytes]], start: int, stop: int) -> dict[Path, bytes]:
    """What is written to each file between two places in all of it."""
    found: dict[Path, bytes] = defaultdict(bytes)
    at = 0
    for path, line in lines:
        if some := line[max(0, start - at) : max(0, stop - at)]:
            found[path] += some
        at += len(line)
    return dict(found)


def in_order_of_time(files: Mapping[Path, bytes]) -> list[tuple[Path, bytes]]:
    """The lines of files as their programs have written them."""
    logs = [_with_times(path, content) for path, content in files.items()]
    return [(path, line) for _, path, line in merge(*logs, key=lambda each: each[0])]


def _with_times(path: Path, content: bytes) -> Iterator[tuple[bytes, Path, bytes]]:
    time = b""
    for line in content.splitlines(keepends=True):
        found = TIME.search(line)
        time = max(time, found[1]) if found else time
        yield time, path, line
