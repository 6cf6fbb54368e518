"""The calls in the files that a pattern names."""

import os
import stat
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec

from jobs.opening import kind_of
from jobs.pattern import could_match, find_files
from jobs.ports import Batch, Cursor
from jobs.sources.line_reader import LineReader
from jobs.sources.reading import Reading, Sight, plan, sight
from jobs.sources.tail import Identity, ReadLimits, identity, is_of, is_unchanged, read_new
from jobs.thrash.call import Answer, Entry, LoggedCall, Usage

_TRIES: Final = 5
"""How often to look again while files are being renamed."""
COMPRESSED: Final = (".gz", ".bz2", ".xz", ".zst", ".lz4", ".Z", ".zip")
"""How the names of files end that are passed over."""


class LineFormat(Protocol):
    """What a log format is."""

    def __call__(self, path: str, state: str, /) -> LineReader:
        """Begin to read a file, or go on where `state` was given; `""` at its start. Never raises."""
        ...


LineParser = Callable[[bytes], Sequence[LoggedCall] | None]


@dataclass(frozen=True, slots=True)
class EachLine:
    """A format whose lines say all there is, each for itself."""

    read: LineParser

    def __call__(self, _path: str, _state: str, /) -> "EachLine":
        return self

    def state(self) -> str:
        """Nothing."""
        return ""


@dataclass(slots=True, kw_only=True)
class LogFiles:
    """A `CallSource`: every file that matches, followed as it grows, is rotated, truncated or replaced.

    Compressed files are passed over: they are rotated ones whose lines were read before. A file that is rotated away
    twice between two looks is read only if the pattern finds it there, so a pattern had better end in `*`.
    """

    name: str
    pattern: str
    """An absolute path with a shell's wildcards and `**`."""
    format: LineFormat
    takes: Callable[[str], bool] | None = None
    """Whether a path that matches is a file of lines; others are somebody else's concern."""
    sightings: Callable[[], Mapping[str, os.stat_result] | None] = lambda: None
    """What has just been seen at all paths that match and that it takes, if somebody has looked for it already."""
    limits: ReadLimits = field(default_factory=ReadLimits)
    _before: Mapping[str, Sight] = field(default_factory=dict, init=False)
    """What the last look found: of a file that has not changed since, the very same is told again."""
    _problems: list[str] = field(default_factory=list, init=False)

    def read_new(self, cursors: Mapping[str, Cursor], now: float) -> Iterator[Batch]:
        """Yield what came since `cursors` file by file, in batches of at most a chunk of lines.

        A line that cannot be read counts for its path, whichever file is there; so does one that is too long.
        """
        found, gone = self._look(cursors)
        unreadable = {path: cursor.unreadable for path, cursor in cursors.items()}
        planned = plan(found, gone, cursors, now, self._is_found)
        for path in planned.unchanged:
            yield Batch(path=path, cursor=cursors[path], calls=())
        unfinished: set[str | None] = {*planned.left_alone}
        for reading in planned.readings:
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
        found, gone = self._collect(cursors, self.sightings())
        # A rotation changes one file after the other. In its midst one finds what never was there together.
        for _ in range(_TRIES):
            others = [path for path, sighted in found.items() if not sighted.is_unchanged]
            if all(_has_stayed(found[path], cursors.get(path)) for path in others):
                break
            before = _state(found)
            found, gone = self._collect(cursors, None)
            if _state(found) == before:
                break
        return found, gone

    def _collect(
        self, cursors: Mapping[str, Cursor], sightings: Mapping[str, os.stat_result] | None
    ) -> tuple[dict[str, Sight], list[str]]:
        self._problems.clear()
        matching = self._matching(self._problems) if sightings is None else sightings.keys()
        found, gone = dict[str, Sight](), list[str]()
        missing = {path for path in cursors.keys() - matching if could_match(path, self.pattern)}
        at_hand, before = sightings or {}, self._before
        for path in sorted(matching | missing):
            known, was = cursors.get(path), before.get(path)
            try:
                seen = at_hand.get(path) or os.stat(path)  # noqa: PTH116 - to make a Path takes longer than to look
            except (FileNotFoundError, NotADirectoryError):
                gone += [path] if path in cursors else []
            except OSError as error:
                self._problems.append(refused(path, error))
            else:
                if was and was.is_unchanged and known and path in matching and is_unchanged(seen, known):
                    found[path] = was
                elif path in matching and self._is_regular(path, seen):
                    found[path] = sight(path, seen, known)
        self._before = found
        return found, gone

    def _matching(self, problems: list[str]) -> set[str]:
        paths = find_files(self.pattern, problems)
        paths = {path for path in paths if not path.endswith(COMPRESSED)}
        return paths if self.takes is None else {path for path in paths if self.takes(path)}

    def _is_found(self, path: str) -> bool:
        return path in self._matching([])

    def _is_regular(self, path: str, seen: os.stat_result) -> bool:
        if stat.S_ISREG(seen.st_mode):
            return True
        self._problems.append(irregular(path, seen))
        return False

    def _read(self, reading: Reading, unreadable: dict[str, int], now: float) -> Generator[Batch, None, bool]:
        """Yield what is new and return whether the path's next file may be read; `unreadable` is brought up to date."""
        chunk, lines, state = None, None, reading.cursor.state if reading.cursor else ""
        try:
            for chunk in read_new(reading.file, reading.seen, reading.cursor, now, self.limits):
                entries, failed = list[Entry](), 0
                if chunk.lines:  # in most files nothing is new
                    lines = lines or self.format(reading.file, state)
                    entries, failed = _parse(chunk.lines, lines.read)
                    state = lines.state()
                count = unreadable.get(reading.path, 0) + failed + chunk.skipped
                unreadable[reading.path] = count
                cursor = msgspec.structs.replace(chunk.cursor, unreadable=count, state=state)
                yield batch_of(reading.path, cursor, entries, chunk.size)
        except FileNotFoundError:
            return False  # renamed or deleted since it was found
        except OSError as error:
            self._problems.append(refused(reading.file, error))
            return True  # who knows for how long
        if chunk is None:
            return False  # rewritten since it was found
        if not chunk.is_last:
            self._problems.append(f"{reading.file} is very long: the rest of it is left for the next look.")
        return chunk.is_last


def batch_of(path: str, cursor: Cursor, entries: Sequence[Entry], size: int) -> Batch:
    """Sort what was read of one file."""
    calls, answers, usages = list[LoggedCall](), list[Answer](), list[Usage]()
    for entry in entries:
        match entry:
            case Answer():
                answers.append(entry)
            case Usage():
                usages.append(entry)
            case _:
                calls.append(entry)
    return Batch(path=path, cursor=cursor, calls=calls, answers=answers, usages=usages, size=size)


def _parse(
    lines: Iterable[bytes], read: Callable[[bytes], Sequence[Entry] | None]
) -> tuple[list[Entry], int]:
    """Return what lines tell, and the number of those that cannot be read."""
    entries: list[Entry] = []
    unreadable = 0
    for line in lines:
        found = read(line)
        if found is not None:
            entries += found
        elif not line.isspace():
            unreadable += 1
    return entries, unreadable


def _has_stayed(sighted: Sight, known: Cursor | None) -> bool:
    """Whether a file is where it was, or was not known."""
    return known is None or (sighted.is_same and is_of(known, sighted.seen))


def _state(found: Mapping[str, Sight]) -> dict[str, tuple[Identity, bool]]:
    return {path: (identity(file.seen), file.is_same) for path, file in found.items()}


def refused(path: str, error: OSError) -> str:
    """Say that a file cannot be read."""
    return f"{path} cannot be read: {error.strerror}."


def irregular(path: str, seen: os.stat_result) -> str:
    """Say that what was seen is no file that could be read."""
    return f"{path} is not read: it is a {kind_of(seen.st_mode)}, not a regular file."
