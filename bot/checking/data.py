"""The data directory: can the bot keep its database there, and is it to itself?"""

import fcntl
import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from importlib import resources
from pathlib import Path
from typing import Final

from bot.checking.finding import Finding, error, fine, foreign, warning
from jobs.store.opening import DAMAGE_CODES
from jobs.store.schema import FILE_NAME

_DIRECTORY: Final = "data directory"
_DATABASE: Final = "database"
_LEAST_FREE: Final = 100_000_000
"""Bytes."""
_EFFECTIVE: Final = os.access in os.supports_effective_ids
_ELSEWHERE: Final = "or let LOOPWARDEN_DATA_DIR name another one"
_ABSOLUTE: Final = "set LOOPWARDEN_DATA_DIR to an absolute path"


def is_held(folder: Path) -> bool:
    """Whether a bot runs with this data directory."""
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # Shared, so that two checks do not take each other for a bot; given back at once, for a bot that starts.
        fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(held)


def check_data(folder: Path, least_free: int = _LEAST_FREE) -> Iterator[Finding]:
    """Look at the directory, which need not be there yet, and at what is in it."""
    if not folder.is_absolute():
        says = f"{foreign(str(folder))} counts from where a program is started, so that hooks keep nothing"
        yield warning("hooks", says, f"{_ABSOLUTE}, here and for the agents")
    place = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
    yield _check_directory(folder, place)
    yield from _check_space(place, least_free)
    if os.path.lexists(folder / FILE_NAME):
        yield from _check_privacy(folder)
        yield _check_database(folder / FILE_NAME, is_running=is_held(folder))


def _check_directory(folder: Path, place: Path) -> Finding:
    shown, user = foreign(str(folder)), os.geteuid()
    if not (may(place, os.F_OK) and place.is_dir()):
        says = f"{foreign(str(place))} is no directory that user {user} can enter"
        return error(_DIRECTORY, says, f"move it away, {_ELSEWHERE}")
    if not may(place, os.R_OK | os.W_OK | os.X_OK):
        if place == folder:
            return error(
                _DIRECTORY, f"{shown} is closed to user {user}", f"chown {user} {shown}, {_ELSEWHERE}"
            )
        made = f"sudo install -d -m 700 -o {user} {shown}"
        return error(_DIRECTORY, f"{shown} cannot be made by user {user}", f"{made}, {_ELSEWHERE}")
    locked = [name for name in _names_in(folder) if not may(folder / name, os.R_OK | os.W_OK)]
    if locked:
        says = f"{', '.join(locked)} in {shown} cannot be written by user {user}"
        return error(_DIRECTORY, says, f"chown {user} these files, with mode 600")
    return fine(_DIRECTORY, f"{shown} {'is writable' if place == folder else 'is made at the first start'}")


def _names_in(folder: Path) -> list[str]:
    """Return which of the bot's files are there."""
    names = (FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm")
    return [name for name in names if os.path.lexists(folder / name)]


def may(path: Path, mode: int) -> bool:
    """Whether this user may do with a path what `mode` says (os.R_OK and its like)."""
    return os.access(path, mode, effective_ids=_EFFECTIVE)


def _check_space(place: Path, least_free: int) -> Iterator[Finding]:
    try:
        free = shutil.disk_usage(place).free
    except OSError:
        return
    says = f"{free / 1e9:.2f} GB free for {foreign(str(place))}"
    if free < least_free:
        yield warning("disk", says, "make room: without it nothing is kept over a restart")
    else:
        yield fine("disk", says)


def _check_privacy(folder: Path) -> Iterator[Finding]:
    try:
        directory, file = folder.stat().st_mode, (folder / FILE_NAME).stat().st_mode
    except OSError:
        return
    others_enter = directory & (stat.S_IXGRP | stat.S_IXOTH)
    others_read = file & (stat.S_IRGRP | stat.S_IROTH)
    others_replace = directory & (stat.S_IWGRP | stat.S_IWOTH)
    if others_enter and (others_read or others_replace):
        what = "read" if others_read else "replace"
        yield warning(
            "privacy",
            f"other users of this machine can {what} what the agents did",
            f"chmod 700 {foreign(str(folder))}",
        )


def read_only(path: Path, *, is_running: bool) -> str | None:
    """Return the URI by which SQLite reads a database and changes nothing; None: it was not closed in order."""
    if _size(path, "-wal") and not is_running:
        return None
    # Where no bot writes, nothing can change the file meanwhile, and SQLite need not put files beside it.
    how = "mode=ro" if is_running and _size(path, "-shm") else "mode=ro&immutable=1"
    return f"{path.as_uri()}?{how}"


def _check_database(path: Path, *, is_running: bool) -> Finding:
    uri = read_only(path, is_running=is_running)
    if uri is None:
        return fine(_DATABASE, "was not closed in order; the next start brings it up to date and checks it")
    try:
        with closing(sqlite3.connect(uri, uri=True)) as database:
            flaw = database.execute("PRAGMA quick_check(1)").fetchone()[0]
            schema = database.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.DatabaseError as failure:
        if failure.sqlite_errorcode & 0xFF not in DAMAGE_CODES:
            closed = f"see that {foreign(str(path))} is a file that this user may read and write"
            return error(_DATABASE, f"cannot be opened: {foreign(str(failure))}", closed)
        flaw, schema = str(failure), 0
    if flaw != "ok":
        restore = "put a backup in its place; else `loopwarden run` sets it aside and begins a new one"
        return error(_DATABASE, f"damaged: {foreign(flaw)}", restore)
    if schema > (known := schemas_known()):
        says = f"is of a newer release (schema {schema}, this one knows {known})"
        return error(_DATABASE, says, "update Loopwarden")
    return fine(_DATABASE, "sound")


def _size(path: Path, suffix: str) -> int:
    try:
        return path.with_name(path.name + suffix).stat().st_size
    except OSError:
        return 0


def schemas_known() -> int:
    """Return which schema a database of this release has."""
    scripts = resources.files("jobs.store").joinpath("migrations").iterdir()
    return sum(script.name.endswith(".sql") for script in scripts)
