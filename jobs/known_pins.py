"""The pins as a guard that runs knows them, whatever becomes of their table."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jobs.alert.pin_notice import altered_told
from jobs.pinning.deciding import pins_in_force
from jobs.pinning.pin import Entry, Pin, entries_of
from jobs.ports import RunTables, Store

_Place = tuple[str | None, Path | None]

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class KnownPins:
    """A row is added and never changed: one that is gone, or is not what it was, is put back, and that is told.

    Only when the file is used again in place of memory its rows are read anew: by what is approved there, what was
    pinned in memory may have been for want of it.
    """

    rows: Mapping[int, Pin] = field(default_factory=dict)
    """By id, in the order in which they were added."""
    entries: Sequence[Entry] = ()
    """What is in force."""
    marks: Sequence[tuple[int, str]] = ()
    newest: int = -1
    place: _Place = (None, None)
    """What is in use: trouble with the file, and where a damaged one was put."""

    async def look(self, store: Store, now: float) -> None:
        """Read what was added since; notice whatever was done to the table."""
        if self.place != _place(store) or self.marks != await store.reading.pins.marks():
            await self._read(store, now)

    async def glance(self, store: Store, now: float) -> None:
        """Read what was added since, at no cost where nothing was."""
        if self.place != _place(store) or self.newest != await store.reading.pins.newest():
            await self._read(store, now)

    async def _read(self, store: Store, now: float) -> None:
        # Within a transaction: in memory others may see what is not committed yet.
        async with store.transaction() as tables:
            place = _place(store)
            found = {pin.id: pin for pin in await tables.pins.all()}
            is_back = self.place[0] is not None and place[0] is None
            known = {} if is_back else self.rows
            if lost := [pin for pin in known.values() if found.get(pin.id) != pin]:
                await _put_back(tables, lost, now, is_told=place[0] is None)
            marks, newest = await tables.pins.marks(), await tables.pins.newest()
        rows = dict(sorted({**found, **known}.items()))
        entries = await asyncio.to_thread(lambda: entries_of(pins_in_force(rows.values())))
        self.rows, self.marks, self.newest, self.place = rows, marks, newest, place
        if entries != self.entries:
            self.entries = entries


async def _put_back(tables: RunTables, lost: Sequence[Pin], now: float, *, is_told: bool) -> None:
    for pin in lost:
        await tables.pins.put_back(pin)
    _log.warning("%d pins were not what they had been in the database, and were put back", len(lost))
    # What memory has not got of a file that failed nobody has altered.
    if is_told:
        first, others = lost[0], len({(pin.kind, pin.name) for pin in lost}) - 1
        await tables.outbox.put(altered_told(first.kind, first.name, others=others, is_put_back=True), now)


def _place(store: Store) -> _Place:
    return store.trouble, store.set_aside
