"""What a person answers to what is asked of the watch list: it is pinned, or stays as it is, and the messages say so."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum

from jobs.alert.outgoing import Mode
from jobs.alert.pin_notice import ProposalNotice, proposal_told
from jobs.asking import has_message
from jobs.pinning.kind import Kind, ProposalState
from jobs.pinning.pin import Entry, Pin, Proposal, approved, entries_of, hash_of
from jobs.ports import RunTables

Noticed = Callable[[Proposal, Pin | None, Sequence[Entry]], ProposalNotice]
"""What is said of a proposal beside the pin before it, by what is in force."""

_log = logging.getLogger(__name__)


class Decided(StrEnum):
    """What became of a press."""

    DONE = "done"
    GONE = "gone"
    """There is no such proposal, or it was altered since."""
    PAST = "past"
    """It was decided already, or the file says something else by now."""


async def answer(
    tables: RunTables, proposal_id: int, state: ProposalState, noticed: Noticed, *, by: int, now: float
) -> Decided:
    """Approve or reject a proposal, within a transaction, as far as the press still counts."""
    proposal = await tables.proposals.get(proposal_id)
    if proposal is None or hash_of(proposal.entry) != proposal.hash:
        return Decided.GONE
    if not await _may_become(tables, proposal, state):
        return Decided.PAST
    before = await tables.pins.of(proposal.kind, proposal.name)
    was_in_force = entries_of(await tables.pins.in_force())
    if state is ProposalState.APPROVED:
        await tables.pins.add(approved(proposal, by, now))
    proposal = replace(proposal, state=state, decided_by=by, decided_at=now)
    await tables.proposals.save(proposal)
    in_force = entries_of(await tables.pins.in_force())
    told = proposal_told(noticed(proposal, before, in_force))
    if not await has_message(tables, proposal):
        told = replace(told, mode=Mode.SEND)
    await tables.outbox.put(told, now)
    await _tell_again(tables, was_in_force, in_force, now, noticed)
    _log.info("user %d: %s %s is %s", by, proposal.kind, proposal.name, state)
    return Decided.DONE


async def waiting(tables: RunTables, proposal_id: int, noticed: Noticed) -> ProposalNotice | None:
    """Return what waits for an answer, or was rejected, though it was told as one of many; None if it does not."""
    found = await tables.proposals.get(proposal_id)
    if found is None or found not in await tables.proposals.newest():
        return None
    if not found.state.still_differs:
        return None
    before = await tables.pins.of(found.kind, found.name)
    return noticed(found, before, entries_of(await tables.pins.in_force()))


async def _may_become(tables: RunTables, proposal: Proposal, state: ProposalState) -> bool:
    """Whether a press still counts: what was rejected can be approved as long as the file says it."""
    if proposal.state is ProposalState.REJECTED and state is ProposalState.APPROVED:
        return proposal in await tables.proposals.newest()
    return proposal.state is ProposalState.OPEN


async def _tell_again(
    tables: RunTables, was: Sequence[Entry], is_now: Sequence[Entry], now: float, noticed: Noticed
) -> None:
    """Edit what is asked of other entries, as far as it means something else by what is in force now."""
    for asked in await tables.proposals.newest():
        # What a workflow does depends on no other entry.
        if asked.kind is Kind.WORKFLOW or asked.state is not ProposalState.OPEN:
            continue
        if await has_message(tables, asked):
            pin = await tables.pins.of(asked.kind, asked.name)
            old, new = (noticed(asked, pin, each) for each in (was, is_now))
            if new != old:
                await tables.outbox.put(proposal_told(new, is_replacing=True), now)
