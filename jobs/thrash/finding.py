"""What a detector reports: not yet a message, not yet a step."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One detection, from the calls a detector remembers.

    Calls are numbered from 1 within their session; tokens are the session's running total.
    """

    score: int
    tool: str
    """The tool of the newest repeating call."""
    first_call: int
    first_ts: float
    """Epoch seconds of the first repeating call."""
    newest_repeat: int
    newest_ts: float
    """Epoch seconds of the newest repeating call."""
    tokens_before: int | None
    """The session's tokens when the first repeating call was made; None if the log has none."""
    cost_before: int | None = None
    """The session's money when the first repeating call was read; None if none was known."""

    @property
    def kind(self) -> str:
        """The kind of trouble, as reasons and tables name it."""
        return "thrash_loop"
