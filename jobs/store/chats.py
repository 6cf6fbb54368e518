"""Table `chat`: where each chat is now, and when it may be written to."""

from collections.abc import Sequence

import aiosqlite
import msgspec

from jobs.ports import ChatState
from jobs.store.rows import fetch


class SqlChats:
    """One row per chat that anything is known of."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    async def get(self, chat_id: int) -> ChatState:
        """Return what is known of a chat."""
        found = await fetch(self._connection, ChatState, "SELECT * FROM chat WHERE id = ?", (chat_id,))
        return found[0] if found else ChatState(id=chat_id)

    async def save(self, chat: ChatState) -> None:
        """Overwrite what is known of a chat."""
        sql = """INSERT OR REPLACE INTO chat (id, moved_to, pace, held_at, free_at, lost_at)
                 VALUES (?, ?, ?, ?, ?, ?)"""
        pace = msgspec.json.encode(chat.pace).decode()
        row = (chat.id, chat.moved_to, pace, chat.held_at, chat.free_at, chat.lost_at)
        await self._connection.execute(sql, row)

    async def lost(self) -> Sequence[ChatState]:
        """Return the chats that take no messages."""
        return await fetch(self._connection, ChatState, "SELECT * FROM chat WHERE lost_at IS NOT NULL")

    async def held(self, now: float) -> Sequence[ChatState]:
        """Return the chats that may not be written to yet."""
        sql = "SELECT * FROM chat WHERE free_at > ?1 AND held_at <= ?1"
        return await fetch(self._connection, ChatState, sql, (now,))

    async def current(self, address: str) -> str:
        """Return where a chat (`<chat id>` or `<chat id>/<topic id>`) is now: a group may have become another one."""
        first = here = int(address.partition("/")[0])
        passed = {here}
        while (there := (await self.get(here)).moved_to) is not None and there not in passed:
            passed.add(here := there)
        return address if here == first else f"{here}"
