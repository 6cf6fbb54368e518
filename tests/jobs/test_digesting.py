"""What a digest tells is what was counted and noted: of a week, or of the weeks that somebody asks for."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from jobs.digest.digest import Away, Digest, WeekRate
from jobs.digest.figures import CheckFigures, RunFigures
from jobs.digesting import Digesting
from jobs.pinning.kind import How, Kind
from jobs.pinning.pin import Entry, Pin, Spec, pin_of
from jobs.ports import Absence, Outcome, Stop, StopState
from jobs.store.blocking import open_blocking
from jobs.store.database import Database, Tables
from jobs.store.digest_tables import DigestTables
from jobs.thrash.incident import Incident, IncidentStatus
from jobs.verification.drift import Alarm, Drift
from jobs.verification.spec import CommandCheck, WorkflowSpec
from jobs.verification.trial import MadeOf, SelfTest, Trials
from jobs.verification.verdict import Check
from jobs.watchlist.sources import SourceSpec
from tests.fakes import HandClock
from tests.jobs.runs import at
from tests.jobs.weeks import DAY, HOUR, WEEK, Weeks, judged
from tests.store.rows import a_session, an_incident
from tests.verdicts import MISSING

WEDNESDAY = at("2026-11-25T12:00")
SUNDAY = at("2026-11-29T18:00")
"""The end of 2026-W48."""
NIGHTLY = WorkflowSpec(name="nightly", output="/out/report.json")
TESTED = WorkflowSpec(name="tested", output="/out/t.json", command=CommandCheck(argv=("make", "test")))


@pytest.fixture
async def weeks(store: Database) -> Weeks:
    weeks = Weeks(store=store, clock=HandClock(WEDNESDAY))
    await weeks.look()
    return weeks


async def _digest(weeks: Weeks, moment: float = SUNDAY) -> Digest:
    """The newest digest that is told by then."""
    weeks.clock.time = moment
    await weeks.look()
    return (await weeks.told())[-1].body


async def _pin(
    weeks: Weeks, spec: Spec | None, *, name: str, kind: Kind = Kind.WORKFLOW, by: int | None = None
) -> Pin:
    pin = pin_of(Entry(kind=kind, name=name, spec=spec), How.APPROVED, weeks.clock.now())
    async with weeks.store.transaction() as tables:
        return await tables.pins.add(replace(pin, by=by))


# ── runs and checks ───────────────────────────────────────────────────────────────────────────────


async def test_runs_and_checks_are_counted_workflow_by_workflow(weeks: Weeks) -> None:
    """Each check passed, failed or was not reached; what was missing, and what lied, has its own columns."""
    await weeks.record(judged(), judged(), judged(Check.FRESH, said="ok"), MISSING)
    await weeks.record(judged(Check.STATUS), workflow="hourly")
    figures = (await _digest(weeks)).figures
    assert figures.runs == (
        RunFigures(workflow="hourly", failed=1),
        RunFigures(workflow="nightly", passed=2, failed=1, missing=1, said_done=1),
    )
    assert figures.checks == (
        CheckFigures(workflow="hourly", check=Check.EXISTS, passed=1),
        CheckFigures(workflow="hourly", check=Check.FRESH, passed=1),
        CheckFigures(workflow="hourly", check=Check.STATUS, failed=1),
        CheckFigures(workflow="nightly", check=Check.EXISTS, passed=3),
        CheckFigures(workflow="nightly", check=Check.FRESH, passed=2, failed=1),
        CheckFigures(workflow="nightly", check=Check.STATUS, passed=2, not_reached=1),
    )


async def test_a_run_counts_by_its_newest_verdict_until_the_week_after_was_told(weeks: Weeks) -> None:
    """What is judged again later changes no figure."""
    await weeks.record(judged(Check.FRESH), judged(), run=1)
    await weeks.record(judged(), run=2)
    assert (await _digest(weeks)).figures.runs == (RunFigures(workflow="nightly", passed=2),)
    await weeks.record(judged(Check.STATUS), run=2)
    for later in (WEEK, 2 * WEEK):
        digest = await _digest(weeks, SUNDAY + later)
        assert digest.figures.runs == ()
        assert digest.rates[0] == WeekRate(week="2026-W48", passed=1, failed=1)
        await weeks.record(judged(), run=2)


async def test_a_run_that_comes_after_its_week_was_told_is_counted_in_it(weeks: Weeks) -> None:
    """It was missing then. The sum over the weeks is the number of runs."""
    await weeks.record(judged())
    await weeks.record(MISSING, run=9)
    told = await _digest(weeks)
    assert told.figures.runs == (RunFigures(workflow="nightly", passed=1, missing=1),)
    weeks.clock.go_on(DAY)
    await weeks.record(judged(), run=9)
    asked = (await weeks.job.on_request(2)).body
    assert asked.figures.runs == (RunFigures(workflow="nightly", passed=2),)
    await weeks.record(judged(Check.FRESH))
    digest = await _digest(weeks, SUNDAY + WEEK)
    assert digest.figures.runs == (RunFigures(workflow="nightly", failed=1),)
    assert [(rate.passed, rate.failed) for rate in digest.rates] == [(2, 0), (0, 1)]
    assert await weeks.store.reading.counts.rates() == list(digest.rates)


async def test_the_pass_rates_are_those_of_the_last_twelve_weeks(weeks: Weeks) -> None:
    """As far back as any are known; a week without runs is one of them."""
    for week in range(15):
        if week != 13:
            await weeks.record(judged(), *[judged(Check.FRESH)] * week)
        digest = await _digest(weeks, SUNDAY + week * WEEK)
        assert len(digest.rates) == min(week + 1, 12)
    assert digest.rates[-3:] == (
        WeekRate(week="2027-W07", passed=1, failed=12),
        WeekRate(week="2027-W08"),
        WeekRate(week="2027-W09", passed=1, failed=14),
    )


async def test_what_was_verified_before_the_bot_came_is_known_to_its_first_digest(store: Database) -> None:
    """Week by week, so that there is something to compare with."""
    weeks = Weeks(store=store, clock=HandClock(SUNDAY - 5 * WEEK + HOUR))
    for _ in range(5):
        await weeks.record(judged(), judged(Check.FRESH))
        weeks.clock.go_on(WEEK)
    await weeks.look()
    assert await weeks.weeks() == []
    await weeks.record(judged())
    digest = await _digest(weeks, SUNDAY + WEEK)
    assert [(rate.week, rate.failed) for rate in digest.rates] == [
        *((f"2026-W{44 + n}", 1) for n in range(5)),
        ("2026-W49", 0),
    ]


async def test_a_digest_of_many_workflows_has_them_all(weeks: Weeks) -> None:
    async with weeks.store.transaction():
        for number in range(500):
            await weeks.record(judged(), workflow=f"workflow-{number:03}")
    digest = await _digest(weeks)
    assert len(digest.figures.runs) == 500
    assert len(digest.figures.checks) == 1500


# ── drift ─────────────────────────────────────────────────────────────────────────────────────────


async def test_drift_is_found_over_the_weeks_that_were_told(weeks: Weeks) -> None:
    """Also of runs whose verdicts are deleted by now."""
    for week in range(4):
        await weeks.record(*([judged(Check.STATUS)] if week == 0 else []), *[judged()] * 10)
        digest = await _digest(weeks, SUNDAY + week * WEEK)
        async with weeks.store.transaction() as tables:
            await tables.connection.execute("DELETE FROM verdict")
    assert [(alarm.check, alarm.weeks, alarm.runs) for alarm in digest.alarms] == [
        (Check.STATUS, 3, 30),
        (Check.EXISTS, 3, 30),
        (Check.FRESH, 3, 30),
    ]
    assert digest.alarms[0].earlier_failed == 1


async def test_a_workflow_without_runs_is_odd_until_it_is_removed(weeks: Weeks) -> None:
    await _pin(weeks, NIGHTLY, name="nightly")
    await weeks.record(judged(), judged())
    await _digest(weeks)
    silent = await _digest(weeks, SUNDAY + WEEK)
    odd = Alarm(drift=Drift.NO_RUNS, workflow="nightly", week="2026-W49", last_ran="2026-W48")
    assert silent.alarms == (odd,)
    assert (await _digest(weeks, SUNDAY + 9 * WEEK)).alarms[0].last_ran == "2026-W48"
    await _pin(weeks, None, name="nightly")
    assert (await _digest(weeks, SUNDAY + 10 * WEEK)).alarms == ()


async def test_a_workflow_that_has_never_run_is_odd_after_its_first_whole_week(weeks: Weeks) -> None:
    """One that was removed meanwhile is watched anew."""
    await _pin(weeks, SourceSpec(name="nightly", path="/logs"), name="nightly", kind=Kind.SOURCE)
    await _pin(weeks, NIGHTLY, name="nightly")
    assert (await _digest(weeks)).alarms == ()
    odd = Alarm(drift=Drift.NO_RUNS, workflow="nightly", week="2026-W49")
    assert (await _digest(weeks, SUNDAY + WEEK)).alarms == (odd,)
    for spec in (None, NIGHTLY):
        await _pin(weeks, spec, name="nightly")
    assert (await _digest(weeks, SUNDAY + 2 * WEEK)).alarms == ()


# ── loops ─────────────────────────────────────────────────────────────────────────────────────────


async def _stopped(
    tables: Tables, name: str, status: IncidentStatus = IncidentStatus.STOPPED, *, finished_at: float
) -> tuple[Incident, Stop]:
    session = await tables.sessions.save(a_session(session=name))
    plain = an_incident(session, closed_at=finished_at)
    incident = await tables.incidents.add(
        replace(
            plain, status=status, newest_ts=plain.first_ts + 600, tokens=5000, cost=7 * 10**9, currency="EUR"
        )
    )
    intent = Stop.intended(session, incident, ordered_by=42, now=finished_at - 1)
    done = replace(intent, state=StopState.OVER, outcome=Outcome.STOPPED, finished_at=finished_at)
    return incident, await tables.stops.add(done)


async def test_the_loops_that_were_stopped_are_told_with_what_they_had_come_to(weeks: Weeks) -> None:
    async with weeks.store.transaction() as tables:
        incident, _ = await _stopped(tables, "s-1", finished_at=WEDNESDAY)
        await _stopped(tables, "s-2", finished_at=SUNDAY - 1)
        await _stopped(tables, "s-3", finished_at=SUNDAY)
    first, second = (await _digest(weeks)).stops
    assert (first.at, second.at) == (WEDNESDAY, SUNDAY - 1)
    assert (first.agent, first.incident, first.ordered_by) == ("coder", incident.id, 42)
    assert (first.tool, first.kind, first.score, first.calls) == ("exec", "thrash_loop", 8, 10)
    assert (first.span, first.tokens, first.cost, first.currency) == (600, 5000, 7 * 10**9, "EUR")
    assert (first.tokens_per_hour, first.cost_per_hour) == (30_000, 42 * 10**9)
    assert not first.is_cost_part


async def test_a_stop_that_did_not_hold_is_none(weeks: Weeks) -> None:
    """Of two stops of one loop the last one counts; a dry run has stopped nothing."""
    async with weeks.store.transaction() as tables:
        await _stopped(tables, "s-1", IncidentStatus.STILL_RUNNING, finished_at=WEDNESDAY)
        await _stopped(tables, "s-2", IncidentStatus.RESOLVED, finished_at=WEDNESDAY)
        _, dry = await _stopped(tables, "s-3", finished_at=WEDNESDAY)
        await tables.stops.save(replace(dry, outcome=Outcome.DRY_RUN))
        _, first = await _stopped(tables, "s-4", finished_at=WEDNESDAY)
        await tables.stops.add(replace(first, escalates=first.id, finished_at=WEDNESDAY + 60))
    assert [stop.at for stop in (await _digest(weeks)).stops] == [WEDNESDAY + 60]


# ── pins, self-tests, absences, questions ─────────────────────────────────────────────────────────


async def test_the_pins_that_changed_are_told_with_what_they_were_before(weeks: Weeks) -> None:
    before = await _pin(weeks, NIGHTLY, name="nightly")
    await _digest(weeks)
    looser = await _pin(weeks, msgspec.structs.replace(NIGHTLY, max_age=DAY), name="nightly", by=42)
    source = await _pin(weeks, SourceSpec(name="gateway", path="/logs"), name="gateway", kind=Kind.SOURCE)
    await _pin(weeks, None, name="nightly")
    digest = await _digest(weeks, SUNDAY + WEEK)
    assert {(pin.at, pin.how) for pin in digest.pins} == {(SUNDAY, "approved")}
    assert [(pin.kind, pin.name, pin.by, pin.before, pin.after) for pin in digest.pins] == [
        ("workflow", "nightly", 42, before.hash, looser.hash),
        ("source", "gateway", None, "", source.hash),
        ("workflow", "nightly", None, looser.hash, ""),
    ]


async def test_the_newest_self_test_of_each_workflow_in_force_is_told(weeks: Weeks) -> None:
    await _pin(weeks, NIGHTLY, name="nightly")
    async with weeks.store.transaction() as tables:
        for name, detected in (("nightly", 39), ("nightly", 41), ("gone", 7)):
            result = Trials(detected=detected)
            test = SelfTest(workflow=name, pin_id=1, made_of=MadeOf.OUTPUT, result=result, at=WEDNESDAY)
            await tables.selftests.add(test)
    [tested] = (await _digest(weeks)).selftests
    assert (tested.workflow, tested.trials.total) == ("nightly", 41)


async def test_the_workflows_in_force_are_named_that_were_not_tested_in_the_week(weeks: Weeks) -> None:
    """In the middle of a week the tests for the last digest are new enough."""
    for name in ("nightly", "old", "never"):
        await _pin(weeks, msgspec.structs.replace(NIGHTLY, name=name), name=name)
    async with weeks.store.transaction() as tables:
        for name, moment in (("old", SUNDAY - WEEK - 1), ("nightly", SUNDAY - HOUR), ("gone", SUNDAY - HOUR)):
            test = SelfTest(workflow=name, pin_id=1, made_of=MadeOf.OUTPUT, result=Trials(), at=moment)
            await tables.selftests.add(test)
    assert (await _digest(weeks)).untested == ("never", "old")
    weeks.clock.go_on(DAY)
    assert (await weeks.job.on_request(1)).body.untested == ("never", "old")
    assert (await _digest(weeks, SUNDAY + WEEK)).untested == ("never", "nightly", "old")


async def test_of_a_week_in_the_middle_of_which_the_bot_was_first_started_no_absence_is_known(
    weeks: Weeks,
) -> None:
    assert not (await _digest(weeks)).is_watched
    assert (await _digest(weeks, SUNDAY + WEEK)).is_watched


async def test_an_absence_is_told_as_far_as_it_lies_in_the_week(weeks: Weeks) -> None:
    async with weeks.store.transaction() as tables:
        for since, until in ((-WEEK - DAY, -WEEK + HOUR), (-2 * DAY, -DAY), (-HOUR, HOUR), (HOUR, DAY)):
            await tables.absences.add(Absence(since=SUNDAY + since, until=SUNDAY + until))
    assert (await _digest(weeks)).absences == (
        Away(since=SUNDAY - WEEK, until=SUNDAY - WEEK + HOUR),
        Away(since=SUNDAY - 2 * DAY, until=SUNDAY - DAY),
        Away(since=SUNDAY - HOUR, until=SUNDAY),
    )


async def test_the_absence_that_has_just_ended_is_told_before_anybody_has_looked(weeks: Weeks) -> None:
    """The digests of the weeks that were missed are the first thing that is done after it."""
    async with weeks.store.transaction() as tables:
        await tables.presence.note(SUNDAY - DAY)
    weeks.clock.time = SUNDAY + WEEK + DAY
    await weeks.look()
    first, second = [notice.body for notice in await weeks.told()]
    assert first.absences == (Away(since=SUNDAY - DAY, until=SUNDAY),)
    assert second.absences == (Away(since=SUNDAY, until=SUNDAY + WEEK),)


async def test_the_workflows_that_run_a_command_are_named(weeks: Weeks) -> None:
    for spec in (TESTED, NIGHTLY):
        await _pin(weeks, spec, name=spec.name)
    _, unit_test, _ = (await _digest(weeks)).answers
    assert unit_test.names == ("tested",)


# ── asked for ─────────────────────────────────────────────────────────────────────────────────────


async def test_the_week_so_far_can_be_asked_for(weeks: Weeks) -> None:
    """It is no digest of that week, which is told when it is over."""
    await _pin(weeks, NIGHTLY, name="nightly")
    await weeks.record(judged())
    weeks.clock.go_on(HOUR)
    asked = await weeks.job.on_request(1)
    assert asked.body.week is None
    assert (asked.body.since, asked.body.until) == (SUNDAY - WEEK, WEDNESDAY + HOUR)
    assert asked.body.figures.runs == (RunFigures(workflow="nightly", passed=1),)
    assert asked.body.rates == (WeekRate(week="2026-W48", passed=1),)
    assert not asked.body.is_late(weeks.clock.now())
    row = await weeks.store.reading.digests.get(asked.digest)
    assert row
    assert row.week is None
    assert (await _digest(weeks)).week == "2026-W48"


async def test_no_runs_are_not_odd_in_the_middle_of_a_week(weeks: Weeks) -> None:
    await _pin(weeks, NIGHTLY, name="nightly")
    await weeks.record(judged())
    await _digest(weeks)
    weeks.clock.go_on(HOUR)
    assert (await weeks.job.on_request(1)).body.alarms == ()


async def test_what_was_odd_in_one_of_several_weeks_is_told(weeks: Weeks) -> None:
    """The newest of its kind; of the week that goes on only a jump."""
    await _pin(weeks, NIGHTLY, name="nightly")
    for week in range(4):
        await weeks.record(*[judged()] * 10)
        await _digest(weeks, SUNDAY + week * WEEK)
    await _digest(weeks, SUNDAY + 4 * WEEK)
    await weeks.record(judged(Check.STATUS), judged(Check.STATUS))
    weeks.clock.go_on(HOUR)
    alarms = (await weeks.job.on_request(4)).body.alarms
    assert [(alarm.drift, alarm.check, alarm.week) for alarm in alarms] == [
        (Drift.JUMPED, Check.STATUS, "2026-W53"),
        (Drift.NO_RUNS, None, "2026-W52"),
        *((Drift.TOO_GOOD, check, "2026-W51") for check in (Check.EXISTS, Check.FRESH, Check.STATUS)),
    ]
    asked = (await weeks.job.on_request(1)).body
    assert [alarm.drift for alarm in asked.alarms] == [Drift.JUMPED]


async def test_several_weeks_are_added_up(weeks: Weeks) -> None:
    """Those that were told as they were told, and what has come since."""
    for week in range(3):
        await weeks.record(judged(), judged(Check.FRESH))
        await _digest(weeks, SUNDAY + week * WEEK)
    await weeks.record(judged())
    weeks.clock.go_on(HOUR)
    digest = (await weeks.job.on_request(3)).body
    assert digest.since == SUNDAY
    assert digest.figures.runs == (RunFigures(workflow="nightly", passed=3, failed=2),)
    assert digest.figures.checks[1] == CheckFigures(workflow="nightly", check=Check.FRESH, passed=3, failed=2)
    assert len(digest.rates) == 4


async def test_no_weeks_can_be_asked_for_of_which_nothing_is_known(weeks: Weeks) -> None:
    """Known is what was counted, told or pinned."""
    assert (await weeks.job.on_request(9)).body.weeks == 1
    await _pin(weeks, NIGHTLY, name="nightly")
    weeks.clock.go_on(2 * WEEK)
    asked = (await weeks.job.on_request(9)).body
    assert (asked.weeks, asked.since) == (3, SUNDAY - WEEK)
    assert (await weeks.job.on_request(2)).body.weeks == 2


async def test_a_digest_without_runs_says_so(weeks: Weeks) -> None:
    digest = (await weeks.job.on_request(5)).body
    assert digest.figures.runs == ()
    assert digest.rates == (WeekRate(week="2026-W48"),)


async def test_without_a_bot_the_weeks_are_counted_anew(tmp_path: Path, store: Database) -> None:
    """For people who only run `loopwarden verify`: over a plain connection, and nothing is written."""
    weeks = Weeks(store=store, clock=HandClock(SUNDAY - 5 * WEEK + HOUR))
    for _ in range(5):
        await weeks.record(judged(), judged(Check.FRESH))
        weeks.clock.go_on(WEEK)
    with open_blocking(str(tmp_path)) as blocking:
        digesting = Digesting(tables=DigestTables.over(blocking.connection), zone=weeks.zone, every=60)
        digest = blocking.read(digesting.of_last(3, weeks.clock.now()))
    assert digest.figures.runs == (RunFigures(workflow="nightly", passed=2, failed=2),)
    assert not digest.is_watched
    assert [rate.failed for rate in digest.rates] == [1, 1, 1, 1, 1, 0]
    assert await store.reading.counts.rates() == []
