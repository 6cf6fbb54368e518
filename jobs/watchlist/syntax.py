"""Text -> TOML tables. What tomllib says of an error is cut where it may echo a value."""

import re
import tomllib
from collections.abc import Iterator
from typing import Final

from jobs.watchlist.error import WatchlistError, key_of

_SYNTAX_ERROR: Final = re.compile(
    r"(?P<what>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)", re.DOTALL
)
_INTEGERS: Final = range(-(2**63), 2**63)
"""Those that TOML knows, and whatever a watch list is handed on to; tomllib lets others through."""
_ECHOES_NOTHING: Final = frozenset(
    {
        "Cannot overwrite a value",
        "Expected '=' after a key in a key/value pair",
        "Expected ']' at the end of a table declaration",
        "Expected ']]' at the end of an array declaration",
        "Expected newline or end of document after a statement",
        "Invalid date or datetime",
        "Invalid hex value",
        "Invalid initial character for a key part",
        "Invalid statement",
        "Invalid value",
        "Unclosed array",
        "Unclosed inline table",
        "Unescaped '\\' in a string",
        "Unterminated string",
    }
)


def tables_in(text: str) -> dict[str, object]:
    try:
        tables = tomllib.loads(text)
        beyond = next(_beyond(tables, ""), None)
    except tomllib.TOMLDecodeError as error:
        raise WatchlistError(_syntax_error(str(error), text)) from None
    except (ValueError, RecursionError):
        # Numbers of thousands of digits, brackets nested a thousand deep: tomllib lets these through.
        raise WatchlistError("not readable as TOML: nested too deeply, or a number too long") from None
    if beyond is not None:
        raise WatchlistError(f"{beyond}: out of range")
    return tables


def _beyond(value: object, place: str) -> Iterator[str]:
    """Yield where whole numbers are that are none of TOML's."""
    match value:
        case dict():
            for key, each in value.items():
                yield from _beyond(each, f"{place}.{key_of(key)}" if place else key_of(key))
        case list():
            for index, each in enumerate(value):
                yield from _beyond(each, f"{place}[{index}]")
        case int() if value not in _INTEGERS:
            yield place


def _syntax_error(message: str, text: str) -> str:
    found = _SYNTAX_ERROR.fullmatch(message)
    what = found["what"] if found else ""
    line = (found and found["line"]) or text.count("\n") + 1
    column = (found and found["column"]) or len(text) - text.rfind("\n")
    # Messages that are not known to be free of values are cut.
    wording = what[0].lower() + what[1:] if what in _ECHOES_NOTHING else "not valid TOML, or defined twice"
    return f"line {line}, column {column}: {wording}"
