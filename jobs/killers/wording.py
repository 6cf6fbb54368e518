"""Foreign text inside a detail: kept as it is, but bounded, and storable."""

from typing import Final

LONGEST: Final = 200
"""Characters of one foreign text."""


def bounded(text: str) -> str:
    """Return at most `LONGEST` characters of `text`, without the lone surrogates that no database takes."""
    if len(text) > LONGEST:
        text = text[: LONGEST - 1] + "…"
    return text.encode(errors="replace").decode()
