"""A run beside the earlier ones: is it a copy, is it of the usual size, does it count as much as usual?"""

from typing import Final

import msgspec

from jobs.verification.parsing import Document, line_count
from jobs.verification.path import ABSENT, has_each, parse_path
from jobs.verification.rows import Rows
from jobs.verification.spec import BandSpec, CountSpec, Format
from jobs.verification.verdict import Past
from jobs.verification.wording import UnmetError, number, quantity, shown

_FEWEST: Final = 3
"""Runs that a median is taken of."""


def digest(document: Document, data: bytes, timestamp: str | None) -> str:
    """Return what is equal for the same values, in whatever order and layout, whatever their timestamp."""
    from hashlib import sha256  # noqa: PLC0415 - only where it is needed: to start quickly

    if not document.format.has_fields:
        return sha256(data).hexdigest()
    root = document.root if timestamp is None else document.less(parse_path(timestamp))
    return sha256(msgspec.json.Encoder(order="deterministic").encode(root)).hexdigest()


def unchanged(content: str, past: Past) -> str:
    """Say that this is not the last run's content. Raises UnmetError if it is."""
    if not past.last_content:
        return "there is no earlier run to compare with"
    last = "the last run" if past.last_run is None else f"run {past.last_run}"
    if content == past.last_content:
        raise UnmetError(f"the same content as {last}'s under a new time, expected another: a stale copy")
    return f"another content than {last}'s"


def size(found: int, spec: BandSpec, past: Past) -> str:
    """Say that the size is a usual one. Raises UnmetError."""
    return _in_band(found, quantity(found, "byte"), spec.within, past.sizes)


def count(found: int, spec: CountSpec, past: Past) -> str:
    """Say that there are as many as there should be. Raises UnmetError."""
    counted = f"{number(found)} at {spec.of}" if spec.of else f"{number(found)} counted"
    if spec.min is not None and found < spec.min:
        raise UnmetError(f"{counted}, expected at least {number(spec.min)}")
    if spec.max is not None and found > spec.max:
        raise UnmetError(f"{counted}, expected at most {number(spec.max)}")
    return _in_band(found, counted, spec.within, past.counts) if spec.within is not None else counted


def _in_band(found: int, words: str, within: float, earlier: tuple[int, ...]) -> str:
    if len(earlier) < _FEWEST:
        return f"{words}; only {quantity(len(earlier), 'run')} so far to compare with"
    median = _median(earlier)
    least, most = median * (1 - within), median * (1 + within)
    usual = f"the median of the last {len(earlier)} good runs is {number(median)}"
    if not least <= found <= most:
        raise UnmetError(f"{words}, expected {number(max(least, 0))} to {number(most)}: {usual}")
    return f"{words}; {usual}"


def _median(numbers: tuple[int, ...]) -> float:
    ordered, middle = sorted(numbers), len(numbers) // 2
    return ordered[middle] if len(numbers) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def counted(document: Document, data: bytes, of: str) -> int:
    """Return how many there are of what a workflow counts. Raises UnmetError if there is nothing of that kind."""
    if of:
        return _at(document, of)
    if document.format in {Format.TEXT, Format.ANY}:
        return line_count(data)
    if not isinstance(document.root, list | Rows):
        raise UnmetError(f"the whole is {shown(document.root)}, expected an array")
    return len(document.root)


def _at(document: Document, of: str) -> int:
    path = parse_path(of)
    found = [value for value in document.values(path) if value is not ABSENT]
    if has_each(path):
        return len(found)
    # `items` means its elements, as `items[]` does.
    return sum(len(value) if isinstance(value, list | dict) else 1 for value in found)
