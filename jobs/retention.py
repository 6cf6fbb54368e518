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

    async def __call__(self) -> None:
        """Delete, in one transaction."""
        async with self.store.transaction() as tables:
            deleted = await tables.delete_older_than(self.clock.now() - self.days * _DAY)
        if deleted:
            _log.info("%d rows older than %d days deleted", deleted, self.days)
