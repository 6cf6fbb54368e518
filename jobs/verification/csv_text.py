"""CSV with a header: commas, quotes as in RFC 4180, every row as long as the header."""

import csv
import io
import re
import sys
from itertools import islice
from typing import Final

from jobs.verification.encoding import decoded
from jobs.verification.rows import Rows
from jobs.verification.wording import UnmetError, quantity, shown

_FIELDS: Final = re.compile(r'(?:(?:"(?:[^"]++|"")*+"|[^",\r\n]*+)(?:,|\r\n?|\n|\Z))*+')
"""The reader takes quotes anywhere; this stops where one is out of place."""

_AT_ONCE: Final = 1000
"""Rows."""
_MOST_KNOWN: Final = 100_000
"""Values."""

csv.field_size_limit(sys.maxsize)


def parse_csv(data: bytes) -> Rows:
    """Return the rows below the header. Raises UnmetError."""
    _refuse_stray_quotes(decoded(data))
    # Read line by line: a StringIO would hold the text once more, at four bytes for a character.
    rows = csv.reader(io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline=""), strict=True)
    header = next(rows)
    _refuse_bad(header)
    columns: dict[str, list[str]] = {name: [] for name in header}
    good = (_checked(header, row, number) for number, row in enumerate(rows, 2))
    known: dict[str, str] = {}
    while some := list(islice(good, _AT_ONCE)):
        for column, cells in zip(columns.values(), zip(*some, strict=True), strict=True):
            # What is written again and again lies in memory once.
            column.extend(map(known.setdefault, cells, cells))
        if len(known) > _MOST_KNOWN:
            known.clear()
    return Rows(columns=columns)


def _refuse_stray_quotes(text: str) -> None:
    if '"' not in text:
        return
    matched = _FIELDS.match(text)
    at = matched.end() if matched else 0
    if at < len(text):
        raise UnmetError(
            f"a value at line {text.count(chr(10), 0, at) + 1} has a quote out of place or is not closed,"
            " expected quotes only around a whole value"
        )


def _refuse_bad(header: list[str]) -> None:
    seen: set[str] = set()
    for number, name in enumerate(header, 1):
        if not name.strip():
            raise UnmetError(f"column {number} of {len(header)} has no name in the header, expected one")
        if name in seen:
            raise UnmetError(f"the header names {shown(name)} twice, expected each name once")
        seen.add(name)
    if not header:
        raise UnmetError("the first line is blank, expected a header")


def _checked(header: list[str], row: list[str], number: int) -> list[str]:
    # The reader takes a blank line for a row of nothing; below a header of one column it is a blank value.
    row = row or ([""] if len(header) == 1 else [])
    if len(row) != len(header):
        raise UnmetError(
            f"row {number} has {quantity(len(row), 'value')}, expected {len(header)} as in the header"
        )
    return row
