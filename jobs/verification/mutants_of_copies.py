"""Outputs that say what the last run's said."""

import math
from collections.abc import Iterator
from typing import Any

from jobs.verification.mutants_of_times import redated
from jobs.verification.specimen import Bad, Specimen


def of_copy(good: Specimen) -> Iterator[Bad]:
    """Yield it as it is, for the good output has been the last; under a new time, and in another order."""
    if not good.spec.unchanged:
        return
    yield Bad("stale copy", good.data)
    if good.spec.timestamp is not None:
        yield Bad("stale copy under a new time", redated(good, good.spec.timestamp, math.floor(good.now)))
    # A toml without any pair would be empty.
    if good.form.has_fields and (reordered := good.written(_reordered(good.root))):
        yield Bad("stale copy in another order", reordered)


def _reordered(value: Any) -> Any:
    match value:
        case dict():
            return {key: _reordered(value[key]) for key in reversed(value)}
        case list():
            return [_reordered(each) for each in value]
        case _:
            return value
