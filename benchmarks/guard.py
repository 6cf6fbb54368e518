"""The scan as the bot runs it: a real database, a real source, the machine's clock."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.clock import SystemClock
from jobs.ports import Watch, Watched
from jobs.sources.registry import build_source
from jobs.store.database import open_database
from jobs.thrash.policy import OnDetection, ThrashPolicy
from jobs.thrash_scan import ThrashScan
from jobs.verification.spec import WorkflowSpec
from jobs.watchlist.sources import SourceSpec


@dataclass(frozen=True, slots=True)
class OneLog(Watch):
    """A watch list of one source that nobody edits."""

    watched: Watched

    def sources(self) -> Mapping[str, Watched]:
        """Return that one."""
        return {self.watched.source.name: self.watched}

    def workflows(self) -> Mapping[str, WorkflowSpec]:
        """Return none."""
        return {}

    def refresh(self) -> None:
        """Find it unchanged."""


@asynccontextmanager
async def guarding(data: Path, log: Path, format_name: str = "gateway") -> AsyncIterator[ThrashScan]:
    """Open a database in `data` and yield the scan of `log`, a path or a pattern; await it for one look."""
    source = build_source(SourceSpec(name="agents", format=format_name, path=str(log)))
    watch = OneLog(Watched(source=source, killer=None, on_detection=OnDetection.OBSERVE))
    async with open_database(data) as database:
        yield ThrashScan(store=database, watch=watch, policy=ThrashPolicy(), clock=SystemClock())


def make_room(folder: Path, size: int) -> None:
    """Exit with a sentence unless so many bytes are free."""
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    if free < size:
        raise SystemExit(f"{folder} has {free >> 20} MiB free, {size >> 20} MiB are needed: set TMPDIR.")
