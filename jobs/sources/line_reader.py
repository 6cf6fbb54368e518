"""What every log format comes down to: something that reads the records of one session or file in their order."""

from collections.abc import Sequence
from typing import Protocol

from jobs.thrash.call import Entry


class LineReader(Protocol):
    """Reads the lines of one file, or the rows of one session, in their order."""

    def read(self, line: bytes, /) -> Sequence[Entry] | None:
        """Return what a line tells that is not blank, or None if it cannot be read. Never raises."""
        ...

    def state(self) -> str:
        """Return what reading on needs, as JSON; bounded, however long the file is."""
        ...
