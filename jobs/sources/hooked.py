"""Logs, and beside them what a hook of the same program has told: `loopwarden hook` writes it line by line.

    {"ts": 1767225600.5, "agentId": "reports", "sessionId": "d4ea", "log": "/home/op/.claude/projects/-x/d4ea.jsonl",
     "callId": "toolu_01", "pid": 812, "tool": "Bash", "args": {"command": "ls"}, "is_error": false}

Sessions bear the same ids in both. `log` is where the session's own log should be: one hook tells of all sessions of
a program, and those are a source's own whose logs its pattern may find.

What becomes of a call that both tell: the log is read first, and a look in which it tells calls of a session passes over
those of the hook. In another look the hook's count, as far as they are newer than all that the log has told and have no
id that it has told, until it tells calls again: these take their place. The log of a sub-agent counts as its parent's,
too: the hook of Gemini CLI does not tell them apart. The process is always the hook's.
"""

import glob
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from jobs.pattern import could_match
from jobs.ports import Batch, CallSource, Cursor
from jobs.sources import gateway
from jobs.sources.log_files import EachLine, LogFiles
from jobs.sources.overlap import Earlier
from jobs.thrash.call import LoggedCall
from jobs.watchlist.sources import AUTO


class _Place(msgspec.Struct):
    log: str | None = None


_decode_place: Final = msgspec.json.Decoder(_Place).decode


@dataclass(slots=True, kw_only=True)
class HookedLogs:
    """A `CallSource` of two: what comes by the hook is marked as such."""

    name: str
    logs: CallSource
    hooks: CallSource
    folder: str
    """Of the files that the hook writes; it ends in a slash."""

    def read_new(self, cursors: Mapping[str, Cursor], now: float) -> Iterator[Batch]:
        """Yield what the logs tell, then what the hook does."""
        told = {path: cursor for path, cursor in cursors.items() if path.startswith(self.folder)}
        logged = {path: cursor for path, cursor in cursors.items() if path not in told}
        yield from self.logs.read_new(logged, now)
        for batch in self.hooks.read_new(told, now):
            yield msgspec.structs.replace(batch, is_hook=True)

    def problems(self) -> Sequence[str]:
        """What either could not read."""
        return (*self.logs.problems(), *self.hooks.problems())


def with_hook(
    logs: CallSource, pattern: str, program: str | None, folder: str, earlier: Earlier
) -> CallSource:
    """Return logs that `pattern` finds together with what hooks tell of their sessions in `folder`.

    If the program is not known, they may be any program's, and have to tell where their logs are.
    """
    folder = folder.rstrip("/") + "/"
    files = LogFiles(
        name=logs.name,
        pattern=f"{glob.escape(folder)}{program or '*'}.jsonl*",
        format=_told_of(pattern, program, earlier),
    )
    return HookedLogs(name=logs.name, logs=logs, hooks=files, folder=folder)


def _told_of(pattern: str, program: str | None, earlier: Earlier) -> EachLine:
    """Return the format of lines, those left out that are of sessions whose logs lie elsewhere."""

    def read(line: bytes) -> Sequence[LoggedCall] | None:
        try:
            log = _decode_place(line).log
        except (ValueError, RecursionError):
            log = None
        if log is None:
            is_own = program is not None
        else:
            is_own = could_match(log, pattern) and not earlier.reads(log, program or AUTO)
        return gateway.parse(line) if is_own else ()

    return EachLine(read)
