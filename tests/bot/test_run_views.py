"""Every screen about runs, whatever outputs, reporters and workflows call themselves."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from aiogram.filters.callback_data import CallbackData
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from bot.callbacks import ChoiceButton, HistoryButton, RunButton, RunVerb, Turn
from bot.views import history, measure, notice, run, workflow
from bot.views.cleaning import units
from bot.views.history import MOST_CHOICES, Page
from bot.views.text import path
from bot.views.workflow import Standing
from jobs.alert.run_notice import RunNotice, VerifiedNotice
from jobs.verification.history import RecordedVerdict, Run, Trigger, WorkflowState
from jobs.verification.trial import MadeOf, SelfTest, Trials
from jobs.verification.verdict import Check, CheckResult, Outcome, Passed, Verdict
from tests.bot.drawn_runs import run_notices, runs, states, verdicts, verified_notices
from tests.bot.hostile import is_harmless
from tests.bot.safety import LARGEST_ID, NOW, UTC_ZONE, assert_safe, few, foreign, ids, moments
from tests.verdicts import a_run, a_verdict, passing

# ── nothing foreign is taken for anything else ────────────────────────────────────────────────────


@few
@given(run_notices | verified_notices)
def test_what_the_jobs_have_to_say_of_runs_is_safe(told: RunNotice | VerifiedNotice) -> None:
    assert_safe(notice.render(told, NOW, UTC_ZONE))


@few
@given(runs, st.lists(verdicts, min_size=1, max_size=12))
def test_a_run_is_safe(about: Run, judged: Sequence[RecordedVerdict]) -> None:
    assert_safe(run.run(about, judged, NOW, UTC_ZONE))


@few
@given(
    st.none() | states,
    st.none() | st.sampled_from(Outcome),
    st.lists(verdicts, max_size=10),
    st.booleans(),
)
def test_a_page_of_the_history_is_safe(
    whose: WorkflowState | None, outcome: Outcome | None, shown: Sequence[RecordedVerdict], more: bool
) -> None:
    page = Page(
        workflow=whose, outcome=outcome, verdicts=shown, has_newer=more, has_older=more, has_choice=more
    )
    assert_safe(history.history(page, NOW, UTC_ZONE))


@few
@given(st.lists(states, min_size=1, max_size=2 * MOST_CHOICES))
def test_the_names_on_buttons_are_harmless_and_not_too_many(workflows: Sequence[WorkflowState]) -> None:
    """A name stands on a button as it stands elsewhere; nothing on a button can become a link."""
    shown = history.choice(workflows, None)
    assert shown.keyboard
    labels = [button.text for row in shown.keyboard.inline_keyboard for button in row]
    assert all(label and is_harmless(label) and units(label) <= 24 for label in labels)
    assert len(labels) <= 1 + MOST_CHOICES
    assert ("more: /history NAME" in shown.text) == (len(workflows) > MOST_CHOICES)


selftests = st.builds(
    SelfTest,
    workflow=foreign,
    pin_id=st.none(),
    made_of=st.sampled_from(MadeOf),
    result=st.builds(Trials, detected=st.integers(0, 99), trouble=st.just("") | foreign),
    at=moments,
)
standings = st.builds(
    Standing,
    name=foreign,
    state=st.none() | states,
    last=st.none() | verdicts,
    due=st.none() | moments,
    selftest=st.none() | selftests,
)


@few
@given(st.lists(standings, max_size=30))
def test_how_the_workflows_stand_is_safe(shown: Sequence[Standing]) -> None:
    assert_safe(workflow.workflow_list(shown, NOW, UTC_ZONE))


@few
@given(foreign, st.lists(foreign, max_size=30), ids)
def test_words_that_lead_nowhere_are_repeated_safely(words: str, known: Sequence[str], run_id: int) -> None:
    for shown in (
        workflow.unknown(words, known),
        workflow.which("verify", known),
        workflow.unwatched(words),
        workflow.not_yet(words),
        run.not_found(words),
        run.checking(words, run_id),
    ):
        assert_safe(shown)


# ── room for everything ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "button",
    [
        *(RunButton(verb=verb, run=LARGEST_ID) for verb in RunVerb),
        *(
            HistoryButton(workflow=LARGEST_ID, outcome=outcome, turn=turn, past=LARGEST_ID)
            for outcome in Outcome
            for turn in Turn
        ),
        HistoryButton(),
        ChoiceButton(outcome=Outcome.MISSING),
        ChoiceButton(),
    ],
)
def test_every_button_has_room_for_the_largest_id(button: CallbackData) -> None:
    packed = button.pack()
    assert len(packed.encode()) <= 64
    assert type(button).unpack(packed) == button


def test_a_run_with_every_check_at_full_length_is_shown_to_its_end() -> None:
    results = tuple(CheckResult(check=check, passed=Passed.PASS, reason="x" * 300) for check in Check)
    judged = structs.replace(passing(), verdict=Verdict(outcome=Outcome.PASS, results=results))
    about = replace(a_run(slot=NOW, reported="r" * 200), workflow="w" * 200)
    verdict = replace(a_verdict(judged), as_of=NOW)
    shown = run.run(about, [verdict] * 7, NOW, UTC_ZONE)
    assert shown.text.endswith("… and 1 more")


def test_of_a_long_path_the_end_is_shown() -> None:
    shown = path("/srv/" + "deep/" * 100 + "report.json").as_html()
    assert shown.startswith("<code>…")
    assert shown.endswith("/report.json</code>")


# ── words ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (1, "1st"),
        (2, "2nd"),
        (3, "3rd"),
        (4, "4th"),
        (11, "11th"),
        (12, "12th"),
        (22, "22nd"),
        (113, "113th"),
    ],
)
def test_an_ordinal_has_its_ending(number: int, shown: str) -> None:
    assert measure.ordinal(number) == shown


@pytest.mark.parametrize("by", Trigger)
def test_a_run_says_who_had_it_verified(by: Trigger) -> None:
    """And how long it took: tenths where they tell something."""
    for took, shown in ((0.04, "0.0 s"), (9.94, "9.9 s"), (125, "2 min 5 s")):
        verdict = replace(a_verdict(passing()), by=by, took=took)
        text = run.run(a_run(), [verdict], NOW, UTC_ZONE).text
        assert f"Verified at 2027-01-15 08:00, {run._REASONS[by]}; took {shown}" in text
