"""Decides which files a look reads, from where and in which order, when files are renamed, copied and replaced."""

import functools
import os
import stat
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePath
from typing import Final

from jobs.ports import Cursor
from jobs.sources.tail import Identity, continues, identity, is_of

Found = Mapping[str, os.stat_result]
"""Regular files by path."""

_SEPARATORS: Final = frozenset("-._")
"""What stands between a log's name and that of its copy: `log.jsonl` and `log.jsonl.1`, `log-2026-01-01.jsonl`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One file to be read on from `cursor`, or from its start if that is None or does not fit."""

    path: str
    """Under which the place is kept."""
    file: str
    """Where the file lies: elsewhere if it was renamed and the pattern does not find it there."""
    seen: os.stat_result
    cursor: Cursor | None


def plan(found: Found, gone: Iterable[str], cursors: Mapping[str, Cursor]) -> list[Reading]:
    """Return what to read: each file once, whatever its names, those written to last at the end.

    `gone` are the paths of `cursors` that hold nothing any more.
    """
    past = _Past(
        cursors=cursors,
        by_identity=_newest_per_file(cursors),
        by_stem=_by_stem(cursors),
        found=found,
        chosen=_one_path_per_file(found, cursors),
        names_in=functools.cache(_sorted_names),
    )
    readings = [past.readings_of(path, found[path]) for path in past.chosen.values()]
    readings += [past.rotated(path, cursors[path]) for path in gone]
    # By age, so that a rotated file comes before its successor and a session's calls stay in order.
    ordered = sorted(filter(None, readings), key=_age)
    return list(chain.from_iterable(ordered))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Past:
    """What earlier looks left, and what has become of it."""

    cursors: Mapping[str, Cursor]
    by_identity: Mapping[Identity, Cursor]
    by_stem: Mapping[str, Sequence[Cursor]]
    found: Found
    chosen: Mapping[Identity, str]
    """The path of each file found."""
    names_in: Callable[[str], Sequence[str]]

    def readings_of(self, path: str, seen: os.stat_result) -> list[Reading]:
        """What to read for a path: if it holds another file than before, first the rest of that."""
        own = self.cursors.get(path)
        if own and is_of(own, seen) and seen.st_size >= own.offset:
            return [Reading(path=path, file=path, seen=seen, cursor=own)]
        rest = self.rotated(path, own) if own else []
        if rest and not seen.st_size:
            # Until its successor holds something, a rotated file may still be written to.
            return rest
        return [*rest, Reading(path=path, file=path, seen=seen, cursor=self._known(path, seen))]

    def rotated(self, path: str, cursor: Cursor) -> list[Reading]:
        """The file that was at `path`, or its copy, if it lies beside it and the pattern does not find it there."""
        if self.chosen.get((cursor.device, cursor.inode), path) != path:
            return []
        files = [
            Reading(path=path, file=file, seen=seen, cursor=cursor)
            for file, is_copy_name in self._beside(os.path.realpath(path))
            if (seen := _regular(file)) and identity(seen) not in self.chosen
            if (is_copy_name and cursor.offset) or is_of(cursor, seen)
        ]
        files.sort(key=lambda reading: not is_of(cursor, reading.seen))
        return [reading for reading in files if _continues(reading.file, reading.seen, cursor)][:1]

    def _beside(self, path: str) -> Iterator[tuple[str, bool]]:
        """The files beside `path` whose names begin alike, and whether they may be copies."""
        stem = _stem(path)
        folder, beginning = os.path.split(stem)
        for name in _starting_with(beginning, self.names_in(folder)):
            file = f"{folder}/{name}"
            if file != path and file not in self.found:
                yield file, file[len(stem) :][:1] in _SEPARATORS

    def _known(self, path: str, seen: os.stat_result) -> Cursor | None:
        """The cursor of a file that is new at `path`, if it was renamed, linked or copied from another one."""
        same = self.by_identity.get(identity(seen))
        stems = [path[:end] for end, sign in enumerate(path) if sign in _SEPARATORS]
        copied = chain.from_iterable(self.by_stem.get(stem, ()) for stem in stems)
        candidates = [same, *copied] if same else copied
        return next((cursor for cursor in candidates if _continues(path, seen, cursor)), None)


def _one_path_per_file(found: Found, cursors: Mapping[str, Cursor]) -> dict[Identity, str]:
    chosen: dict[Identity, str] = {}
    # The path under which a file is known already goes before its other links.
    for path in sorted(found, key=lambda path: (not is_of(cursors.get(path), found[path]), path)):
        chosen.setdefault(identity(found[path]), path)
    return chosen


def _newest_per_file(cursors: Mapping[str, Cursor]) -> dict[Identity, Cursor]:
    # A cursor may be of a file long gone whose inode was given out again: the one kept up to date is right.
    by_age = sorted(cursors.values(), key=lambda cursor: (cursor.read_at, cursor.offset))
    return {(cursor.device, cursor.inode): cursor for cursor in by_age}


def _by_stem(cursors: Mapping[str, Cursor]) -> dict[str, list[Cursor]]:
    stems: dict[str, list[Cursor]] = {}
    for path, cursor in cursors.items():
        if cursor.offset:
            stems.setdefault(_stem(path), []).append(cursor)
    return stems


def _stem(path: str) -> str:
    return str(PurePath(path).with_suffix(""))


def _regular(file: str) -> os.stat_result | None:
    try:
        seen = Path(file).stat()
    except OSError:
        return None
    return seen if stat.S_ISREG(seen.st_mode) else None


def _continues(file: str, seen: os.stat_result, cursor: Cursor) -> bool:
    try:
        return seen.st_size >= cursor.offset and continues(file, seen, cursor)
    except OSError:
        return False


def _sorted_names(folder: str) -> list[str]:
    try:
        return sorted(other.name for other in Path(folder).iterdir())
    except OSError:
        return []


def _starting_with(beginning: str, names: Sequence[str]) -> Iterator[str]:
    for index in range(bisect_left(names, beginning), len(names)):
        if not names[index].startswith(beginning):
            return
        yield names[index]


def _age(readings: Sequence[Reading]) -> tuple[int, int, str]:
    first = readings[0]
    # At the same instant the longer name is the rotated file's.
    return first.seen.st_mtime_ns, -len(first.path), first.path
