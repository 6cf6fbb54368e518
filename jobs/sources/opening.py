"""Opens what others have written, and never the bot's own database, whatever path leads to it."""

import errno
import os
import stat
from pathlib import Path
from typing import Final

from jobs.sources.table_format import BESIDE

_SQLITE: Final = b"SQLite format 3\0"

_own: Final = set[str]()


def keep_away_from(database: Path) -> None:
    """Never open this process's one database, nor what SQLite keeps beside it."""
    # Whoever closes a file gives up all locks that his process holds on it, SQLite's among them: a link to the
    # database among the logs would be enough for two to write to it at once. As the locks are the process's, so is
    # this; and it is asked by what a path leads to, since links have any name.
    _own.clear()
    _own.update(f"{database.absolute()}{end}" for end in ("", *BESIDE))


def opened_to_read(path: str) -> int:
    """Return a descriptor. Raises OSError."""
    if _own and _is_own(path):
        raise PermissionError(errno.EPERM, "it is the bot's own database", path)
    # Should the path be a pipe's or a terminal's by now, opening it neither waits for a writer nor takes the terminal.
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)


def is_database(path: str) -> bool:
    """Whether a regular file begins as an SQLite database does. Raises OSError."""
    file = opened_to_read(path)
    try:
        return stat.S_ISREG(os.fstat(file).st_mode) and os.pread(file, len(_SQLITE), 0) == _SQLITE
    finally:
        os.close(file)


def _is_own(path: str) -> bool:
    found = os.stat(path)  # noqa: PTH116 - to make a Path takes longer than to look
    return any(_leads_to(own, found) for own in _own)


def _leads_to(own: str, found: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(own), found)  # noqa: PTH116
    except OSError:
        return False
