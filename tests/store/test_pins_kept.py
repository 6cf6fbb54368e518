"""What is kept of pins: while the file fails, when it can be used again, and when it is old."""

from dataclasses import replace
from pathlib import Path

import pytest

from jobs.alert.outgoing import Mode, Outgoing
from jobs.pinning.kind import How, Kind, ProposalState
from jobs.pinning.pin import Entry, Pin, Proposal, encoded, hash_of, pin_of
from jobs.ports import Absence, Stop, StopState, Told
from jobs.store.blocking import open_blocking
from jobs.store.database import Database, Tables
from jobs.verification.spec import WorkflowSpec
from jobs.verification.trial import MadeOf, SelfTest, Trials
from tests.fakes import HOME, NOON
from tests.store.failing import in_memory
from tests.store.rows import a_session, an_incident
from tests.verdicts import a_run, a_verdict, failing, passing

DAY = 86_400.0


def a_pin(name: str = "nightly", *, max_age: float = 60, how: How = How.APPROVED) -> Pin:
    spec = WorkflowSpec(name=name, output="/out", max_age=max_age)
    return pin_of(Entry(kind=Kind.WORKFLOW, name=name, spec=spec), how, NOON)


def a_removal(name: str = "nightly") -> Pin:
    return pin_of(Entry(kind=Kind.WORKFLOW, name=name, spec=None), How.APPROVED, NOON)


def a_proposal(*, max_age: float = 90, at: float = NOON) -> Proposal:
    text = encoded(WorkflowSpec(name="nightly", output="/out", max_age=max_age))
    return Proposal(kind=Kind.WORKFLOW, name="nightly", entry=text, hash=hash_of(text), found_at=at)


async def pin(store: Database, *pins: Pin) -> list[Pin]:
    async with store.transaction() as tables:
        return [await tables.pins.add(pin) for pin in pins]


async def in_force(store: Database) -> list[Pin]:
    return [*await store.reading.pins.in_force()]


# ── while the file fails ──────────────────────────────────────────────────────────────────────────


async def test_pins_live_on_in_memory_and_what_is_approved_there_is_brought_back(store: Database) -> None:
    [before] = await pin(store, a_pin())
    async with store.transaction() as tables:
        proposal = await tables.proposals.add(a_proposal())
        told = await tables.outbox.put(Outgoing(kind="screen", body=b"{}", subject="pin:workflow:nightly"), 1)
        await tables.outbox.mark_sent(told, 5, 1)
    async with in_memory(store):
        assert await in_force(store) == [before]
        async with store.transaction() as tables:
            approved = await tables.pins.add(replace(a_pin(max_age=90), by=7))
            proposal = replace(proposal, state=ProposalState.APPROVED, decided_by=7, decided_at=NOON)
            await tables.proposals.save(proposal)
            edit = Outgoing(kind="screen", body=b"1", mode=Mode.EDIT, subject="pin:workflow:nightly")
            await tables.outbox.put(edit, NOON)
        due = await store.reading.outbox.due(NOON, HOME)
        assert due
        assert due.target_message == 5
    assert await in_force(store) == [approved]
    assert await store.reading.pins.all() == [before, approved]
    assert await store.reading.proposals.newest() == [proposal]


async def test_what_a_command_pins_meanwhile_is_kept_beside_what_the_bot_pins(
    store: Database, tmp_path: Path
) -> None:
    async with in_memory(store):
        with open_blocking(str(tmp_path)) as command:
            theirs = command.write(command.tables.pins.add(a_pin("theirs", how=How.FIRST_VERIFY)))
        [ours] = await pin(store, a_pin("ours"))
    assert await in_force(store) == [theirs, ours]


@pytest.mark.parametrize(
    "before",
    [[], [a_pin(), a_removal()], [a_pin(how=How.FIRST_VERIFY)]],
    ids=["new", "removed", "verified"],
)
async def test_what_is_first_used_meanwhile_is_brought_back(store: Database, before: list[Pin]) -> None:
    await pin(store, *before)
    async with in_memory(store):
        [first] = await pin(store, a_pin(how=How.FIRST_USE))
    assert await in_force(store) == [first]


async def test_a_first_use_of_what_could_not_be_read_gives_way_to_what_was_approved(store: Database) -> None:
    """The watch list may have been edited by then; the next look decides by what was approved."""
    [approved] = await pin(store, a_pin())
    async with in_memory(store):
        async with store.transaction() as tables:
            await tables.connection.execute("DELETE FROM pin")
        first = [a_pin(max_age=99, how=How.FIRST_USE), a_pin("new", how=How.FIRST_USE)]
        *_, other = await pin(store, *first, a_pin("agreed"))
    assert await store.reading.pins.all() == [approved, other]


@pytest.mark.parametrize("is_known", [True, False])
async def test_the_newest_verdict_of_a_run_counts_whoever_has_recorded_it(
    store: Database, tmp_path: Path, *, is_known: bool
) -> None:
    """The bot in memory, or a command in the file; also where the two know the run by different ids."""
    if is_known:
        async with store.transaction() as tables:
            await _record(tables, 0)
    async with in_memory(store):
        with open_blocking(str(tmp_path)) as command:
            run = command.write(command.tables.runs.put(a_run()))
            command.write(command.tables.verdicts.add(a_verdict(passing(), run.id)))
        async with store.transaction() as tables:
            await _record(tables, 1)
    [verdict, *others] = await store.reading.verdicts.page(None, None, None, 9)
    assert verdict.is_newest
    assert len(others) == 1 + is_known
    assert not any(other.is_newest for other in others)


async def _record(tables: Tables, number: int) -> None:
    run = await tables.runs.put(a_run())
    await tables.verdicts.add(a_verdict(failing(number), run.id))


# ── when it is old ────────────────────────────────────────────────────────────────────────────────


async def test_pins_are_never_too_old(store: Database) -> None:
    pins = await pin(store, a_pin(), a_pin(max_age=90))
    async with store.transaction() as tables:
        await tables.delete_older_than(NOON + DAY, 99)
        assert await tables.pins.all() == pins


async def test_old_proposals_are_deleted_but_the_newest_of_an_entry(store: Database) -> None:
    """By it is known what was rejected."""
    rejected = replace(a_proposal(at=0), state=ProposalState.REJECTED, decided_at=1.0)
    async with store.transaction() as tables:
        for _ in range(3):
            await tables.proposals.add(rejected)
        await tables.delete_older_than(NOON, 99)
        assert [await tables.proposals.get(number) is not None for number in (1, 2, 3)] == [
            False,
            False,
            True,
        ]


async def test_a_proposal_that_is_open_is_never_too_old(store: Database) -> None:
    async with store.transaction() as tables:
        proposal = await tables.proposals.add(a_proposal(at=0))
        await tables.delete_older_than(NOON, 99)
        assert await tables.proposals.get(proposal.id) == proposal


async def test_of_old_self_tests_the_newest_of_each_workflow_stays(store: Database) -> None:
    test = SelfTest(workflow="nightly", pin_id=None, made_of=MadeOf.NOTHING, result=Trials(), at=1.0)
    async with store.transaction() as tables:
        for name in ("nightly", "nightly", "hourly"):
            await tables.selftests.add(replace(test, workflow=name))
        await tables.delete_older_than(NOON, 99)
        rows = await tables.connection.execute_fetchall("SELECT id FROM selftest ORDER BY id")
    assert [row[0] for row in rows] == [2, 3]


async def test_absences_and_digests_that_were_asked_for_are_deleted_when_they_are_old(
    store: Database,
) -> None:
    """What a week was told stays."""
    told = Told(week="2026-W48", until=3.0, body=None, at=3.0)
    async with store.transaction() as tables:
        await tables.absences.add(Absence(since=1.0, until=2.0))
        weekly, asked = await tables.digests.add(told), await tables.digests.add(replace(told, week=None))
        await tables.delete_older_than(NOON, 99)
        assert await tables.absences.between(0, NOON) == []
        assert await tables.digests.get(weekly.id) == weekly
        assert await tables.digests.get(asked.id) is None


async def test_absences_and_stops_stay_until_their_week_was_told(store: Database) -> None:
    """However short the time is for which rows are kept, and however long the bot was away."""
    async with store.transaction() as tables:
        for number in (1, 2):
            await tables.absences.add(Absence(since=0.0, until=number))
            session = await tables.sessions.save(a_session(session=f"s-{number}"))
            incident = await tables.incidents.add(an_incident(session, closed_at=number))
            stop = Stop.intended(session, incident, ordered_by=None, now=0.0)
            await tables.stops.add(replace(stop, state=StopState.OVER, finished_at=1.0))
        await tables.digests.add(Told(week="2026-W48", until=2.0, body=None, at=2.0))
        await tables.delete_older_than(NOON, 99)
        [absence] = await tables.absences.between(0, NOON)
        assert absence.id == 2
        assert await tables.stops.get(1) is None
        assert await tables.stops.get(2)
        assert await tables.incidents.get(1) is None
        assert await tables.incidents.get(2)
