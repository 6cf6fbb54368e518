"""The rows of a csv, kept by column: a table for each of millions of rows would take several times the memory."""

from collections.abc import Iterator, Sequence

import msgspec

from jobs.verification.path import ABSENT


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """What stands below a header, which has at least one column."""

    columns: dict[str, list[str]]
    """By name; all of one length."""

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def cells(self, name: str) -> Sequence[object]:
        """Return what stands in a column: ABSENT in every row if there is none of that name."""
        return self.columns.get(name) or [ABSENT] * len(self)

    def tables(self) -> Iterator[dict[str, str]]:
        """Yield every row as a table."""
        for row in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, row, strict=True))

    def less(self, name: str) -> dict[str, list[str]]:
        """Return all columns but one."""
        return {each: cells for each, cells in self.columns.items() if each != name}
