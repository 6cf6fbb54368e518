"""TOML tables -> typed entries, and what is checked in every kind of them."""

import os
import re
from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeVar

import msgspec

from jobs.verification.wording import is_plain
from jobs.watchlist.error import WatchlistError, key_of, listed, unknown

_Spec = TypeVar("_Spec", bound=msgspec.Struct)
_MISSING: Final = re.compile(r"Object missing required field `(?P<field>\w+)`")


def convert(entry: object, spec: type[_Spec], place: str) -> _Spec:
    known = spec.__struct_fields__
    if spec.__struct_config__.tag_field:
        known = (spec.__struct_config__.tag_field, *known)
    check_keys(table_of(entry, place), known, place, "key")
    try:
        return msgspec.convert(entry, spec)
    except msgspec.ValidationError as error:
        # Without the cause: its message may hold the value, and a traceback would print it.
        raise WatchlistError(_conversion_error(str(error), place)) from None


def _conversion_error(message: str, place: str) -> str:
    if missing := _MISSING.fullmatch(message):
        return f"{place}.{missing['field']}: missing"
    # From the right: an echoed value may hold the separator, a path of known fields never does.
    what, _, path = message.rpartition(" - at `$")
    return f"{place}{path.rstrip('`')}: {_reworded(what)}"


def _reworded(what: str) -> str:
    if what.startswith("Expected "):
        return (
            what.replace("Expected", "expected")
            .replace("`", "")
            .replace(" | null", "")
            .replace("object", "table")
        )
    if what.startswith("Invalid enum value"):
        from jobs.thrash.policy import OnDetection  # noqa: PLC0415 - what is right needs it not

        return f"expected one of: {listed(OnDetection)}"
    return "out of range"


def table_of(entry: object, place: str) -> dict[str, object]:
    if not isinstance(entry, dict):
        raise WatchlistError(f"{place}: expected table, got {type_of(entry)}")
    return entry


def type_of(value: object) -> str:
    match value:
        case dict():
            return "table"
        case list():
            return "array"
        case _:
            return type(value).__name__


def absolute(text: str, folder: str, place: str, escape: Callable[[str], str]) -> str:
    """Return the path with `~` expanded and relative to `folder`; what is put in front of `text` is escaped."""
    check_text(text, place)
    if not text.startswith("~"):
        parts = os.path.join(escape(folder), text).split("/")
        return "/" + "/".join(part for part in parts if part not in {"", "."})
    user, slash, rest = text.partition("/")
    home = os.path.expanduser(user)
    if home == user:
        raise WatchlistError(f"{place}: no home folder is known for what follows ~")
    return escape(home) + slash + rest


def check_keys(table: Mapping[str, object], known: Collection[str], place: str, what: str) -> None:
    for key in table:
        if key not in known:
            where = f"{place}.{key_of(key)}" if place else key_of(key)
            raise WatchlistError(f"{where}: {unknown(f'unknown {what}', key, known)}")


def check_name(name: str, place: str) -> None:
    if not name:
        raise WatchlistError(f"{place}: must not be empty")
    if not name.isprintable():
        raise WatchlistError(f"{place}: must not hold control or invisible characters")
    if name != name.strip() or not is_plain(name):
        raise WatchlistError(
            f"{place}: must not look like another name, by blanks, variants of letters or what shows as nothing"
        )


def check_text(text: str, place: str) -> None:
    if not text:
        raise WatchlistError(f"{place}: must not be empty")
    if "\0" in text:
        raise WatchlistError(f"{place}: must not hold a NUL character")


def compiled(pattern: str, place: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        where = f" at character {error.pos + 1}" if error.pos is not None else ""
        raise WatchlistError(f"{place}: not a regular expression{where}") from None
    except (OverflowError, RecursionError):
        raise WatchlistError(f"{place}: a regular expression too large") from None
