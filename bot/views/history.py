"""The history: a page of verdicts with the buttons that choose and turn pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from zoneinfo import ZoneInfo

from aiogram.types import InlineKeyboardButton
from aiogram.utils.formatting import Bold, Text

from bot.callbacks import ChoiceButton, HistoryButton, Turn
from bot.views.cleaning import one_line
from bot.views.measure import moment
from bot.views.run import summary
from bot.views.screen import Screen, lines, screen
from bot.views.text import name
from jobs.verification.history import RecordedVerdict, WorkflowState
from jobs.verification.verdict import Outcome

MOST_CHOICES: Final = 40
"""Workflows to choose from; Telegram takes 100 buttons, and nobody looks through more."""
_IN_A_ROW: Final = 2
_NAME: Final = 24
_LABELS: Final[dict[Outcome | None, str]] = {
    None: "All",
    Outcome.PASS: "Pass",
    Outcome.FAIL: "Fail",
    Outcome.MISSING: "Missing",
}
_TITLES: Final[dict[Outcome | None, str]] = {
    None: "",
    Outcome.PASS: ": passed",
    Outcome.FAIL: ": failed",
    Outcome.MISSING: ": missing",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Verdicts, newest first, with what was asked for."""

    workflow: WorkflowState | None
    """None: of all."""
    outcome: Outcome | None
    verdicts: Sequence[RecordedVerdict]
    has_newer: bool = False
    has_older: bool = False
    has_choice: bool = False
    """Whether there are several workflows."""


def history(page: Page, now: float, zone: ZoneInfo) -> Screen:
    """Render a page."""
    of = "" if page.workflow is None else Bold(" of ", name(page.workflow.name))
    rows = [_row(verdict, page, now, zone) for verdict in page.verdicts] or [Text("Nothing so far.")]
    return screen(
        lines(
            Text(Bold("History"), of, Bold(_TITLES[page.outcome])),
            *rows,
            "/run ID shows one with every check." if page.verdicts else None,
        ),
        *_buttons(page),
    )


def choice(workflows: Sequence[WorkflowState], outcome: Outcome | None) -> Screen:
    """Ask whose history to show."""
    shown = workflows[:MOST_CHOICES]
    more = len(workflows) - len(shown)
    named = [_button(one_line(state.name, _NAME), workflow=state.id, outcome=outcome) for state in shown]
    return screen(
        lines(
            Bold("Whose history?"),
            f"… and {more} more: /history NAME" if more > 0 else None,
        ),
        [_button("All workflows", outcome=outcome)],
        *(named[start : start + _IN_A_ROW] for start in range(0, len(named), _IN_A_ROW)),
    )


def _row(verdict: RecordedVerdict, page: Page, now: float, zone: ZoneInfo) -> Text:
    icon, _, says = summary(verdict).partition(" ")
    whose = [name(verdict.workflow, _NAME), " "] if page.workflow is None else []
    return Text(f"{icon} #{verdict.run_id} ", *whose, f"{says}, {moment(verdict.at, now, zone)}")


def _buttons(page: Page) -> list[list[InlineKeyboardButton]]:
    whose = None if page.workflow is None else page.workflow.id
    filters = [
        _button(f"• {label}" if outcome == page.outcome else label, workflow=whose, outcome=outcome)
        for outcome, label in _LABELS.items()
    ]
    choose = ChoiceButton(outcome=page.outcome).pack()
    rows = [
        filters,
        _turns(page, whose),
        [InlineKeyboardButton(text="Workflow …", callback_data=choose)] if page.has_choice else [],
    ]
    return [row for row in rows if row]


def _turns(page: Page, whose: int | None) -> list[InlineKeyboardButton]:
    if not page.verdicts:
        return []
    first, last = page.verdicts[0].id, page.verdicts[-1].id
    return [
        _button(label, workflow=whose, outcome=page.outcome, turn=turn, past=past)
        for label, turn, past, is_there in (
            ("Newer", Turn.NEWER, first, page.has_newer),
            ("Older", Turn.OLDER, last, page.has_older),
        )
        if is_there
    ]


def _button(
    label: str,
    *,
    workflow: int | None = None,
    outcome: Outcome | None = None,
    turn: Turn = Turn.OLDER,
    past: int | None = None,
) -> InlineKeyboardButton:
    data = HistoryButton(workflow=workflow, outcome=outcome, turn=turn, past=past)
    return InlineKeyboardButton(text=label, callback_data=data.pack())
