"""What the chat is told of a proposal: how it differs from what is in force."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from jobs.alert.pin_notice import ProposalNotice
from jobs.pinning.change import Change
from jobs.pinning.difference import difference
from jobs.pinning.kind import Kind
from jobs.pinning.links import killers_in, missing_killer, users_of
from jobs.pinning.pin import Entry, Pin, Proposal, spec_of
from jobs.thrash.policy import OnDetection

_MOST_SHOWN: Final = 65_536
"""Characters of changes: more nobody reads, so more cannot be approved."""


def notice_of(
    proposal: Proposal,
    before: Pin | None,
    in_force: Sequence[Entry],
    default: OnDetection,
    not_pinned: Sequence[str] = (),
) -> ProposalNotice:
    """Return the notice of a proposal beside the pin that is in force, or was until it was approved.

    `in_force`: all entries that are. `default`: as of `difference`. `not_pinned`: what the file refers to now that no
    pin holds still, in words.
    """
    killers, after, is_gone = killers_in(in_force), spec_of(proposal), proposal.entry is None
    changes = difference(spec_of(before), after, default, killers)
    shown = _shown(changes)
    return ProposalNotice(
        proposal=proposal.id,
        kind=proposal.kind,
        name=proposal.name,
        is_new=before is None,
        is_gone=is_gone,
        changes=shown,
        has_more=len(shown) < len(changes),
        not_pinned=() if is_gone else tuple(not_pinned),
        missing_killer=missing_killer(after, killers),
        used_by=users_of(proposal.name, in_force) if is_gone and proposal.kind is Kind.KILLER else (),
        in_force_since=before.at if before else None,
        state=proposal.state,
        decided_by=proposal.decided_by,
    )


def _shown(changes: Sequence[Change]) -> tuple[Change, ...]:
    sizes = accumulate(len(change.field) + len(change.before) + len(change.after) for change in changes)
    return tuple(change for change, size in zip(changes, sizes, strict=True) if size <= _MOST_SHOWN)
