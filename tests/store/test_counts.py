"""Figures: counted from verdicts by an index alone, kept of weeks that are over; and stops, absences and digests by time."""

from dataclasses import replace

import pytest

from jobs.digest.digest import WeekRate
from jobs.digest.figures import CheckFigures, Figures, RunFigures
from jobs.ports import Absence, Outcome, Stop, StopState, Told, absence_of
from jobs.store.database import Database, Tables
from jobs.thrash.incident import IncidentStatus
from jobs.verification.verdict import Check, CheckResult, Judged, Passed, Verdict
from jobs.verification.verdict import Outcome as RunOutcome
from tests.fakes import NOON
from tests.store.conftest import Undone
from tests.store.rows import a_session, an_incident
from tests.verdicts import MISSING, a_run, a_verdict, passing

FIGURES = Figures(
    runs=(
        RunFigures(workflow="hourly", passed=3),
        RunFigures(
            workflow="nightly", passed=2, failed=1, missing=1, says_failed=1, said_done=1, failed_tries=7
        ),
    ),
    checks=(CheckFigures(workflow="nightly", check=Check.FRESH, passed=2, failed=1, not_reached=4),),
)


def _of_all_checks(fails: Check | None = None) -> Judged:
    results, state = [], Passed.PASS
    for check in Check:
        results.append(CheckResult(check=check, passed=Passed.FAIL if check is fails else state))
        state = Passed.NOT_REACHED if check is fails else state
    outcome = RunOutcome.FAIL if fails else RunOutcome.PASS
    return Judged(verdict=Verdict(outcome=outcome, results=tuple(results), said_done="ok" if fails else None))


async def _record(tables: Tables, judged: Judged, key: str, *, ran_at: float = NOON) -> None:
    run = await tables.runs.put(replace(a_run(), key=key, at=ran_at))
    await tables.verdicts.add(replace(a_verdict(judged, run.id), ran_at=ran_at))


# ── counted ───────────────────────────────────────────────────────────────────────────────────────


async def test_what_every_check_came_to_is_counted(undone: Undone) -> None:
    """In the order in which they are tried."""
    async with undone() as tables:
        await _record(tables, _of_all_checks(), "1")
        await _record(tables, _of_all_checks(Check.STATUS), "2")
        await _record(tables, passing(says_failed=True), "3")
        await _record(tables, MISSING, "4")
        counted = await tables.counts.between(NOON, NOON + 1)
        first = await tables.counts.first_at()
    assert counted.runs == (
        RunFigures(workflow="nightly", passed=2, failed=1, missing=1, says_failed=1, said_done=1),
    )
    told = [(each.check, each.passed, each.failed, each.not_reached) for each in counted.checks]
    passed = [Check.EXISTS, Check.PARSES, Check.FIELDS, Check.FRESH]
    assert told == [
        (Check.EXISTS, 3, 0, 0),
        *((check, 2, 0, 0) for check in passed[1:]),
        (Check.STATUS, 1, 1, 0),
        *((check, 1, 0, 1) for check in tuple(Check)[5:]),
    ]
    assert first == NOON


async def test_a_run_is_counted_when_it_was_heard_of_and_by_its_newest_verdict(undone: Undone) -> None:
    """From the first moment of a length of time to just before its last."""
    async with undone() as tables:
        for ran_at in (NOON - 1, NOON, NOON + 9, NOON + 10):
            await _record(tables, passing(), f"{ran_at}", ran_at=ran_at)
        await _record(tables, _of_all_checks(Check.EXISTS), f"{NOON}", ran_at=NOON)
        counted = await tables.counts.between(NOON, NOON + 10)
        assert counted.runs == (RunFigures(workflow="nightly", passed=1, failed=1, said_done=1),)
        assert await tables.counts.between(NOON + 11, NOON + 99) == Figures()
        assert await tables.counts.first_at() == NOON - 1


async def test_of_no_runs_there_are_no_figures(undone: Undone) -> None:
    async with undone() as tables:
        assert await tables.counts.between(0, NOON) == Figures()
        assert await tables.counts.first_at() is None
        assert await tables.counts.rates() == []
        assert await tables.counts.kept("0000", "9999") == {}


@pytest.mark.parametrize("question", ["between", "first_at"])
async def test_no_verdict_is_looked_at_to_count_it(store: Database, question: str) -> None:
    """An index holds all that is asked for: what was found stays where it lies."""
    asked: list[str] = []
    await store._opened.reader.set_trace_callback(asked.append)
    counts = store.reading.counts
    await (counts.between(0, NOON) if question == "between" else counts.first_at())
    [sql] = asked
    plan = [row[3] for row in await store._opened.reader.execute_fetchall(f"EXPLAIN QUERY PLAN {sql}")]
    assert plan[0].startswith("SEARCH verdict USING COVERING INDEX verdict_figures")


# ── kept ──────────────────────────────────────────────────────────────────────────────────────────


async def test_figures_come_back_as_they_were_kept(undone: Undone) -> None:
    """By week, and by workflow."""
    async with undone() as tables:
        await tables.counts.keep("2026-W48", FIGURES)
        await tables.counts.keep("2026-W53", FIGURES)
        await tables.counts.keep("2027-W01", Figures(runs=FIGURES.runs[1:]))
        assert await tables.counts.kept("2026-W48", "2026-W53") == {"2026-W48": FIGURES, "2026-W53": FIGURES}
        assert await tables.counts.history("nightly", "2026-W50", "2027-W01") == {
            "2026-W53": Figures(runs=FIGURES.runs[1:], checks=FIGURES.checks),
            "2027-W01": Figures(runs=FIGURES.runs[1:]),
        }
        assert await tables.counts.history("gone", "2026-W50", "2027-W01") == {}
        assert await tables.counts.rates() == [
            WeekRate(week="2026-W48", passed=5, failed=1),
            WeekRate(week="2026-W53", passed=5, failed=1),
            WeekRate(week="2027-W01", passed=2, failed=1),
        ]


# ── stops, absences, digests ──────────────────────────────────────────────────────────────────────


async def _stop(
    tables: Tables,
    name: str,
    *,
    finished_at: float = NOON,
    outcome: Outcome = Outcome.STOPPED,
    status: IncidentStatus = IncidentStatus.STOPPED,
) -> Stop:
    session = await tables.sessions.save(a_session(session=name))
    incident = await tables.incidents.add(replace(an_incident(session, closed_at=finished_at), status=status))
    stop = Stop.intended(session, incident, ordered_by=None, now=NOON)
    return await tables.stops.add(
        replace(stop, state=StopState.OVER, outcome=outcome, finished_at=finished_at)
    )


async def test_the_stops_that_held_are_found_by_time(undone: Undone) -> None:
    """By the end of their incident: not those that failed, are still looked at, or did not hold, nor any but the last one."""
    async with undone() as tables:
        late = await _stop(tables, "late", finished_at=NOON + 9)
        early = await _stop(tables, "early")
        for name, finished_at in (("before", NOON - 1), ("after", NOON + 10)):
            await _stop(tables, name, finished_at=finished_at)
        await _stop(tables, "failed", outcome=Outcome.FAILED)
        await _stop(tables, "goes on", status=IncidentStatus.STILL_RUNNING)
        again = await tables.stops.add(replace(early, escalates=early.id, finished_at=NOON - 5))
        watched = await _stop(tables, "watched")
        await tables.stops.save(replace(watched, state=StopState.WATCHED))
        session = await tables.sessions.save(a_session(session="no loop"))
        ordered = Stop.intended(session, None, ordered_by=42, now=NOON)
        over = replace(ordered, state=StopState.OVER, outcome=Outcome.STOPPED, finished_at=NOON)
        await tables.stops.add(over)
        assert await tables.stops.held(NOON, NOON + 10) == [again, late]


async def test_absences_are_found_by_the_time_that_they_touch(undone: Undone) -> None:
    async with undone() as tables:
        for since, until in ((-9, 0), (-9, 1), (1, 2), (9, 20), (10, 20)):
            await tables.absences.add(Absence(since=NOON + since, until=NOON + until))
        found = await tables.absences.between(NOON, NOON + 10)
    assert [(absence.since - NOON, absence.until - NOON) for absence in found] == [(-9, 1), (1, 2), (9, 20)]


@pytest.mark.parametrize(
    ("before", "every", "is_absence"),
    [(None, 60, False), (180, 60, False), (181, 60, True), (60, 5, False), (61, 5, True), (-999, 60, False)],
)
def test_an_absence_is_longer_than_three_beats_and_a_minute(
    before: float | None, every: float, is_absence: bool
) -> None:
    """A clock that was set back shows none."""
    last = None if before is None else NOON - before
    absence = Absence(since=NOON - (before or 0), until=NOON) if is_absence else None
    assert absence_of(last, NOON, every) == absence


async def test_the_newest_week_is_one_that_was_over_by_then(undone: Undone) -> None:
    """And was told by then: one that was told by a clock that was ahead is told anew. What a person has asked for is no week."""
    async with undone() as tables:
        assert await tables.digests.newest_week(NOON) is None
        assert await tables.digests.begun_at() is None
        first, second, _ = [
            await tables.digests.add(Told(week=week, until=until, body=None, at=NOON))
            for week, until in (("2026-W48", NOON), ("2026-W49", NOON + 9), (None, NOON + 1))
        ]
        assert await tables.digests.newest_week(NOON - 1) is None
        assert await tables.digests.newest_week(NOON + 8) == first
        assert await tables.digests.newest_week(NOON + 9) == second
        assert await tables.digests.of_week("2026-W48") == first
        assert await tables.digests.of_week("2026-W50") is None
        assert await tables.digests.get(second.id) == second
        assert await tables.digests.get(99) is None
        early = replace(second, at=NOON + 10)
        await tables.digests.save(early)
        assert await tables.digests.newest_week(NOON + 9) == first
        assert await tables.digests.newest_week(NOON + 10) == early
        assert await tables.digests.begun_at() == NOON
