"""Text that an agent can influence is data: cleaned, masked and cut here, once, wherever it is shown."""

import re
import unicodedata
from typing import Final

from bot.redaction import mask

NAME_LIMIT: Final = 64
"""UTF-16 units of a name in a line of text."""

ELLIPSIS: Final = "…"
_ANSI: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_KEPT_FORMAT: Final = frozenset({"\n", "\t"})
# Control, format (bidi, zero width, tags), surrogate, private use; and letters that show as nothing.
_HIDDEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_BLANK_LETTERS: Final = frozenset("\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u034f")
_VARIATION_SELECTORS: Final = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_PLAIN: Final = str.maketrans({"…": "...", "•": "*", "→": "->", "\u202f": " "})
_FIRST_CUT: Final = 4
"""How many times the limit is cleaned at most, so that a text of megabytes costs little."""


def units(text: str) -> int:
    """Return the length in UTF-16 units, as Telegram counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut(text: str, limit: int) -> str:
    """Return the text in at most `limit` UTF-16 units; an ellipsis says that something is missing."""
    if units(text) <= limit:
        return text
    kept = text.encode("utf-16-le")[: 2 * (limit - 1)].decode("utf-16-le", "ignore")
    return kept.rstrip() + ELLIPSIS


def clean(text: str, limit: int) -> str:
    """Return foreign text fit to be shown: nothing invisible, nothing secret, at most `limit` UTF-16 units."""
    text = _ANSI.sub("", text[: limit * _FIRST_CUT])
    text = _VARIATION_SELECTORS.sub("", unicodedata.normalize("NFC", text))
    return cut(mask("".join(filter(_is_visible, text))).strip(), limit)


def one_line(text: str, limit: int = NAME_LIMIT) -> str:
    """Return a foreign name fit to be shown: like `clean`, in one line, letters that only look different made alike."""
    flat = unicodedata.normalize("NFKC", text[: limit * _FIRST_CUT])
    return " ".join(clean(flat, limit).split()) or "?"


def in_encoding(text: str, encoding: str) -> str:
    """Return a text as it is written where there may be no UTF-8."""
    if encoding.startswith("utf"):
        return text
    return text.translate(_PLAIN).encode(encoding, "backslashreplace").decode(encoding)


def _is_visible(char: str) -> bool:
    if char in _KEPT_FORMAT:
        return True
    return unicodedata.category(char) not in _HIDDEN_CATEGORIES and char not in _BLANK_LETTERS
