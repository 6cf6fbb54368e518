"""Opens a database: the file, checked and brought up to date, or memory in its place."""

import asyncio
import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import aiosqlite

from jobs.store.schema import bring_up_to_date

DAMAGE_CODES: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


@dataclass(frozen=True, slots=True)
class Opened:
    """A database in use: the file with two connections, or memory with one that does for both."""

    writer: aiosqlite.Connection
    reader: aiosqlite.Connection
    is_file: bool
    identity: tuple[int, int] | None = None
    """Device and inode of the file."""

    async def close(self) -> None:
        # One left open would keep the process from exiting.
        await self.reader.close()
        await self.writer.close()


async def open_file(path: Path) -> tuple[Opened, Path | None]:
    """Open the file, in place of a damaged one if need be; return where that was put."""
    try:
        return await _open(path), None
    except aiosqlite.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF not in DAMAGE_CODES:
            raise
    aside = _put_aside(path)
    return await _open(path), aside


async def _open(path: Path) -> Opened:
    _touch(path)
    writer = await _connect(path)
    try:
        await writer.execute("PRAGMA journal_mode = WAL")
        await writer.execute("PRAGMA synchronous = FULL")
        await writer.execute("PRAGMA foreign_keys = ON")
        await _check(writer)
        await bring_up_to_date(writer)
        # A file that can only be read shows at the first write, not before.
        await writer.execute("BEGIN IMMEDIATE")
        await writer.execute("DELETE FROM cursor WHERE source IS NULL")
        await writer.commit()
        reader = await _connect(path)
        await reader.execute("PRAGMA query_only = ON")
        identity = identity_of(path)
    except BaseException:
        await asyncio.shield(writer.close())
        raise
    return Opened(writer, reader, is_file=True, identity=identity)


def identity_of(path: Path) -> tuple[int, int] | None:
    """Return what tells whether it is still the same file; None if there is none, or it cannot be looked at."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


async def _connect(path: Path | str) -> aiosqlite.Connection:
    connection = await aiosqlite.connect(path, isolation_level=None)
    connection.row_factory = sqlite3.Row
    return connection


async def open_memory() -> Opened:
    """Open a database that is gone with the process."""
    connection = await _connect(":memory:")
    await bring_up_to_date(connection)
    return Opened(connection, connection, is_file=False)


def _touch(path: Path) -> None:
    # Made before SQLite does, so that nobody else can read what the agents did.
    path.touch(mode=0o600)


async def _check(writer: aiosqlite.Connection) -> None:
    rows = await writer.execute_fetchall("PRAGMA integrity_check(1)")
    if [row[0] for row in rows] != ["ok"]:
        error = aiosqlite.DatabaseError("the file is damaged")
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error


def _put_aside(path: Path) -> Path:
    stamp = datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    for suffix in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    return aside
