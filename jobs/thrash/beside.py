"""What a log tells of tokens and money beside the calls, put in the order of time with them."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import accumulate
from operator import itemgetter
from typing import Final, NamedTuple

from jobs.thrash.call import LoggedCall, Usage
from jobs.thrash.price import Prices, money_of, plus, unpriced

_KEPT: Final = 64
"""Of what came before only so many of the newest usages can be later than a call to come: a log is nearly in order."""


class Used(NamedTuple):
    """A sum."""

    tokens: int = 0
    """Told without a call."""
    cost: int | None = None
    """Told with a call or without; None while no money is known."""
    unpriced: int = 0
    """Tokens, told with a call or without, that are not in it: no price of theirs is known."""

    def more(self, other: "Used") -> "Used":
        return Used(self.tokens + other.tokens, plus(self.cost, other.cost), self.unpriced + other.unpriced)

    def less(self, other: "Used") -> "Used":
        cost = None if other.cost is None else -other.cost
        return self.more(Used(-other.tokens, cost, -other.unpriced))


NOTHING_USED: Final = Used()


class Newest(NamedTuple):
    """What was told under the newest time so far: calls of that time, which it is the answer of, may be still to come."""

    ts: float
    used: Used


@dataclass(slots=True)
class Beside:
    """All of it for one session since it was last counted in."""

    _before: Used = NOTHING_USED
    """Of what is older than every call to come."""
    _later: list[tuple[float, Used]] = field(default_factory=list)
    """By time: the rest."""

    @property
    def total(self) -> Used:
        return self._sums()[-1]

    @property
    def newest(self) -> Newest | None:
        if not self._later:
            return None
        newest_ts, _ = self._later[-1]
        same = (used for ts, used in self._later if ts == newest_ts)
        return Newest(newest_ts, reduce(Used.more, same))

    def hear(self, usages: Iterable[Usage], prices: Prices) -> None:
        """Add what came, before the calls that came with it are asked for."""
        if len(self._later) > _KEPT:
            self._before = self._sums()[-1 - _KEPT]
            del self._later[:-_KEPT]
        self._later += [(usage.ts, _used(usage, prices)) for usage in usages]
        # A log's times may be out of order, and one from the far future must not hide the others.
        self._later.sort(key=itemgetter(0))

    def before(self, calls: Sequence[LoggedCall]) -> list[Used]:
        """Return what was used before each of the next calls. What is told under its very time is its own answer."""
        if not self._later:
            return [self._before] * len(calls)
        times, sums = [ts for ts, _ in self._later], self._sums()
        return [sums[bisect_left(times, call.ts)] for call in calls]

    def _sums(self) -> list[Used]:
        return list(accumulate((used for _, used in self._later), Used.more, initial=self._before))


def with_tokens(total: int | None, used: int) -> int | None:
    """Add to a session's tokens, which are None while none were told."""
    return plus(total, used or None)


def _used(usage: Usage, prices: Prices) -> Used:
    money = money_of(usage, prices)
    return Used(0 if usage.has_call else usage.tokens, money, unpriced(usage, money))
