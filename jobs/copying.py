"""The files of what is in force -> copies of them, which are run once they change."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from jobs.approved_copies import ApprovedCopies
from jobs.aside import Aside, OverdueError
from jobs.pinning.pin import Entry

_PATIENCE: Final = 30.0
"""Seconds."""

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Copying:
    """Copies in a thread what is not copied yet, as far as it is still what was approved."""

    copies: ApprovedCopies
    of: Sequence[Entry] = ()
    """The entries it was called for last."""
    trouble: str | None = None
    """What kept it from copying then."""
    aside: Aside = field(default_factory=Aside)

    async def __call__(self, entries: Sequence[Entry], *, are_all: bool) -> None:
        """Copy the files of `entries`; if they `are_all` that are in force, the copies of others are removed."""
        self.of, before, self.trouble = entries, self.trouble, None
        copy = partial(self.copies.hold, [entry.spec for entry in entries], alone=are_all)
        try:
            await self.aside("copying what was approved", _PATIENCE, copy)
        except (OSError, OverdueError) as error:
            self.trouble = str(error)
        if self.trouble not in {None, before}:
            _log.warning("what was approved cannot be copied: %s", self.trouble)
