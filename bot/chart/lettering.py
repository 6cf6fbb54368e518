"""Which words a picture can write: where no font of the machine has a letter there would be a box."""

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Self

from matplotlib import get_data_path
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font

_OWN: Final = "DejaVu Sans"
"""Comes with matplotlib; has Latin, Greek, Cyrillic, Arabic, Hebrew, Armenian and Georgian letters."""
_BOXES: Final = re.compile("last ?resort", re.IGNORECASE)
"""Has every letter: as a box."""


@dataclass(frozen=True, slots=True)
class Lettering:
    """The fonts to be tried one after the other, and the letters that none of them has."""

    fonts: tuple[str, ...]
    missing: frozenset[str]

    @classmethod
    def of(cls, words: Iterable[str]) -> Self:
        """Find fonts of this machine that write these words."""
        missing = set("".join(words)) - _letters(_OWN)
        fonts = [_OWN]
        for name in _others() if missing else ():
            found = missing & _letters(name)
            if found:
                fonts.append(name)
                missing -= found
        return cls(tuple(fonts), frozenset(missing))

    def can_write(self, word: str) -> bool:
        """Whether all its letters are there."""
        return self.missing.isdisjoint(word)


def _others() -> list[str]:
    """Return the fonts of the machine; those that matplotlib brings are for formulas."""
    own = get_data_path()
    return sorted(
        {
            entry.name
            for entry in fontManager.ttflist
            if not entry.fname.startswith(own) and not _BOXES.search(entry.name)
        }
    )


def _letters(font: str) -> set[str]:
    # A damaged font of the machine is one less.
    with suppress(OSError, RuntimeError, ValueError):
        path = findfont(FontProperties(family=font), fallback_to_default=False)
        return {chr(code) for code in get_font(path).get_charmap()}
    return set()
