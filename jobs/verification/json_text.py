"""JSON, strictly: no duplicate key, no NaN, no number beyond what can be held, nothing after the end."""

import io
import math
import re
from collections.abc import Iterator
from typing import Final

import jiter

from jobs.verification.encoding import line_of, trouble_with
from jobs.verification.wording import UnmetError, ill_formed, one_line

_SENTENCES: Final = (
    ("Detected duplicate key", "duplicate key"),
    ("EOF while parsing", "cut short: it ends within"),
)
"""What the parser says, and what it means."""
_TOO_MUCH: Final = {
    "recursion limit exceeded": ("nested deeper than 200 levels", "expected at most so many"),
    "number out of range": ("a number of more than 4,300 digits", "more than can be held"),
}
"""What it says of JSON that it does not take all the same."""
_LONGEST_SENTENCE: Final = 90
"""Characters: a key may be in it."""
_PLACE: Final = r" at line (\d+) column (\d+)$"
_TOKEN: Final = rb"[\w.+-]{1,20}|[\x21-\x7e]"
_LONGEST_TOKEN: Final = 20

_ALIKE: Final = bytes.maketrans(b"123456789E", b"000000000e")
_MANY_DIGITS: Final = b"0" * 200
_LONG_EXPONENTS: Final = (b"0e000", b"0e+000")
_LONE: Final = bytes.maketrans(b"E[:]} \t\r\n", b"e,,,,,,,,")
_OF_NUMBERS: Final = b"0123456789.+"
_EXPONENTS: Final = (b",e,", b"-e,")
_LARGE_NUMBER: Final = rb"(?:^|[\[,:\s])(-?[0-9]++(?:\.[0-9]++)?(?:[eE]\+?[0-9]++)?)(?=[,\]}\s]|\Z)"
_CHUNK: Final = 1 << 20
_OVERLAP: Final = 256


def parse_json(data: bytes) -> object:
    """Return the value of a JSON text. Raises UnmetError."""
    if not data.strip():
        raise UnmetError("blank, expected JSON")
    value = _value(data, data)
    _refuse_infinity(data, value)
    return value


def parse_jsonl(data: bytes) -> list[object]:
    """Return the value of every line. Raises UnmetError."""
    if not data.strip():
        raise UnmetError("blank, expected lines of JSON")
    # Line by line: all of them at once would be the whole once more, and often much more than that.
    records = [
        _record(data, line.removesuffix(b"\n"), number) for number, line in enumerate(io.BytesIO(data), 1)
    ]
    _refuse_infinity(data, records)
    return records


def _record(data: bytes, line: bytes, number: int) -> object:
    if not line.strip():
        raise UnmetError(f"line {number}: blank, expected JSON")
    try:
        return _value(line, data)
    except UnmetError as unmet:
        raise UnmetError(str(unmet).replace(" at line 1 ", f" at line {number} ")) from None


def _value(text: bytes, data: bytes) -> object:
    try:
        return jiter.from_json(text, allow_inf_nan=False, catch_duplicate_keys=True, cache_mode="keys")
    except ValueError as error:
        # Looked for only now: what is not UTF-8 is never valid, and looking takes a copy of the whole.
        if trouble := trouble_with(data):
            raise UnmetError(trouble) from None
        raise _flaw(text, str(error)) from None


def _flaw(text: bytes, said: str) -> UnmetError:
    place = re.search(_PLACE, said)
    if place is None:
        return ill_formed("JSON", one_line(said, _LONGEST_SENTENCE))
    start, at = said[: place.start()], _offset(text, int(place[1]), int(place[2]))
    column = at - text.rfind(b"\n", 0, at)
    where = f"at line {line_of(text, at)} column {column}"
    if start in _TOO_MUCH:
        what, expected = _TOO_MUCH[start]
        return UnmetError(f"{what} {where}, {expected}")
    for theirs, ours in _SENTENCES:
        start = start.replace(theirs, ours)
    found = _found(text, at) if "expected" in start else ""
    return ill_formed("JSON", f"{one_line(start, _LONGEST_SENTENCE)} {where}{found}")


def _offset(text: bytes, line: int, column: int) -> int:
    """Return the offset of a place as the parser tells it: the end of a line is column 0 of the next."""
    start = 0
    for _ in range(line - 1):
        start = text.index(b"\n", start) + 1
    return max(start + column - 1, 0)


def _found(text: bytes, at: int) -> str:
    # The parser stops within a word that begins like one of its own: `nope`, for example.
    tokens = (
        each for each in re.compile(_TOKEN).finditer(text, max(0, at - _LONGEST_TOKEN)) if each.end() > at
    )
    token = next(tokens, None)
    return f", found {token[0].decode()}" if token and token.start() <= at else ""


def _refuse_infinity(data: bytes, value: object) -> None:
    # The parser takes 1e999 for an infinite number. To look at every value would take longer than to parse them all.
    if not any(_may_overflow(data[at : at + _CHUNK + _OVERLAP]) for at in range(0, len(data), _CHUNK)):
        return
    first = next((each for each in re.finditer(_LARGE_NUMBER, data) if math.isinf(float(each[1]))), None)
    if first and any(_is_infinite(leaf) for leaf in _leaves(value)):
        line = line_of(data, first.start(1))
        raise UnmetError(f"a number at line {line} is larger than 1.8e308, more than can be held")


def _may_overflow(piece: bytes) -> bool:
    """Whether it may hold a number beyond 1.8e308: three digits in its exponent, or very many before. Mistakes only some texts."""
    alike = piece.translate(_ALIKE)
    if _MANY_DIGITS in alike:
        return True
    # Without its digits, all that is left of a number is its exponent's letter. Hashes have an e among digits, too.
    alone = b"," + piece.translate(_LONE, _OF_NUMBERS) + b","
    has_exponents = any(exponent in alone for exponent in _EXPONENTS)
    return has_exponents and any(exponent in alike for exponent in _LONG_EXPONENTS)


def _is_infinite(leaf: object) -> bool:
    return isinstance(leaf, float) and math.isinf(leaf)


def _leaves(value: object) -> Iterator[object]:
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as table:
                waiting.extend(table.values())
            case list() as array:
                waiting.extend(array)
            case leaf:
                yield leaf
