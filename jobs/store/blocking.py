"""The database for a command that starts, writes once and ends: the same tables over plain sqlite3, without an event loop."""

import fcntl
import os
import sqlite3
from collections.abc import Coroutine, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar

from jobs.store.outbox import SqlOutbox
from jobs.store.pins import SqlPins, SqlProposals
from jobs.store.presence import SqlPresence
from jobs.store.reports import SqlReports
from jobs.store.rows import Values
from jobs.store.runs import SqlRuns
from jobs.store.schema import FILE_NAME, StoreError, bring_up_to_date, is_old
from jobs.store.selftests import SqlGoodOutputs, SqlSelfTests
from jobs.store.verdicts import SqlVerdicts
from jobs.store.workflows import SqlWorkflows

_Result = TypeVar("_Result")

_PATIENCE: Final = 5.0
"""Seconds that another process may hold the database."""


def run(coroutine: Coroutine[Any, Any, _Result]) -> _Result:
    """Return what a coroutine returns that waits for nothing, as all do that only use tables that block."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: _Result = end.value
        return result
    raise RuntimeError("the coroutine waits for something: it needs an event loop")


class _Executed:
    """A statement that has been executed: there is nothing to wait for."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self.cursor = cursor

    def __await__(self) -> Generator[None, None, sqlite3.Cursor]:
        yield from ()
        return self.cursor

    async def __aenter__(self) -> sqlite3.Cursor:
        return self.cursor

    async def __aexit__(self, *_: object) -> None:
        self.cursor.close()


class BlockingConnection:
    """A connection as the tables need it."""

    def __init__(self, path: str, *, is_uri: bool = False) -> None:
        self._connection = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, uri=is_uri)
        self._connection.row_factory = sqlite3.Row

    def execute(self, sql: str, parameters: Values = (), /) -> _Executed:
        return _Executed(self._connection.execute(sql, parameters))

    async def executemany(self, sql: str, parameters: Iterable[Sequence[object]], /) -> None:
        self._connection.executemany(sql, parameters)

    async def execute_fetchall(self, sql: str, parameters: Values = (), /) -> list[Any]:
        return self._connection.execute(sql, parameters).fetchall()

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def close(self) -> None:
        self._connection.close()


@dataclass(frozen=True, slots=True)
class RunTables:
    """The tables that recording a verdict writes."""

    workflows: SqlWorkflows
    reports: SqlReports
    runs: SqlRuns
    verdicts: SqlVerdicts
    pins: SqlPins
    proposals: SqlProposals
    good_outputs: SqlGoodOutputs
    selftests: SqlSelfTests
    presence: SqlPresence
    outbox: SqlOutbox

    @classmethod
    def over(cls, connection: BlockingConnection) -> Self:
        """Bind them to one connection."""
        return cls(
            SqlWorkflows(connection),
            SqlReports(connection),
            SqlRuns(connection),
            SqlVerdicts(connection),
            SqlPins(connection),
            SqlProposals(connection),
            SqlGoodOutputs(connection),
            SqlSelfTests(connection),
            SqlPresence(connection),
            SqlOutbox(connection),
        )


class BlockingStore:
    """The open database. Whatever it cannot do is a `StoreError`."""

    def __init__(self, connection: BlockingConnection) -> None:
        self._connection = connection

    def read(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        """Return what a question to `tables` returns."""
        with closing(coroutine), _as_store_error():
            return run(coroutine)

    @property
    def tables(self) -> RunTables:
        """The tables, for questions, and within a transaction for writing."""
        return RunTables.over(self._connection)

    @property
    def connection(self) -> BlockingConnection:
        """What other tables are bound to, for questions."""
        return self._connection

    def write(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        """Return what a coroutine returns that writes to `tables`: all of it is committed, or nothing."""
        with closing(coroutine), _as_store_error(), _transaction(self._connection):
            return run(coroutine)


def has_database(folder: str) -> bool:
    """Whether there is one in `folder`, whatever state it is in."""
    return os.path.lexists(os.path.join(folder, FILE_NAME))  # noqa: PTH118 - as below


@contextmanager
def open_blocking(folder: str) -> Iterator[BlockingStore]:
    """Open the database in `folder`, make it if there is none, and bring its schema up to date unless a bot uses it.

    Raises `StoreError`. The file's integrity is not checked: that takes as long as reading it.
    """
    with _as_store_error():
        connection = _connect(folder)
    try:
        yield BlockingStore(connection)
    finally:
        connection.close()


def _connect(folder: str) -> BlockingConnection:
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103 - pathlib takes longer to import than there is
    path = os.path.join(folder, FILE_NAME)  # noqa: PTH118
    # Made before SQLite does, so that nobody else can read what the agents did.
    os.close(os.open(path, os.O_CREAT | os.O_RDONLY | os.O_CLOEXEC, 0o600))
    connection = BlockingConnection(path)
    try:
        run(_prepare(connection, folder))
    except BaseException:
        connection.close()
        raise
    return connection


async def _prepare(connection: BlockingConnection, folder: str) -> None:
    await connection.execute("PRAGMA journal_mode = WAL")
    await connection.execute("PRAGMA synchronous = FULL")
    await connection.execute("PRAGMA foreign_keys = ON")
    if await is_old(connection):
        _check_that_nobody_else_runs(folder)
        await bring_up_to_date(connection)


def _check_that_nobody_else_runs(folder: str) -> None:
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Shared, for commands do not keep each other from it; a bot holds the folder for itself.
        fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise StoreError(
            "the database is of an older release, and a bot of that release is running: restart it"
        ) from error
    finally:
        os.close(held)


@contextmanager
def _transaction(connection: BlockingConnection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # What the file itself has failed SQLite may have undone already; what failed first is what is to be told.
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


@contextmanager
def _as_store_error() -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"the database cannot be used: {error}") from error
