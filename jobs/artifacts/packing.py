"""Tells whether an output is compressed, and how."""

from enum import StrEnum
from typing import Final


class Packing(StrEnum):
    """How an output is compressed."""

    GZIP = "gzip"
    BZIP2 = "bzip2"
    XZ = "xz"
    ZSTD = "zstd"
    ZIP = "zip"


_ENDINGS: Final = {
    ".gz": Packing.GZIP,
    ".tgz": Packing.GZIP,
    ".bz2": Packing.BZIP2,
    ".xz": Packing.XZ,
    ".zst": Packing.ZSTD,
    ".zip": Packing.ZIP,
}
_BEGINNINGS: Final = {
    b"\x1f\x8b\x08": Packing.GZIP,
    b"\xfd7zXZ\x00": Packing.XZ,
    b"\x28\xb5\x2f\xfd": Packing.ZSTD,
    b"PK\x03\x04": Packing.ZIP,
    b"PK\x05\x06": Packing.ZIP,
}
_BZIP2: Final = b"BZh"
_BZIP2_BLOCKS: Final = (b"1AY&SY", b"\x17rE8P\x90")
"""What follows `BZh` and a digit: a text may begin with those."""


def packing_of(path: str, data: bytes) -> Packing | None:
    """Return how `data` is compressed, by its first bytes or by the name of its file."""
    if data.startswith(_BZIP2) and data[4:10] in _BZIP2_BLOCKS:
        return Packing.BZIP2
    by_content = next((packing for start, packing in _BEGINNINGS.items() if data.startswith(start)), None)
    return by_content or next(
        (packing for end, packing in _ENDINGS.items() if path.lower().endswith(end)), None
    )
