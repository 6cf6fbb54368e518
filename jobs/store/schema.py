"""The schema: numbered migrations, of which a database lacks the last few or none."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from jobs.store.rows import Connection

FILE_NAME: Final = "loopwarden.sqlite3"

# pathlib takes longer to import than a quick command has.
_FOLDER: Final = os.path.join(os.path.dirname(__file__), "migrations")  # noqa: PTH118, PTH120


class StoreError(Exception):
    """The database cannot be used; the message says what to do."""


async def is_old(connection: Connection) -> bool:
    """Return whether migrations are missing. Raises `StoreError` if the database knows more of them."""
    known, done = len(_scripts()), await _done(connection)
    if done > known:
        raise StoreError(f"the database is of a newer release (schema {done}, this one knows {known})")
    return done < known


async def bring_up_to_date(connection: Connection) -> None:
    """Run the migrations that are missing: all, or none if one fails."""
    if not await is_old(connection):
        return
    await connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have run them while this one waited for its turn.
        missing = _scripts()[await _done(connection) :]
        for name in missing:
            for statement in _statements(name):
                await connection.execute(statement)
        await connection.execute(f"PRAGMA user_version = {len(_scripts())}")
        await connection.execute("COMMIT")
    except BaseException:
        # What has filled the disk SQLite has undone already, and what failed first is what is to be told.
        with suppress(sqlite3.Error):
            await connection.execute("ROLLBACK")
        raise


async def _done(connection: Connection) -> int:
    [(done,)] = await connection.execute_fetchall("PRAGMA user_version")
    return int(done)


def _scripts() -> list[str]:
    return sorted(name for name in os.listdir(_FOLDER) if name.endswith(".sql"))  # noqa: PTH208


def _statements(name: str) -> Iterator[str]:
    """Yield a script's statements: run as a whole, it would commit what is open."""
    statement = ""
    with open(os.path.join(_FOLDER, name), encoding="utf-8") as script:  # noqa: PTH118, PTH123
        for line in script:
            statement += line
            if sqlite3.complete_statement(statement):
                yield statement
                statement = ""
