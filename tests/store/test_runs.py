"""Workflows, reports, runs and verdicts: every value comes back as it went in, and every question finds what it asks for."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given

from jobs.store.database import Database, Tables
from jobs.verification.history import RecordedVerdict, Report, Run, WorkflowState
from jobs.verification.verdict import Judged, Outcome
from tests.drawn_runs import reports, runs, verdicts, workflows
from tests.fakes import NOON
from tests.store.conftest import Undone, drawing
from tests.verdicts import MISSING, a_report, a_run, a_sighting, a_verdict, failing, passing


@drawing
@given(first=workflows, later=workflows)
async def test_workflows(undone: Undone, first: WorkflowState, later: WorkflowState) -> None:
    async with undone() as tables:
        saved = await tables.workflows.save(first)
        assert saved == replace(first, id=saved.id)
        assert await tables.workflows.get(first.name) == saved
        assert await tables.workflows.by_id(saved.id) == saved
        changed = await tables.workflows.save(replace(later, id=saved.id))
        assert await tables.workflows.all() == {later.name: changed}


@drawing
@given(first=reports, later=reports)
async def test_reports(undone: Undone, first: Report, later: Report) -> None:
    async with undone() as tables:
        added = [await tables.reports.add(report) for report in (first, later)]
        assert await tables.reports.waiting() == added
        await tables.reports.remove(added[0].id)
        assert await tables.reports.waiting() == [replace(later, id=added[1].id)]


async def test_the_next_report_is_the_oldest_of_some_workflows(undone: Undone) -> None:
    """One that a person waits for goes before all others."""
    async with undone() as tables:
        other = await tables.reports.add(replace(a_report(), workflow="other"))
        first, _ = [await tables.reports.add(a_report()) for _ in range(2)]
        assert await tables.reports.next_of({"nightly"}) == first
        assert await tables.reports.next_of({"nightly", "other"}) == other
        asked = await tables.reports.add(replace(a_report(), answer="{}"))
        assert await tables.reports.next_of({"nightly", "other"}) == asked
        assert await tables.reports.next_of(set()) is None
        assert await tables.reports.count() == 4
        assert await tables.reports.waiting("other") == [other]
        await tables.reports.remove(other.id)
        assert not await tables.reports.waits(other.id)
        assert await tables.reports.waits(first.id)


async def test_a_report_of_no_workflow_is_stray_when_it_is_old_or_a_person_waits(undone: Undone) -> None:
    async with undone() as tables:
        old = await tables.reports.add(a_report(at=NOON - 1))
        asked = await tables.reports.add(replace(a_report(), answer="{}"))
        assert await tables.reports.stray({"nightly"}, NOON) is None
        assert await tables.reports.stray(set(), NOON) == old
        assert await tables.reports.stray({"other"}, NOON - 1) == asked


@drawing
@given(drawn=runs)
async def test_runs(undone: Undone, drawn: Run) -> None:
    async with undone() as tables:
        put = await tables.runs.put(drawn)
        assert put == replace(drawn, id=put.id)
        assert await tables.runs.get(put.id) == put
        assert await tables.runs.find(drawn.workflow, drawn.key) == put


@drawing
@given(drawn=verdicts)
async def test_verdicts(undone: Undone, drawn: RecordedVerdict) -> None:
    async with undone() as tables:
        run = await tables.runs.put(a_run())
        added = await tables.verdicts.add(replace(drawn, run_id=run.id))
        assert added == replace(drawn, run_id=run.id, id=added.id)
        assert await tables.verdicts.get(added.id) == added
        assert await tables.verdicts.newest_of(run.id) == added
        assert await tables.verdicts.page(None, None, None, 9) == [added]


# ── runs ──────────────────────────────────────────────────────────────────────────────────────────


async def test_a_key_means_one_run_of_its_workflow(undone: Undone) -> None:
    async with undone() as tables:
        first = await tables.runs.put(a_run())
        assert await tables.runs.put(replace(a_run(), at=NOON + 60)) == first
        other = await tables.runs.put(replace(a_run(), workflow="hourly"))
        assert other.id != first.id
        assert await tables.runs.find("hourly", "run:9") is None


async def test_a_run_can_be_claimed_later(undone: Undone) -> None:
    async with undone() as tables:
        run = await tables.runs.put(a_run())
        await tables.runs.claim(run.id, "r-7")
        assert await tables.runs.get(run.id) == replace(run, reported="r-7")


# ── the history ───────────────────────────────────────────────────────────────────────────────────


async def _record(
    tables: Tables, *judged: Judged, workflow: str = "nightly", key: str | None = None
) -> list[RecordedVerdict]:
    """Record verdicts, each of a run of its own, or all of the run with a `key`."""
    recorded = []
    for each in judged:
        number = len(await tables.verdicts.page(None, None, None, 1000))
        run = await tables.runs.put(
            replace(a_run(), workflow=workflow, key=key or f"run:{number}", at=NOON + number)
        )
        verdict = a_verdict(each, run.id, workflow=workflow, at=NOON + number)
        recorded.append(await tables.verdicts.add(verdict))
    return recorded


def _ids(verdicts: Sequence[RecordedVerdict]) -> list[int]:
    return [verdict.id for verdict in verdicts]


async def test_pages_go_from_the_newest_to_the_oldest(undone: Undone) -> None:
    """Each page begins where the one before ended, whatever was added meanwhile."""
    async with undone() as tables:
        recorded = _ids(await _record(tables, *[passing()] * 5))
        first = _ids(await tables.verdicts.page(None, None, None, 2))
        await _record(tables, passing())
        second = _ids(await tables.verdicts.page(None, None, first[-1], 2))
        last = _ids(await tables.verdicts.page(None, None, second[-1], 2))
        assert first + second + last == recorded[::-1]


async def test_pages_lead_back_to_the_newest(undone: Undone) -> None:
    async with undone() as tables:
        recorded = _ids(await _record(tables, *[passing()] * 5))
        assert _ids(await tables.verdicts.page_after(None, None, recorded[1], 2)) == recorded[2:4][::-1]
        assert _ids(await tables.verdicts.page_after("nightly", Outcome.PASS, recorded[3], 2)) == recorded[4:]


@pytest.mark.parametrize(
    ("workflow", "outcome", "found"),
    [
        (None, None, [6, 5, 4, 3, 2, 1]),
        ("nightly", None, [3, 2, 1]),
        (None, Outcome.FAIL, [5, 2]),
        ("hourly", Outcome.FAIL, [5]),
        ("nightly", Outcome.MISSING, [3]),
        ("hourly", Outcome.MISSING, []),
    ],
)
async def test_a_page_holds_what_was_asked_for(
    store: Database, workflow: str | None, outcome: Outcome | None, found: list[int]
) -> None:
    async with store.transaction() as tables:
        await _record(tables, passing(), failing(), MISSING)
        await _record(tables, passing(), failing(), passing(), workflow="hourly")
    assert _ids(await store.reading.verdicts.page(workflow, outcome, None, 10)) == found


@pytest.mark.parametrize("workflow", [None, "nightly"])
@pytest.mark.parametrize("outcome", [None, Outcome.FAIL])
async def test_a_page_is_read_from_an_index(
    store: Database, workflow: str | None, outcome: Outcome | None
) -> None:
    """However long the history is, no more is read than is shown."""
    asked: list[str] = []
    await store._opened.reader.set_trace_callback(asked.append)
    await store.reading.verdicts.page(workflow, outcome, 7, 10)
    [sql] = asked
    plan = [row[3] for row in await store._opened.reader.execute_fetchall(f"EXPLAIN QUERY PLAN {sql}")]
    assert len(plan) == 1
    assert "SEARCH verdict USING" in plan[0]
    assert "TEMP B-TREE" not in plan[0]


async def test_of_a_run_the_newest_verdict_counts(undone: Undone) -> None:
    async with undone() as tables:
        first, second = await _record(tables, failing(), passing(), key="run:a")
        [other] = await _record(tables, failing())
        assert first.run_id == second.run_id != other.run_id
        assert await tables.verdicts.newest_of(first.run_id) == second
        assert await tables.verdicts.of_run(first.run_id) == [second, replace(first, is_newest=False)]
        assert await tables.verdicts.newest_of(999) is None


async def test_of_each_workflow_the_verdict_of_the_newest_run_is_found(undone: Undone) -> None:
    """Not that of an earlier one, which was judged again since."""
    async with undone() as tables:
        first, _ = await _record(tables, failing(), failing())
        nightly = await tables.verdicts.add(a_verdict(passing(), 2))
        [hourly] = await _record(tables, MISSING, workflow="hourly")
        await tables.verdicts.add(a_verdict(passing(), first.run_id))
        for name, newest in (("nightly", nightly.run_id), ("hourly", hourly.run_id), ("new", None)):
            state = WorkflowState(name=name, since=NOON, judged_until=0, last_run=newest)
            await tables.workflows.save(state)
        assert await tables.verdicts.latest_of_each() == {"nightly": nightly, "hourly": hourly}


async def test_the_verdicts_about_an_output_are_found(undone: Undone) -> None:
    async with undone() as tables:
        first, _, third, _ = await _record(tables, passing(1), passing(2), failing(1), failing(None))
        await _record(tables, passing(1), workflow="hourly")
        assert await tables.verdicts.judging("nightly", a_sighting(1)) == [third, first]


# ── what a run is compared with ───────────────────────────────────────────────────────────────────


async def test_a_run_is_compared_with_the_last_one_that_left_something(undone: Undone) -> None:
    async with undone() as tables:
        good, *_ = await _record(tables, passing(content="a", count=7), failing(None), MISSING)
        past = await tables.verdicts.past_of("nightly", before_run=None)
        assert (past.last_content, past.last_run) == ("a", good.run_id)
        assert (past.sizes, past.counts) == ((100,), (7,))


async def test_a_run_that_could_not_be_compared_hides_none_before_it(undone: Undone) -> None:
    """It had left something that could not be read."""
    async with undone() as tables:
        good, _ = await _record(tables, passing(1, content="a"), failing(2))
        past = await tables.verdicts.past_of("nightly", before_run=None)
        assert (past.last_content, past.last_run) == ("a", good.run_id)


async def test_a_first_run_is_compared_with_nothing(undone: Undone) -> None:
    async with undone() as tables:
        past = await tables.verdicts.past_of("nightly", before_run=None)
        assert (past.last_content, past.last_run, past.sizes, past.counts) == ("", None, (), ())


async def test_a_run_is_not_compared_with_itself_nor_with_later_ones(undone: Undone) -> None:
    """However often it is judged."""
    async with undone() as tables:
        before, mine, _ = await _record(
            tables, passing(1, content="a"), passing(2, content="b"), passing(3, content="c")
        )
        await tables.verdicts.add(a_verdict(passing(4, content="d"), mine.run_id))
        past = await tables.verdicts.past_of("nightly", before_run=mine.run_id)
        assert (past.last_content, past.last_run, past.sizes) == ("a", before.run_id, (100,))


async def test_an_old_run_that_is_judged_again_is_not_the_last_one(undone: Undone) -> None:
    async with undone() as tables:
        old, new = await _record(tables, passing(1, content="a"), passing(2, content="b"))
        await tables.verdicts.add(a_verdict(passing(1, content="a"), old.run_id))
        past = await tables.verdicts.past_of("nightly", before_run=None)
        assert (past.last_content, past.last_run) == ("b", new.run_id)


async def test_the_median_is_taken_from_the_last_ten_good_runs(undone: Undone) -> None:
    """Neither from failing ones nor from those that say that they failed; a run counts once, as it counts now."""
    async with undone() as tables:
        sizes = list(range(100, 112))
        await _record(tables, *(passing(size=size) for size in sizes))
        await _record(tables, failing(), passing(size=1, says_failed=True))
        await _record(tables, passing(size=500), passing(size=600), key="run:twice")
        await _record(tables, passing(size=700), failing(), key="run:failed since")
        past = await tables.verdicts.past_of("nightly", before_run=None)
        assert past.sizes == (600, *reversed(sizes[-9:]))


async def test_an_output_is_not_compared_with_itself_where_it_stands_for_several_runs(undone: Undone) -> None:
    async with undone() as tables:
        await _record(tables, passing(1, content="a"), passing(2, content="b"))
        past = await tables.verdicts.past_of("nightly", before_run=None, but=a_sighting(2))
        assert past.last_content == "a"
