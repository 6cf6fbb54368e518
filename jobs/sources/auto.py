"""The calls in files of several formats: each is read as what it shows itself to be."""

import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from jobs.opening import BESIDE
from jobs.pattern import find_files
from jobs.ports import Batch, CallSource, Cursor
from jobs.sources.log_files import COMPRESSED, LogFiles, irregular, refused
from jobs.sources.overlap import Earlier
from jobs.sources.recognise import LONGEST_LINE, Formats, Unknown, recognise
from jobs.sources.sqlite_process import TableReader
from jobs.sources.tail import identity, identity_of

_PASSED_OVER = (*COMPRESSED, *BESIDE)


@dataclass(frozen=True, slots=True)
class _Seen:
    """A file, and what it is: a format, or what else."""

    found: os.stat_result
    kind: str | Unknown

    def is_still(self, found: os.stat_result) -> bool:
        """Whether the file has neither changed nor been replaced; a database's tables may come without."""
        before = self.found
        return (
            found.st_ctime_ns == before.st_ctime_ns
            and found.st_size == before.st_size
            and found.st_ino == before.st_ino
            and found.st_dev == before.st_dev
            and self.kind is not Unknown.BLANK
            and self.kind is not Unknown.TABLES
        )


@dataclass(slots=True, kw_only=True)
class AutoLogs:
    """A `CallSource`: hands every file that matches to the source of its format.

    What a file is, is looked up again whenever it has changed, by its beginning: so it does not depend on what was
    seen before. A file that is blank, or gone, is of the format that it was read as last, which its cursor says.
    """

    name: str
    pattern: str
    """An absolute path with a shell's wildcards and `**`."""
    formats: Formats
    earlier: Earlier = field(default_factory=Earlier)
    """What they read is left to them."""
    _seen: dict[str, _Seen] = field(default_factory=dict, init=False)
    """By path, of the files of the last look."""
    _format_at: dict[str, str] = field(default_factory=dict, init=False)
    """By path, of this look: a format's name, or nothing."""
    _at_hand: Mapping[str, os.stat_result] | None = field(default=None, init=False)
    """What has just been seen of the format that is read now."""
    _sources: dict[str, CallSource] = field(default_factory=dict, init=False)
    """By format, those that have been needed."""
    _in_use: Collection[str] = field(default=(), init=False)
    _problems: list[str] = field(default_factory=list, init=False)

    def read_new(self, cursors: Mapping[str, Cursor], now: float) -> Iterator[Batch]:
        """Yield what came since `cursors`, one format after the other."""
        self._look(cursors)
        shares = self._shares(cursors)
        self._in_use = shares.keys()
        for rank, (name, share) in enumerate(sorted(shares.items(), key=lambda item: -len(item[1]))):
            # By the time at which one format has been read, there may be something else of the next one.
            self._at_hand = None if rank else self._seen_of(name)
            for batch in self._source(name).read_new(share, now):
                # Where nothing is new the cursor is the one from before.
                yield batch if batch.cursor.format == name else _marked(batch, name)

    def problems(self) -> Sequence[str]:
        """What the last `read_new` could not read, one sentence each, and one for all that is of no known format."""
        theirs = (problem for name in self._in_use for problem in self._source(name).problems())
        return tuple(dict.fromkeys([*self._problems, *theirs]))

    def _look(self, cursors: Mapping[str, Cursor]) -> None:
        """Find out what there is."""
        self._problems.clear()
        paths = [
            path
            for path in sorted(find_files(self.pattern, self._problems))
            if not path.endswith(_PASSED_OVER)
        ]
        with TableReader() as tables:
            seen = {path: found for path in paths if (found := self._see(path, tables))}
        self._seen = seen
        self._format_at = {path: _format_of(path, seen.get(path), cursors) for path in paths}
        if self.earlier.entries:
            self._format_at = {path: self._own(path, name) for path, name in self._format_at.items()}
        self._problems += _unknown(self.pattern, seen)
        self._problems += _given_up(seen, cursors)

    def _see(self, path: str, tables: TableReader) -> _Seen | None:
        """Return what is there; what cannot be read becomes a problem."""
        try:
            found = os.stat(path)  # noqa: PTH116 - to make a Path takes longer than to look
            if not stat.S_ISREG(found.st_mode):
                self._problems.append(irregular(path, found))
                return None
            before = self._seen.get(path)
            if before and before.is_still(found):
                return before
            return _Seen(found, recognise(path, self.formats, tables))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self._problems.append(refused(path, error))
            return None

    def _shares(self, cursors: Mapping[str, Cursor]) -> dict[str, dict[str, Cursor]]:
        """Return the cursors by format; of a file that was replaced by one of another format the old one's has it."""
        shares: dict[str, dict[str, Cursor]] = {name: {} for name in self._format_at.values() if name}
        # A cursor from before is without one: the file that it is of may have been renamed.
        is_older = any(not cursor.format for cursor in cursors.values())
        paths = {identity(seen.found): path for path, seen in self._seen.items()} if is_older else {}
        for path, cursor in cursors.items():
            name = cursor.format or self._format_at.get(paths.get(identity_of(cursor), path), "")
            if name in self.formats:
                shares.setdefault(name, {})[path] = cursor
        return shares

    def _source(self, name: str) -> CallSource:
        if name not in self._sources:
            source = self.formats[name](
                name=self.name, pattern=self.pattern, takes=lambda path: self._is_of(path, name)
            )
            if isinstance(source, LogFiles):
                source.sightings = self._take_at_hand
            self._sources[name] = source
        return self._sources[name]

    def _seen_of(self, name: str) -> Mapping[str, os.stat_result]:
        return {path: seen.found for path, seen in self._seen.items() if self._format_at[path] == name}

    def _take_at_hand(self) -> Mapping[str, os.stat_result] | None:
        found, self._at_hand = self._at_hand, None
        return found

    def _is_of(self, path: str, name: str) -> bool:
        if path not in self._format_at:  # it came while one looked
            with TableReader() as tables:
                name_of_it = (
                    "" if path.endswith(_PASSED_OVER) else _format_of(path, self._see(path, tables), {})
                )
                self._format_at[path] = self._own(path, name_of_it)
        return self._format_at[path] == name

    def _own(self, path: str, name: str) -> str:
        """Return the format of a file, or nothing if another entry reads it."""
        return "" if name and self.earlier.reads(path, name) else name


def _marked(batch: Batch, name: str) -> Batch:
    return msgspec.structs.replace(batch, cursor=msgspec.structs.replace(batch.cursor, format=name))


def _format_of(path: str, seen: _Seen | None, cursors: Mapping[str, Cursor]) -> str:
    if seen and isinstance(seen.kind, str):
        return seen.kind
    if path in cursors and (seen is None or seen.kind is Unknown.BLANK):
        return cursors[path].format
    return ""


def _given_up(seen: Mapping[str, _Seen], cursors: Mapping[str, Cursor]) -> Iterator[str]:
    """Say what was read before and is no log any more, and what is long and has no line."""
    for path, found in seen.items():
        known = cursors[path].format if path in cursors else ""
        if known and found.kind is Unknown.OTHER:
            yield f"{path} is not read any more: it does not begin as a log of format {known}, as it did before."
        if not known and found.kind is Unknown.BLANK and found.found.st_size > LONGEST_LINE:
            yield f"{path} will not be read: its first line is longer than {LONGEST_LINE >> 20} MB."


def _unknown(pattern: str, seen: Mapping[str, _Seen]) -> list[str]:
    """Say in one sentence what will not be read: records that nobody knows, or whatever there is if nothing else is.

    Other text and bytes beside logs are none of a reader's concern.
    """
    kinds = [found.kind for found in seen.values()]
    logs = [path for path, found in seen.items() if found.kind in (Unknown.RECORDS, Unknown.TABLES)]
    if logs:
        more, they = (
            (f" and {len(logs) - 1} more", "their formats are") if len(logs) > 1 else ("", "its format is")
        )
        return [f"{logs[0]}{more} will not be read: {they} not known."]
    if kinds and all(kind is Unknown.OTHER for kind in kinds):
        return [f"Nothing at {pattern} is a log of a known format."]
    return []
