"""Decides which files a look reads, from where and in which order, when files are renamed, copied and replaced."""

import functools
import os
import stat
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TypeVar

import msgspec

from jobs.ports import Cursor
from jobs.sources.naming import is_copy_name, sorted_names, starting_with, stem, stems
from jobs.sources.tail import Identity, continues, identity, identity_of, is_of, is_unchanged, last_line_end

Key = TypeVar("Key")
Value = TypeVar("Value")


class Sight(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A regular file as it was found at a path."""

    seen: os.stat_result
    is_same: bool
    """Whether it begins with what was read at that path before; true also if it cannot be opened to be compared."""
    is_unchanged: bool = False
    """Whether that is for certain all it holds."""


Found = Mapping[str, Sight]
"""By path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One file to be read on from `cursor`, or from its start if that is None."""

    path: str
    """Under which the place is kept."""
    file: str
    """Where the file lies: elsewhere if it was renamed and the pattern does not find it there."""
    seen: os.stat_result
    cursor: Cursor | None
    successor_of: str | None = None
    """Where the file is found that was here, or its copy: its place is kept there before this one's is kept here."""
    copy_of: str | None = None
    """The path that holds the same lines and more: until that has been read, this is left alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a look is to do."""

    unchanged: Sequence[str]
    """Paths at which nothing is to be read."""
    readings: Sequence[Reading]
    """Those written to last at the end."""
    left_alone: Collection[str]
    """Paths that are changing: they are for the next look."""


def sight(path: str, seen: os.stat_result, known: Cursor | None) -> Sight:
    """Compare the file seen at `path` with what was read there before."""
    if known is not None and is_unchanged(seen, known):
        return Sight(seen=seen, is_same=True, is_unchanged=True)
    try:
        is_same = known is not None and continues(path, seen, known)
    except OSError:
        is_same = True
    return Sight(seen=seen, is_same=is_same)


def plan(
    found: Found,
    gone: Iterable[str],
    cursors: Mapping[str, Cursor],
    now: float,
    is_found: Callable[[str], bool],
) -> Plan:
    """Return what to read, each file once.

    `gone` are the paths of `cursors` that hold nothing any more; `is_found` says what would be found now.
    """
    chosen = _one_path_per_file(found, cursors)
    unchanged = [path for path in chosen.values() if found[path].is_unchanged]
    changed = [path for path in chosen.values() if not found[path].is_unchanged]
    # Of a thousand files a few have changed: only what concerns these is looked up.
    inodes = {identity(found[path].seen)[1] for path in changed}
    wanted = {beginning for path in changed for beginning in stems(path)}
    alike = _with_stem(cursors.keys() | found.keys(), wanted)
    of_chosen = {*chosen.values()}
    past = _Past(
        cursors=cursors,
        by_identity=_grouped((cursor for cursor in cursors.values() if cursor.inode in inodes), identity_of),
        known_by_stem=_grouped((path for path in alike if path in cursors), stem),
        found=found,
        is_found=is_found,
        chosen=chosen,
        chosen_by_stem=_grouped((path for path in alike if path in of_chosen), stem),
        sorted_paths=functools.cache(lambda: sorted(chosen.values())),
        names_in=functools.cache(sorted_names),
        now=now,
    )
    planned = {path: past.readings_of(path, found[path]) for path in changed}
    left_alone = {path for path, readings in planned.items() if readings is None}
    planned |= {path: past.rest_of_gone(path) for path in gone}
    # By age, so that a rotated file comes before its successor and a session's calls stay in order.
    ordered = sorted(filter(None, planned.values()), key=_age)
    return Plan(
        unchanged=unchanged,
        readings=list(chain.from_iterable(ordered)),
        left_alone=left_alone,
    )


class _Unsettled(Exception):  # noqa: N818 - no error
    """A log was truncated after it was found: what is its copy by now looked like another file then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Past:
    """What earlier looks left, and what has become of it."""

    cursors: Mapping[str, Cursor]
    by_identity: Mapping[Identity, Sequence[Cursor]]
    known_by_stem: Mapping[str, Sequence[str]]
    found: Found
    is_found: Callable[[str], bool]
    chosen: Mapping[Identity, str]
    """The path of each file found."""
    chosen_by_stem: Mapping[str, Sequence[str]]
    sorted_paths: Callable[[], Sequence[str]]
    names_in: Callable[[str], Sequence[str]]
    now: float

    def readings_of(self, path: str, found: Sight) -> list[Reading] | None:
        """What to read for a path: if it holds another file than before, first the rest of that.

        None if what was found there is no longer so.
        """
        own, seen = self.cursors.get(path), found.seen
        current = Reading(path=path, file=path, seen=seen, cursor=own)
        try:
            place = self._furthest(path, seen, own if found.is_same else None)
            current = self._unless_copied(replace(current, cursor=place))
        except OSError:
            return [current]  # reading it will say what is wrong
        except _Unsettled:
            return None
        if own is None or (found.is_same and is_of(own, seen)):
            return [current]
        # One that merely begins alike is no copy of what was here, as long as that is here.
        return self._after_rest(current, own, or_copy=not found.is_same)

    def rest_of_gone(self, path: str) -> list[Reading]:
        """What to read for a path that holds nothing any more."""
        own = self.cursors[path]
        rest = None if self._elsewhere(path, own, or_copy=True) else self._rest(path, own, or_copy=True)
        return [rest] if rest and not self.is_found(rest.file) else []

    def _unless_copied(self, reading: Reading) -> Reading:
        """Pass over a file if another one holds all its lines too: it is being copied, or was."""
        for other in chain.from_iterable(
            self.chosen_by_stem.get(beginning, ()) for beginning in stems(reading.path)
        ):
            if self._may_hold(other, reading) and (end := self._end_within(other, reading)):
                return replace(reading, cursor=end, copy_of=other)
            if self._has_just_begun_anew(other):
                raise _Unsettled
        return reading

    def _may_hold(self, other: str, reading: Reading) -> bool:
        # The order of the names is there for two that hold the same.
        is_before = (len(other), other) < (len(reading.path), reading.path)
        return is_before and self.found[other].seen.st_size >= reading.seen.st_size > 0

    def _end_within(self, other: str, reading: Reading) -> Cursor | None:
        seen = self.found[other].seen
        try:
            return last_line_end(reading.file, reading.seen, other, seen, self.now)
        except OSError:
            return None

    def _has_just_begun_anew(self, path: str) -> bool:
        known, found = self.cursors.get(path), self.found[path]
        return known is not None and found.is_same and not sight(path, found.seen, known).is_same

    def _after_rest(self, current: Reading, own: Cursor, *, or_copy: bool) -> list[Reading] | None:
        if elsewhere := self._elsewhere(current.path, own, or_copy=or_copy):
            return [replace(current, successor_of=elsewhere)]
        rest = self._rest(current.path, own, or_copy=or_copy)
        if rest is None:
            return [current]
        if self.is_found(rest.file):
            return None  # it came while one looked: the next look finds it where it is
        # Until its successor holds something, a rotated file may still be written to.
        return [rest, current] if current.seen.st_size else [rest]

    def _elsewhere(self, path: str, own: Cursor, *, or_copy: bool) -> str | None:
        """The path at which the file is found that was at `path`, or its copy."""
        renamed = self.chosen.get(identity_of(own), path)
        if renamed != path:
            return renamed
        if not or_copy or not own.offset:
            return None
        alike = starting_with(stem(path), self.sorted_paths())
        copies = (other for other in alike if is_copy_name(other, path))
        return next((copy for copy in copies if _continues(copy, self.found[copy].seen, own)), None)

    def _rest(self, path: str, own: Cursor, *, or_copy: bool) -> Reading | None:
        """The file that was at `path`, or its copy, if it lies beside it and is not found there."""
        files = [
            Reading(path=path, file=file, seen=seen, cursor=own)
            for file, may_be_copy in self._beside(path)
            if (seen := _regular(file)) and identity(seen) not in self.chosen
            if is_of(own, seen) or (or_copy and may_be_copy and own.offset)
        ]
        files.sort(key=lambda reading: not is_of(own, reading.seen))
        return next((reading for reading in files if _continues(reading.file, reading.seen, own)), None)

    def _beside(self, path: str) -> Iterator[tuple[str, bool]]:
        """The files beside `path` whose names begin alike, and whether they may be copies."""
        is_link = Path(path).is_symlink()
        target = os.path.realpath(path) if is_link else path
        folder, _, name = target.rpartition("/")
        names, beginning = self.names_in(folder), stem(name)
        # A link may have been turned to a file of any name; the one it led to before keeps its own.
        for other in names if is_link else starting_with(beginning, names):
            file = f"{folder}/{other}"
            if file not in {path, target} and file not in self.found:
                yield file, is_copy_name(other, name)

    def _furthest(self, path: str, seen: os.stat_result, own: Cursor | None) -> Cursor | None:
        """The place up to which the file was read under any name: it may have been renamed, linked or copied."""
        alike = chain.from_iterable(self.known_by_stem.get(beginning, ()) for beginning in stems(path))
        known = {*self.by_identity.get(identity(seen), ()), *(self.cursors[other] for other in alike)}
        further = [cursor for cursor in known if cursor.offset > (own.offset if own else 0)]
        further.sort(key=lambda cursor: cursor.offset, reverse=True)
        return next((cursor for cursor in further if continues(path, seen, cursor)), own)


def _one_path_per_file(found: Found, cursors: Mapping[str, Cursor]) -> dict[Identity, str]:
    chosen: dict[Identity, str] = {}
    others: list[str] = []
    # The path under which a file is known already goes before its other links.
    for path in sorted(found):
        sighted, known = found[path], cursors.get(path)
        if known is not None and (sighted.is_unchanged or is_of(known, sighted.seen)):
            chosen.setdefault((known.device, known.inode), path)
        else:
            others.append(path)
    for path in others:
        chosen.setdefault(identity(found[path].seen), path)
    return chosen


def _with_stem(paths: Iterable[str], wanted: Collection[str]) -> list[str]:
    """Return at least the paths that have one of the stems wanted, in a fixed order."""
    return sorted([path for path in paths if path.rpartition(".")[0] in wanted or path in wanted])


def _grouped(values: Iterable[Value], key: Callable[[Value], Key]) -> Mapping[Key, Sequence[Value]]:
    groups: defaultdict[Key, list[Value]] = defaultdict(list)
    for value in values:
        groups[key(value)].append(value)
    return groups


def _regular(file: str) -> os.stat_result | None:
    try:
        seen = Path(file).stat()
    except OSError:
        return None
    return seen if stat.S_ISREG(seen.st_mode) else None


def _continues(file: str, seen: os.stat_result, cursor: Cursor) -> bool:
    try:
        return continues(file, seen, cursor)
    except OSError:
        return False


def _age(readings: Sequence[Reading]) -> tuple[bool, int, int, str]:
    first = readings[0]
    # At the same instant the longer name is the rotated file's.
    return first.copy_of is not None, first.seen.st_mtime_ns, -len(first.path), first.path
