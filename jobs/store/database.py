"""The database: a file, or memory while the file cannot be used, so that guarding goes on.

Written by one transaction at a time, read beside it.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import aiosqlite

from jobs.store.absences import SqlAbsences
from jobs.store.chats import SqlChats
from jobs.store.confirmations import SqlConfirmations
from jobs.store.counts import SqlCounts
from jobs.store.cursors import SqlCursors
from jobs.store.digests import SqlDigests
from jobs.store.inbox import SqlInbox
from jobs.store.incidents import SqlIncidents
from jobs.store.old_rows import delete_older_than
from jobs.store.opening import DAMAGE_CODES, Opened, identity_of, open_file, open_memory
from jobs.store.outbox import SqlOutbox
from jobs.store.pins import SqlPins, SqlProposals
from jobs.store.presence import SqlPresence
from jobs.store.reports import SqlReports
from jobs.store.runs import SqlRuns
from jobs.store.schema import FILE_NAME, StoreError
from jobs.store.selftests import SqlGoodOutputs, SqlSelfTests
from jobs.store.sessions import SqlSessions
from jobs.store.spare import bring_back, copy_live_rows
from jobs.store.stops import SqlStops
from jobs.store.verdicts import SqlVerdicts
from jobs.store.workflows import SqlWorkflows

_STORAGE_CODES: Final = DAMAGE_CODES | {
    *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN),
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PERM, sqlite3.SQLITE_PROTOCOL),
}
"""A lock that another process holds counts, too: by then it was waited for."""


@dataclass(frozen=True, slots=True)
class Tables:
    """Every table over one connection."""

    cursors: SqlCursors
    sessions: SqlSessions
    incidents: SqlIncidents
    stops: SqlStops
    confirmations: SqlConfirmations
    inbox: SqlInbox
    outbox: SqlOutbox
    chats: SqlChats
    presence: SqlPresence
    workflows: SqlWorkflows
    reports: SqlReports
    runs: SqlRuns
    verdicts: SqlVerdicts
    pins: SqlPins
    proposals: SqlProposals
    good_outputs: SqlGoodOutputs
    selftests: SqlSelfTests
    absences: SqlAbsences
    digests: SqlDigests
    counts: SqlCounts

    connection: aiosqlite.Connection

    async def delete_older_than(self, limit: float, most: int) -> int:
        """Delete what was over before `limit` (epoch seconds), of each table at most so many rows; return how many."""
        return await delete_older_than(self.connection, limit, most)

    @classmethod
    def over(cls, connection: aiosqlite.Connection) -> Self:
        """Bind all tables to one connection."""
        return cls(
            SqlCursors(connection),
            SqlSessions(connection),
            SqlIncidents(connection),
            SqlStops(connection),
            SqlConfirmations(connection),
            SqlInbox(connection),
            SqlOutbox(connection),
            SqlChats(connection),
            SqlPresence(connection),
            SqlWorkflows(connection),
            SqlReports(connection),
            SqlRuns(connection),
            SqlVerdicts(connection),
            SqlPins(connection),
            SqlProposals(connection),
            SqlGoodOutputs(connection),
            SqlSelfTests(connection),
            SqlAbsences(connection),
            SqlDigests(connection),
            SqlCounts(connection),
            connection,
        )


class Database:
    """One writer connection behind a lock, one reader. aiosqlite shares a transaction among coroutines."""

    def __init__(
        self, path: Path, opened: Opened, trouble: str | None, set_aside: Path | None, *, knows_all: bool
    ) -> None:
        self._path = path
        self._lock = asyncio.Lock()
        self._writing: asyncio.Task[object] | None = None
        self._failure: BaseException | None = None
        """Of the file, inside the transaction that is open."""
        self._opened = opened
        self.changed = asyncio.Event()
        """Set, and another one in its place, when a transaction has ended: asked for before looking, nothing is missed."""
        self.trouble = trouble
        """Why the file is not in use; None while it is."""
        self.set_aside = set_aside
        """Where a damaged file was put when this one was begun."""
        self.knows_all = knows_all
        """Whether, when it was opened, there was nothing before that could not be read."""

    @property
    def reading(self) -> Tables:
        """The tables for questions."""
        return Tables.over(self._opened.reader)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Tables]:
        """Commit what the block wrote if it ends, undo it if it raises or is cancelled.

        A block within a block, in the same task, is a part of it: undone by itself, committed with the outer one. But a
        part that the file failed undoes the whole, which raises that failure at its end if nobody did before.
        """
        if self._writing is not None and self._writing is asyncio.current_task():
            async with self._part(self._opened.writer) as tables:
                yield tables
            return
        async with self._lock:
            writer = self._opened.writer
            self._writing = asyncio.current_task()
            try:
                await writer.execute("BEGIN IMMEDIATE")
                yield Tables.over(writer)
                self._raise_failure()
                await writer.commit()
            except BaseException:
                # A cancelled await does not stop its SQL: without the shield the transaction would stay open.
                await asyncio.shield(_undo(writer))
                raise
            finally:
                self._writing = self._failure = None
        self._note_change()

    @asynccontextmanager
    async def _part(self, writer: aiosqlite.Connection) -> AsyncIterator[Tables]:
        await writer.execute("SAVEPOINT part")
        try:
            yield Tables.over(writer)
            self._raise_failure()
        except BaseException as error:
            if is_storage_failure(error):
                self._failure = error
            await asyncio.shield(_undo_part(writer))
            raise
        await writer.execute("RELEASE part")

    def _raise_failure(self) -> None:
        if self._failure:
            raise self._failure

    def _note_change(self) -> None:
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    async def endure(self, error: BaseException) -> bool:
        """Go on in memory if `error` means that the file cannot be used; return whether that is so."""
        if not is_storage_failure(error):
            return False
        async with self._lock:
            # Several jobs fail at once: the first one changes over, the others find it done.
            if self._opened.is_file:
                await self._change_over(_sentence(error))
        return True

    async def check(self) -> None:
        """Go on in memory if the file is not the one any more that was opened."""
        async with self._lock:
            if self._opened.is_file and identity_of(self._path) != self._opened.identity:
                await self._change_over("the file was removed, or another one is in its place")

    async def _change_over(self, trouble: str) -> None:
        memory = await open_memory()
        await copy_live_rows(self._opened.reader, memory.writer)
        before, self._opened = self._opened, memory
        self.trouble = trouble
        self._note_change()
        with suppress(aiosqlite.Error):
            await before.close()

    async def recover(self) -> bool:
        """Try the file again, and take what happened in memory back to it; return whether it is in use again."""
        if self._opened.is_file:
            return False
        try:
            file, self.set_aside = await open_file(self._path)
        except (StoreError, aiosqlite.Error, OSError):
            return False
        async with self._lock:
            try:
                await bring_back(self._opened.writer, file.writer)
            except aiosqlite.Error:
                await file.close()
                return False
            before, self._opened = self._opened, file
            self.trouble = None
            await before.close()
        return True

    async def close(self) -> None:
        """Let go of the file."""
        await self._opened.close()


@asynccontextmanager
async def open_database(folder: Path) -> AsyncIterator[Database]:
    """Open the database in `folder`, which is made if it is missing, and bring its schema up to date.

    A damaged file is set aside and a new one begun; one that cannot be used now is done without, in memory.
    Raises `StoreError` if there can be no data there at all: no folder, or a database of a newer release.
    """
    path = _in(folder)
    set_aside, trouble = None, None
    was_there = _holds_something(path)
    try:
        opened, set_aside = await open_file(path)
        knows_all = set_aside is None
    except (aiosqlite.Error, OSError) as error:
        opened, knows_all = await _open_salvaged(path)
        trouble = _sentence(error)
    database = Database(path, opened, trouble, set_aside, knows_all=knows_all or not was_there)
    try:
        yield database
    finally:
        await database.close()


def _holds_something(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False
    except OSError:
        return True


async def _open_salvaged(path: Path) -> tuple[Opened, bool]:
    """Open a database in memory with what can still be read of the file; return whether that was all."""
    memory = await open_memory()
    try:
        async with aiosqlite.connect(_read_only(path), uri=True) as file:
            is_all = await copy_live_rows(file, memory.writer)
    except aiosqlite.Error:
        is_all = await copy_live_rows(None, memory.writer)
    return memory, is_all


def _read_only(path: Path) -> str:
    return f"{path.absolute().as_uri()}?mode=ro"


def is_storage_failure(error: BaseException) -> bool:
    """Whether an error, or one inside a group, comes from the file and not from what was asked of it."""
    if isinstance(error, BaseExceptionGroup):
        return any(is_storage_failure(inner) for inner in error.exceptions)
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(error, aiosqlite.DatabaseError) and code is not None and code & 0xFF in _STORAGE_CODES


def _in(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StoreError(f"the data directory {folder} cannot be used: {error.strerror}") from error
    return folder / FILE_NAME


async def _undo(writer: aiosqlite.Connection) -> None:
    # Where the file itself has failed there may be nothing left to undo.
    with suppress(aiosqlite.Error):
        await writer.rollback()


async def _undo_part(writer: aiosqlite.Connection) -> None:
    with suppress(aiosqlite.Error):
        if not writer.in_transaction:
            # A full disk makes SQLite undo the whole: what follows must not be committed statement by statement.
            await writer.execute("BEGIN IMMEDIATE")
            return
        await writer.execute("ROLLBACK TO part")
        await writer.execute("RELEASE part")


def _sentence(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return next(_sentence(inner) for inner in error.exceptions if is_storage_failure(inner))
    return f"{error}"
