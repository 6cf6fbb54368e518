"""A file that several entries of the watch list find is read for the first of them: else all of it would count twice."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from typing import Self

from jobs.pattern import is_magic, matches, parts_of
from jobs.watchlist.sources import AUTO, SourceSpec


@dataclass(frozen=True, slots=True)
class Earlier:
    """Entries before another one that may find the same files."""

    entries: Sequence[SourceSpec] = ()

    @classmethod
    def than(cls, spec: SourceSpec, entries: Iterable[SourceSpec]) -> Self:
        """Return those that matter to an entry; most lie in other folders."""
        return cls(tuple(entry for entry in entries if _may_meet(entry.path, spec.path)))

    def reads(self, path: str, format_name: str) -> bool:
        """Whether one of them reads the file at a path as of this format; `auto` is any.

        One that names another format makes nothing of the file, or is wrong, and must not hide it.
        """
        return any(
            matches(path, entry.path)
            for entry in self.entries
            if AUTO in {entry.format, format_name} or entry.format == format_name
        )


def _may_meet(one: str, other: str) -> bool:
    return all(here == there for here, there in zip(_fixed(one), _fixed(other), strict=False))


@lru_cache(maxsize=2048)
def _fixed(pattern: str) -> tuple[str, ...]:
    """Return the parts of a pattern before the first that finds anything; each entry is compared with every other."""
    return tuple(takewhile(lambda part: not is_magic(part), parts_of(pattern)))
