"""Outputs that do not say, in one of the allowed words, how the run went."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from jobs.verification.spec import StatusSpec
from jobs.verification.specimen import Bad, Specimen
from jobs.verification.spots import at
from jobs.verification.wording import shown

_OTHERS: Final = ("completed", "success", "done", "finished")


def of_status(good: Specimen) -> Iterator[Bad]:
    """Yield what says none of the allowed words; of many the last is changed."""
    spec = good.spec.status
    if spec is None:
        return
    for spot in islice(good.spots(spec.field), 1):
        yield from good.without(f"{spec.field} removed", spot)
        for how, value in _not_allowed(spec, at(good.root, spot)):
            yield from good.changed(f"{spec.field} {how}", spot, value)
    yield from good.emptied(f"{spec.field} without any", spec.field)


def _not_allowed(spec: StatusSpec, said: str) -> Iterator[tuple[str, object]]:
    for how, word in (
        ("in other case", said.swapcase()),
        ("padded", f" {said} "),
        ("blank", ""),
        ("renamed", next((word for word in _OTHERS if word not in spec.allowed), said)),
    ):
        if word not in spec.allowed:
            yield f"{how} {shown(word)}", word
    for value in (None, True, 0, [said]):
        yield f"is {shown(value)}", value
