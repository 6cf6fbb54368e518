"""How likely so many failures are, compared with sums of exact fractions."""

from fractions import Fraction
from math import comb, isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.verification.binomial import at_least

rates = st.integers(min_value=1, max_value=999).map(lambda number: Fraction(number, 1000))


def _exactly(failed: int, runs: int, rate: Fraction) -> float:
    ways = (comb(runs, n) * rate**n * (1 - rate) ** (runs - n) for n in range(failed, runs + 1))
    return float(sum(ways, Fraction(0)))


@given(failed=st.integers(min_value=0, max_value=70), runs=st.integers(min_value=0, max_value=60), rate=rates)
def test_it_is_the_sum_of_the_exact_terms(failed: int, runs: int, rate: Fraction) -> None:
    assert isclose(at_least(failed, runs, float(rate)), _exactly(failed, runs, rate), rel_tol=1e-9)


@pytest.mark.parametrize(
    ("failed", "runs", "rate", "likelihood"),
    [
        (2, 3, 0.01, 0.000298),
        (1, 1, 0.25, 0.25),
        (3, 10, 0.0, 0.0),
        (0, 10, 0.0, 1.0),
        (3, 10, 1.0, 1.0),
        (11, 10, 0.5, 0.0),
    ],
)
def test_some_that_are_easily_seen(failed: int, runs: int, rate: float, likelihood: float) -> None:
    assert isclose(at_least(failed, runs, rate), likelihood, rel_tol=1e-9)


# Added up term by term with sixty digits.
@pytest.mark.parametrize(
    ("failed", "rate", "likelihood"),
    [
        (9_900, 0.01, 0.843776413753639),
        (10_000, 0.01, 0.501349872563667),
        (10_100, 0.01, 0.158651232145801),
        (10_400, 0.01, 3.29358645605499e-05),
        (11_000, 0.01, 2.34952979623049e-23),
        (501_000, 0.5, 0.0228041499326910),
        (2, 0.000001, 0.264241117657085),
    ],
)
def test_it_is_right_for_a_million_runs(failed: int, rate: float, likelihood: float) -> None:
    assert isclose(at_least(failed, 1_000_000, rate), likelihood, rel_tol=1e-8)


@given(failed=st.integers(min_value=0, max_value=1_000_000), rate=rates)
def test_it_falls_with_the_failures_and_grows_with_the_rate(failed: int, rate: Fraction) -> None:
    """And is always a probability."""
    likely = at_least(failed, 1_000_000, float(rate))
    assert 0 <= likely <= 1
    assert at_least(failed + 1, 1_000_000, float(rate)) <= likely * (1 + 1e-9)
    assert at_least(failed, 1_000_000, float(rate) / 2) <= likely * (1 + 1e-9)
