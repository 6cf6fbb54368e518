"""What tokens cost. Money is counted in whole billionths of a unit of its currency, so that no sum drifts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from types import MappingProxyType
from typing import Final

import msgspec

from jobs.thrash.call import Usage

UNIT: Final = 10**9
"""One dollar, euro ... in these billionths. A single token is often worth less than a millionth."""
MOST: Final = 2**63 - 1
"""What the database takes; a log that claims more must not break a scan."""

_FINE: Final = 10**12
"""While tokens are multiplied by prices, which keep six digits after the point."""
_MILLION: Final = 10**6


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """Money for a million tokens, in units of the currency."""

    input: float
    output: float
    cached: float | None = None
    """For what is read from the cache; None is the price of input, as it is for what is written to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What models cost."""

    models: Mapping[str, Price] = field(default_factory=lambda: MappingProxyType({}))
    """By name or glob."""
    currency: str = "USD"
    """Three letters; nothing is converted."""

    def of(self, model: str) -> Price | None:
        """Return the price under this very name, else under the longest glob that matches."""
        if (exact := self.models.get(model)) is not None:
            return exact
        found = _longest_match(tuple(self.models), model)
        return None if found is None else self.models[found]


NO_PRICES: Final = Prices()


def money_of(usage: Usage, prices: Prices) -> int | None:
    """Return what an answer of the model has cost: as its log says, else by its model's price; None if unknown."""
    # Programs write 0 for a model whose price they do not know.
    if usage.cost:
        return min(round(min(usage.cost, MOST / UNIT) * UNIT), MOST)
    price = None if usage.model is None else prices.of(usage.model)
    return None if price is None else min(_priced(usage, price), MOST)


def unpriced(usage: Usage, money: int | None) -> int:
    """Return the tokens of an answer that a sum of money leaves out, as their `money` is not known."""
    return usage.tokens if money is None else 0


def plus(total: int | None, money: int | None) -> int | None:
    """Add to a sum that is None while no money is known."""
    return total if money is None else min((total or 0) + money, MOST)


# A log names the same few models in every line.
@lru_cache(maxsize=256)
def _longest_match(globs: tuple[str, ...], model: str) -> str | None:
    return max((glob for glob in globs if fnmatchcase(model, glob)), key=len, default=None)


def _priced(usage: Usage, price: Price) -> int:
    read = usage.cached - usage.written
    cached = price.input if price.cached is None else price.cached
    parts = (
        (usage.input + usage.written, price.input),
        (usage.output, price.output),
        (read, cached),
    )
    fine = sum(tokens * round(rate * (_FINE // _MILLION)) for tokens, rate in parts)
    per_billionth = _FINE // UNIT
    return (fine + per_billionth // 2) // per_billionth
