"""Tokens of Codex's model, each answer's once: right after its calls, or in older releases as a sum that grows."""

from collections.abc import Sequence
from typing import Final

import msgspec

from jobs.sources.codex_records import Counted, Used
from jobs.sources.codex_threads import Thread
from jobs.thrash.call import ToolCall, Usage

_HELD: Final = 8
_LONGEST_HELD: Final = 1 << 13
"""Bytes of arguments. A longer call is told without its tokens."""


class TokenCount(msgspec.Struct):
    """What was told of tokens, and the calls that wait for theirs."""

    has_records: bool = False
    """Whether the tokens of each answer are told right after its calls."""
    counted: Used | None = None
    """The newest sum of tokens where they are not."""
    held: list[ToolCall] = []
    """Calls whose tokens the next record will tell."""

    def hold(self, call: ToolCall) -> bool:
        """Keep a call until its tokens are told; return whether it is kept."""
        if not self.has_records or len(self.held) >= _HELD or len(call.args) > _LONGEST_HELD:
            return False
        self.held.append(call)
        return True

    def released(self, tokens: int | None = None) -> Sequence[ToolCall]:
        """Return the calls that were kept, the first with the tokens of them all."""
        held = self.held
        if not held:
            return ()
        self.held = []
        return [msgspec.structs.replace(held[0], tokens=tokens), *held[1:]]

    def grown(self, info: Counted | None) -> Used | None:
        """Return what the newest answer has used, if an older release tells it for the first time."""
        if self.has_records or info is None or info.last_token_usage is None:
            return None
        # It is written again whenever the limits of use change.
        is_new = info.total_token_usage is None or info.total_token_usage != self.counted
        self.counted = info.total_token_usage
        return info.last_token_usage if is_new else None

    def usage(self, used: Used, thread: Thread, ts: float) -> Usage:
        """Return what an answer has used, which is that of the calls that are kept."""
        given, output = used.input_tokens or 0, used.output_tokens or 0
        written = used.cache_write_input_tokens or 0
        cached = min((used.cached_input_tokens or 0) + written, given)
        return Usage(
            session=thread.session,
            ts=ts,
            model=thread.model,
            input=given - cached,
            output=output,
            cached=cached,
            written=min(written, cached),
            has_call=bool(self.held),
        )
