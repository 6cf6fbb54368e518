"""Finds the files that a pattern names.

The standard glob hides folders it may not list, and its `**` walks through links: two that lead back make it endless.
"""

import fnmatch
import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

_MAGIC: Final = re.compile(r"[*?\[]")


def find_files(pattern: str, problems: list[str]) -> set[str]:
    """Return the paths that match an absolute `pattern`; a path without wildcards is returned whether or not it is there.

    `*`, `?` and `[...]` are a shell's, `**` is any number of folders; none of them takes a leading dot.
    A folder that cannot be listed and a name that is no text become sentences in `problems`.
    """
    parts = parts_of(pattern)
    return _with_names(set(_match("", parts, problems)) if parts else {"/"}, problems)


def find_below(folder: str, problems: list[str]) -> set[str]:
    """Return the paths of all files below a folder, the hidden ones too; links to folders are not followed."""
    folders = _folders_from(folder, problems, is_hidden_too=True)
    return _with_names(
        {entry.path for _, entries in folders for entry in entries if not _is_folder(entry)}, problems
    )


def could_match(path: str, pattern: str) -> bool:
    """Whether `pattern` may have found `path`; it errs on the side of yes."""
    return fnmatch.fnmatchcase(path, "/" + "/".join(parts_of(pattern)).replace("**/", "*"))


def matches(path: str, pattern: str) -> bool:
    """Whether `pattern` finds a file at `path`, if there is one."""
    return _matches(parts_of(path), parts_of(pattern))


def _matches(names: Sequence[str], parts: Sequence[str]) -> bool:
    if not parts:
        return not names
    part, *rest = parts
    if part != "**":
        return bool(names) and _is_named(names[0], part) and _matches(names[1:], rest)
    hidden = next((place for place, name in enumerate(names) if name.startswith(".")), len(names))
    return any(_matches(names[place:], rest or ["*"]) for place in range(min(hidden + 1, len(names))))


def _is_named(name: str, part: str) -> bool:
    if not is_magic(part):
        return name == part
    return bool(_test_of(part)(name)) and (part.startswith(".") or not name.startswith("."))


def _with_names(paths: set[str], problems: list[str]) -> set[str]:
    if _is_text("".join(paths)):
        return paths
    unnamable = {path for path in paths if not _is_text(path)}
    problems += [f"{os.fsencode(path)!r} is not read: its name is not UTF-8." for path in sorted(unnamable)]
    return paths - unnamable


def is_magic(part: str) -> bool:
    """Whether it stands for more than itself."""
    return _MAGIC.search(part) is not None


def parts_of(pattern: str) -> list[str]:
    """Return what stands between slashes."""
    return [part for part in pattern.split("/") if part]


def _match(folder: str, parts: Sequence[str], problems: list[str]) -> Iterable[str]:
    part, *rest = parts
    if part == "**":
        return chain.from_iterable(
            _match_within(inner, rest or ["*"], entries, problems)
            for inner, entries in _folders_from(folder, problems)
        )
    if not is_magic(part):
        return _match_named(folder, [part], rest, problems)
    return _match_within(folder, parts, _entries(folder, problems), problems)


def _match_within(
    folder: str, parts: Sequence[str], entries: Sequence[os.DirEntry[str]], problems: list[str]
) -> Iterable[str]:
    """Match what is in a folder that has been listed."""
    part, *rest = parts
    if part == "**" or not is_magic(part):
        return _match(folder, parts, problems)
    return _match_named(folder, _fitting(entries, part, rest), rest, problems)


def _match_named(
    folder: str, names: Sequence[str], rest: Sequence[str], problems: list[str]
) -> Iterable[str]:
    paths = [f"{folder}/{name}" for name in names]
    return chain.from_iterable(_match(path, rest, problems) for path in paths) if rest else paths


def _fitting(entries: Iterable[os.DirEntry[str]], part: str, rest: Sequence[str]) -> list[str]:
    fits, takes_dot, may_be_folder = _test_of(part), part.startswith("."), bool(rest) or part != "*"
    return [
        entry.name
        for entry in entries
        if fits(entry.name)
        and (takes_dot or not entry.name.startswith("."))
        and (may_be_folder or not _is_folder(entry))
    ]


@functools.lru_cache
def _test_of(part: str) -> Callable[[str], object]:
    end = part.removeprefix("*")
    if end != part and not is_magic(end):
        return lambda name: name.endswith(end)  # thrice as fast
    return re.compile(fnmatch.translate(part)).match


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a link in a circle, or into a closed folder: whoever reads it will say so


def _folders_from(
    folder: str, problems: list[str], *, is_hidden_too: bool = False
) -> Iterator[tuple[str, Sequence[os.DirEntry[str]]]]:
    waiting = [folder]
    while waiting:
        inner = waiting.pop()
        entries = _entries(inner, problems)
        yield inner, entries
        waiting += [
            entry.path
            for entry in entries
            if entry.is_dir(follow_symlinks=False) and (is_hidden_too or not entry.name.startswith("."))
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
