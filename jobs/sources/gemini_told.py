"""What a chat of Gemini CLI has told already: it writes its history again, in part or as a whole."""

from typing import Final

import msgspec

from jobs.sources.once import MOST_OPEN, Mark, key

_MESSAGES: Final = 250
"""So many ids are remembered of them. Of calls there may be as many in a single message, which is written once more."""


class Told(msgspec.Struct, omit_defaults=True):
    """The ids of what was told, as many as are remembered, newest last."""

    messages: dict[str, None] = {}
    """Of the model, whose tokens were told."""
    calls: dict[str, bool] = {}
    """Whether a call still waits for its answer."""
    newest: float = 0
    """The time of the newest message."""
    has_forgotten: bool = False

    @property
    def until(self) -> float:
        """The time before which all was told, though its ids may have been forgotten."""
        return self.newest if self.has_forgotten else 0

    def is_new_message(self, given: str) -> bool:
        """Whether the tokens of a message are told for the first time; from now on they are not."""
        return self._is_new(self.messages, given, None, _MESSAGES)

    def is_new_call(self, given: str) -> bool:
        """Whether a call is told for the first time; from now on it is not."""
        return self._is_new(self.calls, given, True, MOST_OPEN)

    def is_new_answer(self, given: str) -> bool:
        """Whether the answer of a call that was told comes for the first time; from now on it does not."""
        call = key(given)
        is_waiting = self.calls[call]
        self.calls[call] = False
        return is_waiting

    def _is_new(self, known: dict[str, Mark], given: str, mark: Mark, most: int) -> bool:
        end = key(given)
        if end in known:
            return False
        known[end] = mark
        if len(known) > most:
            del known[next(iter(known))]
            self.has_forgotten = True
        return True
