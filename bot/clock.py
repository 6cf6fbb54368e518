"""The only reader of the clock."""

import time


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """Epoch seconds."""
        return time.time()
