"""Opens what others have written, and never the bot's own database, whatever path leads to it."""

import errno
import os
import stat
from typing import Final

BESIDE: Final = ("-wal", "-shm", "-journal")
"""What SQLite names the files that it keeps beside a database."""
_SQLITE: Final = b"SQLite format 3\0"

_own: Final = set[str]()


class OwnDatabaseError(PermissionError):
    """A path leads to the bot's own database."""


def keep_away_from(database: os.PathLike[str]) -> None:
    """Never open this process's one database, nor what SQLite keeps beside it."""
    # Whoever closes a file gives up all locks that his process holds on it, SQLite's among them: a link to the
    # database among what agents write would be enough for two to write to it at once. As the locks are the
    # process's, so is this; and it is asked by what a path leads to, since links have any name.
    path = os.path.join(os.getcwd(), database)
    _own.clear()
    _own.update(f"{path}{end}" for end in ("", *BESIDE))


def opened_to_read(path: str) -> int:
    """Return a descriptor. Raises OSError; `OwnDatabaseError` if it is the bot's."""
    if _own and _is_own(path):
        raise OwnDatabaseError(errno.EPERM, "it is the bot's own database", path)
    # Should the path be a pipe's or a terminal's by now, opening it neither waits for a writer nor takes the terminal.
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)


def is_database(path: str) -> bool:
    """Whether a regular file begins as an SQLite database does. Raises OSError."""
    file = opened_to_read(path)
    try:
        return stat.S_ISREG(os.fstat(file).st_mode) and os.pread(file, len(_SQLITE), 0) == _SQLITE
    finally:
        os.close(file)


def kind_of(mode: int) -> str:
    """Return what something is that is no regular file."""
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISFIFO(mode):
        return "named pipe"
    return "socket" if stat.S_ISSOCK(mode) else "device"


def _is_own(path: str) -> bool:
    found = os.stat(path)
    return any(_leads_to(own, found) for own in _own)


def _leads_to(own: str, found: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(own), found)
    except OSError:
        return False
