"""Outputs that hold what is forbidden."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from jobs.verification.pattern_text import alike
from jobs.verification.spec import Format
from jobs.verification.specimen import Bad, Specimen
from jobs.verification.spots import unused
from jobs.verification.wording import one_line


def of_forbidden(good: Specimen) -> Iterator[Bad]:
    """Yield it with a text of each pattern put in, where it is still found by it."""
    for pattern in good.spec.forbid:
        found = (data for text in alike(pattern) for data in _held(good, text) if _is_found(pattern, data))
        yield from (Bad(f"holds {one_line(pattern, 40)}", data) for data in islice(found, 1))


def _is_found(pattern: str, data: bytes) -> bool:
    return re.search(pattern, data.decode(errors="replace")) is not None


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
