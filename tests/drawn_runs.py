"""Values of runs, to be drawn by Hypothesis."""

from hypothesis import strategies as st

from jobs.verification.history import Ends, RecordedVerdict, Report, Run, Trigger, WorkflowState
from jobs.verification.verdict import (
    Artifact,
    Check,
    CheckResult,
    Judged,
    Outcome,
    Passed,
    Sighting,
    Verdict,
)
from tests.drawn import names, numbers, times

seen = {"path": names, "device": numbers, "inode": numbers, "mtime_ns": numbers, "size": numbers}
sightings = st.builds(Sighting, **seen)
artifacts = st.builds(Artifact, **seen, sha256=names)
results = st.builds(CheckResult, check=st.sampled_from(Check), passed=st.sampled_from(Passed), reason=names)
judgements = st.builds(
    Judged,
    verdict=st.builds(
        Verdict,
        outcome=st.sampled_from(Outcome),
        results=st.lists(results, max_size=3).map(tuple),
        says_failed=st.booleans(),
        said_done=names | st.none(),
    ),
    artifact=artifacts | st.none(),
    content=names,
    count=numbers | st.none(),
)
workflows = st.builds(
    WorkflowState,
    id=st.just(0),
    name=names,
    since=times,
    seen=sightings | st.none(),
    judged_until=times,
    last_run=numbers | st.none(),
    ends=st.builds(Ends, calls=st.dictionaries(numbers, times, max_size=3)),
    failures=numbers,
    alerted_run=numbers | st.none(),
    silenced_until=times | st.none(),
)
reports = st.builds(
    Report,
    id=st.just(0),
    workflow=names,
    by=st.sampled_from(Trigger),
    at=times,
    reported=names | st.none(),
    run_id=numbers | st.none(),
    slot=times | st.none(),
    as_of=times | st.none(),
    said=names | st.none(),
    answer=names | st.none(),
)
runs = st.builds(
    Run,
    id=st.just(0),
    workflow=names,
    key=names,
    slot=times | st.none(),
    reported=names | st.none(),
    at=times,
)
verdicts = st.builds(
    RecordedVerdict,
    id=st.just(0),
    run_id=st.just(0),
    workflow=names,
    by=st.sampled_from(Trigger),
    outcome=st.sampled_from(Outcome),
    says_failed=st.booleans(),
    failed_check=names | st.none(),
    judged=judgements,
    at=times,
    took=times,
    ran_at=times,
    checks=names,
    as_of=times | st.none(),
)
