"""The watch list's file -> its text."""

import os
import stat
from typing import Final

from jobs.watchlist.error import WatchlistError

_LARGEST_FILE: Final = 1024 * 1024


def text_of(path: str) -> str:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise WatchlistError(f"{path}: not a regular file; name the watch list itself")
        with open(path, "rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except FileNotFoundError:
        hint = "write one after loopwarden.example.toml, or let LOOPWARDEN_WATCHLIST name yours"
        raise WatchlistError(f"{path}: no such file; {hint}") from None
    except OSError as error:
        raise WatchlistError(f"{path}: cannot be read ({error.strerror}); check its owner and mode") from None
    if len(content) > _LARGEST_FILE:
        raise WatchlistError(f"{path}: larger than 1 MiB; is that the watch list?")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise WatchlistError(f"{path}: not UTF-8 at byte {error.start + 1}; save it as UTF-8") from None


def folder_of(path: str) -> str:
    """Return the folder that the relative paths in a watch list start from: absolute, and one however it is named."""
    return os.path.abspath(os.path.dirname(path))
