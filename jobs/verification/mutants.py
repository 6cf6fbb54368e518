"""A good output made bad in every way that the checks claim to catch.

Each is bad by the format's grammar or by the specification. Were the verifier asked which are, none could survive it.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

import msgspec
from msgspec.structs import replace

from jobs.verification.comparing import digest
from jobs.verification.mutants_of_bytes import of_bytes
from jobs.verification.mutants_of_copies import of_copy
from jobs.verification.mutants_of_fields import of_fields, of_required
from jobs.verification.mutants_of_numbers import LARGEST, items, of_count, of_size
from jobs.verification.mutants_of_patterns import of_forbidden
from jobs.verification.mutants_of_schema import of_schema
from jobs.verification.mutants_of_status import of_status
from jobs.verification.mutants_of_times import of_timestamp, too_new, too_old
from jobs.verification.parsing import parse
from jobs.verification.shortened import shortened
from jobs.verification.spec import Format, WorkflowSpec
from jobs.verification.specimen import Bad, Specimen, specimen
from jobs.verification.verdict import Check, Past

_MOST: Final = 50
"""Mutants of one kind: so many fields are enough to find a check that has gone lenient. There are fewer ways of being bad."""
_PARTS: Final[tuple[tuple[Check, Callable[[Specimen], Iterator[Bad]]], ...]] = (
    (Check.PARSES, of_bytes),
    (Check.FIELDS, of_required),
    (Check.FIELDS, of_fields),
    (Check.FIELDS, of_schema),
    (Check.FRESH, of_timestamp),
    (Check.STATUS, of_status),
    (Check.UNCHANGED, of_copy),
    (Check.SIZE, of_size),
    (Check.COUNT, of_count),
    (Check.FORBID, of_forbidden),
)

_EVER: Final = 1e12
"""Seconds: a `max_age` that every output keeps."""
_NEEDED: Final[dict[Check, tuple[str, ...]]] = {
    Check.EXISTS: ("format", "max_size"),
    Check.PARSES: ("format",),
    Check.FIELDS: ("format", "required", "placeholders", "fields", "schema", "schema_text"),
    Check.FRESH: ("format", "timestamp", "max_age"),
    Check.STATUS: ("format", "status"),
    Check.UNCHANGED: ("format", "unchanged", "timestamp"),
    Check.SIZE: ("size",),
    Check.COUNT: ("format", "count"),
    Check.FORBID: ("forbid",),
    Check.COMMAND: ("command",),
}
"""What each check is asked for by. Size and patterns are of the bytes, whatever they are."""
_RUNS: Final = 3
"""Good ones that a size, or a number, is compared with."""


class Mutant(msgspec.Struct, frozen=True, kw_only=True):
    """A bad output, and what it is judged by beside the specification."""

    name: str
    """How it is bad, such as `status renamed`."""
    check: Check
    """Which one claims to catch that."""
    data: bytes | None
    """None: there is no file."""
    mtime: float
    """Of its file, epoch seconds."""
    past: Past = Past()


def mutants(good: bytes, spec: WorkflowSpec, now: float, mtime: float) -> Iterator[Mutant]:
    """Yield all mutants of a good output, one at a time: each may be as large as the output.

    `good` is unpacked, was written at `mtime`, and passes as of `now`. A `command` has none.
    """
    # Its own time, where another one counts, may be ahead.
    mtime = min(mtime, now)
    whole = specimen(shortened(good, spec, now, mtime), spec, now)
    original = Mutant(name="", check=Check.EXISTS, data=whole.data, mtime=mtime)
    yield replace(original, name="missing", data=None)
    yield replace(original, name="emptied", data=b"")
    if spec.max_size < LARGEST:
        yield replace(original, name="larger than max_size", data=whole.data.ljust(spec.max_size + 1))
    if spec.timestamp is None:
        yield from _of_file_time(original, spec, now)
    for check, part in _PARTS:
        past = _past(check, whole)
        # Of what is too large `exists` would have to say so.
        bounded = (bad for bad in part(whole) if len(bad.data) <= spec.max_size)
        for bad in islice(bounded, _MOST):
            yield replace(original, name=bad.name, check=check, data=bad.data, past=past)


def _of_file_time(original: Mutant, spec: WorkflowSpec, now: float) -> Iterator[Mutant]:
    fresh = replace(original, check=Check.FRESH)
    yield replace(fresh, name="file aged", mtime=too_old(now, spec.max_age))
    yield replace(fresh, name="file dated ahead", mtime=too_new(now))


def _past(check: Check, good: Specimen) -> Past:
    """Return earlier runs that were like the good output, as far as a check looks at them."""
    match check:
        case Check.UNCHANGED if good.spec.unchanged:
            document = parse(good.data, good.form)
            return Past(last_content=digest(document, good.data, good.spec.timestamp))
        case Check.SIZE:
            return Past(sizes=(len(good.data),) * _RUNS)
        case Check.COUNT if good.spec.count:
            return Past(counts=(len(items(good, good.spec.count.of) or ()),) * _RUNS)
        case _:
            return Past()


def narrowed(spec: WorkflowSpec, check: Check) -> WorkflowSpec:
    """Return the specification less all that is not needed to reach a check, and that check alone."""
    kept = {name: getattr(spec, name) for name in _NEEDED[check]}
    bare = WorkflowSpec(name=spec.name, output=spec.output, format=Format.ANY, max_age=_EVER)
    return replace(bare, **kept)
