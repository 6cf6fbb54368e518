"""The calls in the files that a pattern names."""

import os
import stat
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import msgspec

from jobs.ports import Batch, Cursor
from jobs.sources.pattern import could_match, find_files
from jobs.sources.reading import Reading, Sight, plan, sight
from jobs.sources.tail import Identity, ReadLimits, identity, identity_of, read_new
from jobs.thrash.call import LoggedCall

_TRIES: Final = 5
"""How often to look again while files are being renamed."""
_COMPRESSED: Final = (".gz", ".bz2", ".xz", ".zst", ".lz4", ".Z", ".zip")


class LineParser(Protocol):
    """What a log format is."""

    def __call__(self, line: bytes, /) -> Sequence[LoggedCall] | None:
        """Return the calls in a line that is not blank, or None if the line cannot be read. Never raises."""
        ...


@dataclass(slots=True, kw_only=True)
class LogFiles:
    """A `CallSource`: every file that matches, followed as it grows, is rotated, truncated or replaced.

    Compressed files are passed over: they are rotated ones whose lines were read before. A file that is rotated away
    twice between two looks is read only if the pattern finds it there, so a pattern had better end in `*`.
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
        found, gone = self._look(cursors)
        unreadable = {path: cursor.unreadable for path, cursor in cursors.items()}
        readings, left_alone = plan(found, gone, cursors, now, self._is_found)
        unfinished: set[str | None] = {*left_alone}
        for reading in readings:
            # The next file of a path takes its cursor: not before this one's is kept elsewhere or needed no more.
            if unfinished.isdisjoint((reading.path, reading.successor_of, reading.copy_of)):
                is_read = yield from self._read(reading, unreadable, now)
            else:
                is_read = False
            if not is_read:
                unfinished.add(reading.path)

    def problems(self) -> Sequence[str]:
        """What the last `read_new` could not read, one sentence each."""
        return tuple(self._problems)

    def _look(self, cursors: Mapping[str, Cursor]) -> tuple[dict[str, Sight], list[str]]:
        """Return the files that match and the known paths that hold nothing any more, as they were at one time."""
        found, gone = self._collect(cursors)
        # A rotation changes one file after the other. In its midst one finds what never was there together.
        for _ in range(_TRIES):
            before = _state(found)
            if all(
                path not in cursors or before[path] == (identity_of(cursors[path]), True) for path in found
            ):
                break
            found, gone = self._collect(cursors)
            if _state(found) == before:
                break
        return found, gone

    def _collect(self, cursors: Mapping[str, Cursor]) -> tuple[dict[str, Sight], list[str]]:
        self._problems.clear()
        matching = self._matching(self._problems)
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
                    found[path] = sight(path, seen, cursors.get(path))
        return found, gone

    def _matching(self, problems: list[str]) -> set[str]:
        return {path for path in find_files(self.pattern, problems) if not path.endswith(_COMPRESSED)}

    def _is_found(self, path: str) -> bool:
        return path in self._matching([])

    def _is_regular(self, path: str, seen: os.stat_result) -> bool:
        if stat.S_ISREG(seen.st_mode):
            return True
        self._problems.append(f"{path} is not read: it is a {_kind(seen.st_mode)}, not a regular file.")
        return False

    def _read(self, reading: Reading, unreadable: dict[str, int], now: float) -> Generator[Batch, None, bool]:
        """Yield what is new and return whether the path's next file may be read; `unreadable` is brought up to date."""
        chunk = None
        try:
            for chunk in read_new(reading.file, reading.seen, reading.cursor, now, self.limits):
                calls, failed = _parse(chunk.lines, self.parse)
                count = unreadable.get(reading.path, 0) + failed + chunk.skipped
                unreadable[reading.path] = count
                cursor = msgspec.structs.replace(chunk.cursor, unreadable=count)
                yield Batch(path=reading.path, cursor=cursor, calls=calls, size=chunk.size)
        except FileNotFoundError:
            return False  # renamed or deleted since it was found
        except OSError as error:
            self._problems.append(_unreadable(reading.file, error))
            return True  # who knows for how long
        if chunk is None:
            return False  # rewritten since it was found
        if not chunk.is_last:
            self._problems.append(f"{reading.file} is very long: the rest of it is left for the next look.")
        return chunk.is_last


def _parse(lines: Iterable[bytes], parse: LineParser) -> tuple[list[LoggedCall], int]:
    """Return the calls and the number of lines that cannot be read."""
    calls: list[LoggedCall] = []
    unreadable = 0
    for line in lines:
        found = parse(line)
        if found is not None:
            calls += found
        elif not line.isspace():
            unreadable += 1
    return calls, unreadable


def _state(found: Mapping[str, Sight]) -> dict[str, tuple[Identity, bool]]:
    return {path: (identity(file.seen), file.is_same) for path, file in found.items()}


def _unreadable(path: str, error: OSError) -> str:
    return f"{path} cannot be read: {error.strerror}."


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISFIFO(mode):
        return "named pipe"
    return "socket" if stat.S_ISSOCK(mode) else "device"
