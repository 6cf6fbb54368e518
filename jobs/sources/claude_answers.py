"""What a call of Claude Code came to: whether it failed, and its text without what differs between equal answers."""

import re
from typing import Final

import msgspec
from msgspec import Raw

from jobs.sources.claude_records import Block

_CANCELLED: Final = re.compile(
    rb"(<tool_use_error>)?(Sibling tool call errored|Cancelled: parallel tool call .{0,2000} errored)",
    re.DOTALL,
)
"""What is told of a call because another call of the same message has failed."""
_MAY_VARY: Final = (b"Async agent ", b"[Subagent ", b"Command ")
"""How an answer begins that bears ids and times of the program's own; or it ends in `</usage>`."""
_VARYING: Final = re.compile(
    rb"""
    agentId:\ \w+\ \([^\n]* | output_file:\ [^\n]* | <usage>[^<]*</usage>             # of sub-agents
    | background\ with\ ID:\ [\w-]+ | Output\ is\ being\ written\ to:\ [^\n]*    # of commands that go on
    """,
    re.VERBOSE,
)


class _Text(msgspec.Struct):
    text: str


_decode_text: Final = msgspec.json.Decoder(str | list[_Text]).decode


def read_answer(block: Block) -> tuple[bool, bytes]:
    """Return whether a call has failed, and what it has answered.

    The log flags what has failed. Of a failed message of several calls it flags them all: one of them has failed.
    """
    text = _text(block.content)
    return bool(block.is_error) and _CANCELLED.match(text) is None, _without_ids(text)


def _text(content: Raw) -> bytes:
    """Return an answer's text; one that is not only text as it was written."""
    try:
        text = _decode_text(content)
    except (ValueError, RecursionError):
        return bytes(content)
    return (text if isinstance(text, str) else "\n".join(part.text for part in text)).encode()


def _without_ids(text: bytes) -> bytes:
    """Take out what is different for every sub-agent and every command in the background."""
    if text.startswith(_MAY_VARY) or text.endswith(b"</usage>"):
        return _VARYING.sub(b"", text)
    return text
