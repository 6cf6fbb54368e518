"""What a log format is to the others: what reads it, how it is told from them, and where its program writes."""

import glob
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jobs.ports import CallSource
from jobs.sources.table_format import TableFormat

Record = Mapping[str, object]
"""A JSON object as it was written: its values may be anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where a program keeps its logs if nobody has told it otherwise."""

    variable: str | None = None
    """Of the environment: names another folder."""
    folders: Sequence[str]
    """The usual ones, the newest first; `~` is the user's."""
    patterns: Sequence[str]
    """Of the logs in such a folder."""

    def places(self, environment: Mapping[str, str]) -> list[str]:
        """Return the patterns, absolute or from `~`; those first that the environment leads to."""
        told = environment.get(self.variable, "") if self.variable else ""
        folders = [glob.escape(told.rstrip("/"))] if Path(told).is_absolute() else []
        return [f"{folder}/{pattern}" for folder in [*folders, *self.folders] for pattern in self.patterns]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFormat:
    """A line of the registry."""

    source: Callable[..., CallSource]
    """Is called with `name`, `pattern`, and with `takes` where files of other formats match the pattern, too."""
    is_record: Callable[[Record], bool] = lambda _: False
    """Whether a line shows that its file is of this format: not that it tells a call. No line may fit two formats."""
    is_path: Callable[[str], bool] = lambda _: True
    """Whether a file at that path may be of this format, where records alone do not tell it from another program's."""
    tables: Sequence[TableFormat] = ()
    """A database is of this format if it can answer the questions of one of them."""
    home: Home | None = None
    process: str | None = None
    """Matches the command line of the program's process, and no launcher's that a signal does not get past."""

    def __call__(self, *, name: str, pattern: str, takes: Callable[[str], bool] | None = None) -> CallSource:
        """Return what reads the files that match; `takes` leaves some of them to others."""
        if takes is None:
            return self.source(name=name, pattern=pattern)
        return self.source(name=name, pattern=pattern, takes=takes)
