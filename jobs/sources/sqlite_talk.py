"""What is said between the bot and the process that reads databases for it: requests one way, replies the other.

A message is its length in four bytes and msgpack. What a reply may be is checked when it is decoded: who has written
the database may have got the better of the process that read it.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from jobs.sources.table_format import RowLimits
from jobs.thrash.call import Answer, ToolCall, Usage

HEADER: Final = 4
"""Bytes."""
LONGEST: Final = 64 << 20
"""Bytes of a message: a chunk, the longest row behind it, and what is remembered of thousands of sessions."""


class Look(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Read what is new; the replies are `Told`, one at least unless the database cannot be read, and `Problem`."""

    path: str
    formats: Sequence[str]
    """Names of table formats; a database is of the first whose table it has."""
    state: str | None
    """As the last `Told` had it; None at the first look."""
    now: float
    limits: RowLimits


class NearEnd(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Find a place before the last rows of the sessions written to last; the reply is `Beginning` or `Problem`."""

    path: str
    formats: Sequence[str]
    sessions: int
    rows: int
    """Of each."""


class Recognise(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Say which format's questions a database can answer; the reply is `Kind` or `Problem`."""

    path: str
    formats: Sequence[str]


Request = Look | NearEnd | Recognise


class Told(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """What has been read since the last one."""

    calls: Sequence[ToolCall]
    answers: Sequence[Answer]
    usages: Sequence[Usage]
    size: int
    unreadable: int
    """Rows."""
    state: str
    """What the next look needs."""
    is_whole: bool
    """Whether there is no more."""


class Beginning(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Where a look may begin."""

    state: str
    is_all: bool
    """Whether it leaves nothing out."""


class Kind(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What a database is."""

    format: int | None
    """Which of those that were asked for."""
    has_tables: bool = True
    is_database: bool = True
    """Whether it is one: it may only begin as one."""


class Problem(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Why something cannot be read."""

    text: str


class Done(msgspec.Struct, frozen=True, tag=True):
    """The end of the replies to a request."""


Reply = Told | Beginning | Kind | Problem | Done

_encoder: Final = msgspec.msgpack.Encoder()
decode_request: Final = msgspec.msgpack.Decoder(Request).decode
decode_reply: Final = msgspec.msgpack.Decoder(Reply).decode


def packed(message: Request | Reply) -> bytes:
    """Return a message as it is sent."""
    body = _encoder.encode(message)
    return len(body).to_bytes(HEADER) + body
