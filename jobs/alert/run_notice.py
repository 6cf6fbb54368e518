"""What the chat is told of runs, as values."""

from jobs.alert.outgoing import Notice
from jobs.verification.verdict import Verdict


class RunNotice(Notice, frozen=True, kw_only=True):
    """A run as its newest verdict has it: the alert of a run that failed or is missing, or says itself that it failed."""

    run: int
    alert: int | None = None
    """The earlier run whose message this is, if its alert goes on."""
    workflow: str
    workflow_id: int
    verdict: Verdict
    path: str | None
    """Of the output, if there was one."""
    slot: float | None
    """When it was due (epoch seconds)."""
    at: float
    """When it was verified."""
    failures: int
    """Runs in a row without a good output, this one among them."""
    resolved_by: int | None = None
    """The run that passed since."""
    silenced_until: float | None = None
    """No further run of the workflow is told before."""


class UnverifiedNotice(Notice, frozen=True, kw_only=True):
    """Why a person who has asked for a verdict gets none: the workflow is not watched any more, if no run is named."""

    workflow: str
    run: int | None = None
    replaced_by: int | None = None
    """The later run whose output lies in the place of this one's."""


class VerifiedNotice(Notice, frozen=True, kw_only=True):
    """The verdict that a person has asked for."""

    run: int
    workflow: str
    workflow_id: int
    verdict: Verdict
    path: str | None
    at: float
    as_of: float | None = None
    """When the output came, if its age was judged as of then."""
