"""What is kept of runs: while the file fails, when it can be used again, and when it is old."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.alert.outgoing import Outgoing
from jobs.ports import Told
from jobs.store.blocking import BlockingStore, open_blocking
from jobs.store.database import Database, Tables
from jobs.store.schema import FILE_NAME
from jobs.verification.history import RecordedVerdict, WorkflowState
from jobs.verification.verdict import Judged
from tests.fakes import HOME, NOON
from tests.store.failing import in_memory
from tests.verdicts import MISSING, a_report, a_run, a_verdict, failing, passing

DAY = 86_400.0
NOTICE = b'{"run": 1, "workflow_id": 1}'


async def _record(
    tables: Tables, judged: Judged, key: str, *, at: float = NOON, workflow: str = "nightly"
) -> RecordedVerdict:
    run = await tables.runs.put(replace(a_run(), workflow=workflow, key=key, at=at))
    return await tables.verdicts.add(a_verdict(judged, run.id, at=at, workflow=workflow))


async def _by_command(
    store: BlockingStore, judged: Judged, key: str, *, told_with: int | None = None
) -> RecordedVerdict:
    """Record a run with a message about it, or with the one that another was told with."""
    run = await store.tables.runs.put(replace(a_run(), key=key))
    body = json.dumps({"run": run.id, "workflow_id": 1}).encode()
    alert = Outgoing(kind="screen", body=body, subject=f"run:{told_with or run.id}")
    await store.tables.outbox.put(alert, NOON)
    return await store.tables.verdicts.add(a_verdict(judged, run.id))


# ── while the file fails ──────────────────────────────────────────────────────────────────────────


async def test_what_new_verdicts_are_compared_with_lives_on_in_memory(store: Database) -> None:
    async with store.transaction() as tables:
        state = await tables.workflows.save(WorkflowState(name="nightly", since=NOON, judged_until=NOON))
        old = await _record(tables, failing(), "old")
        for number in range(60):
            await _record(tables, passing(number), f"run:{number}")
        state = await tables.workflows.save(replace(state, alerted_run=old.run_id))
        report = await tables.reports.add(a_report())
        await tables.outbox.put(Outgoing(kind="screen", body=b"{}", subject=f"run:{old.run_id}"), NOON)
        past = await tables.verdicts.past_of("nightly", before_run=None)
    async with in_memory(store):
        reading = store.reading
        assert await reading.workflows.all() == {"nightly": state}
        assert await reading.reports.waiting() == [report]
        assert await reading.verdicts.past_of("nightly", before_run=None) == past
        assert await reading.verdicts.newest_of(old.run_id) == old
        assert await reading.runs.get(old.run_id)
        assert await reading.outbox.told_at(f"run:{old.run_id}")
        assert len(await reading.verdicts.page(None, None, None, 99)) == 41
    assert len(await store.reading.verdicts.page(None, None, None, 99)) == 61


async def test_what_was_dealt_with_in_memory_is_not_dealt_with_again(store: Database) -> None:
    async with store.transaction() as tables:
        report = await tables.reports.add(a_report())
        other = await tables.reports.add(a_report())
    async with in_memory(store), store.transaction() as tables:
        await tables.reports.remove(report.id)
        new = await tables.reports.add(a_report())
    assert await store.reading.reports.waiting() == [other, new]


async def test_reports_that_could_not_be_read_wait_for_the_file(store: Database, tmp_path: Path) -> None:
    """Rather verified twice than never."""
    async with store.transaction() as tables:
        report = await tables.reports.add(a_report())
    async with in_memory(store):
        async with store.transaction() as tables:
            await tables.reports.remove(report.id)
            await tables.connection.execute(
                "UPDATE sqlite_sequence SET seq = 1000000000 WHERE name = 'report'"
            )
        assert await store.reading.reports.waiting() == []
    assert await store.reading.reports.waiting() == [report]
    assert (tmp_path / FILE_NAME).exists()


async def test_what_commands_record_meanwhile_is_kept_beside_what_the_bot_records(
    store: Database, tmp_path: Path
) -> None:
    async with store.transaction() as tables:
        before = await _record(tables, passing(), "before")
    async with in_memory(store):
        with open_blocking(str(tmp_path)) as command:
            theirs = command.write(_by_command(command, failing(), "theirs"))
        async with store.transaction() as tables:
            ours = await _record(tables, failing(), "ours")
            await tables.outbox.put(Outgoing(kind="screen", body=b"{}", subject=f"run:{ours.run_id}"), NOON)
    reading = store.reading
    assert await reading.verdicts.page(None, None, None, 9) == [ours, theirs, before]
    subjects = {message.subject for message in await _queued(store)}
    assert subjects == {f"run:{ours.run_id}", f"run:{theirs.run_id}"}
    assert len({ours.run_id, theirs.run_id, before.run_id}) == 3


async def _queued(store: Database) -> list[Outgoing]:
    queued = []
    while message := await store.reading.outbox.due(NOON, HOME):
        async with store.transaction() as tables:
            await tables.outbox.mark_sent(message.id, message.id, NOON)
        queued.append(Outgoing(kind=message.kind, body=b"", subject=message.subject))
    return queued


@pytest.mark.parametrize("judged", [failing(), passing()])
async def test_what_both_have_recorded_of_a_run_becomes_one(
    store: Database, tmp_path: Path, judged: Judged
) -> None:
    """Every verdict stays, and the run is told once, under the id that it has then."""
    async with in_memory(store):
        with open_blocking(str(tmp_path)) as command:
            theirs = command.write(_by_command(command, failing(), "same"))
            command.write(_standing(command, theirs.run_id))
        async with store.transaction() as tables:
            ours = await _record(tables, judged, "same")
            state = await tables.workflows.save(
                WorkflowState(name="nightly", since=NOON, judged_until=NOON, last_run=ours.run_id)
            )
            if judged == failing():
                message = Outgoing(kind="screen", body=NOTICE, subject=f"run:{ours.run_id}")
                await tables.outbox.put(message, NOON)
    theirs = replace(theirs, run_id=ours.run_id, is_newest=False)
    assert await store.reading.verdicts.of_run(ours.run_id) == [ours, theirs]
    assert await store.reading.workflows.all() == {"nightly": state}
    assert [message.subject for message in await _queued(store)] == [f"run:{ours.run_id}"]
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        [(body,)] = connection.execute("SELECT body FROM outbox").fetchall()
    if judged == passing():
        assert json.loads(body) == {"run": ours.run_id, "workflow_id": state.id}


async def test_an_alert_that_shows_a_run_of_both_shows_it_under_the_id_that_it_has_then(
    store: Database, tmp_path: Path
) -> None:
    """It was told of an earlier run."""
    async with store.transaction() as tables:
        first = await _record(tables, failing(), "first")
    async with in_memory(store):
        with open_blocking(str(tmp_path)) as command:
            theirs = command.write(_by_command(command, failing(), "same", told_with=first.run_id))
        async with store.transaction() as tables:
            ours = await _record(tables, failing(), "same")
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        alerts = connection.execute("SELECT subject, body ->> 'run' FROM outbox").fetchall()
    assert theirs.run_id != ours.run_id
    assert alerts == [(f"run:{first.run_id}", ours.run_id)]


async def test_how_a_workflow_stands_is_told_by_its_newest_run(store: Database, tmp_path: Path) -> None:
    """Whoever has recorded that: a command in the file, or the bot in memory."""
    async with store.transaction() as tables:
        before = await _record(tables, failing(), "before")
        state = WorkflowState(name="nightly", since=NOON, judged_until=0, failures=1)
        known = await tables.workflows.save(replace(state, last_run=before.run_id, alerted_run=before.run_id))
    async with in_memory(store):
        with open_blocking(str(tmp_path)) as command:
            theirs = command.write(_by_command(command, passing(), "theirs"))
            command.write(
                command.tables.workflows.save(replace(known, last_run=theirs.run_id, alerted_run=None))
            )
        async with store.transaction() as tables:
            await tables.workflows.save(replace(known, judged_until=NOON))
    [now] = (await store.reading.workflows.all()).values()
    assert now == replace(known, last_run=theirs.run_id, alerted_run=None, judged_until=NOON)


async def _standing(store: BlockingStore, run_id: int) -> WorkflowState:
    state = WorkflowState(name="nightly", since=NOON, judged_until=0, last_run=run_id, alerted_run=run_id)
    return await store.tables.workflows.save(state)


# ── when it is old ────────────────────────────────────────────────────────────────────────────────


async def test_runs_that_are_old_are_deleted_with_their_verdicts(store: Database) -> None:
    async with store.transaction() as tables:
        await _record(tables, passing(), "old", at=NOON - DAY)
        new = await _record(tables, passing(), "new")
        assert await tables.delete_older_than(NOON - 60, 99) == 2
        assert await tables.verdicts.page(None, None, None, 9) == [new]
        assert await tables.runs.find("nightly", "old") is None


async def test_they_are_deleted_in_portions(store: Database) -> None:
    """Whoever writes meanwhile does not wait for all of them."""
    async with store.transaction() as tables:
        for number in range(5):
            await _record(tables, passing(), f"{number}", at=NOON - DAY)
        portions = [await tables.delete_older_than(NOON, 2) for _ in range(5)]
    assert portions == [2 + 2, 2 + 2, 1 + 1, 0, 0]


async def test_the_newest_run_of_each_workflow_stays_however_old(store: Database) -> None:
    """It tells how the workflow stands, also where an earlier run was judged again since."""
    async with store.transaction() as tables:
        await _record(tables, passing(), "1", at=NOON - 9 * DAY)
        last = await _record(tables, MISSING, "2", at=NOON - 8 * DAY)
        await _record(tables, failing(), "1", at=NOON - 7 * DAY)
        other = await _record(tables, passing(), "1", at=NOON - 9 * DAY, workflow="hourly")
        for name, run_id in (("nightly", last.run_id), ("hourly", other.run_id)):
            await tables.workflows.save(WorkflowState(name=name, since=0, judged_until=0, last_run=run_id))
        await tables.delete_older_than(NOON, 99)
        assert await tables.verdicts.page(None, None, None, 9) == [other, last]
        assert await tables.runs.get(last.run_id)


async def test_the_run_of_an_open_alert_stays_however_old(store: Database) -> None:
    async with store.transaction() as tables:
        alerted = await _record(tables, failing(), "1", at=NOON - 9 * DAY)
        last = await _record(tables, failing(), "2", at=NOON - 8 * DAY)
        state = WorkflowState(
            name="nightly", since=0, judged_until=0, last_run=last.run_id, alerted_run=alerted.run_id
        )
        await tables.workflows.save(state)
        await tables.delete_older_than(NOON, 99)
        assert await tables.verdicts.page(None, None, None, 9) == [last, alerted]


async def test_the_runs_of_a_week_that_is_still_to_be_told_stay_however_old(store: Database) -> None:
    """The bot was away for months, and `loopwarden verify` was not. The newest week that was told is counted once more."""
    async with store.transaction() as tables:
        told, untold = [
            await _record(tables, passing(), key, at=at)
            for key, at in (("told", NOON - 17 * DAY), ("untold", NOON - 16 * DAY))
        ]
        for verdict, ran_at in ((told, NOON - 17 * DAY), (untold, NOON - 16 * DAY)):
            sql = "UPDATE verdict SET ran_at = ? WHERE id = ?"
            await tables.connection.execute(sql, (ran_at, verdict.id))
        await tables.digests.add(Told(week="2027-W01", until=NOON - 8 * DAY, body=None, at=NOON))
        await tables.digests.add(Told(week=None, until=NOON, body=None, at=NOON))
        # By a clock that was ahead.
        await tables.presence.note(NOON)
        await tables.digests.add(Told(week="2027-W02", until=NOON, body=None, at=NOON + 1))
        await tables.delete_older_than(NOON, 99)
        assert [verdict.id for verdict in await tables.verdicts.page(None, None, None, 9)] == [untold.id]


async def test_reports_and_workflows_are_never_too_old(store: Database) -> None:
    """And neither is the run that a report is about."""
    async with store.transaction() as tables:
        run = await tables.runs.put(replace(a_run(), at=0))
        report = await tables.reports.add(replace(a_report(at=0), run_id=run.id))
        await tables.workflows.save(WorkflowState(name="nightly", since=0, judged_until=0))
        await tables.delete_older_than(NOON, 99)
        assert await tables.reports.waiting() == [report]
        assert await tables.runs.get(run.id) == run
        assert await tables.workflows.get("nightly")
