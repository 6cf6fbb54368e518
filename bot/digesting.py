"""`loopwarden digest`: what the chat is told on Sundays, here and now; the picture into a file.

It needs no bot, no chat and no settings, and changes nothing but that file.
"""

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from bot.asked import UsageError, known_zone
from bot.clock import SystemClock
from bot.data_dir import data_dir
from bot.drawing import Drawing, DrawingError
from bot.views.cleaning import in_encoding
from bot.views.digest import plain
from bot.views.digest_picture import picture
from jobs.digest.digest import Digest
from jobs.digesting import Digesting
from jobs.store.blocking import has_database, open_blocking
from jobs.store.digest_tables import DigestTables
from jobs.store.schema import StoreError
from jobs.thrash.policy import LONGEST_BEAT

_EVERY: Final = LONGEST_BEAT
"""Of the bot's settings nothing is known: what is shorter than three of these need be no absence."""


def digest(weeks: int, png: str | None) -> int:
    """Print the digest of so many weeks up to now; return 0, 1 if that did not work, 2 if it was asked wrongly."""
    try:
        zone = known_zone(os.environ.get("LOOPWARDEN_TZ") or "UTC")
        found = _composed(weeks, zone)
    except UsageError as error:
        return _complain(f"{error}", 2)
    except StoreError as error:
        return _complain(f"{error}", 1)
    try:
        _print(f"{plain(found, zone)}\n")
        if png is not None:
            _write(Path(png).expanduser(), Drawing(data_dir=Path(data_dir())).png(picture(found, zone)))
    except DrawingError as error:
        return _complain(f"there is no picture: drawing it {error}", 1)
    except OSError as error:
        return _complain(f"there is no picture: {png} cannot be written: {error.strerror}", 1)
    return 0


def _composed(weeks: int, zone: ZoneInfo) -> Digest:
    if not has_database(data_dir()):
        raise StoreError(
            f"there is no database in {data_dir()} yet; LOOPWARDEN_DATA_DIR names another folder"
        )
    with open_blocking(data_dir()) as store:
        digesting = Digesting(tables=DigestTables.over(store.connection), zone=zone, every=_EVERY)
        return store.read(digesting.of_last(weeks, SystemClock().now()))


def _write(path: Path, png: bytes) -> None:
    """Put the picture in its place at once: whoever looks there meanwhile sees the old one, or the new one."""
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(png)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _print(text: str) -> None:
    try:
        sys.stdout.write(in_encoding(text, sys.stdout.encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads it has had enough, and what is still held must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(text: str, code: int) -> int:
    sys.stderr.write(f"loopwarden: {text}\n")
    return code
