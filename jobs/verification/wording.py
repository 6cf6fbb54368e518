"""Words of a reason: one line, printable, with no value in full length."""

import re
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

LONGEST_REASON: Final = 300
"""Characters."""
LONGEST_VALUE: Final = 60
"""Characters. A reason goes to a chat, and a value may be a secret."""
LARGEST: Final = 10**4300
"""Whole numbers from here on cannot be written out."""
_LONGEST_WRITTEN: Final = 40
"""Characters of a value; the rest is for its quotes and escapes."""
_MOST_LISTED: Final = 5
_NO_MARK: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and signs that count as printable, and show as nothing."""
_LONG: Final = 1e15
_HUGE: Final = 1e300
_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_DATED: Final = (0, 253_402_300_800)
"""The years 1970 to 9999, in epoch seconds."""


class UnmetError(ValueError):
    """A criterion that is not met; says why."""


def ill_formed(form: str, flaw: str) -> UnmetError:
    """Return what is wrong with a text that should be of a format; a flaw may say itself what was expected."""
    expected = "" if "expected" in flaw.lower() else f", expected {form}"
    return UnmetError(f"not {form}: {flaw}{expected}")


def one_line(text: str, longest: int = LONGEST_REASON) -> str:
    """Return the text on one line, without what a screen does not show, cut to `longest` characters."""
    # Long texts are cut before they are looked through, and once more when the escapes have made them longer.
    shown = "".join(each if each.isprintable() else _escaped(each) for each in text[: longest + 1])
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def is_plain(text: str) -> bool:
    """Whether a text is no other one than it looks like: all of it leaves a mark, and none is a variant of a letter."""
    # The ellipsis is a variant of three dots, and is ours.
    text = text.replace("…", "")
    return text.isprintable() and not _NO_MARK.search(text) and unicodedata.normalize("NFKC", text) == text


def _escaped(character: str) -> str:
    return " " if character.isspace() else character.encode("unicode_escape").decode()


def shown(value: object) -> str:
    """Return a value as a reason shows it: cut, and arrays and tables by their size alone."""
    match value:
        case None | bool():
            return "null" if value is None else str(value).lower()
        case str():
            return f'"{one_line(value, _LONGEST_WRITTEN)}"'
        case int() | float():
            return number(value)
        case list():
            return f"an array of {len(value)}"
        case dict():
            return f"a table of {len(value)}"
        case _:
            return one_line(str(value), _LONGEST_WRITTEN)


def number(value: float) -> str:
    """Return a number with its thousands apart, cut."""
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.10g}"
    if abs(value) < _LONG:
        return f"{value:,.0f}"
    # An integer may be too long to be written at all.
    return f"{value:.3e}" if abs(value) < _HUGE else "a huge number"


def quantity(count: int, thing: str) -> str:
    """Return `1 byte`, `2 bytes`."""
    return f"{number(count)} {thing}{'' if count == 1 else 's'}"


def listed(words: Iterable[str], last: str = "or") -> str:
    """Return `a, b or c`, at most five of them."""
    cut = [one_line(word, _LONGEST_WRITTEN) for word in words]
    if len(cut) > _MOST_LISTED:
        cut = [*cut[: _MOST_LISTED - 1], f"{len(cut) - _MOST_LISTED + 1} more"]
    return f" {last} ".join((", ".join(cut[:-1]), cut[-1]) if len(cut) > 1 else cut)


def duration(seconds: float) -> str:
    """Return a length of time in its two largest units."""
    for name, unit, part_name, part in (
        ("d", _DAY, "h", _HOUR),
        ("h", _HOUR, "min", _MINUTE),
        ("min", _MINUTE, "s", 1),
    ):
        if seconds >= unit:
            rest = int(seconds % unit // part)
            return f"{number(int(seconds // unit))} {name}" + (f" {rest} {part_name}" if rest else "")
    return f"{seconds:.3g} s"


def instant(at: float) -> str:
    """Return an epoch time as a date and time in UTC, if it has one of four digits for the year."""
    if not _DATED[0] <= at < _DATED[1]:
        return f"epoch {number(at)}"
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
