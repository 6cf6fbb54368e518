"""Values of runs with foreign text in them, to be drawn by Hypothesis."""

from hypothesis import strategies as st

from jobs.alert.run_notice import RunNotice, UnverifiedNotice, VerifiedNotice
from jobs.verification.history import RecordedVerdict, Run, Trigger, WorkflowState
from jobs.verification.verdict import Artifact, Check, CheckResult, Judged, Outcome, Passed, Verdict
from tests.bot.safety import counts, foreign, ids, moments

results = st.builds(CheckResult, check=st.sampled_from(Check), passed=st.sampled_from(Passed), reason=foreign)
outcomes = st.builds(
    Verdict,
    outcome=st.sampled_from(Outcome),
    results=st.lists(results, max_size=len(Check)).map(tuple),
    says_failed=st.booleans(),
    said_done=st.none() | foreign,
)
artifacts = st.builds(
    Artifact,
    path=foreign,
    device=counts,
    inode=counts,
    mtime_ns=counts,
    size=counts,
    sha256=st.sampled_from(["", "0" * 64]),
)
judgements = st.builds(Judged, verdict=outcomes, artifact=st.none() | artifacts)
runs = st.builds(
    Run,
    id=ids,
    workflow=foreign,
    key=foreign,
    slot=st.none() | moments,
    reported=st.none() | foreign,
    at=moments,
)
verdicts = st.builds(
    RecordedVerdict,
    id=ids,
    run_id=ids,
    workflow=foreign,
    by=st.sampled_from(Trigger),
    outcome=st.sampled_from(Outcome),
    says_failed=st.booleans(),
    failed_check=st.none() | st.sampled_from(Check),
    judged=judgements,
    at=moments,
    took=st.floats(0, 1e6),
    as_of=st.none() | moments,
)
states = st.builds(
    WorkflowState,
    id=ids,
    name=foreign,
    since=moments,
    judged_until=moments,
    failures=counts,
    silenced_until=st.none() | moments,
)
run_notices = st.builds(
    RunNotice,
    run=ids,
    alert=st.none() | ids,
    workflow=foreign,
    workflow_id=ids,
    verdict=outcomes,
    path=st.none() | foreign,
    slot=st.none() | moments,
    at=moments,
    failures=counts,
    resolved_by=st.none() | ids,
    silenced_until=st.none() | moments,
)
verified_notices = st.builds(
    VerifiedNotice,
    run=ids,
    workflow=foreign,
    workflow_id=ids,
    verdict=outcomes,
    path=st.none() | foreign,
    at=moments,
    as_of=st.none() | moments,
)
unverified_notices = st.builds(
    UnverifiedNotice, workflow=foreign, run=st.none() | ids, replaced_by=st.none() | ids
)
