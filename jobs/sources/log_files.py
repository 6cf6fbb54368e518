"""The calls in the files that a pattern names."""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import msgspec

from jobs.ports import Batch, Cursor
from jobs.sources.pattern import could_match, find_files
from jobs.sources.reading import Reading, plan
from jobs.sources.tail import ReadLimits, read_new
from jobs.thrash.call import ToolCall

_COMPRESSED: Final = (".gz", ".bz2", ".xz", ".zst", ".lz4", ".Z", ".zip")


class LineParser(Protocol):
    """What a log format is."""

    def __call__(self, line: bytes, /) -> Sequence[ToolCall] | None:
        """Return the calls in a line that is not blank, or None if the line cannot be read. Never raises."""
        ...


@dataclass(slots=True, kw_only=True)
class LogFiles:
    """A `CallSource`: every file that matches, followed as it grows, is rotated, truncated or replaced.

    Compressed files are passed over: they are rotated ones whose lines were read before.
    """

    name: str
    pattern: str
    """An absolute path with a shell's wildcards and `**`."""
    parse: LineParser
    limits: ReadLimits = field(default_factory=ReadLimits)
    _problems: list[str] = field(default_factory=list, init=False)

    def read_new(self, cursors: Mapping[str, Cursor], now: float) -> Iterator[Batch]:
        """Yield what came since `cursors` file by file, in batches of at most a chunk of lines.

        A line that cannot be read counts for its path, whichever file is there; so does one that is too long.
        """
        self._problems.clear()
        found, gone = self._look(cursors)
        unreadable = {path: cursor.unreadable for path, cursor in cursors.items()}
        for reading in plan(found, gone, cursors):
            for batch in self._read(reading, unreadable.get(reading.path, 0), now):
                unreadable[reading.path] = batch.cursor.unreadable
                yield batch

    def problems(self) -> Sequence[str]:
        """What the last `read_new` could not read, one sentence each."""
        return tuple(self._problems)

    def _look(self, cursors: Mapping[str, Cursor]) -> tuple[dict[str, os.stat_result], list[str]]:
        """Return the files that match and the known paths that hold nothing any more."""
        matching = {
            path for path in find_files(self.pattern, self._problems) if not path.endswith(_COMPRESSED)
        }
        found, gone = {}, []
        missing = {path for path in cursors.keys() - matching if could_match(path, self.pattern)}
        for path in sorted(matching | missing):
            try:
                seen = Path(path).stat()
            except (FileNotFoundError, NotADirectoryError):
                gone += [path] if path in cursors else []
            except OSError as error:
                self._problems.append(_unreadable(path, error))
            else:
                if path in matching and self._is_regular(path, seen):
                    found[path] = seen
        return found, gone

    def _is_regular(self, path: str, seen: os.stat_result) -> bool:
        if stat.S_ISREG(seen.st_mode):
            return True
        self._problems.append(f"{path} is not read: it is a {_kind(seen.st_mode)}, not a regular file.")
        return False

    def _read(self, reading: Reading, unreadable: int, now: float) -> Iterator[Batch]:
        try:
            for chunk in read_new(reading.file, reading.seen, reading.cursor, now, self.limits):
                calls, failed = _parse(chunk.lines, self.parse)
                unreadable += failed + chunk.skipped
                cursor = msgspec.structs.replace(chunk.cursor, unreadable=unreadable)
                yield Batch(path=reading.path, cursor=cursor, calls=calls)
        except FileNotFoundError:
            return  # deleted since it was found
        except OSError as error:
            self._problems.append(_unreadable(reading.file, error))


def _parse(lines: bytes, parse: LineParser) -> tuple[list[ToolCall], int]:
    """Return the calls and the number of lines that cannot be read."""
    calls: list[ToolCall] = []
    unreadable = 0
    for line in lines.split(b"\n"):
        if not line or line.isspace():
            continue
        found = parse(line)
        if found is None:
            unreadable += 1
        else:
            calls += found
    return calls, unreadable


def _unreadable(path: str, error: OSError) -> str:
    return f"{path} cannot be read: {error.strerror}."


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISFIFO(mode):
        return "named pipe"
    return "socket" if stat.S_ISSOCK(mode) else "device"
