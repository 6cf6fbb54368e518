"""Logs that a person names: files, folders and patterns -> sources, each file read by itself."""

import glob
import os
import stat
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jobs.ports import CallSource
from jobs.sources.log_files import COMPRESSED
from jobs.sources.pattern import find_files
from jobs.sources.recognise import Unknown, recognise
from jobs.sources.registry import FORMATS
from jobs.sources.sqlite_rows import BESIDE
from jobs.watchlist import AUTO

_SOME: Final = 5
"""So many files that are left out are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """A file and what reads it."""

    path: str
    """As it was given."""
    size: int
    source: CallSource


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
    def age(self) -> tuple[int, int, str]:
        # At the same instant the longer name is the rotated file's.
        return self.seen.st_mtime_ns, -len(self.path), self.path


def find_logs(given: str, format_name: str, folder: str, problems: list[str]) -> list[Log]:
    """Return the logs at a path or pattern, which starts from `folder` unless it is absolute.

    What cannot be read becomes a sentence in `problems`.
    """
    start = "" if given.startswith("/") else folder.rstrip("/") + "/"
    by_format: Mapping[str, list[LogFile]] = defaultdict(list)
    unknown, told = list[str](), len(problems)
    for found in sorted(_files(given, start, problems), key=lambda found: found.age):
        shown = found.path.removeprefix(start)
        try:
            name = recognise(found.path, FORMATS) if format_name == AUTO else format_name
        except OSError as error:
            problems.append(f"{shown} cannot be read: {error.strerror}.")
            continue
        if isinstance(name, Unknown):
            if shown == given.removeprefix(start) or _may_be_log(found.path, name):
                unknown.append(shown)
            continue
        source = FORMATS[name](name=name, pattern=glob.escape(found.path))
        by_format[name].append(LogFile(path=shown, size=found.seen.st_size, source=source))
    problems += _left_out(unknown)
    if not (by_format or len(problems) > told):
        problems.append(f"{given} holds no log of a known format.")
    return [Log(format=name, files=files) for name, files in by_format.items()]


def _files(given: str, start: str, problems: list[str]) -> list[_Found]:
    path = start + given
    is_there = os.path.lexists(path)
    if not is_there and not glob.has_magic(given):
        problems.append(f"{given} is not there.")
        return []
    pattern = glob.escape(path) if is_there else path
    if Path(path).is_dir():
        pattern += "/**"
    files: list[_Found] = []
    for each in find_files(pattern, problems):
        if not each.endswith(BESIDE):
            _look_at(each, each.removeprefix(start), files, problems)
    if not files and not is_there:
        problems.append(f"{given} matches no file.")
    return files


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


def _may_be_log(path: str, found: Unknown) -> bool:
    """Whether a file that lies among others is worth a word; text and pictures are not."""
    return found in {Unknown.RECORDS, Unknown.TABLES} or path.endswith(COMPRESSED)


def _left_out(unknown: Sequence[str]) -> list[str]:
    sentences = [f"{path} is left out: its format is not known." for path in unknown[:_SOME]]
    if len(unknown) > _SOME:
        sentences.append(f"{len(unknown) - _SOME} more files are left out: their formats are not known.")
    return sentences
