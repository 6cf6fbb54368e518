"""Tables `pin` and `proposal`: what was approved of the watch list, and what its file says otherwise."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from jobs.pinning.pin import Kind, Pin, Proposal
from jobs.store.rows import Connection, fetch, insert, update

# An entry that was removed and came back has its place among the others by its return.
_IN_FORCE: Final = """SELECT * FROM pin WHERE id IN (SELECT max(id) FROM pin GROUP BY kind, name) AND entry IS NOT NULL
    ORDER BY (SELECT min(f.id) FROM pin f WHERE f.kind = pin.kind AND f.name = pin.name AND f.id > coalesce(
        (SELECT max(r.id) FROM pin r WHERE r.kind = pin.kind AND r.name = pin.name AND r.entry IS NULL), 0))"""


class SqlPins:
    """One row per version of an entry; none is ever changed."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def in_force(self) -> Sequence[Pin]:
        """Return the newest pin of every entry that was not removed, in the order in which they were first approved."""
        return await fetch(self._connection, Pin, _IN_FORCE)

    async def of(self, kind: Kind, name: str) -> Pin | None:
        """Return the pin of one entry that is in force."""
        sql = "SELECT * FROM pin WHERE kind = ? AND name = ? ORDER BY id DESC LIMIT 1"
        newest = next(iter(await fetch(self._connection, Pin, sql, (kind, name))), None)
        return newest if newest and newest.entry is not None else None

    async def add(self, pin: Pin) -> Pin:
        """Insert a pin and return it with its id."""
        return replace(pin, id=await insert(self._connection, "pin", pin))


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

    async def add(self, proposal: Proposal) -> Proposal:
        """Insert a proposal and return it with its id."""
        return replace(proposal, id=await insert(self._connection, "proposal", proposal))

    async def save(self, proposal: Proposal) -> None:
        """Overwrite a proposal."""
        await update(self._connection, "proposal", proposal, proposal.id)
