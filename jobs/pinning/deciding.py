"""What of a watch list is in force: what was approved, and nothing else."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from jobs.pinning.kind import How, Kind, ProposalState
from jobs.pinning.pin import Entry, Pin, Proposal, Spec, decoded, encoded, hash_of, pin_of
from jobs.verification.spec import WorkflowSpec
from jobs.watchlist.killers import CommandSpec, ProcessSpec
from jobs.watchlist.sources import SourceSpec

_Key = tuple[Kind, str]

MOST_UNASKED: Final = 20
"""New entries in one look that are pinned though nobody was asked; more are asked about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What follows from one look at the watch list. What is withdrawn is saved before what is proposed is added."""

    in_force: tuple[Entry, ...]
    """In the order in which they were first approved."""
    first_use: tuple[Pin, ...] = ()
    """To be added: in force from now on without anybody having been asked."""
    let_go: tuple[Pin, ...] = ()
    """To be added: out of force from now on, likewise, for nobody had approved what the file does not hold any more."""
    proposed: tuple[Proposal, ...] = ()
    """To be added, and asked."""
    withdrawn: tuple[Proposal, ...] = ()
    """To be saved: the file says something else by now, or again what is in force; then also one that was rejected."""
    altered: tuple[Pin, ...] = ()
    """Newer than what is in force, and not used: altered in the database, or written by another release."""


def decide(
    written: Sequence[Entry] | None,
    pins: Sequence[Pin],
    proposals: Sequence[Proposal],
    now: float,
    *,
    is_all: bool = True,
) -> Decision:
    """Return what is in force, and what is to be kept and told.

    `written`: what the file says, with contents; None: it cannot be read, or is wrong.
    `pins`: every row there is, oldest first. `proposals`: the newest of every entry.
    `is_all`: whether there may be no others, which cannot be read: else this look is not the first.
    """
    standing, altered = _standing(pins)
    in_force: dict[_Key, Spec | None] = {key: spec for key, (_, spec) in standing.items()}
    if written is None:
        return Decision(in_force=_entries(in_force), altered=altered)
    said = {(entry.kind, entry.name): entry for entry in written}
    specs = {key: entry.spec for key, entry in said.items()}
    # What is not asked again as long as the file stays as it is.
    asked = {(each.kind, each.name): each for each in proposals if each.state.still_differs}
    is_first = is_all and is_first_look(pins, proposals)
    first = [
        key
        for key in _first_used(said, in_force, altered, is_first=is_first)
        if key not in asked or not _says(asked[key], specs[key])
    ]
    if not is_first and len(first) > MOST_UNASKED:
        first = []
    gone = [key for key, pin in _unapproved(pins, standing).items() if key not in said]
    in_force |= {key: specs[key] for key in first}
    for key in gone:
        del in_force[key]
    differing = [key for key in dict.fromkeys((*specs, *in_force)) if specs.get(key) != in_force.get(key)]
    # A killer before what names it, so that both can be approved in the order in which they are told.
    differing.sort(key=lambda key: key[0] is not Kind.KILLER or key not in specs)
    return Decision(
        in_force=_entries(in_force),
        first_use=tuple(pin_of(said[key], How.FIRST_USE, now) for key in first),
        let_go=tuple(
            pin_of(Entry(kind=kind, name=name, spec=None), How.FIRST_USE, now) for kind, name in gone
        ),
        proposed=tuple(
            _proposal(key, specs.get(key), now)
            for key in differing
            if key not in asked or not _says(asked[key], specs.get(key))
        ),
        withdrawn=tuple(
            replace(proposal, state=ProposalState.WITHDRAWN, decided_at=proposal.decided_at or now)
            for key, proposal in asked.items()
            if _is_over(proposal, specs.get(key), is_settled=key not in differing)
        ),
        altered=altered,
    )


def pins_in_force(pins: Iterable[Pin]) -> tuple[Pin, ...]:
    """Return the newest usable pin of every entry that was not removed, in the order in which they were first approved.

    `pins`: every row, or every row of one entry, oldest first.
    """
    return tuple(pin for pin, _ in _standing(pins)[0].values())


def is_first_look(pins: Iterable[Pin], proposals: Sequence[Proposal]) -> bool:
    """Whether no bot has looked at a watch list before: what it finds is pinned at once, whatever it is."""
    has_bot_pinned = any(pin.how is How.FIRST_USE or pin.by is not None for pin in pins)
    return not has_bot_pinned and not proposals


def needs_approval(entry: Entry) -> bool:
    """Whether a new entry runs a program, signals a process or has that done, so that it waits for a person."""
    match entry.spec:
        case WorkflowSpec(command=acting) | SourceSpec(killer=acting):
            return acting is not None
        case spec:
            return isinstance(spec, CommandSpec | ProcessSpec)


# ── what is in force ──────────────────────────────────────────────────────────────────────────────


def _standing(pins: Iterable[Pin]) -> tuple[dict[_Key, tuple[Pin, Spec]], tuple[Pin, ...]]:
    """Return by entry, in the order of approval, what is in force; and the pins that would be but cannot be used."""
    # A dict keeps the place of a key whose value is replaced, and gives one that was removed and returns a new place.
    standing: dict[_Key, tuple[Pin, Spec]] = {}
    altered: dict[_Key, list[Pin]] = {}
    for pin in pins:
        key = (pin.kind, pin.name)
        try:
            spec = _spec_of(pin)
        except msgspec.DecodeError:
            altered.setdefault(key, []).append(pin)
            continue
        if not _may_follow(pin, spec, standing.get(key)):
            continue
        altered.pop(key, None)
        if spec is None:
            standing.pop(key, None)
        else:
            standing[key] = pin, spec
    return standing, tuple(pin for pins in altered.values() for pin in pins)


def _may_follow(pin: Pin, spec: Spec | None, before: tuple[Pin, Spec] | None) -> bool:
    """Whether a pin takes the place of the one before: what nobody has approved changes nothing, and ends only its like."""
    if pin.how is How.APPROVED or before is None:
        return True
    old, old_spec = before
    return spec == old_spec or (spec is None and old.how is not How.APPROVED)


def _unapproved(pins: Iterable[Pin], standing: Mapping[_Key, tuple[Pin, Spec]]) -> dict[_Key, Pin]:
    """Return what is in force though nobody approved it, nor was it there when a bot looked for the first time."""
    first_look = next((pin.at for pin in pins if pin.how is How.FIRST_USE), None)
    return {
        key: pin
        for key, (pin, _) in standing.items()
        if pin.how is How.FIRST_VERIFY or (pin.how is How.FIRST_USE and pin.at != first_look)
    }


def _spec_of(row: Pin | Proposal) -> Spec | None:
    """Raise `msgspec.DecodeError` if it does not hold what it did when it was written."""
    if hash_of(row.entry) != row.hash:
        raise msgspec.DecodeError("altered")
    return None if row.entry is None else decoded(row.kind, row.entry)


def _entries(specs: Mapping[_Key, Spec | None]) -> tuple[Entry, ...]:
    return tuple(Entry(kind=kind, name=name, spec=spec) for (kind, name), spec in specs.items())


def _first_used(
    said: Mapping[_Key, Entry],
    in_force: Mapping[_Key, Spec | None],
    altered: Iterable[Pin],
    *,
    is_first: bool,
) -> list[_Key]:
    """Return what is pinned without anybody being asked.

    On the first look of all that is also what `loopwarden verify` has pinned alike: else a file in which it has pinned
    everything would never have been looked at.
    """
    known = {*in_force, *((pin.kind, pin.name) for pin in altered)}
    return [
        key
        for key, entry in said.items()
        if (is_first and in_force.get(key) == entry.spec)
        or (key not in known and (is_first or not needs_approval(entry)))
    ]


# ── what is asked ─────────────────────────────────────────────────────────────────────────────────


def _proposal(key: _Key, spec: Spec | None, now: float) -> Proposal:
    kind, name = key
    text = encoded(spec)
    return Proposal(kind=kind, name=name, entry=text, hash=hash_of(text), found_at=now)


def _is_over(proposal: Proposal, spec: Spec | None, *, is_settled: bool) -> bool:
    return is_settled or (proposal.state is ProposalState.OPEN and not _says(proposal, spec))


def _says(proposal: Proposal, spec: Spec | None) -> bool:
    try:
        return _spec_of(proposal) == spec
    except msgspec.DecodeError:
        return False
