"""How a workflow stands by a clock that was ahead."""

import pytest

from jobs.verification.history import WorkflowState
from tests.fakes import NOON

DAY = 86_400.0


def a_state(since: float, judged_until: float) -> WorkflowState:
    return WorkflowState(name="nightly", since=since, judged_until=judged_until)


@pytest.mark.parametrize(
    ("since", "judged_until", "looked_at"),
    [(NOON + DAY, NOON + DAY, NOON + DAY), (NOON - DAY, NOON + DAY, NOON), (NOON - DAY, NOON, NOON + DAY)],
)
def test_what_lies_ahead_counts_as_now(since: float, judged_until: float, looked_at: float) -> None:
    """And a workflow is watched anew from then on: its runs of the time ahead say nothing of when the next is due."""
    assert a_state(since, judged_until).by_clock(looked_at, NOON) == a_state(NOON, NOON)


def test_nothing_is_judged_that_had_not_been_judged() -> None:
    assert a_state(NOON, 0).by_clock(NOON + DAY, NOON).judged_until == 0


def test_a_clock_that_is_adjusted_changes_nothing() -> None:
    state = a_state(NOON, NOON)
    assert state.by_clock(NOON, NOON - 60) == state
