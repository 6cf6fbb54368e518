"""OpenClaw's records, as far as they tell something: an event with a message, and what may be in one."""

from datetime import datetime

import msgspec
from msgspec import Raw

from jobs.sources.fields import NOTHING, Seconds, Tokens


class Cost(msgspec.Struct, gc=False):
    total: float | None = None


class Used(msgspec.Struct, gc=False, rename="camel"):
    input: Tokens = 0
    output: Tokens = 0
    cache_read: Tokens = 0
    cache_write: Tokens = 0
    cost: Cost | None = None


class Part(msgspec.Struct, gc=False):
    """Of a message: a text, an image, a call."""

    type: str = ""
    text: str = ""
    id: str = ""
    name: str = ""
    arguments: Raw = NOTHING
    data: Raw = NOTHING


class Details(msgspec.Struct, gc=False, rename="camel"):
    status: str = ""
    exit_code: int | None = None
    aggregated: Raw = NOTHING
    """Mostly the text once more, which is not worth decoding twice."""


class Message(msgspec.Struct, gc=False, rename="camel"):
    # In the order in which a message has them they are found at the first try.
    role: str = ""
    tool_call_id: str = ""
    content: list[Part] | str = ""
    details: Details | None = None
    is_error: bool = False
    model: str | None = None
    usage: Used | None = None
    timestamp: Seconds | datetime | None = None
    openclaw_abort: Raw = NOTHING


class Event(msgspec.Struct, gc=False, rename="camel"):
    type: str = ""
    id: str = ""
    cwd: str = ""
    parent_session: str = ""
    timestamp: Raw = NOTHING
    """Looked at where the message has none: to read a date takes as long as all the rest."""
    message: Message | None = None


class Wrapped(msgspec.Struct, gc=False):
    id: str
    args: Raw = Raw(b"{}")
