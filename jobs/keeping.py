"""Of every workflow the last good output is kept: what the self-test makes bad."""

from typing import TYPE_CHECKING

from jobs.verification.spec import Names
from jobs.verification.trial import MOST_KEPT, GoodOutput
from jobs.verification.verdict import Artifact, Judged, Outcome

if TYPE_CHECKING:
    from jobs.ports import RunTables


async def to_be_kept(tables: "RunTables", workflow: str, judged: Judged) -> Artifact | None:
    """Return what a verdict is about, if that is good, not too large, and another one than is kept."""
    artifact = judged.artifact
    if artifact is None or judged.verdict.outcome is not Outcome.PASS or artifact.size > MOST_KEPT:
        return None
    return None if await tables.good_outputs.sha256_of(workflow) == artifact.sha256 else artifact


def good_output(
    workflow: str, names: Names, artifact: Artifact, data: bytes, *, judged_as_of: float
) -> GoodOutput:
    """Return the copy of an output, whose run is not known yet."""
    return GoodOutput(
        workflow=workflow,
        run_id=0,
        path=artifact.path,
        sha256=artifact.sha256,
        mtime_ns=artifact.mtime_ns,
        judged_as_of=judged_as_of,
        names=names,
        data=data,
    )
