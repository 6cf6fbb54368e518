"""What Codex has called: the tool and the arguments of each way in which a rollout writes a call."""

from typing import Final

import msgspec
from msgspec import Raw

from jobs.sources.codex_records import Payload
from jobs.sources.fields import NOTHING, short

_decode_any: Final = msgspec.json.Decoder(Raw).decode
_decode_string: Final = msgspec.json.Decoder(str).decode


def tool(payload: Payload) -> str:
    """Return a call's tool. Raises ValueError if it is not named."""
    if not payload.name:
        if payload.type in {"local_shell_call", "web_search_call"}:
            return payload.type.removesuffix("_call")
        raise ValueError("a call without name")
    if payload.namespace and payload.namespace.startswith("mcp__"):
        return short(f"{payload.namespace}__{payload.name}")
    return short(payload.name)


def args(payload: Payload) -> bytes:
    """Return a call's arguments, in code mode the script, as JSON."""
    if payload.type == "function_call":
        return _inner_json(payload.arguments)
    return _sound(payload.action if payload.input == NOTHING else payload.input)


def _inner_json(raw: Raw) -> bytes:
    """Return the JSON that a string holds; if it holds none, the string."""
    try:
        return _sound(_decode_any(_decode_string(raw).encode()))
    except (ValueError, RecursionError):
        return _sound(raw)


def _sound(raw: Raw) -> bytes:
    """Return JSON without bytes that are no text: they are passed over while it is not decoded."""
    data = bytes(raw)
    return data if data.isascii() else data.decode(errors="replace").encode()
