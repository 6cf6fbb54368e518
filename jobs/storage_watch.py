"""The database file: tells what befell it, and tries it again while the bot lives in memory."""

from dataclasses import dataclass, field
from pathlib import Path

from jobs.alert.notice import StorageNotice
from jobs.alert.outgoing import told
from jobs.ports import Clock, Store


@dataclass(slots=True)
class _Told:
    """What the chat knows."""

    trouble: str | None = None
    set_aside: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageWatch:
    """What befalls the file is noticed, made good where that is possible, and told.

    1. One that is not the file any more that was opened is done without.
    2. While it is not in use it is tried again.
    3. The chat is told when that, or the file, has changed.
    """

    store: Store
    clock: Clock
    told: _Told = field(default_factory=_Told)

    async def __call__(self) -> None:
        """Look once."""
        if self.store.trouble is None:
            await self.store.check()
            await self._tell()
        if self.store.trouble is not None:
            await self.store.recover()
        await self._tell()

    async def _tell(self) -> None:
        trouble, set_aside = self.store.trouble, self.store.set_aside
        if (trouble, set_aside) == (self.told.trouble, self.told.set_aside):
            return
        notice = StorageNotice(trouble=trouble, set_aside=None if set_aside is None else set_aside.name)
        async with self.store.transaction() as tables:
            await tables.outbox.put(told(notice, alarm=True), self.clock.now())
        self.told.trouble, self.told.set_aside = trouble, set_aside
