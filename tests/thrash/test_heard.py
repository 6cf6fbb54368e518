"""Of calls read in any number only so many are kept, and what counts of the others is not lost."""

from collections.abc import Sequence
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from jobs.thrash.beside import Used
from jobs.thrash.call import ToolCall
from jobs.thrash.heard import Heard, total
from jobs.thrash.locality import NOTHING_SEEN, LocalityState, detect_locality, pass_over
from jobs.thrash.policy import ThrashPolicy
from tests.fakes import NOON, call

POLICY = ThrashPolicy(remembered=12)

some_calls = st.builds(
    call,
    ts=st.sampled_from([NOON, NOON + 1, NOON + 59, NOON + 600]),
    command=st.sampled_from(["ls", "pwd", "cat README.md"]),
    pid=st.sampled_from([None, 11, 12]),
    is_error=st.booleans(),
    tokens=st.sampled_from([None, None, 0, 7]),
)
portions = st.lists(st.lists(some_calls, min_size=1, max_size=20), min_size=1, max_size=8)


def heard_of(drawn: Sequence[Sequence[ToolCall]]) -> Heard:
    heard = Heard(drawn[0][0], POLICY.remembered)
    for calls in drawn:
        heard.add(calls)
    return heard


@given(st.lists(some_calls, max_size=30), portions)
def test_counting_what_cannot_be_remembered_is_as_good_as_remembering_it(
    earlier: list[ToolCall], drawn: list[list[ToolCall]]
) -> None:
    before, _ = detect_locality(NOTHING_SEEN, earlier, POLICY, NOON)
    heard = heard_of(drawn)
    passed = pass_over(before, heard.passed, heard.passed_tokens)
    expected = detect_locality(before, list(chain.from_iterable(drawn)), POLICY, NOON)
    assert detect_locality(passed, heard.newest, POLICY, NOON) == expected


@given(portions)
def test_only_so_many_calls_are_kept_and_all_are_counted(drawn: list[list[ToolCall]]) -> None:
    heard, calls = heard_of(drawn), list(chain.from_iterable(drawn))
    assert len(heard.newest) <= 2 * POLICY.remembered
    assert calls[heard.passed :] == heard.newest
    assert heard.first == calls[0]
    assert heard.errors == sum(each.is_error for each in calls)
    assert heard.passed_tokens == total(None, calls[: heard.passed])


@given(portions)
def test_what_was_used_before_each_call_is_kept_with_it(drawn: list[list[ToolCall]]) -> None:
    heard, number = Heard(drawn[0][0], POLICY.remembered), 0
    for calls in drawn:
        heard.add(calls, [Used(number + place) for place in range(len(calls))])
        number += len(calls)
    assert [used.tokens for used in heard.used] == list(range(heard.passed, number))


@given(portions)
def test_every_change_of_process_is_noted_once(drawn: list[list[ToolCall]]) -> None:
    told = [(each.pid, each.ts) for each in chain.from_iterable(drawn) if each.pid is not None]
    changes = [now for before, now in zip([(None, 0), *told], told, strict=False) if before[0] != now[0]]
    assert heard_of(drawn).pids == changes


def test_tokens_are_none_until_a_call_has_some() -> None:
    assert total(None, [call(), call()]) is None
    assert total(None, [call(), call(tokens=0)]) == 0
    assert total(5, [call(), call(tokens=7)]) == 12
    assert pass_over(NOTHING_SEEN, 3, None) == LocalityState(calls=3)
    assert pass_over(LocalityState(calls=1, tokens=2), 3, None) == LocalityState(calls=4, tokens=2)
