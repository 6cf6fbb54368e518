"""Which messages carry what is asked of the watch list: whoever edits it again and again floods nobody."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from jobs.alert.outgoing import Mode, Notice, told
from jobs.alert.pin_notice import MOST_IN_ONE, ProposalNotice, ProposalsNotice, proposal_told, subject_of
from jobs.pinning.kind import ProposalState
from jobs.pinning.pin import Proposal
from jobs.ports import RunTables

_MOST_ASKED: Final = 5
"""Proposals of one look that have a message each."""
_HOUR: Final = 3600.0
"""Seconds for which a message is edited by what is said next of the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of an entry, and what was asked of it before."""

    notice: ProposalNotice
    before: Proposal | None


async def ask(tables: RunTables, questions: Sequence[Question], now: float) -> None:
    """Ask in the message of the question before, if that is not answered and has one; of many others in one."""
    others = []
    for question in questions:
        if await _goes_on(tables, question.before, now):
            await tables.outbox.put(proposal_told(question.notice, is_replacing=True), now)
        else:
            others.append(question.notice)
    if len(others) > _MOST_ASKED:
        names = tuple((notice.kind, notice.name) for notice in others[:MOST_IN_ONE])
        await tell(tables, ProposalsNotice(count=len(others), entries=names), "pins", now)
        return
    for notice in others:
        await tables.outbox.put(proposal_told(notice), now)


async def has_message(tables: RunTables, proposal: Proposal) -> bool:
    """Whether a proposal is what was last told of its entry, and not only one of many."""
    body = await tables.outbox.last_told(subject_of(proposal.kind, proposal.name))
    return body is not None and msgspec.json.decode(body, type=ProposalNotice).proposal == proposal.id


async def tell(tables: RunTables, notice: Notice, subject: str, now: float) -> None:
    """Tell what may be told again and again: in the message of the last hour, if there is one."""
    is_told = await tables.outbox.is_told(subject, now - _HOUR)
    await tables.outbox.put(replace(told(notice, Mode.EDIT if is_told else Mode.SEND), subject=subject), now)


async def _goes_on(tables: RunTables, before: Proposal | None, now: float) -> bool:
    if before is None or before.state is not ProposalState.WITHDRAWN or before.decided_by is not None:
        return False
    return now - (before.decided_at or now) < _HOUR and await has_message(tables, before)
