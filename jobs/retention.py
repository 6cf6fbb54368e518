"""Deletes what is old, so that the database does not grow for ever."""

import logging
from dataclasses import dataclass
from typing import Final

from jobs.ports import Clock, Store

_DAY: Final = 86_400

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Once a day: deletes what is over and older than `days`. What is still going on stays, however old."""

    store: Store
    clock: Clock
    days: int
    at_once: int = 2000
    """Rows of a table: what writes meanwhile waits for no more."""

    async def __call__(self) -> None:
        """Delete, portion by portion, each in a transaction."""
        limit, deleted = self.clock.now() - self.days * _DAY, 0
        while portion := await self._delete_some(limit):
            deleted += portion
        if deleted:
            _log.info("%d rows older than %d days deleted", deleted, self.days)

    async def _delete_some(self, limit: float) -> int:
        async with self.store.transaction() as tables:
            return await tables.delete_older_than(limit, self.at_once)
