"""Real values: not missing, null, blank, nor a word that stands for nothing."""

from functools import lru_cache
from typing import Final
from unicodedata import normalize

from jobs.verification.path import ABSENT
from jobs.verification.wording import shown

_RANGES: Final = (
    (0x00, 0x20),
    (0x7F, 0xA0),
    (0xAD, 0xAD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x1680, 0x1680),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2000, 0x200F),
    (0x2028, 0x202F),
    (0x205F, 0x206F),
    (0x2800, 0x2800),
    (0x3000, 0x3000),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF9, 0xFFFB),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
"""Characters that leave no mark: controls, spaces, fillers, and what Unicode has a screen ignore."""


@lru_cache(maxsize=1)
def _invisible() -> str:
    return "".join(chr(code) for first, last in _RANGES for code in range(first, last + 1))


@lru_cache(maxsize=1)
def _dropped() -> dict[int, None]:
    """What a word does not lose by losing it: spaces may part two."""
    return dict.fromkeys(ord(each) for each in _invisible() if not each.isspace())


@lru_cache(maxsize=64)
def folded(placeholders: tuple[str, ...]) -> frozenset[str]:
    """Return the placeholders as `is_real` compares them."""
    return frozenset(_plain(each).casefold() for each in placeholders)


def _plain(text: str) -> str:
    """Return what one sees of a text, in the plainest of the characters that look like that."""
    return normalize("NFKC", text.translate(_dropped())).strip()


def is_blank(text: str) -> bool:
    """Whether there is nothing to be seen in a text."""
    return not text.strip(_invisible())


def is_real(value: object, placeholders: frozenset[str]) -> bool:
    """Whether it says anything; false, 0, an empty array and an empty table do."""
    if type(value) is not str:
        return value is not None and value is not ABSENT
    bare = value.strip()
    if not (bare.isascii() and bare.isprintable()):
        bare = _plain(value)
    return bool(bare) and bare.casefold() not in placeholders


def what_is_wrong(value: object) -> str:
    """Say why a value is not real."""
    if value is ABSENT:
        return "is missing"
    if not isinstance(value, str):
        return "is null"
    return "is blank" if is_blank(value) else f"is the placeholder {shown(value)}"
