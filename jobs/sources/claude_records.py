"""The records of Claude Code's logs, with the fields that tell something."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Raw

from jobs.sources.fields import NOTHING, Seconds, Tokens

TELLING: Final = frozenset({"assistant", "user"})
"""Types of records."""


class Block(msgspec.Struct, gc=False):
    """A part of a message: `tool_use`, `tool_result`, or text and the like."""

    type: str
    id: str | None = None
    name: str | None = None
    input: Raw = NOTHING
    tool_use_id: str | None = None
    content: Raw = NOTHING
    is_error: bool | int | str | None = None


class Message(msgspec.Struct, gc=False):
    """What the model has said, or a person or a tool."""

    id: str | None = None
    model: str | None = None
    content: str | list[Block] | None = None
    stop_reason: str | None = None
    usage: Raw = NOTHING

    def blocks(self, kind: str) -> Sequence[Block]:
        """Return its parts of one type."""
        content = self.content if isinstance(self.content, list) else ()
        return [block for block in content if block.type == kind]


class Record(msgspec.Struct, rename="camel", kw_only=True, gc=False):
    """A line."""

    # In the order in which a line has them they are found at the first try.
    is_sidechain: bool | None = None
    agent_id: str | None = None
    message: Message | None = None
    attribution_agent: str | None = None
    type: str
    timestamp: Seconds | datetime | None = None
    cwd: str | None = None
    session_id: str | None = None
    request_session_id: str | None = None
    """The session that has asked the model, where that is not the log's own."""

    @property
    def is_copy(self) -> bool:
        """Whether it comes from the log of another session, which this one was forked from."""
        return self.request_session_id not in {None, self.session_id}


class Used(msgspec.Struct, gc=False):
    """Tokens of one message of the model."""

    input_tokens: Tokens | None = None
    cache_creation_input_tokens: Tokens | None = None
    cache_read_input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None


class _Typed(msgspec.Struct):
    type: str


decode_record: Final = msgspec.json.Decoder(Record).decode
_decode_type: Final = msgspec.json.Decoder(_Typed).decode
_decode_used: Final = msgspec.json.Decoder(Used).decode


def is_of_other_type(line: bytes) -> bool:
    """Whether it is a record of a type that tells nothing, whatever it holds."""
    try:
        return _decode_type(line).type not in TELLING
    except (ValueError, RecursionError):
        return False


def used(usage: Raw) -> Used:
    """Return what a message has used: nothing if that cannot be read, which must not hide a call."""
    try:
        return _decode_used(usage)
    except (ValueError, RecursionError):
        return Used()
