"""A bot that does nothing but tell the weeks, over a real database and a clock that is moved by hand."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo

import msgspec

from jobs.alert.digest_notice import DigestNotice
from jobs.store.database import Database
from jobs.verification.history import RecordedVerdict
from jobs.verification.verdict import Check, CheckResult, Judged, Outcome, Passed, Verdict
from jobs.weekly_digest import WeeklyDigest
from tests.fakes import HandClock
from tests.verdicts import a_run, a_verdict

HOUR = 3600.0
DAY = 24 * HOUR
WEEK = 7 * DAY
CHECKS = (Check.EXISTS, Check.FRESH, Check.STATUS)


def judged(fails: Check | None = None, *, said: str | None = None) -> Judged:
    """What three checks have found, the one that `fails` and those after it not having passed."""
    results = []
    state = Passed.PASS
    for check in CHECKS:
        state = Passed.FAIL if check is fails else state
        results.append(CheckResult(check=check, passed=state))
        state = Passed.NOT_REACHED if state is Passed.FAIL else state
    outcome = Outcome.PASS if fails is None else Outcome.FAIL
    return Judged(verdict=Verdict(outcome=outcome, results=tuple(results), said_done=said))


@dataclass(kw_only=True)
class Weeks:
    """The bot is started anew with another `store`."""

    store: Database
    clock: HandClock
    zone: tzinfo = UTC
    every: float = 60.0
    tested: list[float] = field(default_factory=list)
    """The digests that the self-tests were done for."""
    breaks: Exception | None = None
    """Raised by the self-tests."""
    runs: int = 0

    @property
    def job(self) -> WeeklyDigest:
        return WeeklyDigest(
            store=self.store, clock=self.clock, zone=self.zone, every=self.every, selftest=self._test
        )

    async def _test(self, digest: float) -> None:
        self.tested.append(digest)
        if self.breaks:
            raise self.breaks

    async def look(self, *, later: float = 0) -> None:
        """Look at the calendar, so much later."""
        self.clock.go_on(later)
        await self.job()

    async def record(
        self, *outcomes: Judged, workflow: str = "nightly", run: int | None = None
    ) -> list[RecordedVerdict]:
        """Record a run for each, or all of one run, heard of now."""
        recorded = []
        async with self.store.transaction() as tables:
            for each in outcomes:
                self.runs += 1
                key = f"run:{run or self.runs}"
                heard = replace(a_run(), workflow=workflow, key=key, at=self.clock.now())
                put = await tables.runs.put(heard)
                verdict = a_verdict(each, put.id, workflow=workflow, at=self.clock.now())
                recorded.append(await tables.verdicts.add(replace(verdict, ran_at=put.at)))
        return recorded

    async def told(self) -> Sequence[DigestNotice]:
        """All digests that were ever queued, in that order."""
        sql = "SELECT body FROM outbox WHERE subject LIKE 'digest:%' ORDER BY id"
        rows = await self.store.reading.connection.execute_fetchall(sql)
        return [msgspec.json.decode(body, type=DigestNotice) for (body,) in rows]

    async def weeks(self) -> list[str | None]:
        """Which weeks these are of."""
        return [notice.body.week for notice in await self.told()]
