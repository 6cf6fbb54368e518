"""Records of Gemini CLI's chats whose fields are not what they should be: what makes sense in them is read."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, TypeVar

import msgspec
from msgspec import Raw

from jobs.sources.fields import NOTHING, epoch, name, time, value
from jobs.sources.gemini_records import Call, Part, Record, Update, decode_call, decode_used

Item = TypeVar("Item")


class _Call(msgspec.Struct, rename={"time": "timestamp"}):
    """A call whose fields may be anything."""

    id: Raw = NOTHING
    name: Raw = NOTHING
    args: Raw = NOTHING
    result: Raw = NOTHING
    status: Raw = NOTHING
    time: Raw = NOTHING


class _Record(
    msgspec.Struct,
    rename={"time": "timestamp", "calls": "toolCalls", "session": "sessionId", "update": "$set"},
):
    """A record whose fields may be anything."""

    id: Raw = NOTHING
    time: Raw = NOTHING
    type: Raw = NOTHING
    tokens: Raw = NOTHING
    model: Raw = NOTHING
    calls: Raw = NOTHING
    session: Raw = NOTHING
    update: Raw = NOTHING


class _Update(msgspec.Struct):
    messages: Raw = NOTHING


_decode: Final = msgspec.json.Decoder(_Record).decode
_decode_call: Final = msgspec.json.Decoder(_Call).decode
_decode_update: Final = msgspec.json.Decoder(_Update).decode
_decode_list: Final = msgspec.json.Decoder(list[Raw]).decode


def odd_record(line: bytes | Raw) -> Record:
    """Read a record as far as it makes sense. Raises ValueError if it is no JSON object."""
    odd = _decode(line)
    return Record(
        id=name(value(odd.id)),
        time=_moment(odd.time),
        type=name(value(odd.type)),
        tokens=_first(odd.tokens, decode_used),
        model=name(value(odd.model)),
        calls=_items(odd.calls, decode_call, _odd_call),
        session=name(value(odd.session)),
        update=_first(odd.update, _odd_update),
    )


def _odd_update(raw: Raw) -> Update:
    return Update(messages=_items(_decode_update(raw).messages, odd_record))


def _odd_call(raw: Raw) -> Call:
    odd = _decode_call(raw)
    return Call(
        id=name(value(odd.id)) or "",
        name=name(value(odd.name)) or "",
        args=odd.args,
        result=None if odd.result == NOTHING else Part(text=odd.result),
        status=name(value(odd.status)),
        time=_moment(odd.time),
    )


def _items(raw: Raw, *readers: Callable[[Raw], Item]) -> list[Item]:
    """Return those of a list that can be read; none of what is no list."""
    items = [_first(item, *readers) for item in _first(raw, _decode_list) or ()]
    return [item for item in items if item is not None]


def _first(raw: Raw, *readers: Callable[[Raw], Item]) -> Item | None:
    """Return what the first reader that takes it makes of it."""
    for read in readers:
        try:
            return read(raw)
        except ValueError:
            continue
    return None


def _moment(raw: Raw) -> datetime | None:
    try:
        given = time(value(raw))
        return given if isinstance(given, datetime) else datetime.fromtimestamp(epoch(given), UTC)
    except (ValueError, OverflowError):
        return None
