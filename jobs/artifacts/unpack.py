"""Unpacks a compressed output, which must be whole, to a bounded size."""

import bz2
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol

import zstandard

from jobs.artifacts.packing import Packing, packing_of
from jobs.artifacts.snapshot import Snapshot, take_snapshot
from jobs.verification.checks import Output
from jobs.verification.spec import Format, WorkflowSpec

_FED: Final = 1024
"""Bytes given to a decompressor at once: none of them makes more than some tens of megabytes of so many."""
_PIECE: Final = 1 << 20
_GZIP: Final = 16 + zlib.MAX_WBITS
_DICTIONARY: Final = 256 << 20
"""Bytes of memory an xz file may ask for."""
_BROKEN: Final = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    zstandard.ZstdError,
    struct.error,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    ValueError,
)
"""What the decompressors raise for data that is damaged, encrypted, or packed in a way they do not know."""


class _DamagedError(Exception):
    """It cannot be unpacked; the message is a sentence."""


class _Unpacker(Protocol):
    """Unpacks one of the parts that a compressed file may consist of."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


_UNPACKERS: Final[Mapping[Packing, Callable[[], _Unpacker]]] = {
    Packing.GZIP: lambda: zlib.decompressobj(_GZIP),
    Packing.BZIP2: bz2.BZ2Decompressor,
    Packing.XZ: lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, _DICTIONARY),
    Packing.ZSTD: lambda: zstandard.ZstdDecompressor().decompressobj(),
}


def read_output(path: str, spec: WorkflowSpec) -> Output:
    """Read the file at `path` and unpack it. Never raises for what lies there; bounded by `spec.max_size`."""
    return unpacked(take_snapshot(path, spec.max_size), spec)


def unpacked(snapshot: Snapshot, spec: WorkflowSpec) -> Output:
    """Return what a file holds."""
    try:
        data = _content(snapshot, spec)
    except _DamagedError as damaged:
        return Output(artifact=snapshot.artifact, damage=str(damaged))
    return Output(artifact=snapshot.artifact, problem=snapshot.problem, data=data)


def _content(snapshot: Snapshot, spec: WorkflowSpec) -> bytes:
    packing = packing_of(snapshot.path, snapshot.data) if snapshot.data else None
    if packing is None:
        return snapshot.data
    if packing is Packing.ZIP and spec.format is not Format.ANY:
        raise _DamagedError(f"is a zip archive, expected {spec.format}, compressed by itself or not at all")
    unpacked, size = [], 0
    for piece in _pieces(snapshot.data, packing):
        size += len(piece)
        if size > spec.max_size:
            raise _DamagedError(
                f"is larger once unpacked, expected at most {spec.max_size:,} bytes (max_size)"
            )
        unpacked.append(piece)
    if not size:
        raise _DamagedError("is empty once unpacked, expected some content")
    return b"".join(unpacked)


def _pieces(data: bytes, packing: Packing) -> Iterator[bytes]:
    try:
        if packing is Packing.ZIP:
            yield from _zip_members(data)
        else:
            yield from _parts(data, packing)
    except _BROKEN:
        # Their own sentences are about their insides.
        how = "damaged, encrypted or unknown" if packing is Packing.ZIP else "damaged"
        raise _DamagedError(f"its {packing} compression is {how}, expected a whole file") from None


def _parts(data: bytes, packing: Packing) -> Iterator[bytes]:
    at = 0
    while at < len(data) and not _is_padding(data, at):
        unpacker = _UNPACKERS[packing]()
        while not unpacker.eof:
            if at >= len(data):
                raise _DamagedError(
                    f"its {packing} compression is cut off after {at:,} bytes, expected a whole file"
                )
            fed = data[at : at + _FED]
            yield unpacker.decompress(fed)
            at += len(fed)
        at -= len(unpacker.unused_data)


def _is_padding(data: bytes, at: int) -> bool:
    # As tapes and block devices leave it; what begins with a zero byte is no part of any kind.
    return data[at] == 0 and not data[at:].strip(b"\0")


def _zip_members(data: bytes) -> Iterator[bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            # Read to its end, where its checksum is compared.
            with archive.open(member) as file:
                while piece := file.read(_PIECE):
                    yield piece
