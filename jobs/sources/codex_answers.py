r"""What a call of Codex came to: whether it failed, and its text without what differs between equal outputs.

    Chunk ID: 85f3fb\nWall time: 0.0000 seconds\nProcess exited with code 1\nOriginal token count: 3\nOutput:\npending

No output bears a flag. A call has failed if this head says so, the program's own words in its place, or a record before
it (`codex_scripts`): an exit code that is not 0 is a failure, as it is where a log flags it, such as Claude Code's.
"""

import re
from typing import Final

import msgspec
from msgspec import Raw

from jobs.sources.fields import NOTHING

_HEADER: Final = re.compile(
    rb"""
    (?=Chunk\ ID:|Script\ |Exit\ code:|Wall\ time|Process\ )
    (?:Chunk\ ID:.*\n)?
    (?:Script\ (?P<script>completed|failed|terminated|running)(?:\ with\ cell\ ID\ .*)?\n)?
    (?:Exit\ code:\ (?P<exit>-?\d+)\n)?
    (?:Wall\ time.*\n)?
    (?:Process\ (?:exited\ with\ code\ (?P<process>-?\d+)|running\ with\ session\ ID\ .*)\n)?
    (?:Original\ token\ count:.*\n)?
    (?:Total\ output\ lines:.*\n)?
    Output:\n
    """,
    re.VERBOSE,
)
_PATCH_HEADER: Final = re.compile(rb"Exit code: (?P<exit>-?\d+)\nWall time.*\nOutput:\n")
_VARYING: Final = re.compile(rb'"(?:chunk_id":\s*"\w*"|wall_time_seconds":\s*[\d.e-]+)')
"""In the result of a command, where a script prints all of it."""

_REFUSALS: Final = (
    b"unsupported call: ",
    b"unsupported custom tool call: ",
    b"failed to parse function arguments: ",
    b"apply_patch verification failed: ",
    b"patch rejected",
    b"exec command rejected",
    b"exec_command failed",
    b"write_stdin failed: ",
    b"unable to locate image at ",
)
"""How an output begins by which the program says that it has not run the call."""


class _Part(msgspec.Struct, gc=False):
    """Of an output: a text or an image."""

    text: str | None = None
    image_url: Raw = NOTHING


class _OldMetadata(msgspec.Struct):
    exit_code: int | None = None


class _OldOutput(msgspec.Struct):
    """A text that is JSON itself."""

    output: str
    metadata: _OldMetadata


_decode_output: Final = msgspec.json.Decoder(str | list[_Part]).decode
_decode_old: Final = msgspec.json.Decoder(_OldOutput).decode


def read_output(raw: Raw) -> tuple[bool, bytes]:
    """Return whether an output says that it is of a failure, and its text without what varies."""
    text = _text(raw)
    if text.startswith(b'{"output":'):
        return _read_old(text)
    header = _HEADER.match(text)
    if header is None:
        return text.startswith(_REFUSALS), text
    inner = None if header["process"] or header["exit"] else _PATCH_HEADER.match(text, header.end())
    body = text[(inner or header).end() :]
    if header["script"]:
        return header["script"] == b"failed", header["script"] + b"\n" + _VARYING.sub(b"", body)
    code = header["process"] or header["exit"] or (inner and inner["exit"]) or b""
    return code not in {b"", b"0"}, code + b"\n" + body


def _read_old(text: bytes) -> tuple[bool, bytes]:
    try:
        old = _decode_old(text)
    except (ValueError, RecursionError):
        return False, text
    return bool(old.metadata.exit_code), old.output.encode()


def _text(raw: Raw) -> bytes:
    try:
        parts = _decode_output(raw)
    except (ValueError, RecursionError):
        return bytes(raw)
    if isinstance(parts, str):
        return parts.encode()
    return b"".join(bytes(part.image_url) if part.text is None else part.text.encode() for part in parts)
