"""How long to wait before something is tried again: longer each time, and never two of us at the same moment."""

from random import uniform

from aiogram.utils.backoff import Backoff

_SPREAD = 0.2


class Waits(Backoff):
    """aiogram's, with a spread that grows with the wait: its own is fixed, and may lead below nothing."""

    def __next__(self) -> float:
        """Return the seconds to wait now."""
        return max(self.min_delay / 2, super().__next__()) * uniform(1 - _SPREAD, 1 + _SPREAD)  # noqa: S311 - no secret
