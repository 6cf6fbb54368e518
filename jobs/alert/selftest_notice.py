"""What the chat is told of self-tests: that the verifier has let something pass."""

import msgspec

from jobs.alert.outgoing import NOTICE, Notice, Outgoing
from jobs.verification.trial import MadeOf, SelfTest, Trials


class SelftestNotice(Notice, frozen=True, kw_only=True):
    """Not every mutant of a workflow was detected by the check that claims to catch it."""

    workflow: str
    made_of: MadeOf
    result: Trials


def survival_told(test: SelfTest) -> Outgoing | None:
    """Return the alert of a self-test, None if nothing has survived it."""
    if not test.result.survivors:
        return None
    notice = SelftestNotice(workflow=test.workflow, made_of=test.made_of, result=test.result)
    return Outgoing(kind=NOTICE, body=msgspec.json.encode(notice), subject=f"selftest:{test.workflow}")
