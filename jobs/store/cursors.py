"""Table `cursor`: how far each log file has been read."""

from collections.abc import Mapping
from typing import Final

import aiosqlite
import msgspec

from jobs.ports import Cursor

_decode: Final = msgspec.json.Decoder(Cursor).decode


class SqlCursors:
    """One row per file of a source."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    async def of_source(self, source: str) -> Mapping[str, Cursor]:
        """Return the cursors of a source by path."""
        sql = "SELECT path, position FROM cursor WHERE source = ?"
        rows = await self._connection.execute_fetchall(sql, (source,))
        return {path: _decode(position) for path, position in rows}

    async def save(self, source: str, cursors: Mapping[str, Cursor]) -> None:
        """Insert or replace."""
        await self._connection.executemany(
            "INSERT OR REPLACE INTO cursor (source, path, position) VALUES (?, ?, ?)",
            [(source, path, msgspec.json.encode(cursor).decode()) for path, cursor in cursors.items()],
        )
