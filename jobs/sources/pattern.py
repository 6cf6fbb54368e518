"""Finds the files that a pattern names.

The standard glob hides folders it may not list, and its `**` walks through links: two that lead back make it endless.
"""

import fnmatch
import os
import re
from collections.abc import Iterator, Sequence
from typing import Final

_MAGIC: Final = re.compile(r"[*?\[]")


def find_files(pattern: str, problems: list[str]) -> set[str]:
    """Return the paths that match an absolute `pattern`; a path without wildcards is returned whether or not it is there.

    `*`, `?` and `[...]` are a shell's, `**` is any number of folders; none of them takes a leading dot.
    A folder that cannot be listed and a name that is no text become sentences in `problems`.
    """
    parts = _parts(pattern)
    paths = set(_match("", parts, problems)) if parts else {"/"}
    unnamable = {path for path in paths if not _is_text(path)}
    problems += [f"{os.fsencode(path)!r} is not read: its name is not UTF-8." for path in sorted(unnamable)]
    return paths - unnamable


def could_match(path: str, pattern: str) -> bool:
    """Whether `pattern` may have found `path`; it errs on the side of yes."""
    return fnmatch.fnmatchcase(path, "/" + "/".join(_parts(pattern)).replace("**/", "*"))


def _parts(pattern: str) -> list[str]:
    return [part for part in pattern.split("/") if part]


def _match(folder: str, parts: Sequence[str], problems: list[str]) -> Iterator[str]:
    part, *rest = parts
    if part == "**":
        for inner in _folders_from(folder, problems):
            yield from _match(inner, rest or ["*"], problems)
        return
    for name in _names(folder, part, problems, may_be_folder=bool(rest) or part != "*"):
        path = f"{folder}/{name}"
        if rest:
            yield from _match(path, rest, problems)
        else:
            yield path


def _names(folder: str, part: str, problems: list[str], *, may_be_folder: bool) -> list[str]:
    if not _MAGIC.search(part):
        return [part]
    fits = re.compile(fnmatch.translate(part)).match
    return [
        entry.name
        for entry in _entries(folder, problems)
        if fits(entry.name)
        and (part.startswith(".") or not entry.name.startswith("."))
        and (may_be_folder or not _is_folder(entry))
    ]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a link in a circle, or into a closed folder: whoever reads it will say so


def _folders_from(folder: str, problems: list[str]) -> Iterator[str]:
    waiting = [folder]
    while waiting:
        inner = waiting.pop()
        yield inner
        waiting += [
            entry.path
            for entry in _entries(inner, problems)
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
        ]


def _entries(folder: str, problems: list[str]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder or "/") as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        problems.append(f"{folder} cannot be listed: {error.strerror}.")
        return []


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
