"""What the chat is told of pins, as values, and the messages that carry it."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from jobs.alert.outgoing import NOTICE, Mode, Notice, Outgoing
from jobs.pinning.change import Change
from jobs.pinning.kind import How, Kind, ProposalState

MOST_IN_ONE: Final = 20
"""Entries that one message names: as many as fit into it however long their names are."""


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
    is_lost: bool = False
    """Whether what was pinned before is in a database that cannot be read."""


class LetGoNotice(Notice, frozen=True, kw_only=True):
    """Entries that nobody had approved are not in the file any more, nor in force."""

    entries: tuple[Pinned, ...]


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
    has_more: bool = False
    """Whether there are more than can be shown; then it cannot be approved."""
    not_pinned: tuple[str, ...] = ()
    missing_killer: str | None = None
    """One that it names, and that is not in force."""
    used_by: tuple[tuple[Kind, str], ...] = ()
    """The entries in force that name this killer, of which the file does not know any more."""
    in_force_since: float | None = None
    """When it was pinned what is in force; of what was approved, what was in force before."""
    state: ProposalState = ProposalState.OPEN
    decided_by: int | None = None
    """The Telegram user."""


class ProposalsNotice(Notice, frozen=True, kw_only=True):
    """The file says of so many entries what is not in force that not each of them is told."""

    count: int
    entries: tuple[tuple[Kind, str], ...]
    """The first of them."""


class AlteredNotice(Notice, frozen=True, kw_only=True):
    """A pin in the database is not what was approved."""

    kind: Kind
    name: str
    others: int = 0
    """Entries of which the same is told."""
    is_put_back: bool = False
    """Whether it was known what it had been. Else it does not have its hash, or cannot be put in force."""


def subject_of(kind: Kind, name: str) -> str:
    """Return what the messages about an entry are told by."""
    return f"pin:{kind}:{name}"


def first_use_told(
    entries: Iterable[Pinned], how: How = How.FIRST_USE, *, is_lost: bool = False
) -> Sequence[Outgoing]:
    """Return the messages that name what was pinned at first sight, workflows first; mostly it is one."""
    notices = [FirstUseNotice(entries=share, how=how, is_lost=is_lost) for share in _shares(entries)]
    return [Outgoing(kind=NOTICE, body=msgspec.json.encode(notice)) for notice in notices]


def let_go_told(entries: Iterable[Pinned]) -> Sequence[Outgoing]:
    """Return the messages that name what is not in force any more though nobody was asked."""
    notices = [LetGoNotice(entries=share) for share in _shares(entries)]
    return [Outgoing(kind=NOTICE, body=msgspec.json.encode(notice)) for notice in notices]


def _shares(entries: Iterable[Pinned]) -> Sequence[tuple[Pinned, ...]]:
    ordered = sorted(entries, key=lambda entry: tuple(Kind).index(entry.kind))
    return [tuple(ordered[start : start + MOST_IN_ONE]) for start in range(0, len(ordered), MOST_IN_ONE)]


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


def altered_told(kind: Kind, name: str, *, others: int = 0, is_put_back: bool = False) -> Outgoing:
    """Return the message that a pin was altered by other hands."""
    notice = AlteredNotice(kind=kind, name=name, others=others, is_put_back=is_put_back)
    return Outgoing(kind=NOTICE, body=msgspec.json.encode(notice), alarm=True)
