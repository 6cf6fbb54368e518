"""A good output with less in it: what is made of it is judged a hundred times over."""

import json
from typing import Any, Final

from jobs.verification.checks import Output, run_checks
from jobs.verification.spec import WorkflowSpec
from jobs.verification.specimen import specimen
from jobs.verification.verdict import Artifact, Past

_LONG: Final = 100_000
"""Bytes."""
_ENDS: Final = 20
"""Elements that are kept at either end of an array."""


def shortened(good: bytes, spec: WorkflowSpec, now: float, mtime: float) -> bytes:
    """Return a good output without what is in the middle of its arrays, if it is long and that leaves it good."""
    if len(good) <= _LONG or not spec.format.has_fields:
        return good
    whole = specimen(good, spec, now)
    ends = max(_ENDS, spec.count.min or 0) if spec.count else _ENDS
    less = whole.written(_ends_of(whole.root, ends))
    return less if _is_good(less, spec, now, mtime) else good


def _ends_of(value: Any, number: int) -> Any:
    match value:
        case list():
            kept = value if len(value) <= 2 * number else value[:number] + value[-number:]
            return [_ends_of(each, number) for each in kept]
        case dict():
            return {key: _ends_of(each, number) for key, each in value.items()}
        case _:
            return value


def _is_good(data: bytes, spec: WorkflowSpec, now: float, mtime: float) -> bool:
    artifact = Artifact(
        path=spec.output, device=0, inode=0, mtime_ns=int(mtime * 1e9), size=len(data), sha256=""
    )
    schema = None if spec.schema_text is None else json.loads(spec.schema_text)
    judged = run_checks(Output(artifact=artifact, data=data), spec, now, Past(), schema=schema)
    return judged.verdict.failure is None
