"""Logs that a person names: files, folders and patterns -> sources, each file read by itself, and once."""

import glob
import os
import stat
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from jobs.opening import BESIDE, is_database
from jobs.pattern import find_below, find_files
from jobs.ports import CallSource
from jobs.sources.log_files import COMPRESSED
from jobs.sources.recognise import LONGEST_LINE, Unknown, recognise
from jobs.sources.registry import FORMATS
from jobs.sources.sqlite_process import TableReader
from jobs.sources.tail import Identity, identity
from jobs.watchlist.sources import AUTO

_SOME: Final = 5
"""So many files that are left out are named."""
_NAMES: Final = frozenset(
    f"{pattern.rpartition('/')[2]}*"
    for form in FORMATS.values()
    if form.home
    for pattern in form.home.patterns
)
"""Of the known programs' logs, and of what became of those when they were rotated."""
_TABLES: Final = next(name for name, form in FORMATS.items() if form.tables)
"""Reads databases, and says why one cannot be read in the words of all that do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """A file and what reads it."""

    path: str
    """As it was given."""
    size: int
    source: CallSource
    is_database: bool
    kind: str | Unknown
    """What it is by how it begins: that need not be what it is read as."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """Files of one format that were given together: a session may go on from one to the next."""

    format: str
    files: Sequence[LogFile]
    """In the order in which they were last written to."""


@dataclass(frozen=True, slots=True)
class _Found:
    path: str
    seen: os.stat_result

    @property
    def rank(self) -> tuple[bool, str]:
        """Among the names of one file."""
        return Path(self.path).is_symlink(), self.path

    @property
    def age(self) -> tuple[int, int, str]:
        # At the same instant the longer name is the rotated file's.
        return self.seen.st_mtime_ns, -len(self.path), self.path


def find_logs(
    given: str, format_name: str, folder: str, problems: list[str], read: set[Identity]
) -> list[Log]:
    """Return the logs at a path or pattern, which starts from `folder` unless it is absolute.

    Files that are in `read` are left out, and what is found is added. What cannot be read becomes a sentence in
    `problems`.
    """
    start = "" if given.startswith("/") else folder.rstrip("/") + "/"
    by_format: Mapping[str, list[LogFile]] = defaultdict(list)
    unknown, told = list[str](), len(problems)
    found = list(_files(given, start, problems))
    fresh = _unread(found, read)
    with TableReader() as tables:
        for each in sorted(fresh, key=lambda each: each.age):
            shown = each.path.removeprefix(start)
            try:
                is_table, kind = is_database(each.path), recognise(each.path, FORMATS, tables)
            except OSError as error:
                problems.append(f"{shown} cannot be read: {error.strerror}.")
                continue
            name = _read_as(kind, is_table=is_table) if format_name == AUTO else format_name
            if name is not None:
                by_format[name].append(_log_file(each, shown, name, kind, is_database=is_table))
            elif shown == given.removeprefix(start) or _may_be_log(each, kind):
                unknown.append(shown)
    problems += _left_out(unknown)
    if not (by_format or len(problems) > told or len(fresh) < len(found)):
        problems.append(f"{given} holds no log of a known format.")
    return [Log(format=name, files=files) for name, files in by_format.items()]


def _unread(found: Sequence[_Found], read: set[Identity]) -> list[_Found]:
    """Return each file once, however many names it has, but for those in `read`, which is brought up to date."""
    fresh: list[_Found] = []
    for each in sorted(found, key=lambda each: each.rank):
        itself = identity(each.seen)
        if itself not in read:
            read.add(itself)
            fresh.append(each)
    return fresh


def _read_as(kind: str | Unknown, *, is_table: bool) -> str | None:
    """Return the format that a file is read as, None if that is not known."""
    if isinstance(kind, str):
        return kind
    is_damaged = is_table and kind is Unknown.OTHER
    return _TABLES if is_damaged else None


def _log_file(
    found: _Found, shown: str, format_name: str, kind: str | Unknown, *, is_database: bool
) -> LogFile:
    source = FORMATS[format_name](name=format_name, pattern=glob.escape(found.path))
    return LogFile(path=shown, size=found.seen.st_size, source=source, is_database=is_database, kind=kind)


def _files(given: str, start: str, problems: list[str]) -> list[_Found]:
    path = start + given
    if Path(path).is_dir():
        return list(_files_below(path, start, problems))
    is_there = os.path.lexists(path)
    if not is_there and not glob.has_magic(given):
        problems.append(f"{given} is not there.")
        return []
    files: list[_Found] = []
    for each in find_files(glob.escape(path) if is_there else path, problems):
        if not each.endswith(BESIDE):
            _look_at(each, each.removeprefix(start), files, problems)
    if not files and not is_there:
        problems.append(f"{given} matches no file.")
    return files


def _files_below(folder: str, start: str, problems: list[str]) -> Iterator[_Found]:
    for path in find_below(folder, problems):
        if "/." in path[len(folder.rstrip("/")) :] and not _is_named_as_log(path.rpartition("/")[2]):
            continue
        try:
            seen = Path(path).stat()
        except FileNotFoundError:
            continue  # a link that leads nowhere: a home has many, and sockets
        except OSError as error:
            problems.append(f"{path.removeprefix(start)} cannot be read: {error.strerror}.")
            continue
        if stat.S_ISREG(seen.st_mode) and not path.endswith(BESIDE):
            yield _Found(path, seen)


def _look_at(path: str, shown: str, files: list[_Found], problems: list[str]) -> None:
    try:
        seen = Path(path).stat()
    except OSError as error:
        problems.append(f"{shown} cannot be read: {error.strerror}.")
        return
    if stat.S_ISREG(seen.st_mode):
        files.append(_Found(path, seen))
    else:
        problems.append(f"{shown} is not read: it is no regular file.")


def _is_named_as_log(name: str) -> bool:
    """Whether a program that is known names its logs so: hidden folders hold much else, which nobody wants opened."""
    return any(fnmatchcase(name, pattern) for pattern in _NAMES)


def _may_be_log(found: _Found, kind: str | Unknown) -> bool:
    """Whether a file that lies among others is worth a word; text and pictures are not."""
    is_hole = kind is Unknown.BLANK and found.seen.st_size > LONGEST_LINE
    return is_hole or kind in {Unknown.RECORDS, Unknown.TABLES} or found.path.endswith(COMPRESSED)


def _left_out(unknown: Sequence[str]) -> list[str]:
    sentences = [f"{path} is left out: its format is not known." for path in unknown[:_SOME]]
    if len(unknown) > _SOME:
        sentences.append(f"{len(unknown) - _SOME} more files are left out: their formats are not known.")
    return sentences
