"""How fast each source reads its format, against decoding the same records with `orjson.loads`.

A turn of each of the samples of the tests, the texts in it 700 characters longer, is repeated under ever new ids until
the log has 60 MB: its records are about as long as those that real programs write. What is measured is
processor time: of a new source that reads the whole log, the start of the process that reads databases for it included,
and of decoding its records when they are in memory already.

- Time of decoding over time of reading, for each format: wanted >= 0.25.
"""

import asyncio
import re
import resource
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

import orjson

from benchmarks.gateway_log import MB, append, lines, up_to
from benchmarks.guard import make_room
from benchmarks.rounds import fastest, report
from bot.clock import SystemClock
from jobs.sources.registry import build_source
from jobs.watchlist.sources import SourceSpec
from tests.sources.databases import DATA, OpenClaw, OpenCode, Row

_ROUNDS: Final = 7
_SIZE: Final = 60 * MB
_ID: Final = re.compile(rb'("(?:id|callId|callID|call_id|toolCallId|tool_use_id|messageID)": ?"[^"]+)')
_ANSWER: Final = re.compile(
    rb'("(?:content|output|text|aggregated|aggregated_output)": ?"(?!Script)(?:[^"\\\\]|\\\\.)+)'
)
_MORE: Final = b"\\n".join(b"2026-01-01 10:00:00 worker %d: nothing to do" % number for number in range(15))
_SESSION: Final = "ses_0"


@dataclass(frozen=True, slots=True)
class _Sample:
    """A log of the tests, of which one turn is repeated: a call and all that is told of it."""

    file: str
    beginning: int
    """Lines before the turn that say whose log it is."""
    turn: slice
    beside: Mapping[str, object]
    """Fields that real records have, too, about as many, and that tell nothing."""

    def lines(self) -> Iterator[bytes]:
        lines = (DATA / self.file).read_bytes().splitlines(keepends=True)
        yield from lines[: self.beginning]
        turn = [_ANSWER.sub(_lengthened, self._whole(line)) for line in lines[self.turn]]
        for number in count():
            yield from (_ID.sub(rb"\1-%d" % number, line) for line in turn)

    def _whole(self, line: bytes) -> bytes:
        packed: bytes = orjson.dumps(orjson.loads(line) | self.beside)
        return packed + b"\n"


def _lengthened(text: re.Match[bytes]) -> bytes:
    return text[1] + _MORE


def _in_file(path: Path, lines: Iterator[bytes]) -> list[bytes]:
    records = [*up_to(_SIZE, lines)]
    append(path, records)
    return records


def _in_openclaw(path: Path, lines: Iterator[bytes], packed_from: int = 1500) -> list[bytes]:
    """OpenClaw packs what is long and shrinks well: in its own logs no row below 1,500 bytes, and one in four."""
    records = [line.rstrip() for line in up_to(_SIZE, lines)]
    writer = OpenClaw(path, packed_from=packed_from)
    writer.session(_SESSION, "agent:main:main")
    _fill(writer, (Row(_SESSION, number, record) for number, record in enumerate(records)))
    return records


def _in_opencode(path: Path, lines: Iterator[bytes]) -> list[bytes]:
    events = [orjson.loads(line) for line in up_to(_SIZE, lines)]
    records = [orjson.dumps(event["data"]) for event in events]
    writer = OpenCode(path)
    writer.session(_SESSION)
    rows = enumerate(zip(records, events, strict=True))
    _fill(writer, (Row(_SESSION, number, record, type=event["type"]) for number, (record, event) in rows))
    return records


def _fill(writer: OpenClaw | OpenCode, rows: Iterable[Row]) -> None:
    with closing(writer):
        writer.run("BEGIN")
        for row in rows:
            writer.add(row)
        writer.run("COMMIT")


_BESIDE_CLAUDE: Final = {
    "requestId": "req_011CWx7Yp2Zk",
    "userType": "external",
    "entrypoint": "cli",
    "gitBranch": "main",
    "toolUseResult": {"stdout": "", "content": "pending", "interrupted": False, "isImage": False},
}
_BESIDE_CODEX: Final = {
    "metadata": {"history_sequence": 10, "sampled_through_sequence": 9, "client_authored": False},
    "limits": dict.fromkeys(("primary", "secondary", "credits", "individual", "plan_type"), None),
    "started_at_ms": 1796031463419,
    "completed_at_ms": 1796031463419,
}
_BESIDE_OPENCLAW: Final = {"idempotencyKey": "run-1:7", "provenance": {"kind": "agent", "channel": "main"}}
_Written = Callable[[Path, Iterator[bytes]], list[bytes]]
_OPENCLAW: Final = _Sample("openclaw/calls.jsonl", 1, slice(3, 5), _BESIDE_OPENCLAW)
_LOGS: Final[Sequence[tuple[str, str, _Written, Callable[[], Iterator[bytes]]]]] = (
    ("gateway", "", _in_file, lambda: lines(1, 1_767_225_600)),
    ("claude-code", "", _in_file, _Sample("claude-code/calls.jsonl", 1, slice(6, 9), _BESIDE_CLAUDE).lines),
    ("codex", "", _in_file, _Sample("codex/calls.jsonl", 5, slice(5, 10), _BESIDE_CODEX).lines),
    ("gemini-cli", "", _in_file, _Sample("gemini-cli/calls.jsonl", 1, slice(4, 9), {}).lines),
    ("openclaw", " (files)", _in_file, _OPENCLAW.lines),
    ("openclaw", " (database)", _in_openclaw, _OPENCLAW.lines),
    ("openclaw", " (every row packed)", partial(_in_openclaw, packed_from=0), _OPENCLAW.lines),
    ("opencode", "", _in_opencode, _Sample("opencode/events.jsonl", 2, slice(2, 9), {}).lines),
)


def processor_time() -> float:
    """Return the seconds that this process has used, and those that have ended that it had started."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


async def _speed(format_name: str, path: Path, records: list[bytes]) -> float:

    async def read() -> float:
        source = build_source(SourceSpec(name="agents", format=format_name, path=str(path)))
        start = processor_time()
        deque(source.read_new({}, SystemClock().now()), maxlen=0)
        return processor_time() - start

    async def decode() -> float:
        start = processor_time()
        for record in records:
            orjson.loads(record)
        return processor_time() - start

    reading, decoding = await fastest(_ROUNDS, read, decode)
    return decoding / reading


async def _main() -> None:
    for format_name, place, write, endless in _LOGS:
        with tempfile.TemporaryDirectory() as folder:
            make_room(Path(folder), 300 * MB)
            path = Path(folder, "log.jsonl")
            records = write(path, endless())
            speed = await _speed(format_name, path, records)
        report(f"{format_name}{place}: orjson.loads of the records / reading them", speed, ">= 0.25")


if __name__ == "__main__":
    asyncio.run(_main())
