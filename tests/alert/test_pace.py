"""The pace of a chat: a gap between any two messages, and in a group no more than so many a minute."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.alert.pace import TELEGRAM_PACE, UNPACED, Pace, PacePolicy
from tests.fakes import NOON

TIGHT = PacePolicy(gap=1, group_limit=3, group_window=10)


@pytest.mark.parametrize(
    ("sent", "in_group", "in_private"),
    [
        pytest.param((), 0, 0, id="nothing yet"),
        pytest.param((0,), 1, 1, id="one"),
        pytest.param((0, 1), 2, 2, id="fewer than the limit"),
        pytest.param((0, 1, 2), 10, 3, id="as many as the limit, at once"),
        pytest.param((0, 1, 9.5), 10.5, 10.5, id="the first one is about to drop out"),
        pytest.param((0, 30, 60), 61, 61, id="as many as the limit, but slowly"),
        pytest.param((-5, 0, 1, 2), 10, 3, id="more than the limit: the newest count"),
    ],
)
def test_when_the_next_message_may_be_sent(
    sent: tuple[float, ...], in_group: float, in_private: float
) -> None:
    pace = Pace(sent=tuple(NOON + at for at in sent))
    assert pace.free_at(TIGHT, is_group=True) == (NOON + in_group if sent else 0)
    assert pace.free_at(TIGHT, is_group=False) == (NOON + in_private if sent else 0)


def test_the_limits_are_telegrams() -> None:
    """One message a second, twenty a minute in a group."""
    pace = Pace()
    for n in range(20):
        assert pace.free_at(TELEGRAM_PACE, is_group=True) == (NOON + n if n else 0)
        pace = pace.after(NOON + n, TELEGRAM_PACE)
    assert pace.free_at(TELEGRAM_PACE, is_group=True) == NOON + 60
    assert pace.free_at(TELEGRAM_PACE, is_group=False) == NOON + 20


def test_no_more_is_remembered_than_counts() -> None:
    pace = Pace()
    for n in range(5):
        pace = pace.after(NOON + n, TIGHT)
    assert pace == Pace(sent=(NOON + 2, NOON + 3, NOON + 4))


def test_a_clock_that_was_set_back_keeps_nobody_waiting() -> None:
    """What was sent at a time that is yet to come says nothing of how long ago that was."""
    pace = Pace(sent=(NOON + 3600, NOON + 3601)).after(NOON, TIGHT)
    assert pace.free_at(TIGHT, is_group=True) == NOON + 1
    assert pace.after(NOON + 1, TIGHT).free_at(TIGHT, is_group=True) == NOON + 2


@given(waits=st.lists(st.integers(0, 100), max_size=50), is_group=st.booleans())
def test_without_a_pace_no_message_waits(waits: list[int], *, is_group: bool) -> None:
    now, pace = NOON, Pace()
    for wait in waits:
        now += wait
        assert pace.free_at(UNPACED, is_group=is_group) <= now
        pace = pace.after(now, UNPACED)


# Eighths and quarters of a second, so that adding them up is exact.
policies = st.builds(
    PacePolicy,
    gap=st.integers(0, 20).map(lambda eighths: eighths / 8),
    group_limit=st.integers(1, 6),
    group_window=st.integers(0, 80).map(lambda quarters: quarters / 4),
)
waits = st.lists(st.just(0) | st.integers(0, 240).map(lambda eighths: eighths / 8), max_size=40)


def sent_as_early_as_allowed(policy: PacePolicy, waits: list[float], *, is_group: bool) -> list[float]:
    """When messages are sent that are there so long after the one before was sent."""
    now, pace, moments = NOON, Pace(), []
    for wait in waits:
        now = max(now + wait, pace.free_at(policy, is_group=is_group))
        pace = pace.after(now, policy)
        moments.append(now)
    return moments


@given(policy=policies, waits=waits, is_group=st.booleans())
def test_messages_sent_as_early_as_allowed_keep_the_limits(
    policy: PacePolicy, waits: list[float], *, is_group: bool
) -> None:
    """Whenever they come: the gap holds in every chat, the limit in every window of a group."""
    moments = sent_as_early_as_allowed(policy, waits, is_group=is_group)
    assert all(later - earlier >= policy.gap for earlier, later in pairwise(moments))
    if is_group:
        limit = policy.group_limit
        windows = zip(moments, moments[limit:], strict=False)
        assert all(after - first >= policy.group_window for first, after in windows)


@given(policies, waits)
def test_no_message_waits_longer_than_the_limits_demand(policy: PacePolicy, waits: list[float]) -> None:
    """A private chat waits for the gap alone; a message of a group that waits longer is the one too many."""
    private = sent_as_early_as_allowed(policy, waits, is_group=False)
    group = sent_as_early_as_allowed(policy, waits, is_group=True)
    for number, wait in enumerate(waits[1:], start=1):
        assert private[number] - private[number - 1] == max(wait, policy.gap)
        if group[number] - group[number - 1] > max(wait, policy.gap):
            assert group[number] == group[number - policy.group_limit] + policy.group_window
