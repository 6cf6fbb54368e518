"""What was read of a session and is not yet in its state."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from jobs.thrash.beside import NOTHING_USED, Used
from jobs.thrash.call import LoggedCall
from jobs.thrash.price import plus


@dataclass(slots=True)
class Heard:
    """Calls of one session in log order. Those too old to be remembered are counted and let go."""

    first: LoggedCall
    remembered: int
    """How many of the newest calls can still matter."""
    newest: list[LoggedCall] = field(default_factory=list)
    """At most twice as many."""
    used: list[Used] = field(default_factory=list)
    """Before each of them, beside all calls, and not yet counted in."""
    errors: int = 0
    pids: list[tuple[int, float]] = field(default_factory=list)
    """Each change of process, with the time of the first call that told of it."""
    passed: int = 0
    """Calls before the newest ones, and the tokens of those."""
    passed_tokens: int | None = None

    @property
    def calls(self) -> int:
        """All of them."""
        return self.passed + len(self.newest)

    def add(self, calls: Sequence[LoggedCall], used: Sequence[Used] = ()) -> None:
        self.errors += [call.is_error for call in calls].count(True)
        self._note_pids(calls)
        self.newest += calls
        self.used += used or [NOTHING_USED] * len(calls)
        if len(self.newest) > 2 * self.remembered:
            passed = self.newest[: -self.remembered]
            self.newest, self.used = self.newest[-self.remembered :], self.used[-self.remembered :]
            self.passed += len(passed)
            self.passed_tokens = total(self.passed_tokens, passed)

    def _note_pids(self, calls: Sequence[LoggedCall]) -> None:
        known = self.pids[-1][0] if self.pids else None
        if {call.pid for call in calls} <= {known, None}:
            return
        for call in calls:
            if call.pid is not None and call.pid != known:
                known = call.pid
                self.pids.append((known, call.ts))


def total(tokens: int | None, calls: Sequence[LoggedCall]) -> int | None:
    """Add the tokens of calls to a sum that is None while no call had any."""
    used = [call.tokens for call in calls if call.tokens is not None]
    return plus(tokens, sum(used)) if used else tokens
