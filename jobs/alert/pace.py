"""How fast one chat may be written to: Telegram's limits, kept before it has to remind us of them."""

from dataclasses import dataclass
from typing import Final

import msgspec


@dataclass(frozen=True, slots=True, kw_only=True)
class PacePolicy:
    """The limits. Telegram names them in its FAQ and promises none; an edit counts as a message."""

    gap: float = 1.0
    """Seconds between two messages of one chat."""
    group_limit: int = 20
    """Messages to one group within `group_window`."""
    group_window: float = 60.0
    """Seconds."""


TELEGRAM_PACE: Final = PacePolicy()
UNPACED: Final = PacePolicy(gap=0, group_window=0)


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """When the newest messages of one chat were sent, in epoch seconds, oldest first."""

    sent: tuple[float, ...] = ()

    def after(self, now: float, policy: PacePolicy) -> "Pace":
        """Return the pace with one message more; what seems to be sent later is from before the clock was set back."""
        earlier = (at for at in self.sent if at <= now)
        return Pace(sent=(*earlier, now)[-policy.group_limit :])

    def free_at(self, policy: PacePolicy, *, is_group: bool) -> float:
        """Return from when on the next message may be sent; 0 if none has been yet."""
        if not self.sent:
            return 0
        free_at = self.sent[-1] + policy.gap
        if is_group and len(self.sent) >= policy.group_limit:
            free_at = max(free_at, self.sent[-policy.group_limit] + policy.group_window)
        return free_at
