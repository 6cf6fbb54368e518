"""What the chat is told of pins, as values, and the messages that carry it."""

from collections.abc import Iterable

import msgspec

from jobs.alert.outgoing import NOTICE, Mode, Notice, Outgoing
from jobs.pinning.change import Change
from jobs.pinning.kind import How, Kind, ProposalState


class Pinned(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that was pinned as it was found."""

    kind: Kind
    name: str
    not_pinned: tuple[str, ...] = ()
    """What it runs or hands over that no pin holds still, in words."""


class FirstUseNotice(Notice, frozen=True, kw_only=True):
    """Entries that nobody knew before were pinned."""

    entries: tuple[Pinned, ...]
    how: How = How.FIRST_USE


class ProposalNotice(Notice, frozen=True, kw_only=True):
    """The file says of an entry what is not in force, or what became of that."""

    proposal: int
    kind: Kind
    name: str
    is_new: bool = False
    """Whether nothing is in force under this name."""
    is_gone: bool = False
    """Whether the file does not hold it any more."""
    changes: tuple[Change, ...]
    not_pinned: tuple[str, ...] = ()
    in_force_since: float | None = None
    """When it was pinned what is in force; of what was approved, what was in force before."""
    state: ProposalState = ProposalState.OPEN
    decided_by: int | None = None
    """The Telegram user."""


class AlteredNotice(Notice, frozen=True, kw_only=True):
    """A pin in the database is not what was approved: it does not have its hash."""

    kind: Kind
    name: str


def subject_of(kind: Kind, name: str) -> str:
    """Return what the messages about an entry are told by."""
    return f"pin:{kind}:{name}"


def first_use_told(entries: Iterable[Pinned], how: How = How.FIRST_USE) -> Outgoing:
    """Return the message that names what was pinned at first sight."""
    return Outgoing(kind=NOTICE, body=msgspec.json.encode(FirstUseNotice(entries=tuple(entries), how=how)))


def proposal_told(notice: ProposalNotice, *, is_replacing: bool = False) -> Outgoing:
    """Return the message of a proposal: a new one while it is open, else an edit of the one that it had.

    `is_replacing`: it takes the place of another one of the same entry that was open until now, in its message.
    """
    is_new = notice.state is ProposalState.OPEN and not is_replacing
    return Outgoing(
        kind=NOTICE,
        body=msgspec.json.encode(notice),
        mode=Mode.SEND if is_new else Mode.EDIT,
        subject=subject_of(notice.kind, notice.name),
    )


def altered_told(kind: Kind, name: str) -> Outgoing:
    """Return the message that a pin was altered by other hands."""
    return Outgoing(kind=NOTICE, body=msgspec.json.encode(AlteredNotice(kind=kind, name=name)))
