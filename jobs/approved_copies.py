"""Copies of files that were approved: they are run where the file itself is no longer the approved one."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import msgspec

from jobs.contents import content_of, differing_files, files_of, known_digest, paths_of
from jobs.program.wording import not_approved, ran_copies
from jobs.verification.spec import MEGABYTE

LARGEST: Final = MEGABYTE
"""Bytes of a file that is copied."""
_FOLDER: Final = "approved"


class NotApprovedError(Exception):
    """What would be run is not what was approved; the message is a sentence."""


@dataclass(frozen=True, slots=True)
class ApprovedCopies:
    """A folder of files whose names are their digests."""

    folder: str
    """Absolute."""

    def hold(self, specs: Sequence[msgspec.Struct | None], *, alone: bool) -> None:
        """Add copies of what these hold, and `alone` remove all others. Blocks; raises OSError as `add` does."""
        self.add(specs)
        if alone:
            self._keep_only(specs)

    def add(self, specs: Iterable[msgspec.Struct | None]) -> None:
        """Copy what these hold and is still as it was when it was approved. Blocks.

        Raises:
            OSError: the folder cannot be written to.
        """
        for path, digest in _held(specs):
            if known_digest(self._path(digest)) == digest or known_digest(path) != digest:
                continue
            data = content_of(path, LARGEST)
            if data is not None and _is(digest, data):
                self._write(digest, data)

    def _keep_only(self, specs: Iterable[msgspec.Struct | None]) -> None:
        held = {digest for _, digest in _held(specs)}
        with suppress(OSError):  # there are none
            for name in set(os.listdir(self.folder)) - held:
                _remove(os.path.join(self.folder, name))

    def of(self, digest: str) -> str | None:
        """Return the path of a copy that is as it was approved. Blocks."""
        path = self._path(digest)
        return path if _is(digest, content_of(path, LARGEST)) else None

    def _path(self, digest: str) -> str:
        return os.path.join(self.folder, digest)

    def _write(self, digest: str, data: bytes) -> None:
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        beside = f"{self._path(digest)}.{os.getpid()}"
        _remove(beside)
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o500)
        with os.fdopen(file, "wb") as writing:
            writing.write(data)
            writing.flush()
            os.fsync(file)
        os.replace(beside, self._path(digest))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToRun:
    """A command as it is run."""

    argv: Sequence[str]
    program: str | None = None
    """What is executed, if it is not what `argv` begins with."""
    note: str = ""
    """What is run in the place of what, as a sentence."""


def copies_in(data_dir: str | os.PathLike[str]) -> ApprovedCopies:
    """Return those of a data directory."""
    return ApprovedCopies(os.path.join(os.path.abspath(data_dir), _FOLDER))


def to_run(
    argv: Sequence[str],
    templates: Sequence[str],
    folder: str,
    files: Mapping[str, str] | None,
    copies: ApprovedCopies | None,
) -> ToRun:
    """Return the `argv` that was made of `templates`, with copies of those of `files` that changed. Blocks.

    Raises:
        NotApprovedError: a file has changed, and there is no copy of what was approved.
    """
    if files is None:
        return ToRun(argv=argv)
    paths = dict(paths_of(templates, folder))
    changed = tuple(differing_files(templates, folder, files))
    wanted = {path: files[path] for path in (*changed, *_not_executable(paths.get(0))) if path in files}
    instead = {path: copy for path, digest in wanted.items() if copies and (copy := copies.of(digest))}
    if other := next((path for path in changed if path not in instead), None):
        raise NotApprovedError(not_approved(other))
    at = {place: instead[path] for place, path in paths.items() if path in instead}
    return ToRun(
        # A program is still told the name that it was called by; a script, the copy's.
        argv=[at.get(place, word) if place else word for place, word in enumerate(argv)],
        program=at.get(0),
        note=ran_copies([os.path.basename(path) for path in instead]) if instead else "",
    )


def _not_executable(program: str | None) -> Iterator[str]:
    if program is not None and not os.access(program, os.X_OK):
        yield program


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


def _held(specs: Iterable[msgspec.Struct | None]) -> set[tuple[str, str]]:
    return {held for spec in specs if spec is not None for held in files_of(spec).items()}


def _is(digest: str, content: bytes | None) -> bool:
    return content is not None and sha256(content).hexdigest() == digest
