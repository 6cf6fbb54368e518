"""The records of Gemini CLI's chats, with the fields that tell something."""

from datetime import datetime
from typing import Final

import msgspec
from msgspec import Raw

from jobs.sources.fields import NOTHING, Tokens

NO_PART: Final = Raw(b"")


class FunctionResponse(msgspec.Struct, gc=False):
    """What a tool has returned."""

    response: Raw = NOTHING
    parts: Raw = NO_PART


class Part(
    msgspec.Struct,
    rename={"answer": "functionResponse", "image": "inlineData", "file": "fileData"},
    gc=False,
):
    """A piece of a call's result; only one of its fields is given."""

    answer: FunctionResponse | None = None
    text: Raw = NO_PART
    image: Raw = NO_PART
    file: Raw = NO_PART


class Call(msgspec.Struct, rename={"time": "timestamp"}, gc=False):
    """A call, mostly with its result."""

    id: str
    name: str
    args: Raw = NOTHING
    result: Part | str | list[Part | str] | None = None
    status: str | None = None
    time: datetime | None = None


class Used(msgspec.Struct, gc=False):
    """Tokens of one answer of the model."""

    input: Tokens = 0
    """With those from the cache."""
    output: Tokens = 0
    cached: Tokens = 0
    thoughts: Tokens = 0
    tool: Tokens = 0
    """Of the prompt, for the descriptions of tools."""


class Message(msgspec.Struct, rename={"time": "timestamp", "calls": "toolCalls"}, gc=False):
    """What the model, a person or the program has said."""

    id: str | None = None
    time: datetime | None = None
    type: str | None = None
    tokens: Used | None = None
    model: str | None = None
    calls: list[Call] | None = None


class Update(msgspec.Struct, gc=False):
    """May bring the whole history anew."""

    messages: list[Message] | None = None


class Record(Message, rename={"session": "sessionId", "update": "$set"}, gc=False):
    """Any of them: the first one, a message, an update."""

    session: str | None = None
    update: Update | None = None


decode_record: Final = msgspec.json.Decoder(Record).decode
decode_call: Final = msgspec.json.Decoder(Call).decode
decode_used: Final = msgspec.json.Decoder(Used).decode
