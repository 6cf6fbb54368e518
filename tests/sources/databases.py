"""Databases as OpenClaw and opencode write them, as far as they are read."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Self

import msgspec
import zstandard

DATA = Path(__file__).parents[1] / "data"

OPENCLAW = """
    CREATE TABLE session_nodes (
        session_key TEXT PRIMARY KEY, current_session_id TEXT NOT NULL, parent_session_key TEXT, spawned_by TEXT
    );
    CREATE TABLE session_windows (
        session_id TEXT PRIMARY KEY, session_key TEXT NOT NULL, created_at INTEGER NOT NULL,
        parent_session_key TEXT, spawned_by TEXT
    );
    CREATE TABLE transcript_events (
        session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT, created_at INTEGER NOT NULL, event_zstd BLOB,
        PRIMARY KEY (session_id, seq)
    );
"""
OPENCODE = """
    CREATE TABLE session (
        id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT NOT NULL, title TEXT NOT NULL, time_updated INTEGER NOT NULL
    );
    CREATE TABLE event (
        id TEXT PRIMARY KEY, aggregate_id TEXT NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL
    );
    CREATE UNIQUE INDEX event_aggregate_seq_idx ON event (aggregate_id, seq);
"""


@dataclass(frozen=True, slots=True)
class Row:
    """Of one of the two tables."""

    session: str
    seq: int
    event: bytes
    at: int = 1796028000000
    type: str = ""


class Writer:
    """A program that has its database open and writes a row at a time."""

    def __init__(self, path: Path, schema: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.database = sqlite3.connect(path, isolation_level=None)
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.executescript(schema)

    def run(self, sql: str, *values: object) -> None:
        self.database.execute(sql, values)

    def close(self) -> None:
        self.database.close()


class OpenClaw(Writer):
    """One agent's database; events of at least so many bytes are packed."""

    def __init__(self, path: Path, *, packed_from: int = 1024) -> None:
        super().__init__(path, OPENCLAW)
        self.packed_from = packed_from

    def session(self, session: str, key: str, *, spawned_by: str | None = None, at: int = 0) -> None:
        self.run("INSERT OR REPLACE INTO session_nodes VALUES (?, ?, NULL, ?)", key, session, spawned_by)
        self.run("INSERT INTO session_windows VALUES (?, ?, ?, NULL, ?)", session, key, at, spawned_by)

    def add(self, row: Row) -> None:
        is_packed = len(row.event) >= self.packed_from
        text = None if is_packed else row.event
        frame = zstandard.compress(row.event) if is_packed else None
        values = (row.session, row.seq, text, row.at, frame)
        self.run("INSERT INTO transcript_events VALUES (?, ?, CAST(? AS TEXT), ?, ?)", *values)

    @classmethod
    def again(cls, path: Path) -> Self:
        """Open a database that is there already."""
        writer = cls.__new__(cls)
        writer.path, writer.packed_from = path, 1024
        writer.database = sqlite3.connect(path, isolation_level=None)
        return writer


class OpenCode(Writer):
    """The database of all sessions."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, OPENCODE)

    def session(
        self,
        session: str,
        *,
        parent: str | None = None,
        directory: str = "/home/op/shop",
        title: str = "Shop notes",
    ) -> None:
        self.run("INSERT INTO session VALUES (?, ?, ?, ?, 0)", session, parent, directory, title)

    def add(self, row: Row) -> None:
        values = (f"evt_{row.session}_{row.seq}", row.session, row.seq, row.type, row.event)
        self.run("INSERT INTO event VALUES (?, ?, ?, ?, CAST(? AS TEXT))", *values)
        self.run("UPDATE session SET time_updated = ? WHERE id = ?", row.at, row.session)


_LOCK = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN EXCLUSIVE")
print(flush=True)
sys.stdin.read()
"""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Have a database locked by another process: this one would lose its locks when it closes the file."""
    command = (sys.executable, "-c", _LOCK, str(path))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:  # noqa: S603 - ours
        assert writer.stdin
        assert writer.stdout
        assert writer.stdout.readline()
        yield
        writer.stdin.close()


def openclaw_rows(session: str = "s-1", sample: str = "calls.jsonl") -> list[Row]:
    """A sample's events, as one session."""
    lines = (DATA / "openclaw" / sample).read_bytes().splitlines()
    return [Row(session, seq, line, 1796028000000 + seq) for seq, line in enumerate(lines)]


class _Event(msgspec.Struct):
    aggregate_id: str
    type: str
    data: msgspec.Raw


def opencode_rows(sample: str = "events.jsonl") -> Iterator[Row]:
    """A sample's events, numbered within their sessions."""
    seqs: dict[str, int] = {}
    for line in (DATA / "opencode" / sample).read_bytes().splitlines():
        event = msgspec.json.decode(line, type=_Event)
        seq = seqs[event.aggregate_id] = seqs.get(event.aggregate_id, -1) + 1
        yield Row(event.aggregate_id, seq, bytes(event.data), 1796031441000 + seq, event.type)


def rows_of(path: Path, sql: str, *values: object) -> list[tuple[object, ...]]:
    """Read a database that nobody writes to."""
    database = sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)
    try:
        return database.execute(sql, values).fetchall()
    finally:
        database.close()


def in_parts(rows: Iterable[Row], cuts: Iterable[float]) -> Iterator[list[Row]]:
    """Split rows at places from 0 to 1."""
    all_rows = list(rows)
    places = [0, *sorted(int(cut * len(all_rows)) for cut in cuts), len(all_rows)]
    for start, stop in pairwise(places):
        yield all_rows[start:stop]
