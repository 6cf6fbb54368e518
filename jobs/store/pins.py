"""Tables `pin` and `proposal`: what was approved of the watch list, and what its file says otherwise."""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

from jobs.pinning.deciding import pins_in_force
from jobs.pinning.kind import Kind
from jobs.pinning.pin import Pin, Proposal
from jobs.store.rows import Connection, fetch, insert, update


class SqlPins:
    """One row per version of an entry; none is ever changed."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def all(self) -> Sequence[Pin]:
        """Return every row, oldest first."""
        return await fetch(self._connection, Pin, "SELECT * FROM pin ORDER BY id")

    async def marks(self) -> Sequence[tuple[int, str]]:
        """Return of every row its id and a digest of all of it: what tells whether any was added, altered or removed."""
        rows = await self._connection.execute_fetchall("SELECT * FROM pin ORDER BY id")
        return [(int(row["id"]), sha256(repr(tuple(row)).encode()).hexdigest()) for row in rows]

    async def newest(self) -> int:
        """Return the id of the newest row, 0 if there is none."""
        [(newest,)] = await self._connection.execute_fetchall("SELECT coalesce(max(id), 0) FROM pin")
        return int(newest)

    async def in_force(self) -> Sequence[Pin]:
        """Return the newest usable pin of every entry that was not removed, in the order in which they were first approved."""
        return pins_in_force(await self.all())

    async def of(self, kind: Kind, name: str) -> Pin | None:
        """Return the pin of one entry that is in force."""
        sql = "SELECT * FROM pin WHERE kind = ? AND name = ? ORDER BY id"
        return next(iter(pins_in_force(await fetch(self._connection, Pin, sql, (kind, name)))), None)

    async def page(self, skipped: int, limit: int) -> Sequence[Pin]:
        """Return every pin there ever was, newest first, but for so many."""
        sql = "SELECT * FROM pin ORDER BY id DESC LIMIT ? OFFSET ?"
        return await fetch(self._connection, Pin, sql, (limit, skipped))

    async def before(self, pin: Pin) -> Pin | None:
        """Return the one that a pin has taken the place of."""
        sql = "SELECT * FROM pin WHERE kind = ? AND name = ? AND id < ? ORDER BY id DESC LIMIT 1"
        return next(iter(await fetch(self._connection, Pin, sql, (pin.kind, pin.name, pin.id))), None)

    async def add(self, pin: Pin) -> Pin:
        """Insert a pin and return it with its id."""
        return replace(pin, id=await insert(self._connection, "pin", pin))

    async def put_back(self, pin: Pin) -> None:
        """Have a row be what it was, with its id, whatever has become of it."""
        sql = "INSERT OR REPLACE INTO pin (id, kind, name, entry, hash, how, by, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        row = (pin.id, pin.kind, pin.name, pin.entry, pin.hash, pin.how, pin.by, pin.at)
        await self._connection.execute(sql, row)


class SqlProposals:
    """One row per version of an entry that was found in the file and not in force."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def get(self, proposal_id: int) -> Proposal | None:
        """Return one proposal."""
        sql = "SELECT * FROM proposal WHERE id = ?"
        return next(iter(await fetch(self._connection, Proposal, sql, (proposal_id,))), None)

    async def newest(self) -> Sequence[Proposal]:
        """Return the newest proposal of every entry that has one."""
        sql = "SELECT * FROM proposal WHERE id IN (SELECT max(id) FROM proposal GROUP BY kind, name) ORDER BY id"
        return await fetch(self._connection, Proposal, sql)

    async def marks(self) -> Sequence[tuple[int, str]]:
        """Return of every row its id and state."""
        rows = await self._connection.execute_fetchall("SELECT id, state FROM proposal ORDER BY id")
        return [(int(proposal_id), f"{state}") for proposal_id, state in rows]

    async def add(self, proposal: Proposal) -> Proposal:
        """Insert a proposal and return it with its id."""
        return replace(proposal, id=await insert(self._connection, "proposal", proposal))

    async def save(self, proposal: Proposal) -> None:
        """Overwrite a proposal."""
        await update(self._connection, "proposal", proposal, proposal.id)
