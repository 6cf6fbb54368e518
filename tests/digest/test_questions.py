"""The three questions, and what the figures answer."""

import pytest

from jobs.digest.digest import WeekRate
from jobs.digest.questions import answers


def _rates(*numbers: tuple[int, int]) -> list[WeekRate]:
    return [
        WeekRate(week=f"2026-W{n + 10}", passed=passed, failed=failed)
        for n, (passed, failed) in enumerate(numbers)
    ]


def _went_down(*numbers: tuple[int, int]) -> str:
    return answers(_rates(*numbers), commands=())[2].answer


def test_there_are_three_and_they_end_as_questions() -> None:
    asked = [answer.question for answer in answers([], commands=())]
    assert len(asked) == 3
    assert all(question.endswith("?") for question in asked)


def test_no_model_is_in_the_path_and_what_keeps_it_out_is_said() -> None:
    first, *_ = answers([], commands=())
    assert first.answer.startswith("No:")
    assert "import contract" in first.answer
    assert first.answer.endswith("There are no loops with judges.")
    assert first.names == ()


def test_what_a_command_of_the_users_asks_is_not_answered_for() -> None:
    first, *_ = answers([], commands=("nightly", "weekly"))
    assert first.answer.startswith("Not in what the verifier does itself:")
    assert first.answer.endswith("it cannot know:")
    assert first.names == ("nightly", "weekly")


def test_workflows_that_run_a_program_of_the_users_are_named() -> None:
    _, mechanical, _ = answers([], commands=())
    assert mechanical.answer.startswith("Yes: every check is mechanical.")
    _, other, _ = answers([], commands=("nightly",))
    assert other.answer.endswith(":")
    assert other.names == ("nightly",)


@pytest.mark.parametrize(
    ("rates", "answer"),
    [
        ([], "That cannot be said before there are two weeks with runs."),
        ([(9, 1), (0, 0)], "That cannot be said before there are two weeks with runs."),
        (
            [(9, 1), (90, 10), (10, 0)],
            "No, never in 3 weeks with runs: a reason to look whether the checks still ask for enough.",
        ),
        (
            [(9, 1), (0, 0), (17, 3), (9, 1)],
            "Yes, once in 3 weeks with runs, the last time in 2026-W12: from 90.0 % (9 of 10) in 2026-W10 to 85.0 % (17 of 20).",
        ),
        (
            [(10, 0), (5, 5), (1999, 1), (1998, 2)],
            "Yes, 2 times in 4 weeks with runs, the last time in 2026-W13: from 99.9 % (1\u202f999 of 2\u202f000) in 2026-W12 to 99.9 % (1\u202f998 of 2\u202f000).",
        ),
        (
            [(3, 0), (1, 1)],
            "Yes, once in 2 weeks with runs, the last time in 2026-W11: from 100 % (3 of 3) in 2026-W10 to 50.0 % (1 of 2).",
        ),
        (
            [(1, 2), (0, 7)],
            "Yes, once in 2 weeks with runs, the last time in 2026-W11: from 33.3 % (1 of 3) in 2026-W10 to 0.0 % (0 of 7).",
        ),
    ],
    ids=["no runs", "one week", "never", "once", "twice", "from all", "to nothing"],
)
def test_whether_the_rate_went_down_is_said_with_the_week_and_the_rates(
    rates: list[tuple[int, int]], answer: str
) -> None:
    """Over weeks with runs; the last fall is told. Rounded down: only what is all is 100 %."""
    assert _went_down(*rates) == answer
