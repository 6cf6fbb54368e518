"""Whether a mutant is detected: by all that is asked for, and by the check that claims it."""

import json
from typing import Final

from jobs.verification.checks import Output, run_checks
from jobs.verification.mutants import Mutant, mutants, narrowed
from jobs.verification.spec import WorkflowSpec
from jobs.verification.verdict import Check, Outcome, Past, Verdict
from tests.verification.judging import NO_PAST, NOW, output

MTIME: Final = NOW - 30


def judged(data: bytes | None, spec: WorkflowSpec, *, mtime: float = MTIME, past: Past = NO_PAST) -> Verdict:
    if data is None or len(data) > spec.max_size:
        found = Output(problem="there is none, or it is too large to be read")
    else:
        found = output(data, mtime=mtime)
    schema = None if spec.schema_text is None else json.loads(spec.schema_text)
    return run_checks(found, spec, NOW, past, schema=schema).verdict


def is_detected(mutant: Mutant, spec: WorkflowSpec) -> bool:
    """Whether it fails, and by the check that claims it where no other criterion can fail it before."""
    whole = judged(mutant.data, spec, mtime=mutant.mtime, past=mutant.past)
    alone = judged(mutant.data, narrowed(spec, mutant.check), mtime=mutant.mtime, past=mutant.past)
    failing = alone.failure.check if alone.failure else None
    return whole.outcome is Outcome.FAIL and failing is mutant.check


def survivors(good: bytes, approved: WorkflowSpec, judged_by: WorkflowSpec) -> list[Mutant]:
    """The mutants of what was approved that another specification lets pass."""
    return [mutant for mutant in mutants(good, approved, NOW, MTIME) if not is_detected(mutant, judged_by)]


def names(good: bytes, spec: WorkflowSpec, check: Check) -> list[str]:
    return [mutant.name for mutant in mutants(good, spec, NOW, MTIME) if mutant.check is check]
