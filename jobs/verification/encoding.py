"""Bytes that should be UTF-8 without a byte order mark."""

from typing import Final

from jobs.verification.real import is_blank
from jobs.verification.wording import UnmetError

_EXPECTED: Final = "expected UTF-8 without a byte order mark"
# The marks of UTF-32 first: one of them begins like one of UTF-16.
_MARKS: Final = (
    (b"\xef\xbb\xbf", "UTF-8"),
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
_UNMARKED: Final[dict[tuple[bool, ...], str]] = {
    (True, False, False, False): "UTF-32",
    (False, False, False, True): "UTF-32",
    (True, False, True, False): "UTF-16",
    (False, True, False, True): "UTF-16",
}
"""Which of the first four bytes are not NUL, for a text that begins in ASCII."""


def decoded(data: bytes) -> str:
    """Return the text of an output. Raises UnmetError if it is no UTF-8, or is marked, blank or not all text."""
    if trouble := trouble_with(data):
        raise UnmetError(trouble)
    text = data.decode()
    if is_blank(text):
        raise UnmetError("blank, expected some text")
    return text


def trouble_with(data: bytes) -> str | None:
    """Return what is wrong with the encoding of an output, None if nothing is."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return f"begins with the byte order mark (BOM) of {name}, {_EXPECTED}"
    if unmarked := _UNMARKED.get(tuple(byte != 0 for byte in data[:4])):
        return f"looks like {unmarked}, {_EXPECTED}"
    nul = data.find(0)
    if nul >= 0:
        return f"a NUL byte {_place(data, nul)}, expected text"
    return _invalid(data)


def _invalid(data: bytes) -> str | None:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return f"byte 0x{data[error.start]:02x} {_place(data, error.start)} is not UTF-8, {_EXPECTED}"
    return None


def _place(data: bytes, offset: int) -> str:
    return f"at offset {offset} (line {line_of(data, offset)})"


def line_of(data: bytes, offset: int) -> int:
    """Return the line, counted from 1, that holds the byte at `offset`."""
    return data.count(b"\n", 0, offset) + 1
