"""What the files hold that a specification refers to: it is pinned with it, and looked at again before they are run."""

import errno
import hashlib
import os
import stat
import string
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

import msgspec

from jobs.opening import kind_of, opened_to_read
from jobs.verification.spec import MEGABYTE, CommandCheck, WorkflowSpec
from jobs.watchlist.killers import CommandSpec

IN_TURN: Final = "what it reads or starts in turn"
LARGEST_SCHEMA: Final = MEGABYTE // 4
_LARGEST: Final = 256 * MEGABYTE
"""Bytes of a file that is pinned."""
_PIECE: Final = MEGABYTE
_MOST_KEPT: Final = 1000

_Spec = TypeVar("_Spec", bound=msgspec.Struct)
_State = tuple[int, ...]

# A file that is written twice within one tick of the file system's clock may keep the digest of what it held first.
# What decides right before a program is run, `differing_files`, does not ask it.
_digests: Final = dict[_State, str]()


def with_contents(spec: _Spec) -> _Spec:
    """Return it with `files` and `schema_text` filled in. Blocks."""
    if isinstance(spec, CommandSpec):
        return msgspec.structs.replace(spec, files=_files(spec.argv, spec.folder))
    if not isinstance(spec, WorkflowSpec):
        return spec
    command = spec.command
    if command is not None:
        command = msgspec.structs.replace(command, files=_files(command.argv, command.folder))
    text = None if spec.schema is None else _text(spec.schema)
    return msgspec.structs.replace(spec, command=command, schema_text=text)


def differing_files(argv: Sequence[str], folder: str, files: Mapping[str, str]) -> Iterator[str]:
    """Yield the paths of arguments, and of `files`, that do not lead to what they did when these were filled in.

    An argument that has become a file since then is one, too, if it looks like a path: a word such as `stop` means a
    file to few programs, and who could write one would stop the stop. Blocks.
    """
    # A moment remains between this look and the program's own: who may write to the file can use it, once in a while,
    # and is found out by the next look. What a pinned file reads in turn, or is run by, is as it is.
    late = (os.path.join(folder, word) for _, word in _words(argv) if "/" in word or "." in word)
    yield from (path for path in dict.fromkeys([*files, *late]) if _digest(path) != files.get(path))


def files_of(spec: msgspec.Struct) -> Mapping[str, str]:
    """Return the digests by path that are filled in."""
    command = spec.command if isinstance(spec, WorkflowSpec) else spec
    return command.files or {} if isinstance(command, CommandSpec | CommandCheck) else {}


def not_pinned(spec: msgspec.Struct) -> tuple[str, ...]:
    """Say what a specification whose contents are filled in runs or reads that is not pinned by content. Blocks."""
    if isinstance(spec, CommandSpec):
        return tuple(_loose(spec.argv, spec.folder, spec.files or {}))
    if not isinstance(spec, WorkflowSpec):
        return ()
    command = spec.command
    loose = [] if command is None else list(_loose(command.argv, command.folder, command.files or {}))
    if spec.schema is not None and spec.schema_text is None:
        loose.append(f"{spec.schema}, which cannot be read as a text of at most {LARGEST_SCHEMA:,} bytes")
    return tuple(loose)


# ── which files an argv names ─────────────────────────────────────────────────────────────────────


def paths_of(argv: Sequence[str], folder: str) -> Iterator[tuple[int, str]]:
    """Yield the paths that arguments may name, each with its place among them."""
    yield from ((place, os.path.join(folder, word)) for place, word in _words(argv))


def _words(argv: Sequence[str]) -> Iterator[tuple[int, str]]:
    program, *rest = map(_literal, argv)
    # Without a slash it is looked for on the PATH, whatever lies in the folder.
    if program and "/" in program:
        yield 0, program
    yield from ((place, text) for place, text in enumerate(rest, 1) if text and not text.startswith("-"))


def _literal(template: str) -> str | None:
    """Return the argument that it always is; None if that is not known before it is run."""
    parts = list(string.Formatter().parse(template))
    if any(field is not None for _, field, _, _ in parts):
        return None
    return "".join(literal for literal, *_ in parts)


def _loose(argv: Sequence[str], folder: str, files: Mapping[str, str]) -> Iterator[str]:
    # What that is nobody can tell from the arguments: `python3 -m x`, `make -C x`, an `import`.
    yield IN_TURN
    if "/" not in argv[0]:
        yield f"{argv[0]}, which is found on the PATH"
    for template in argv[1:]:
        text = _literal(template)
        if text is None:
            yield f"{template}, which is another one each time"
        elif text.startswith("-") and _names_a_file(text, folder):
            yield f"what the option {text} names"
    paths = (path for _, path in paths_of(argv, folder) if path not in files)
    yield from (words for path in paths if (words := _why_not(path)))


def _names_a_file(option: str, folder: str) -> bool:
    value = option.partition("=")[2]
    return "/" in option or (value != "" and os.path.exists(os.path.join(folder, value)))


def _why_not(path: str) -> str | None:
    """Say why what lies at a path is not pinned; None if nothing does."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(mode):
        return f"{path}, which is a {kind_of(mode)}"
    return f"{path}, which cannot be read, or has more than {_LARGEST:,} bytes"


# ── what is in them ───────────────────────────────────────────────────────────────────────────────


def _files(argv: Sequence[str], folder: str) -> dict[str, str]:
    found = ((path, known_digest(path)) for _, path in paths_of(argv, folder))
    return {path: digest for path, digest in found if digest is not None}


def known_digest(path: str) -> str | None:
    """Return the sha256 of a regular file, hex, as it was when it last changed by its times; None as below. Blocks."""
    return _digest(path, _digests)


def _digest(path: str, known: dict[_State, str] | None = None) -> str | None:
    """Return the sha256 of a regular file, hex; None if it is none, cannot be read, or is too large."""
    try:
        with _opened(path, _LARGEST) as file:
            return _digest_of(file, {} if known is None else known)
    except (OSError, ValueError):
        return None


def _digest_of(file: int, known: dict[_State, str]) -> str:
    before = _state(file)
    if before in known:
        return known[before]
    hashed = hashlib.sha256()
    for piece in _pieces(file, _LARGEST):
        hashed.update(piece)
    if _state(file) == before:
        if len(known) >= _MOST_KEPT:
            known.clear()
        known[before] = hashed.hexdigest()
    return hashed.hexdigest()


def _state(file: int) -> _State:
    seen = os.fstat(file)
    return seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns


def _text(path: str) -> str | None:
    content = content_of(path, LARGEST_SCHEMA)
    try:
        # Many workflows may share one schema, and then they share one text.
        return None if content is None else sys.intern(content.decode("utf-8-sig"))
    except ValueError:
        return None


def content_of(path: str, most: int) -> bytes | None:
    """Return what a regular file holds; None if it is none, cannot be read, or has more bytes than that. Blocks."""
    try:
        with _opened(path, most) as file:
            return b"".join(_pieces(file, most))
    except (OSError, ValueError):
        return None


@contextmanager
def _opened(path: str, most: int) -> Iterator[int]:
    # Looked at first: to open a pipe or a device may already do something to it.
    _check(os.stat(path), most)
    file = opened_to_read(path)
    try:
        _check(os.fstat(file), most)
        yield file
    finally:
        os.close(file)


def _check(seen: os.stat_result, most: int) -> None:
    if not stat.S_ISREG(seen.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    if seen.st_size > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))


def _pieces(file: int, most: int) -> Iterator[bytes]:
    left = most
    while piece := os.read(file, _PIECE):
        left -= len(piece)
        if left < 0:  # it grows
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        yield piece
