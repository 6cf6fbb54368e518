"""The binomial distribution: how likely so many failures are in so many runs. Right to eight digits for 1,000,000 runs, too."""

import math
from typing import Final

_NEGLIGIBLE: Final = 1e-18
"""Of a sum, what cannot change it any more."""


def at_least(failed: int, runs: int, rate: float) -> float:
    """Return how likely at least so many failures are if each run fails at this rate."""
    if failed <= 0 or rate >= 1:
        return 1.0
    if rate <= 0 or failed > runs:
        return 0.0
    if failed > runs * rate:
        return _tail(failed, runs, rate)
    # Below the mean the other tail is the short one: at most runs - failed do not fail.
    return 1 - _tail(runs - failed + 1, runs, 1 - rate)


def _tail(failed: int, runs: int, rate: float) -> float:
    """Add up from `failed`, which is above the mean, so that every term is smaller than the one before."""
    total = term = math.exp(_log_of(failed, runs, rate))
    odds = rate / (1 - rate)
    for number in range(failed, runs):
        term *= (runs - number) / (number + 1) * odds
        total += term
        if term <= total * _NEGLIGIBLE:
            break
    return min(total, 1.0)


def _log_of(failed: int, runs: int, rate: float) -> float:
    """Return the logarithm of how likely exactly so many failures are."""
    ways = math.lgamma(runs + 1) - math.lgamma(failed + 1) - math.lgamma(runs - failed + 1)
    return ways + failed * math.log(rate) + (runs - failed) * math.log1p(-rate)
