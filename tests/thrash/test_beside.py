"""What is told beside the calls counts in the order of time with them."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jobs.thrash.beside import NOTHING_USED, Beside, Used
from jobs.thrash.call import ToolCall, Usage
from jobs.thrash.heard import Heard
from jobs.thrash.policy import ThrashPolicy
from jobs.thrash.price import NO_PRICES, UNIT, Price, Prices
from jobs.thrash.session import count_in, take_in
from tests.fakes import NOON, call

PRICES = Prices(models={"*": Price(input=1_000_000, output=0)})
CENTURY = 36_525 * 86_400.0

seconds = st.integers(0, 30)


def usage(at: float, tokens: int = 1, *, has_call: bool = False) -> Usage:
    return Usage(
        session="s-1", ts=NOON + at, model="any", input=tokens, output=0, cached=0, has_call=has_call
    )


def calls_at(times: Sequence[float]) -> list[ToolCall]:
    return [call(NOON + at) for at in times]


def told(*usages: Usage, prices: Prices = NO_PRICES) -> Beside:
    beside = Beside()
    beside.hear(usages, prices)
    return beside


def test_a_call_comes_after_what_is_older_and_before_what_is_not() -> None:
    """An answer of the model has the time of the calls in it."""
    beside = told(usage(1, 10), usage(2, 200), usage(3, 3000))
    assert [used.tokens for used in beside.before(calls_at([0, 1, 2, 2, 9]))] == [0, 0, 10, 10, 3210]


def test_tokens_that_are_told_with_a_call_are_not_told_twice_but_their_money_is_counted() -> None:
    assert told(usage(1, has_call=True), usage(2), prices=PRICES).total == Used(1, 2 * UNIT)


def test_tokens_without_a_price_are_known_to_be_missing_in_the_money() -> None:
    """Told with a call or without."""
    used = told(usage(1, 10, has_call=True), usage(2, 20)).total
    assert used == Used(20, None, 30)
    assert used.more(Used(1, 2, 3)) == Used(21, 2, 33)


def test_what_was_told_under_the_newest_time_is_known_apart() -> None:
    """The calls of that time may come in a later look."""
    assert told(usage(1, 10), usage(2, 200), usage(2, 3000)).newest == (NOON + 2, Used(3200, None, 3200))
    assert Beside().newest is None
    assert Used(5, 7, 9).less(Used(1, 2, 3)) == Used(4, 5, 6)
    assert Used(5, 7).less(Used(5)) == Used(0, 7)


def test_a_call_that_comes_in_a_later_look_than_its_answer_was_told_does_not_follow_it() -> None:
    """Whichever other calls come with it."""
    known = count_in(
        take_in(None, "agents", heard(call(NOON)), ThrashPolicy(), NOON)[0], 0, told(usage(5, 10))
    )
    known, _ = take_in(known, "agents", heard(*calls_at([5, 5, 6])), ThrashPolicy(), NOON)
    assert [each.tokens_before for each in known.memory.recent] == [None, 0, 0, 10]
    known = count_in(known, 1, Beside())
    assert known.memory.newest == (NOON + 5, Used(10, None, 10))


def test_nothing_told_is_nothing_used() -> None:
    assert Beside().before(calls_at([0, 1])) == [NOTHING_USED, NOTHING_USED]
    assert Beside().total == NOTHING_USED


def test_a_time_from_the_far_future_hides_nothing() -> None:
    """Neither a usage's nor a call's."""
    beside = told(usage(CENTURY, 1000), usage(1), usage(5))
    assert [used.tokens for used in beside.before(calls_at([CENTURY - 1, 2]))] == [2, 1]
    beside.hear([usage(6)], NO_PRICES)
    assert [used.tokens for used in beside.before(calls_at([6, 7]))] == [2, 3]


def test_only_so_much_is_kept_of_a_model_that_makes_no_call() -> None:
    """What is let go is older than every call to come."""
    beside, whole = Beside(), range(10_000)
    for at in whole:
        beside.hear([usage(at)], NO_PRICES)
    assert [used.tokens for used in beside.before(calls_at([0, 9_990, 10_000]))] == [9_935, 9_990, 10_000]
    assert beside.total.tokens == len(whole)


@given(st.lists(seconds, max_size=100), st.lists(seconds, max_size=40), st.sets(seconds))
def test_what_came_before_a_call_does_not_depend_on_the_batches(
    used_at: list[int], called_at: list[int], cuts: set[int]
) -> None:
    """As long as a log is in order."""
    beside, found = Beside(), []
    for start, end in pairwise([-1, *sorted(cuts), 30]):
        beside.hear([usage(at) for at in sorted(used_at) if start < at <= end], NO_PRICES)
        calls = calls_at([at for at in sorted(called_at) if start < at <= end])
        found += [used.tokens for used in beside.before(calls)]
    assert found == [sum(at < each for at in used_at) for each in sorted(called_at)]


@given(st.lists(seconds, max_size=12), st.lists(seconds, min_size=1, max_size=12), st.integers(0, 9))
def test_what_a_call_remembers_is_the_sessions_total_until_then(
    used_at: list[int], called_at: list[int], own: int
) -> None:
    """Of all that was told beside the calls, and of the calls before it."""
    known = count_in(
        take_in(None, "agents", heard(call(NOON - 1, tokens=7)), ThrashPolicy(), NOON)[0], 0, Beside(Used(5))
    )
    beside = told(*(usage(at) for at in used_at), prices=PRICES)
    calls = [call(NOON + at, tokens=own) for at in sorted(called_at)]
    session, _ = take_in(known, "agents", heard(*calls, beside=beside), ThrashPolicy(), NOON)
    before = [sum(at < each for at in used_at) for each in sorted(called_at)]
    assert [(each.tokens_before, each.cost_before or 0) for each in session.memory.recent[1:]] == [
        (12 + used + number * own, used * UNIT) for number, used in enumerate(before)
    ]


def heard(*calls: ToolCall, beside: Beside | None = None) -> Heard:
    found = Heard(calls[0], ThrashPolicy().remembered)
    found.add(calls, (beside or Beside()).before(calls))
    return found
