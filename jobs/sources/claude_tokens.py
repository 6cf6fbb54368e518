"""Tokens of Claude's messages: each of the lines that a message takes repeats them, they are told once."""

from collections.abc import Sequence
from typing import Final

import msgspec

from jobs.sources.claude_records import Message, used
from jobs.sources.fields import NOTHING, short
from jobs.sources.once import is_new, key
from jobs.thrash.call import Usage

_REMEMBERED: Final = 64
_SYNTHETIC: Final = "<synthetic>"
"""Named as the model of what the program itself has put in."""


class TokenCount(msgspec.Struct, omit_defaults=True):
    """What was told of tokens."""

    messages: dict[str, None] = {}
    """Their ids, newest last."""
    held: Usage | None = None
    """Of the last of `messages`: its call is still to come."""

    def usage(self, message: Message, session: str, ts: float, *, has_call: bool) -> Usage | None:
        """Return what a message has used, once; if a call is sure to follow, only with that."""
        if message.usage == NOTHING or message.model == _SYNTHETIC:
            return None
        if self.held is None and message.id and not is_new(message.id, self.messages, None, _REMEMBERED):
            return None
        usage = _usage(message, session, ts, has_call=has_call)
        is_held = bool(message.id) and not has_call and message.stop_reason == "tool_use"
        self.held = usage if is_held else None
        return None if is_held else usage

    def let_go(self, message: str | None) -> Sequence[Usage]:
        """Return what was held for a call, unless it may still come in the message that is read now."""
        held = self.held
        if held is None or (message and [*self.messages][-1:] == [key(message)]):
            return ()
        self.held = None
        return [held]


def _usage(message: Message, session: str, ts: float, *, has_call: bool) -> Usage:
    tokens = used(message.usage)
    written = tokens.cache_creation_input_tokens or 0
    return Usage(
        session=session,
        ts=ts,
        model=short(message.model) if message.model else None,
        input=tokens.input_tokens or 0,
        output=tokens.output_tokens or 0,
        cached=written + (tokens.cache_read_input_tokens or 0),
        written=written,
        has_call=has_call,
    )
