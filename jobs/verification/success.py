"""Words that claim success. No verdict depends on them: they are noted beside one that fails."""

import re
from typing import Final

_CLAIM: Final = r"""(?xi)
    \b (?P<denied> (?: not | never | no | without | cannot | \w+n['\u2019]t ) [\s-]+ (?: \w+ [\s-]+ ){0,2} )?
    \b (?P<claim> completed? | done | finished | success (?: ful (?: ly )? )? ) \b
    """
_LOOKED_AT: Final = 1 << 16
"""Bytes of an output; characters of what its reporter says."""


def claim(said: str, data: bytes) -> str | None:
    """Return the word by which a reporter, or else the output, claims success; one that is denied is no claim."""
    start = data[:_LOOKED_AT].decode(errors="replace")
    return _claim_in(said[:_LOOKED_AT]) or _claim_in(start)


def _claim_in(text: str) -> str | None:
    return next((found["claim"] for found in re.finditer(_CLAIM, text) if not found["denied"]), None)
