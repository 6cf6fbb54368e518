"""An entry of the watch list as somebody has approved it, and one that waits to be. Times are epoch seconds."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import msgspec

from jobs.pinning.kind import How, Kind, ProposalState
from jobs.verification.spec import WorkflowSpec
from jobs.watchlist.killers import KillerSpec, ProcessSpec
from jobs.watchlist.sources import AUTO, FORMAT_NAMES, SourceSpec

Spec = WorkflowSpec | SourceSpec | KillerSpec


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a watch list, with digests of the files that it refers to."""

    kind: Kind
    name: str
    spec: Spec | None
    """None: there is no such entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A version of an entry that was approved; the newest of its kind and name is in force."""

    id: int = 0
    kind: Kind
    name: str
    entry: str | None
    """JSON of its specification; None: its removal was approved."""
    hash: str
    """sha256 of `entry`, hex."""
    how: How
    by: int | None = None
    """The Telegram user who has approved it."""
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What the file says of an entry, where that is not what is in force."""

    id: int = 0
    kind: Kind
    name: str
    entry: str | None
    """As of a pin; None: the file does not hold it any more."""
    hash: str
    state: ProposalState = ProposalState.OPEN
    found_at: float
    decided_by: int | None = None
    decided_at: float | None = None


_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_TYPES: Final = {Kind.WORKFLOW: WorkflowSpec, Kind.SOURCE: SourceSpec, Kind.KILLER: KillerSpec}


def encoded(spec: Spec | None) -> str | None:
    """Return a specification as a pin keeps it: every field, so that a later release's default changes nothing."""
    return None if spec is None else _ENCODER.encode(spec).decode()


def decoded(kind: Kind, text: str) -> Spec:
    """Return the specification that a pin keeps. Raises `msgspec.DecodeError` if it is none that can be put in force."""
    spec: Spec = msgspec.json.decode(text, type=_TYPES[kind])
    if not _is_usable(spec):
        raise msgspec.ValidationError("no such format or pattern")
    return spec


def _is_usable(spec: Spec) -> bool:
    """Whether what acts on it can be built, as of all that was ever read from a watch list of this release."""
    match spec:
        case SourceSpec():
            return spec.format == AUTO or spec.format in FORMAT_NAMES
        case ProcessSpec():
            return _is_pattern(spec.match)
        case _:
            return True


def _is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def hash_of(text: str | None) -> str:
    """Return the hash of an encoded specification."""
    return sha256((text or "").encode()).hexdigest()


def pin_of(entry: Entry, how: How, at: float) -> Pin:
    """Return the pin, not kept yet, that puts an entry in force."""
    text = encoded(entry.spec)
    return Pin(kind=entry.kind, name=entry.name, entry=text, hash=hash_of(text), how=how, at=at)


def approved(of: Proposal, by: int, at: float) -> Pin:
    """Return the pin, not kept yet, by which a person puts in force what was proposed."""
    return Pin(kind=of.kind, name=of.name, entry=of.entry, hash=of.hash, how=How.APPROVED, by=by, at=at)


def entries_of(pins: Iterable[Pin]) -> tuple[Entry, ...]:
    """Return what pins in force stand for."""
    return tuple(Entry(kind=pin.kind, name=pin.name, spec=spec_of(pin)) for pin in pins)


def spec_of(row: Pin | Proposal | None) -> Spec | None:
    """Return the specification in a row; None if there is none, or none that can be read."""
    if row is None or row.entry is None:
        return None
    try:
        return decoded(row.kind, row.entry)
    except msgspec.DecodeError:
        return None
