"""Entries of which the watch list says what is not in force, in a line each."""

from collections.abc import Sequence
from dataclasses import dataclass

from aiogram.utils.formatting import Text

from bot.views.text import name
from jobs.pinning.kind import ProposalState
from jobs.pinning.pin import Proposal


@dataclass(frozen=True, slots=True, kw_only=True)
class Differing:
    """An entry, and what was found of it in the file."""

    proposal: Proposal
    is_new: bool
    """Whether nothing of this name is in force."""

    @property
    def is_open(self) -> bool:
        """Whether it waits for an answer."""
        return self.proposal.state is ProposalState.OPEN

    @property
    def words(self) -> str:
        """Say how the file differs, and what about it."""
        state = "it waits for approval" if self.is_open else "it was rejected"
        if self.is_new:
            return f"new in the file, not in force; {state}"
        if self.proposal.entry is None:
            return f"no longer in the file, still in force; its removal {state.removeprefix('it ')}"
        return f"the file differs from what is in force; {state}"


def differing_lines(found: Sequence[Differing], most: int) -> list[Text]:
    """Return so many lines, and how many are left out."""
    more = len(found) - most
    shown = [_line(each) for each in found[:most]]
    return [*shown, Text(f"📌 … and {more} more: /audit")] if more > 0 else shown


def _line(found: Differing) -> Text:
    return Text(f"📌 {found.proposal.kind} ", name(found.proposal.name), f": {found.words}")
