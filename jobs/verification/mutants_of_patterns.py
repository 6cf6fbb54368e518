"""Outputs that hold what is forbidden."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, Final

from jobs.verification.pattern_text import alike
from jobs.verification.spec import Format
from jobs.verification.specimen import Bad, Specimen, in_turn
from jobs.verification.spots import unused
from jobs.verification.wording import one_line

_FEW: Final = 5
"""Texts of one pattern that are tried in a place."""

_Way = Callable[[Specimen, str], Iterator[bytes]]


def of_forbidden(good: Specimen) -> Iterator[Bad]:
    """Yield it with a text of each pattern put in, where it is still found by it."""
    return in_turn(good.spec.forbid, [partial(_of_pattern, good, way) for way in _WAYS.items()])


def _of_pattern(good: Specimen, way: tuple[str, _Way], pattern: str) -> Iterator[Bad]:
    where, put_in = way
    found = (data for data in put_in(good, pattern) if _is_found(pattern, data))
    return (Bad(f"holds {one_line(pattern, 40)}{where}", data) for data in islice(found, 1))


def _is_found(pattern: str, data: bytes) -> bool:
    return re.search(pattern, data.decode(errors="replace")) is not None


def _anywhere(good: Specimen, pattern: str) -> Iterator[bytes]:
    return (data for text in alike(pattern) for data in _held(good, text))


def _in_other_case(good: Specimen, pattern: str) -> Iterator[bytes]:
    swapped = ((text, text.swapcase()) for text in islice(alike(pattern), _FEW))
    others = (other for text, other in swapped if other != text and re.search(pattern, other))
    return (data for other in others for data in _held(good, other))


def _in_the_middle(good: Specimen, pattern: str) -> Iterator[bytes]:
    half = len(good.data) // 2
    at = good.data.find(b"\n", half) + 1 or half
    for text in islice(alike(pattern), _FEW):
        yield b"\n".join((good.data[:at], text.encode(), good.data[at:]))


def _held(good: Specimen, text: str) -> Iterator[bytes]:
    """Yield it with a text in it: among its values, where others would be escaped, then in whatever place."""
    yield from (good.written(root) for root in _roots(good, text))
    raw = text.encode()
    yield good.data + b"\n" + raw
    yield raw + b"\n" + good.data
    yield raw


def _roots(good: Specimen, text: str) -> Iterator[Any]:
    match good.root:
        case dict():
            yield {**good.root, next(unused(good.root)): text}
        case [*before, dict(last)] if good.form is Format.CSV:
            yield [*before, {**last, next(reversed(last)): text}]
        case list() if good.form is not Format.CSV:
            yield [*good.root, text]


_WAYS: Final[Mapping[str, _Way]] = {
    "": _anywhere,
    " in other case": _in_other_case,
    " in the middle": _in_the_middle,
}
