"""Outputs that do not say, in one of the allowed words, how the run went."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from jobs.verification.spec import StatusSpec
from jobs.verification.specimen import Bad, Specimen
from jobs.verification.spots import at
from jobs.verification.wording import shown

_OTHERS: Final = ("completed", "success", "done", "finished")
_USUAL: Final = ("ok", "failed", "error")
"""Words that a verifier might take for what is allowed, though here they are not."""


def of_status(good: Specimen) -> Iterator[Bad]:
    """Yield what says none of the allowed words; of many one is changed, mostly the last."""
    spec = good.spec.status
    if spec is None:
        return
    for text, last, others in good.places([spec.field]):
        yield from good.without(f"{text} removed", last)
        for how, value in _not_allowed(spec, at(good.root, last)):
            yield from good.changed(f"{text} {how}", last, value)
        for where, spot in others:
            wrong = _not_allowed(spec, at(good.root, spot))
            every = (bad for how, value in wrong for bad in good.changed(f"{text} {how}{where}", spot, value))
            yield from islice(every, 1)
    yield from good.emptied(f"{spec.field} without any", spec.field)


def _not_allowed(spec: StatusSpec, said: str) -> Iterator[tuple[str, object]]:
    for how, word in (
        ("in other case", said.swapcase()),
        ("padded", f" {said} "),
        ("longer", f"{said}x"),
        ("blank", ""),
        ("renamed", next((word for word in _OTHERS if word not in spec.allowed), said)),
        *(("says", word) for word in _USUAL),
    ):
        if word not in spec.allowed:
            yield f"{how} {shown(word)}", word
    for value in (None, True, 0, [said]):
        yield f"is {shown(value)}", value
