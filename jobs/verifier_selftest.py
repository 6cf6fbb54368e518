"""The verifier is tried: good outputs made bad on purpose -> does each fail by the check that claims to catch it?"""

import asyncio
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Final

from jobs.alert.selftest_notice import survival_told
from jobs.aside import Aside, OverdueError
from jobs.digest.week import last_ended, slot
from jobs.pinning.pin import spec_of
from jobs.ports import Clock, RunTables, Store, Tester, Watch
from jobs.verification.history import CLOCK_SLACK
from jobs.verification.spec import WorkflowSpec
from jobs.verification.trial import GoodOutput, MadeOf, SelfTest, Trials

_AHEAD: Final = 3600.0
"""Seconds: what is tested so long before a digest is new enough for it."""
_PATIENCE: Final = 600.0
"""Seconds after which no further test is begun: a digest may wait for them."""
_LONGEST: Final = 300.0
"""Seconds for one workflow; the process that tests it takes half of that at most."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A workflow as it is in force."""

    spec: WorkflowSpec
    pin_id: int | None = None
    """None if it is not pinned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifierSelftest:
    """Tests every workflow after each approved change, and before each digest.

    1. Those are taken whose newest self-test is of another pin, or older than the hour before the newest digest: first
       what is new, then what was tested longest ago. What ten minutes are not enough for is left for the next time.
    2. One after the other, apart, the last good output is made bad, or one made up, and each mutant judged. No command
       is run, and nothing is read where the outputs lie.
    3. What came of it is committed, and with it an alert that names every mutant that has survived.
    """

    store: Store
    watch: Watch
    tester: Tester
    clock: Clock
    zone: tzinfo
    aside: Aside = field(default_factory=Aside)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """The digest may want them done while they are under way."""

    async def __call__(self) -> None:
        """Test what is due."""
        await self.up_to(slot(last_ended(self.clock.now() + _AHEAD, self.zone), self.zone))

    async def up_to(self, digest: float) -> None:
        """Have the tests done that a digest at a time (epoch seconds) tells of."""
        begun = self.clock.now()
        async with self.turn:
            for subject in await self._due(digest - _AHEAD):
                # Nor when the clock is set back meanwhile.
                if not begun <= self.clock.now() <= begun + _PATIENCE:
                    return
                await self._test(subject)

    async def _due(self, since: float) -> Sequence[Subject]:
        reading, now = self.store.reading, self.clock.now()
        latest = await reading.selftests.latest()
        pins = await pinned(reading)
        subjects = [pins.get(name, Subject(spec=spec)) for name, spec in self.watch.workflows().items()]
        due = [each for each in subjects if _is_due(each, latest.get(each.spec.name), since, now)]
        return sorted(due, key=lambda each: _tested_at(each, latest.get(each.spec.name)))

    async def _test(self, subject: Subject) -> None:
        spec, now = subject.spec, self.clock.now()
        good = await self.store.reading.good_outputs.of(spec.name)
        made_of, result = await self._tried(spec, good, now)
        test = SelfTest(workflow=spec.name, pin_id=subject.pin_id, made_of=made_of, result=result, at=now)
        async with self.store.transaction() as tables:
            await keep(tables, test)
        _log.info("self-test of %s: %d of %d detected", spec.name, result.detected, result.total)

    async def _tried(self, spec: WorkflowSpec, good: GoodOutput | None, now: float) -> tuple[MadeOf, Trials]:
        try:
            return await self.aside(
                f"the self-test of {spec.name}", _LONGEST, lambda: self.tester.test(spec, good, now)
            )
        except OverdueError as overdue:
            return MadeOf.NOTHING, Trials(trouble=str(overdue))


async def pinned(tables: RunTables) -> Mapping[str, Subject]:
    """Return every workflow that is pinned, by its name."""
    pins = await tables.pins.in_force()
    return {
        pin.name: Subject(spec=spec, pin_id=pin.id)
        for pin in pins
        if isinstance(spec := spec_of(pin), WorkflowSpec)
    }


def _is_due(subject: Subject, newest: SelfTest | None, since: float, now: float) -> bool:
    # One that is ahead is of a time before the clock was set back.
    return not since <= _tested_at(subject, newest) <= now + CLOCK_SLACK


def _tested_at(subject: Subject, newest: SelfTest | None) -> float:
    """Return when a workflow was tested as it is in force; before all times if it never was."""
    return newest.at if newest and newest.pin_id == subject.pin_id else -math.inf


async def keep(tables: RunTables, test: SelfTest) -> None:
    """Write what came of a self-test, and the alert if something has survived."""
    await tables.selftests.add(test)
    if told := survival_told(test):
        await tables.outbox.put(told, test.at)
