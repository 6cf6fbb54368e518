"""What is wrong in a watch list, in words."""

import re
from collections.abc import Collection, Iterable
from typing import Final

_LONGEST_KEY: Final = 60
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


class WatchlistError(Exception):
    """One line: the place in the watch list and what is wrong there, fit for the chat."""


def key_of(key: str) -> str:
    if _BARE_KEY.fullmatch(key):
        return key[:_LONGEST_KEY]
    # repr: a quoted TOML key may hold line ends, and the message is one line.
    return repr(key[:_LONGEST_KEY])


def unknown(what: str, given: str, known: Collection[str], form: str = "%s") -> str:
    import difflib  # noqa: PLC0415 - for what is right it is not needed, and a quick command reads this, too

    close = difflib.get_close_matches(given, known, 1)
    hint = f" (did you mean {form % close[0]}?)" if close else ""
    return f"{what}{hint}; known: {listed(known, form)}"


def listed(names: Iterable[str], form: str = "%s") -> str:
    return ", ".join(form % name for name in sorted(names)) or "none"
