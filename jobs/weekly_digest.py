"""Sunday 18:00: what the checks did in a week, what is odd, what was stopped -> the chat."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Final

import msgspec

from jobs.alert.digest_notice import DigestNotice
from jobs.alert.outgoing import told
from jobs.digest.digest import Digest
from jobs.digest.figures import Figures
from jobs.digest.week import last_ended, shifted, slot
from jobs.digesting import Digesting
from jobs.ports import Clock, Store, Tables, Told

_MOST_MISSED: Final = 53
"""Weeks. After a longer time than a year, or with a clock that had lost it, the weeks begin anew."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeeklyDigest:
    """One look at the calendar.

    1. At the first one, the week that was over then is noted as told, and the figures of all before it are kept.
    2. At each later one the self-tests are brought up to date, if weeks have ended that were not told; then of each of
       these, the oldest first, the figures are counted and the digest composed.
    3. Figures, digest and message are committed together, so that a week is told once, whatever befalls the bot. Only one
       that was told before it was over, by a clock that was ahead, is told again if runs have come since.
    """

    store: Store
    clock: Clock
    zone: tzinfo
    every: float
    """Seconds between two scans."""
    selftest: Callable[[float], Awaitable[None]]
    """Has the self-tests done for the digest of a time."""

    async def __call__(self) -> None:
        """Tell the weeks that have ended."""
        if self.store.trouble is not None:
            # What memory holds of the history is not enough to be counted, and a week is counted once.
            return
        now = self.clock.now()
        newest = await self.store.reading.digests.newest_week(now)
        ended = last_ended(now, self.zone)
        if newest is None or newest.week is None or shifted(newest.week, _MOST_MISSED) < ended:
            await self._begin(ended, now)
            return
        week = newest.week
        if week < ended:
            # Once, however many there are: digests may have to wait for them.
            await self._test(ended)
        while (week := shifted(week, 1)) <= ended:
            await self._tell(week, now)

    async def on_request(self, weeks: int) -> DigestNotice:
        """Return the digest of so many weeks up to now, of which the last one is still going on; it is kept for its pages."""
        now = self.clock.now()
        digest = await self._digesting().of_last(weeks, now)
        async with self.store.transaction() as tables:
            row = await tables.digests.add(_row(digest, now))
        return DigestNotice(digest=row.id, body=digest)

    def _digesting(self) -> Digesting:
        return Digesting(tables=self.store.reading, zone=self.zone, every=self.every)

    async def _begin(self, ended: str, now: float) -> None:
        if await self.store.reading.digests.of_week(ended):
            # By a clock that was ahead of now.
            return
        known = await self._digesting().not_kept(now)
        async with self.store.transaction() as tables:
            for week, figures in known.items():
                if week <= ended:
                    await tables.counts.keep(week, figures)
            await tables.digests.add(Told(week=ended, until=slot(ended, self.zone), body=None, at=now))

    async def _tell(self, week: str, now: float) -> None:
        # By a clock that was ahead, or in another zone.
        early = await self.store.reading.digests.of_week(week)
        if early and _runs(await self._digesting().counted(week)) <= _runs(_figures(early)):
            async with self.store.transaction() as tables:
                await tables.digests.save(replace(early, at=now))
            return
        fresh, digest = await self._digesting().of_week(week, now)
        digest = msgspec.structs.replace(digest, is_told_again=bool(early and early.body))
        async with self.store.transaction() as tables:
            for each, figures in fresh.items():
                await tables.counts.keep(each, figures)
            row = await self._saved(tables, _row(digest, now), early)
            message = told(DigestNotice(digest=row.id, body=digest))
            await tables.outbox.put(replace(message, subject=f"digest:{week}"), now)
        _log.info("the digest of %s is queued", week)

    async def _saved(self, tables: Tables, row: Told, early: Told | None) -> Told:
        if early is None:
            return await tables.digests.add(row)
        row = replace(row, id=early.id)
        await tables.digests.save(row)
        return row

    async def _test(self, week: str) -> None:
        try:
            await self.selftest(slot(week, self.zone))
        except Exception:  # noqa: BLE001 - a digest with older self-tests is better than none
            _log.exception("the self-tests for the digest of %s were not done", week)


def _figures(told: Told) -> Figures:
    return msgspec.json.decode(told.body, type=Digest).figures if told.body else Figures()


def _runs(figures: Figures) -> int:
    return sum(run.passed + run.failed + run.missing for run in figures.runs)


def _row(digest: Digest, now: float) -> Told:
    body = msgspec.json.encode(digest).decode()
    return Told(week=digest.week, until=digest.until, body=body, at=now)
