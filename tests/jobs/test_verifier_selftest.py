"""The verifier is tried after every approved change and before every digest; what it does not notice is told."""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from pathlib import Path
from typing import Final

import msgspec
import pytest

from jobs import ports, verifier_selftest
from jobs.alert.notice import AnyNotice
from jobs.alert.selftest_notice import SelftestNotice
from jobs.pinning.kind import How, Kind
from jobs.pinning.pin import Pin, encoded, hash_of
from jobs.store.database import Database, open_database
from jobs.verification.spec import Names, WorkflowSpec
from jobs.verification.trial import GoodOutput, MadeOf, SelfTest, Trial, Trials
from jobs.verification.verdict import Check
from jobs.verifier_selftest import VerifierSelftest
from tests.fakes import HOME, FixedWatch, HandClock
from tests.jobs.runs import at

WEDNESDAY: Final = at("2027-01-13T12:00")
SUNDAY: Final = at("2027-01-17T18:00")
"""When the digest is due that comes next."""
WEEK: Final = 7 * 86_400.0
NIGHTLY: Final = WorkflowSpec(name="nightly", output="/out/report.json")
WEEKLY: Final = WorkflowSpec(name="weekly", output="/out/weekly.json")
ALL: Final = (MadeOf.OUTPUT, Trials(detected=41))
SURVIVED: Final = (
    MadeOf.OUTPUT,
    Trials(
        detected=40,
        survivors=(
            Trial(mutant="status renamed", check=Check.STATUS, is_detected=False, found="it passes: ok"),
        ),
    ),
)


@dataclass(slots=True)
class ScriptedTester(ports.Tester):
    """Finds what is written, then that all is detected."""

    results: deque[tuple[MadeOf, Trials]] = field(default_factory=deque)
    asked: list[tuple[WorkflowSpec, GoodOutput | None, float]] = field(default_factory=list)
    begun: threading.Event = field(default_factory=threading.Event)
    may_end: threading.Event = field(default_factory=threading.Event)
    """Cleared, it keeps tests waiting."""
    clock: HandClock = field(default_factory=HandClock)
    takes: float = 0.0
    """Seconds that the clock is moved by in every test."""

    def __post_init__(self) -> None:
        self.may_end.set()

    def test(self, spec: WorkflowSpec, good: GoodOutput | None, now: float) -> tuple[MadeOf, Trials]:
        self.asked.append((spec, good, now))
        self.begun.set()
        assert self.may_end.wait(timeout=60)
        self.clock.go_on(self.takes)
        return self.results.popleft() if self.results else ALL


@dataclass(kw_only=True)
class Bench:
    """A bot that guards nothing but its verifier, on a Wednesday."""

    store: Database
    clock: HandClock = field(default_factory=lambda: HandClock(WEDNESDAY))
    watch: FixedWatch = field(default_factory=FixedWatch)
    tester: ScriptedTester = field(default_factory=ScriptedTester)
    job: VerifierSelftest = field(init=False)

    def __post_init__(self) -> None:
        self.tester.clock = self.clock
        self.job = VerifierSelftest(
            store=self.store, watch=self.watch, tester=self.tester, clock=self.clock, zone=UTC
        )

    async def approve(self, spec: WorkflowSpec = NIGHTLY) -> int:
        """Let a specification be in force; return the number of its pin."""
        entry = encoded(spec)
        pin = Pin(
            kind=Kind.WORKFLOW,
            name=spec.name,
            entry=entry,
            hash=hash_of(entry),
            how=How.APPROVED,
            at=self.clock.now(),
        )
        async with self.store.transaction() as tables:
            added = await tables.pins.add(pin)
        self.watch.specs = [*(each for each in self.watch.specs if each.name != spec.name), spec]
        return added.id

    async def beat(self, moment: float) -> list[str]:
        """Let the time come, and return which workflows are tested then."""
        self.clock.time = moment
        self.tester.asked.clear()
        await self.job()
        return [spec.name for spec, _, _ in self.tester.asked]

    async def kept(self, name: str = "nightly") -> SelfTest:
        return (await self.store.reading.selftests.latest())[name]

    async def told(self) -> Sequence[AnyNotice]:
        """Everything that the chat is told."""
        heard: list[AnyNotice] = []
        while message := await self.store.reading.outbox.due(self.clock.now(), HOME):
            async with self.store.transaction() as tables:
                await tables.outbox.mark_sent(message.id, message.id, self.clock.now())
            heard.append(msgspec.json.decode(message.body, type=AnyNotice))
        return heard


@pytest.fixture
def bench(store: Database) -> Bench:
    return Bench(store=store)


# ── when ──────────────────────────────────────────────────────────────────────────────────────────


async def test_what_is_new_is_tested_at_once_and_once(bench: Bench) -> None:
    pin = await bench.approve()
    assert await bench.beat(WEDNESDAY) == ["nightly"]
    assert await bench.beat(WEDNESDAY + 30) == []
    expected = SelfTest(workflow="nightly", pin_id=pin, made_of=ALL[0], result=ALL[1], at=WEDNESDAY)
    assert replace(await bench.kept(), id=0) == expected


async def test_after_an_approval_only_what_was_approved_is_tested(bench: Bench) -> None:
    """By what was approved."""
    await bench.approve()
    await bench.approve(WEEKLY)
    assert await bench.beat(WEDNESDAY) == ["nightly", "weekly"]
    changed = msgspec.structs.replace(NIGHTLY, max_age=60)
    pin = await bench.approve(changed)
    assert await bench.beat(WEDNESDAY + 30) == ["nightly"]
    assert bench.tester.asked[0][0] == changed
    assert (await bench.kept()).pin_id == pin


async def test_what_was_approved_counts_and_not_what_is_in_force_for_a_moment_longer(bench: Bench) -> None:
    await bench.approve(msgspec.structs.replace(NIGHTLY, max_age=60))
    bench.watch.specs = [NIGHTLY]
    await bench.beat(WEDNESDAY)
    assert bench.tester.asked[0][0].max_age == 60


async def test_what_is_not_pinned_is_tested_as_it_is_watched(bench: Bench) -> None:
    bench.watch.specs = [NIGHTLY]
    assert await bench.beat(WEDNESDAY) == ["nightly"]
    assert (await bench.kept()).pin_id is None
    assert await bench.beat(WEDNESDAY + 30) == []


async def test_what_is_not_watched_any_more_is_not_tested(bench: Bench) -> None:
    await bench.approve()
    bench.watch.specs = []
    assert await bench.beat(WEDNESDAY) == []


async def test_on_sunday_all_are_tested_in_the_hour_before_the_digest(bench: Bench) -> None:
    await bench.approve()
    await bench.approve(WEEKLY)
    await bench.beat(WEDNESDAY)
    assert await bench.beat(SUNDAY - 3601) == []
    assert await bench.beat(SUNDAY - 3600) == ["nightly", "weekly"]
    assert await bench.beat(SUNDAY - 3570) == []
    assert await bench.beat(SUNDAY + 30) == []
    assert await bench.beat(SUNDAY + WEEK - 3600) == ["nightly", "weekly"]


async def test_what_was_approved_on_sunday_is_not_tested_twice(bench: Bench) -> None:
    await bench.approve()
    assert await bench.beat(SUNDAY - 60) == ["nightly"]
    assert await bench.beat(SUNDAY) == []


async def test_after_having_been_away_over_a_sunday_all_are_tested_once(bench: Bench, tmp_path: Path) -> None:
    """However many of them have passed."""
    await bench.approve()
    await bench.beat(WEDNESDAY)
    async with open_database(tmp_path) as store:
        back = Bench(store=store, watch=bench.watch)
        assert await back.beat(WEDNESDAY + 30) == []
        assert await back.beat(SUNDAY + 3 * WEEK + 3600) == ["nightly"]
        assert await back.beat(SUNDAY + 3 * WEEK + 3630) == []


async def test_a_digest_waits_ten_minutes_and_the_rest_is_tested_later(bench: Bench) -> None:
    """First what was approved since, then what was tested longest ago: each has its turn, however long they take."""
    specs = [msgspec.structs.replace(NIGHTLY, name=name) for name in ("a", "b", "c", "d", "e")]
    for number, spec in enumerate(specs):
        await bench.approve(spec)
        await bench.beat(WEDNESDAY + number)
    await bench.approve(msgspec.structs.replace(specs[4], max_age=60))
    bench.tester.takes = 250
    assert await bench.beat(SUNDAY - 1) == ["e", "a", "b"]
    bench.tester.asked.clear()
    await bench.job.up_to(SUNDAY)
    assert [spec.name for spec, _, _ in bench.tester.asked] == ["c", "d"]


@pytest.mark.parametrize("step", [-3600.0, 3600.0], ids=["back", "ahead"])
async def test_a_clock_that_is_set_does_not_make_a_digest_wait_longer(bench: Bench, step: float) -> None:
    await bench.approve()
    await bench.approve(WEEKLY)
    bench.tester.takes = step
    assert await bench.beat(WEDNESDAY) == ["nightly"]
    bench.tester.takes = 0
    assert await bench.beat(WEDNESDAY) == ["weekly"]


async def test_a_clock_that_was_wrong_puts_nothing_off(bench: Bench) -> None:
    """A test of a year to come is none."""
    await bench.approve()
    await bench.beat(WEDNESDAY + 52 * WEEK)
    assert await bench.beat(WEDNESDAY) == ["nightly"]
    assert await bench.beat(WEDNESDAY + 30) == []


async def test_the_digest_has_them_done_first(bench: Bench) -> None:
    await bench.approve()
    await bench.beat(WEDNESDAY)
    bench.clock.time = SUNDAY
    await bench.job.up_to(SUNDAY)
    assert (await bench.kept()).at == SUNDAY


async def test_what_is_under_way_is_waited_for_and_not_repeated(bench: Bench) -> None:
    await bench.approve()
    bench.tester.may_end.clear()
    beat = asyncio.ensure_future(bench.job())
    await asyncio.to_thread(bench.tester.begun.wait)
    digest = asyncio.ensure_future(bench.job.up_to(SUNDAY - WEEK))
    await asyncio.sleep(0)
    assert not digest.done()
    bench.tester.may_end.set()
    await asyncio.gather(beat, digest)
    assert len(bench.tester.asked) == 1


# ── of what ───────────────────────────────────────────────────────────────────────────────────────


async def test_what_is_made_bad_is_the_last_good_output(bench: Bench) -> None:
    good = GoodOutput(
        workflow="nightly",
        run_id=7,
        path="/out/report.json",
        sha256="5" * 64,
        mtime_ns=1,
        judged_as_of=WEDNESDAY,
        names=Names(date="2027-01-13"),
        data=b"good",
    )
    async with bench.store.transaction() as tables:
        await tables.good_outputs.keep(good)
    await bench.approve()
    await bench.approve(WEEKLY)
    await bench.beat(WEDNESDAY)
    assert bench.tester.asked == [(NIGHTLY, good, WEDNESDAY), (WEEKLY, None, WEDNESDAY)]


# ── what came of it ───────────────────────────────────────────────────────────────────────────────


async def test_what_survives_is_one_alert_that_names_check_and_mutant(bench: Bench) -> None:
    bench.tester.results.append(SURVIVED)
    await bench.approve()
    await bench.approve(WEEKLY)
    await bench.beat(WEDNESDAY)
    assert await bench.told() == [
        SelftestNotice(workflow="nightly", made_of=MadeOf.OUTPUT, result=SURVIVED[1])
    ]
    assert (await bench.kept()).result == SURVIVED[1]
    await bench.beat(WEDNESDAY + 30)
    assert await bench.told() == []


@pytest.mark.parametrize(
    "result",
    [
        ALL,
        (MadeOf.NOTHING, Trials(trouble="no output can be made up after the specification")),
        (MadeOf.OUTPUT, Trials(detected=3, trouble="not all could be judged within 120 s")),
    ],
    ids=["all", "nothing", "cut short"],
)
async def test_all_else_is_for_the_digest(bench: Bench, result: tuple[MadeOf, Trials]) -> None:
    bench.tester.results.append(result)
    await bench.approve()
    await bench.beat(WEDNESDAY)
    assert await bench.told() == []
    kept = await bench.kept()
    assert (kept.made_of, kept.result) == result


async def test_what_does_not_come_back_is_trouble_and_keeps_no_other_waiting(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifier_selftest, "_LONGEST", 0.05)
    await bench.approve()
    bench.tester.may_end.clear()
    await bench.beat(WEDNESDAY)
    kept = await bench.kept()
    assert kept.made_of is MadeOf.NOTHING
    assert kept.result.trouble == "the self-test of nightly has not come back within 0.05 s"
    bench.tester.may_end.set()


async def test_what_came_of_it_is_in_the_log(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    bench.tester.results.append(SURVIVED)
    await bench.approve()
    await bench.beat(WEDNESDAY)
    assert caplog.messages == ["self-test of nightly: 40 of 41 detected"]
