"""Tokens become money by the price of their model, exactly and in any order."""

from functools import reduce
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.thrash.call import Usage
from jobs.thrash.price import MOST, NO_PRICES, UNIT, Price, Prices, money_of, plus

PRICES = Prices(
    models={
        "claude-*": Price(input=3, output=15, cached=0.3),
        "claude-opus-*": Price(input=15, output=75, cached=1.5),
        "claude-opus-4": Price(input=1, output=2),
        "gpt-6*": Price(input=5, output=20),
        "*-mini": Price(input=0.5, output=2),
        "local[1m]": Price(input=0, output=0),
    }
)


def used(
    model: str | None = "claude-opus-5",
    given: int = 0,
    output: int = 0,
    *,
    cached: int = 0,
    written: int = 0,
    cost: float | None = None,
) -> Usage:
    return Usage(
        session="s-1",
        ts=0,
        model=model,
        input=given,
        output=output,
        cached=cached,
        written=written,
        cost=cost,
    )


@pytest.mark.parametrize(
    ("usage", "units"),
    [
        (used(given=1_000_000), 15),
        (used(output=1_000_000), 75),
        (used(cached=1_000_000), 1.5),
        (used(given=1200, output=30, cached=40_000), 0.018 + 0.00225 + 0.06),
        (used("gpt-6", given=1), 0.000005),
        (used("local[1m]", given=1_000_000), 0),
    ],
)
def test_money_is_tokens_by_the_price_for_a_million(usage: Usage, units: float) -> None:
    assert money_of(usage, PRICES) == round(units * UNIT)


def test_what_is_written_to_the_cache_is_new_input() -> None:
    """Only what is read from it has the price `cached`."""
    usage = used(cached=1_000_000, written=400_000)
    assert money_of(usage, PRICES) == round((0.4 * 15 + 0.6 * 1.5) * UNIT)


def test_without_a_price_for_the_cache_it_is_that_of_input() -> None:
    assert money_of(used("gpt-6", cached=1_000_000), PRICES) == 5 * UNIT


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("claude-opus-4", 1),
        ("claude-opus-4-1", 15),
        ("claude-sonnet-5", 3),
        ("gpt-6", 5),
        ("gpt-6-mini", 5),
        ("gpt-4-mini", 0.5),
    ],
)
def test_the_very_name_goes_before_globs_and_a_long_glob_before_a_short_one(model: str, price: float) -> None:
    """Of globs of one length the first is taken."""
    assert money_of(used(model, given=1_000_000), PRICES) == round(price * UNIT)


@pytest.mark.parametrize("model", ["gemini-3", "Claude-opus-4", "", None])
def test_without_a_price_nothing_is_known(model: str | None) -> None:
    assert money_of(used(model, given=1_000_000), PRICES) is None
    assert money_of(used(given=1_000_000), NO_PRICES) is None


def test_what_the_log_says_goes_before_prices() -> None:
    assert money_of(used(given=1_000_000, cost=0.00405), PRICES) == 4_050_000
    assert money_of(used(given=1_000_000, cost=0.00405), NO_PRICES) == 4_050_000


def test_a_log_that_says_nothing_was_paid_knows_no_price() -> None:
    """That is what programs write for a model that they have no price of."""
    assert money_of(used(given=1_000_000, cost=0), PRICES) == 15 * UNIT
    assert money_of(used(given=1_000_000, cost=0), NO_PRICES) is None


@pytest.mark.parametrize("usage", [used(cost=1e300), used(cost=9.3e9), used(given=10**30)])
def test_no_claim_is_more_than_the_database_takes(usage: Usage) -> None:
    assert money_of(usage, PRICES) == MOST
    assert plus(MOST, 1) == MOST


def test_a_sum_is_unknown_while_no_money_is_known() -> None:
    assert plus(None, None) is None
    assert plus(None, 0) == 0
    assert plus(3, None) == 3
    assert plus(3, 4) == 7


tokens = st.integers(0, 10**12)
usages = st.builds(
    used, st.sampled_from(["claude-opus-5", "gpt-6", "?"]), tokens, tokens, cached=tokens, written=st.just(0)
)
rates = st.decimals(0, 1000, places=6).map(float)


@given(usages, usages)
def test_more_tokens_never_cost_less(one: Usage, other: Usage) -> None:
    more = used(one.model, one.input + other.input, one.output + other.output, cached=one.cached)
    less = used(one.model, one.input, one.output, cached=one.cached)
    assert (money_of(more, PRICES) or 0) >= (money_of(less, PRICES) or 0)


@given(rates, tokens, tokens)
def test_two_answers_cost_as_much_as_one_of_both(rate: float, one: int, other: int) -> None:
    """But for the last billionth of each, which is rounded."""
    prices = Prices(models={"m": Price(input=rate, output=rate)})
    together = money_of(used("m", one + other), prices)
    apart = plus(money_of(used("m", one), prices), money_of(used("m", 0, other), prices))
    assert together is not None
    assert apart is not None
    assert abs(together - apart) <= 1


@given(st.lists(usages | st.builds(used, cost=st.floats(0, 1e12)), max_size=8), st.randoms())
def test_the_order_of_answers_does_not_matter(answers: list[Usage], dice: Random) -> None:
    before = reduce(plus, (money_of(usage, PRICES) for usage in answers), None)
    dice.shuffle(answers)
    assert reduce(plus, (money_of(usage, PRICES) for usage in answers), None) == before


def test_a_long_sum_does_not_drift() -> None:
    """A million times a tenth of a cent; floats would not end there."""
    total: int | None = None
    for _ in range(1_000_000):
        total = plus(total, money_of(used(cost=0.001), NO_PRICES))
    assert total == 1000 * UNIT
