"""The database file: opened, migrated, written by one transaction at a time, read beside it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Self

import aiosqlite

from jobs.store.confirmations import SqlConfirmations
from jobs.store.cursors import SqlCursors
from jobs.store.incidents import SqlIncidents
from jobs.store.outbox import SqlOutbox
from jobs.store.sessions import SqlSessions
from jobs.store.stops import SqlStops

FILE_NAME = "loopwarden.sqlite3"


class StoreError(Exception):
    """The database cannot be used; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Tables:
    """Every table over one connection."""

    cursors: SqlCursors
    sessions: SqlSessions
    incidents: SqlIncidents
    stops: SqlStops
    confirmations: SqlConfirmations
    outbox: SqlOutbox

    @classmethod
    def over(cls, connection: aiosqlite.Connection) -> Self:
        """Bind all tables to one connection."""
        return cls(
            SqlCursors(connection),
            SqlSessions(connection),
            SqlIncidents(connection),
            SqlStops(connection),
            SqlConfirmations(connection),
            SqlOutbox(connection),
        )


class Database:
    """One writer connection behind a lock, one reader. aiosqlite shares a transaction among coroutines."""

    def __init__(self, writer: aiosqlite.Connection, reader: aiosqlite.Connection) -> None:
        self._writer = writer
        self._lock = asyncio.Lock()
        self._tables = Tables.over(writer)
        self.reading = Tables.over(reader)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Tables]:
        """Commit what the block wrote if it ends, undo it if it raises or is cancelled."""
        async with self._lock:
            await self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._tables
                await self._writer.commit()
            except BaseException:
                # A cancelled await does not stop its SQL: without the shield the transaction would stay open.
                await asyncio.shield(self._writer.rollback())
                raise


@asynccontextmanager
async def open_database(folder: Path) -> AsyncIterator[Database]:
    """Open the database in `folder`, which is made if it is missing, and bring its schema up to date.

    Raises `StoreError` if that is not possible. Both connections are closed at the end: one left open would keep
    the process from exiting.
    """
    path = _private_file(folder)
    async with aiosqlite.connect(path, isolation_level=None) as writer:
        await _prepare(writer, path)
        async with aiosqlite.connect(path, isolation_level=None) as reader:
            await reader.execute("PRAGMA query_only = ON")
            yield Database(writer, reader)


def _private_file(folder: Path) -> Path:
    path = folder / FILE_NAME
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Made before SQLite does, so that nobody else can read what the agents did.
        path.touch(mode=0o600)
    except OSError as error:
        raise StoreError(f"the data directory {folder} cannot be used: {error.strerror}") from error
    return path


async def _prepare(writer: aiosqlite.Connection, path: Path) -> None:
    try:
        await writer.execute("PRAGMA journal_mode = WAL")
        await writer.execute("PRAGMA synchronous = FULL")
        await writer.execute("PRAGMA foreign_keys = ON")
        await _migrate(writer)
    except aiosqlite.DatabaseError as error:
        raise StoreError(f"{path} cannot be used: {error}") from error


async def _migrate(writer: aiosqlite.Connection) -> None:
    scripts = sorted(
        (
            entry
            for entry in resources.files("jobs.store").joinpath("migrations").iterdir()
            if entry.name.endswith(".sql")
        ),
        key=lambda entry: entry.name,
    )
    rows = await (await writer.execute("PRAGMA user_version")).fetchone()
    done = int(rows[0]) if rows else 0
    if done > len(scripts):
        raise StoreError(f"the database is of a newer release (schema {done}, this one knows {len(scripts)})")
    for number, script in enumerate(scripts[done:], start=done + 1):
        await writer.executescript(
            f"BEGIN IMMEDIATE;\n{script.read_text()}\nPRAGMA user_version = {number};\nCOMMIT;"
        )
