"""Finds a workflow's newest output."""

import glob
import os
import re
import stat
from typing import Final

from jobs.pattern import find_files
from jobs.verification.spec import Names, WorkflowSpec
from jobs.verification.verdict import Sighting

_PLACEHOLDER: Final = re.compile(r"\{(date|run)\}")


class NothingFoundError(Exception):
    """No file could be the output; the message is a sentence."""


class FoundOutputs:
    """The files of this machine."""

    def newest(self, spec: WorkflowSpec, names: Names) -> Sighting | None:
        """Return the regular file that was written last of those that match, None if there is none."""
        try:
            return _newest_of(find_files(_pattern(spec, names), []))
        except NothingFoundError:
            return None


def locate(spec: WorkflowSpec, names: Names) -> str:
    """Return the path of the newest output, or of what lies in the place of one.

    Raises:
        NothingFoundError: nothing matches, or the run's id would lead out of the output's folder.
    """
    problems: list[str] = []
    pattern = _pattern(spec, names)
    paths = find_files(pattern, problems)
    if newest := _newest_of(paths):
        return newest.path
    if paths:
        return max(paths)
    why = "".join(f": {problem.rstrip('.')}" for problem in problems[:1])
    raise NothingFoundError(f"nothing matches {pattern}, expected a regular file{why}")


def _pattern(spec: WorkflowSpec, names: Names) -> str:
    run = "*" if names.run is None else glob.escape(names.run)
    if "{run}" in spec.output and any(part in run for part in ("/", "\0", "..")):
        raise NothingFoundError(
            'the run\'s id holds "/", ".." or NUL, expected what may be a part of a file\'s name'
        )
    values = {"date": glob.escape(names.date), "run": run}
    return _PLACEHOLDER.sub(lambda found: values[found[1]], spec.output)


def _newest_of(paths: set[str]) -> Sighting | None:
    found = [seen for path in paths if (seen := sighting(path)) is not None]
    return max(found, key=lambda seen: (seen.mtime_ns, seen.path), default=None)


def sighting(path: str) -> Sighting | None:
    """Return the regular file at a path as it is found there."""
    try:
        seen = os.stat(path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(seen.st_mode):
        return None
    return Sighting(
        path=path,
        device=seen.st_dev,
        inode=seen.st_ino,
        mtime_ns=seen.st_mtime_ns,
        size=seen.st_size,
        ctime_ns=seen.st_ctime_ns,
    )


def absolute(path: str) -> str:
    """Return a path as it is whatever folder one is in."""
    try:
        return os.path.abspath(path)
    except OSError:
        return path  # the folder it is relative to is gone
