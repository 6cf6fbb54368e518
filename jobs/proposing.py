"""What the chat is told of a proposal: how it differs from what is in force."""

from collections.abc import Sequence

from jobs.alert.pin_notice import ProposalNotice
from jobs.pinning.difference import difference
from jobs.pinning.pin import Pin, Proposal, spec_of
from jobs.thrash.policy import OnDetection


def notice_of(
    proposal: Proposal, before: Pin | None, default: OnDetection, not_pinned: Sequence[str] = ()
) -> ProposalNotice:
    """Return the notice of a proposal beside the pin that is in force, or was until it was approved.

    `default`: as of `difference`. `not_pinned`: what the file refers to now that no pin holds still, in words.
    """
    return ProposalNotice(
        proposal=proposal.id,
        kind=proposal.kind,
        name=proposal.name,
        is_new=before is None,
        is_gone=proposal.entry is None,
        changes=difference(spec_of(before), spec_of(proposal), default),
        not_pinned=() if proposal.entry is None else tuple(not_pinned),
        in_force_since=before.at if before else None,
        state=proposal.state,
        decided_by=proposal.decided_by,
    )
