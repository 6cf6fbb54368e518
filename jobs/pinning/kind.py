"""What an entry of the watch list is, how it came into force, and where a change of it stands."""

from enum import StrEnum


class Kind(StrEnum):
    """What an entry of the watch list is."""

    WORKFLOW = "workflow"
    SOURCE = "source"
    KILLER = "killer"


class How(StrEnum):
    """How an entry came into force."""

    FIRST_USE = "first use"
    """The bot saw it for the first time."""
    FIRST_VERIFY = "first verify"
    """`loopwarden verify` did."""
    APPROVED = "approved"
    """A person has pressed Approve, or typed `loopwarden approve` where no bot runs."""


class ProposalState(StrEnum):
    """Where a proposal stands."""

    OPEN = "open"
    APPROVED = "approved"
    REJECTED = "rejected"
    """What was in force stays, and the file differs."""
    WITHDRAWN = "withdrawn"
    """The file says something else by now."""

    @property
    def still_differs(self) -> bool:
        """Whether the file says it, and it is not in force: it waits for an answer, or was rejected."""
        return self in {ProposalState.OPEN, ProposalState.REJECTED}
