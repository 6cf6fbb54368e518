"""The records of Codex's rollouts, with the fields that tell something."""

from datetime import datetime
from typing import Final

import msgspec
from msgspec import Raw

from jobs.sources.fields import NOTHING, Tokens, epoch


class Item(msgspec.Struct, gc=False):
    """What has ended: a command, a change of files, a call of another agent."""

    id: str | None = None
    command: Raw = NOTHING
    status: str | None = None
    exit_code: int | None = None


class Used(msgspec.Struct, gc=False):
    """Tokens of one answer of the model, or of all until then."""

    input_tokens: Tokens | None = None
    """With those from the cache."""
    cached_input_tokens: Tokens | None = None
    cache_write_input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None
    total_tokens: Tokens | None = None


class Counted(msgspec.Struct, gc=False):
    """How older releases tell tokens."""

    total_token_usage: Used | None = None
    last_token_usage: Used | None = None


class Payload(msgspec.Struct, gc=False):
    """The fields of all records that tell something."""

    type: str | None = None
    id: str | None = None
    # of calls and outputs
    name: str | None = None
    namespace: str | None = None
    input: Raw = NOTHING
    arguments: Raw = NOTHING
    action: Raw = NOTHING
    call_id: str | None = None
    output: Raw = NOTHING
    # of what has ended
    thread_id: str | None = None
    turn_id: str | None = None
    item: Item | None = None
    command: Raw = NOTHING
    exit_code: int | None = None
    success: bool | None = None
    # of tokens
    response_id: str | None = None
    usage: Used | None = None
    info: Counted | None = None
    # of threads
    parent_thread_id: str | None = None
    forked_from_id: str | None = None
    cwd: str | None = None
    source: Raw = NOTHING
    agent_nickname: str | None = None
    agent_path: str | None = None
    model: str | None = None


class Record(msgspec.Struct, gc=False):
    """A line."""

    timestamp: datetime | float | None = None
    type: str = ""
    payload: Payload = msgspec.field(default_factory=Payload)

    @property
    def ts(self) -> float:
        """Raises ValueError if the record tells no time."""
        if self.timestamp is None:
            raise ValueError("no time")
        return epoch(self.timestamp)


decode_record: Final = msgspec.json.Decoder(Record)
