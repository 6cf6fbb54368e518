"""What two processes record of one run, each without knowing of the other."""

from datetime import UTC

from msgspec.structs import replace

from jobs.digest.figures import RunFigures
from jobs.recording import open_case, record
from jobs.store.database import Database
from jobs.verification.history import RecordedVerdict, Report, Trigger
from jobs.verification.spec import WorkflowSpec
from jobs.verification.verdict import Judged
from tests.fakes import NOON
from tests.verdicts import a_report, a_run, a_sighting, failing, passing

SPEC = WorkflowSpec(name="nightly")


async def _at_once(
    store: Database, first: Report, then: Report, judged: Judged, *, then_judged: Judged | None = None
) -> tuple[RecordedVerdict, RecordedVerdict]:
    """Both look before either has written."""
    seen = a_sighting()
    cases = [
        await open_case(store.reading, SPEC, report, seen, now=NOON, zone=UTC) for report in (first, then)
    ]
    recorded = []
    for case, left in zip(cases, (judged, then_judged or judged), strict=True):
        async with store.transaction() as tables:
            recorded.append(await record(tables, case, left, now=NOON, took=0))
    return recorded[0], recorded[1]


async def test_who_comes_second_and_was_not_asked_leaves_it_at_that(store: Database) -> None:
    """The run has its verdict, which says what decided."""
    first, second = await _at_once(store, a_report(reported="r-7"), a_report(Trigger.OUTPUT), failing())
    assert first == second
    assert first.failed_check == "fresh"
    assert await store.reading.verdicts.page(None, None, None, 9) == [first]


async def test_who_comes_second_and_was_asked_adds_a_verdict_of_the_same_run(store: Database) -> None:
    """It is told once."""
    first, second = await _at_once(
        store, a_report(Trigger.OUTPUT), a_report(Trigger.COMMAND, reported="r-7"), failing()
    )
    assert (second.id, second.run_id) == (first.id + 1, first.run_id)
    run = await store.reading.runs.get(first.run_id)
    assert run
    assert run.reported == "r-7"
    state = await store.reading.workflows.get("nightly")
    assert state
    assert (state.failures, state.last_run) == (1, first.run_id)
    assert (await store.reading.outbox.counts(0)).waiting == 1


async def test_a_run_is_of_the_week_in_which_it_was_first_judged(store: Database) -> None:
    """Not in which it was heard of, whose runs may have been counted by then; nor in which it is judged again."""
    async with store.transaction() as tables:
        run = await tables.runs.put(a_run())
    report = a_report(Trigger.COMMAND, reported="1")
    for moment in (NOON + 5, NOON + 9):
        case = await open_case(store.reading, SPEC, report, a_sighting(), now=moment, zone=UTC)
        async with store.transaction() as tables:
            verdict = await record(tables, case, failing(), now=moment, took=0)
        assert (verdict.run_id, verdict.at, verdict.ran_at) == (run.id, moment, NOON + 5)


async def test_what_a_run_had_failed_with_until_it_passed_is_not_forgotten(store: Database) -> None:
    """Nor that it had said it was done; the same output judged again is no other try."""
    lied = replace(failing(1), verdict=replace(failing(1).verdict, said_done="ok"))
    tries = [lied, failing(1), failing(2), failing(None), failing(None), passing(3)]
    recorded = []
    for judged in tries:
        output = judged.artifact.sighting if judged.artifact else None
        report = a_report(Trigger.COMMAND, reported="r-7")
        case = await open_case(store.reading, SPEC, report, output, now=NOON, zone=UTC)
        async with store.transaction() as tables:
            recorded.append(await record(tables, case, judged, now=NOON, took=0))
    assert len({verdict.run_id for verdict in recorded}) == 1
    assert [verdict.failed_tries for verdict in recorded] == [0, 0, 1, 2, 3, 4]
    figures = await store.reading.counts.between(NOON, NOON + 1)
    assert figures.runs == (RunFigures(workflow="nightly", passed=1, said_done=1, failed_tries=4),)


async def test_who_only_gets_other_rights_is_the_same_output(store: Database) -> None:
    """Whoever had told of its run; but what was written in place, under its old time, is another."""
    first, second = await _at_once(
        store, a_report(reported="r-7"), a_report(Trigger.OUTPUT), failing(), then_judged=later(failing())
    )
    assert first == second
    _, third = await _at_once(
        store,
        a_report(Trigger.OUTPUT),
        a_report(Trigger.OUTPUT),
        failing(),
        then_judged=later(failing(), "new"),
    )
    assert third.run_id != first.run_id


def later(judged: Judged, sha256: str | None = None) -> Judged:
    artifact = judged.artifact
    assert artifact
    changed = replace(artifact, ctime_ns=artifact.ctime_ns + 1, sha256=sha256 or artifact.sha256)
    return replace(judged, artifact=changed)
