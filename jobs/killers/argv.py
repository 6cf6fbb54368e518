"""A killer's argv, filled in with what its target says."""

from collections.abc import Mapping, Sequence

from jobs.ports import Target
from jobs.program import argv


def fill_in(templates: Sequence[str], target: Target) -> list[str]:
    """Return one argument per template, its `{placeholders}` replaced by what `target` says.

    Raises:
        UnsafeArgumentError: see `jobs.program.argv.fill_in`.
    """
    return argv.fill_in(templates, _values(target))


def _values(target: Target) -> Mapping[str, str]:
    return {
        "session": target.session,
        "agent": target.agent,
        "reason": target.reason,
        "score": str(target.score),
    }
