"""Pins are listed, and what was told of a proposal is found again."""

import sqlite3
from dataclasses import replace

from jobs.alert.outgoing import Mode
from jobs.alert.pin_notice import ProposalNotice, proposal_told
from jobs.pinning.kind import How, Kind, ProposalState
from jobs.pinning.pin import Pin, Proposal, hash_of
from jobs.store.database import Database
from tests.fakes import HOME, NOON

PIN = Pin(kind=Kind.WORKFLOW, name="nightly", entry="{}", hash=hash_of("{}"), how=How.FIRST_USE, at=NOON)
PROPOSAL = Proposal(kind=Kind.WORKFLOW, name="nightly", entry="{}", hash=hash_of("{}"), found_at=NOON)
NOTICE = ProposalNotice(proposal=1, kind=Kind.WORKFLOW, name="nightly", changes=())
OTHER = ProposalNotice(proposal=2, kind=Kind.WORKFLOW, name="nightly", changes=())
LATER = NOON + 60


async def test_pins_are_listed_newest_first_page_by_page(store: Database) -> None:
    async with store.transaction() as tables:
        first, second, third = [await tables.pins.add(replace(PIN, at=NOON + more)) for more in range(3)]
        assert await tables.pins.page(0, 2) == [third, second]
        assert await tables.pins.page(2, 2) == [first]
        assert await tables.pins.page(4, 2) == []


async def test_the_pin_before_is_the_one_of_the_same_entry(store: Database) -> None:
    async with store.transaction() as tables:
        first = await tables.pins.add(PIN)
        other = await tables.pins.add(replace(PIN, kind=Kind.SOURCE))
        removal = await tables.pins.add(replace(PIN, entry=None, hash=hash_of(None)))
        back = await tables.pins.add(PIN)
        assert await tables.pins.before(first) is None
        assert await tables.pins.before(other) is None
        assert await tables.pins.before(removal) == first
        assert await tables.pins.before(back) == removal


async def test_what_was_last_told_of_something_is_the_newest_notice_of_it(store: Database) -> None:
    first, again = proposal_told(NOTICE), proposal_told(OTHER, is_replacing=True)
    async with store.transaction() as tables:
        sent = await tables.outbox.put(first, NOON)
        await tables.outbox.mark_sent(sent, 100, NOON)
        assert await tables.outbox.last_told("pin:workflow:nightly") == first.body.decode()
        await tables.outbox.put(again, NOON)
        await tables.outbox.put(replace(again, kind="screen", body=b"{}", mode=Mode.REPLY), NOON)
        assert await tables.outbox.last_told("pin:workflow:nightly") == again.body.decode()
        assert await tables.outbox.last_told("pin:workflow:hourly") is None


async def test_the_message_of_a_proposal_that_can_be_decided_stays_however_old(store: Database) -> None:
    async with store.transaction() as tables:
        proposal = await tables.proposals.add(PROPOSAL)
        sent = await tables.outbox.put(proposal_told(NOTICE), NOON)
        await tables.outbox.mark_sent(sent, 100, NOON)
        await tables.delete_older_than(LATER, 99)
        assert await tables.outbox.last_told("pin:workflow:nightly")
        await tables.proposals.save(replace(proposal, state=ProposalState.REJECTED))
        await tables.delete_older_than(LATER, 99)
        assert await tables.outbox.last_told("pin:workflow:nightly")
        await tables.proposals.save(replace(proposal, state=ProposalState.APPROVED))
        await tables.delete_older_than(LATER, 99)
        assert await tables.outbox.last_told("pin:workflow:nightly") is None


async def test_a_proposal_is_shown_and_decided_without_the_file_too(store: Database) -> None:
    """In the message that it has."""
    async with store.transaction() as tables:
        await tables.proposals.add(PROPOSAL)
        sent = await tables.outbox.put(proposal_told(NOTICE), NOON)
        await tables.outbox.mark_sent(sent, 100, NOON)
    failure = sqlite3.OperationalError("disk I/O error")
    failure.sqlite_errorcode = sqlite3.SQLITE_IOERR
    assert await store.endure(failure)
    async with store.transaction() as tables:
        assert await tables.outbox.last_told("pin:workflow:nightly")
        edit = await tables.outbox.put(proposal_told(NOTICE, is_replacing=True), NOON)
    due = await store.reading.outbox.due(NOON, HOME)
    assert due
    assert (due.id, due.target_message) == (edit, 100)
