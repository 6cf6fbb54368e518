"""What the scan does with a source, in a few lines: it looks, keeps the cursors and looks again."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from jobs.ports import Batch, CallSource, Cursor
from jobs.sources import gateway
from jobs.sources.log_files import EachLine, LogFiles
from jobs.sources.tail import ReadLimits

SMALL = ReadLimits(chunk=512, longest_line=2048)


@dataclass(slots=True, kw_only=True)
class LogReader:
    """Cursors go through JSON between looks, as they do through the database."""

    source: CallSource
    now: float = 0
    """By default the past: then every file may have changed since the last look."""
    kept: bytes = b"{}"
    batches: list[Batch] = field(default_factory=list)
    """Of the last look."""

    def look(self) -> list[int]:
        """Return the numbers of the new calls, in the order in which they came."""
        cursors = self.cursors
        self.batches = list(self.source.read_new(cursors, self.now))
        self.keep(self.batches)
        return [number(batch, index) for batch in self.batches for index in range(len(batch.calls))]

    def keep(self, batches: list[Batch]) -> None:
        cursors = self.cursors | {batch.path: batch.cursor for batch in batches}
        self.kept = msgspec.json.encode(cursors)

    @property
    def cursors(self) -> dict[str, Cursor]:
        return msgspec.json.decode(self.kept, type=dict[str, Cursor])

    @property
    def is_behind(self) -> bool:
        return any(cursor.is_behind for cursor in self.cursors.values())

    @property
    def unreadable(self) -> int:
        return sum(cursor.unreadable for cursor in self.cursors.values())


def reader(pattern: Path, limits: ReadLimits | None = None) -> LogReader:
    source = LogFiles(
        name="gateway", pattern=str(pattern), format=EachLine(gateway.parse), limits=limits or ReadLimits()
    )
    return LogReader(source=source)


def number(batch: Batch, index: int) -> int:
    found = json.loads(batch.calls[index].args)["n"]
    assert isinstance(found, int)
    return found


def line(n: int, size: int = 0) -> bytes:
    """A call that carries its number, in a line of at least `size` bytes and its end."""
    text = json.dumps({"ts": 1767225600 + n, "agentId": "main", "tool": "exec", "args": {"n": n, "pad": ""}})
    return text.replace('"pad": ""', f'"pad": "{"x" * (size - len(text))}"').encode() + b"\n"


def lines(*numbers: int) -> bytes:
    return b"".join(line(n) for n in numbers)


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)
