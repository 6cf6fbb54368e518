"""Figures of several lengths of time, added up."""

from hypothesis import given
from hypothesis import strategies as st

from jobs.digest.figures import CheckFigures, Figures, RunFigures, by_workflow, in_order, sum_of
from jobs.verification.verdict import Check

numbers = st.integers(min_value=0, max_value=9)
names = st.sampled_from(["a", "b", "c"])
runs = st.builds(
    RunFigures, workflow=names, passed=numbers, failed=numbers, missing=numbers, failed_tries=numbers
)
checks = st.builds(CheckFigures, workflow=names, check=st.sampled_from(Check), passed=numbers, failed=numbers)
figures = st.builds(
    in_order,
    st.lists(runs, unique_by=lambda run: run.workflow),
    st.lists(checks, unique_by=lambda check: (check.workflow, check.check)),
)


def test_checks_are_in_the_order_in_which_they_are_tried() -> None:
    """Workflow by workflow; not in that of their names."""
    told = [
        CheckFigures(workflow=workflow, check=check)
        for workflow in ("b", "a")
        for check in reversed(tuple(Check))
    ]
    ordered = in_order([], told).checks
    assert [check.check for check in ordered] == [*Check, *Check]
    assert [check.workflow for check in ordered[:: len(Check)]] == ["a", "b"]


def test_what_belongs_together_is_added() -> None:
    one = Figures(
        runs=(RunFigures(workflow="a", passed=2, said_done=1), RunFigures(workflow="b", missing=1)),
        checks=(CheckFigures(workflow="a", check=Check.FRESH, passed=2, not_reached=1),),
    )
    other = Figures(
        runs=(RunFigures(workflow="a", passed=1, failed=4),),
        checks=(CheckFigures(workflow="a", check=Check.FRESH, failed=4),),
    )
    assert sum_of([one, other]) == Figures(
        runs=(RunFigures(workflow="a", passed=3, failed=4, said_done=1), RunFigures(workflow="b", missing=1)),
        checks=(CheckFigures(workflow="a", check=Check.FRESH, passed=2, failed=4, not_reached=1),),
    )


@given(parts=st.lists(figures, max_size=4))
def test_no_figure_is_lost(parts: list[Figures]) -> None:
    """In whatever order they are added."""
    total = sum_of(parts)
    assert total == sum_of(reversed(parts))
    assert sum(run.passed for run in total.runs) == sum(run.passed for part in parts for run in part.runs)
    assert len({run.workflow for run in total.runs}) == len(total.runs)
    assert sum_of([]) == Figures()


@given(all_of_them=figures)
def test_the_figures_of_every_workflow_are_all_figures(all_of_them: Figures) -> None:
    parts = by_workflow(all_of_them)
    assert sum_of(parts.values()) == all_of_them
    for name, part in parts.items():
        assert {run.workflow for run in part.runs} | {check.workflow for check in part.checks} == {name}
