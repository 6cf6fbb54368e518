"""/verify NAME, /history [NAME], /run ID, /workflows; the buttons under them and under the alert of a run."""

from typing import Final

from aiogram import F, Router
from aiogram.filters import Command, CommandObject
from aiogram.types import CallbackQuery, Message

from bot.callbacks import ChoiceButton, HistoryButton, RunButton, RunVerb, Turn
from bot.desk import Desk, waiting
from bot.differing import find_differing
from bot.views import history as pages
from bot.views import run as view
from bot.views import workflow as workflow_view
from bot.views.differing import Differing
from bot.views.history import Page
from bot.views.screen import Screen
from bot.views.workflow import Standing
from jobs.pinning.kind import Kind
from jobs.recording import last_run_at
from jobs.verification.history import RecordedVerdict, WorkflowState
from jobs.verification.slots import next_expected
from jobs.verification.spec import WorkflowSpec
from jobs.verification.trial import SelfTest

_SHOWN: Final = 10
_LONGEST_ID: Final = 18
"""Digits of an integer that SQLite takes."""
_SILENCES: Final = {RunVerb.SILENCE_1: 3600, RunVerb.SILENCE_24: 24 * 3600}


def build_router() -> Router:
    """Return the router of this area, new for every dispatcher."""
    router = Router(name="runs")
    router.message.register(verify, Command("verify"))
    router.message.register(history, Command("history"))
    router.message.register(run, Command("run"))
    router.message.register(workflows, Command("workflows"))
    router.callback_query.register(recheck, RunButton.filter(F.verb == RunVerb.RECHECK))
    router.callback_query.register(history_of, RunButton.filter(F.verb == RunVerb.HISTORY))
    router.callback_query.register(silence, RunButton.filter(F.verb.in_(set(_SILENCES))))
    router.callback_query.register(page_pressed, HistoryButton.filter())
    router.callback_query.register(choice_pressed, ChoiceButton.filter())
    return router


# ── checked now ───────────────────────────────────────────────────────────────────────────────────


async def verify(message: Message, command: CommandObject, desk: Desk) -> None:
    name, known = _words(command), desk.watch.workflows().keys()
    if not name:
        await desk.answer(message, workflow_view.which(command.command, known))
    elif await desk.verification.ask(name, waiting(message)):
        await desk.answer(message, view.checking(name))
    elif found := (await _differing(desk)).get(name):
        await desk.answer(message, workflow_view.not_in_force(found))
    else:
        await desk.answer(message, workflow_view.unknown(name, known))


async def recheck(query: CallbackQuery, callback_data: RunButton, desk: Desk) -> None:
    about = await desk.reading.runs.get(callback_data.run)
    if about is None:
        await desk.answer(query, view.gone())
    elif await desk.verification.ask_again(about, waiting(query)):
        await desk.answer(query, view.checking(about.workflow, about.id))
    else:
        await desk.answer(query, workflow_view.unwatched(about.workflow))


async def silence(query: CallbackQuery, callback_data: RunButton, desk: Desk) -> None:
    about = await desk.reading.runs.get(callback_data.run)
    if about is None:
        await desk.answer(query, view.gone())
        return
    # The alert itself is edited to say so.
    await desk.verification.silence(about, _SILENCES[callback_data.verb])


# ── one run, and how workflows stand ──────────────────────────────────────────────────────────────


async def run(message: Message, command: CommandObject, desk: Desk) -> None:
    words = _words(command)
    if not words:
        await desk.answer(message, view.which())
        return
    number = words.removeprefix("#")
    is_id = number.isascii() and number.isdigit() and len(number) <= _LONGEST_ID
    shown = await _run(desk, int(number)) if is_id else None
    await desk.answer(message, shown or view.not_found(words))


async def _run(desk: Desk, run_id: int) -> Screen | None:
    about = await desk.reading.runs.get(run_id)
    verdicts = await desk.reading.verdicts.of_run(run_id)
    return view.run(about, verdicts, desk.clock.now(), desk.zone) if about and verdicts else None


async def workflows(message: Message, desk: Desk) -> None:
    now = desk.clock.now()
    states = await desk.reading.workflows.all()
    latest, tests = await desk.reading.verdicts.latest_of_each(), await desk.reading.selftests.latest()
    differing = await _differing(desk)
    standings = [
        await _standing(
            desk,
            spec,
            states.get(name),
            latest.get(name),
            now,
            differing=differing.pop(name, None),
            selftest=tests.get(name),
        )
        for name, spec in desk.watch.workflows().items()
    ]
    shown = workflow_view.workflow_list(standings, now, desk.zone, tuple(differing.values()))
    await desk.answer(message, shown)


async def _differing(desk: Desk) -> dict[str, Differing]:
    found = await find_differing(desk.reading)
    return {each.proposal.name: each for each in found if each.proposal.kind is Kind.WORKFLOW}


async def _standing(
    desk: Desk,
    spec: WorkflowSpec,
    state: WorkflowState | None,
    last: RecordedVerdict | None,
    now: float,
    *,
    differing: Differing | None,
    selftest: SelfTest | None,
) -> Standing:
    last_at = now if state is None else await last_run_at(desk.reading, state, now)
    due = next_expected(spec, last_at, now, desk.zone)
    return Standing(name=spec.name, state=state, last=last, due=due, differing=differing, selftest=selftest)


# ── the history ───────────────────────────────────────────────────────────────────────────────────


async def history(message: Message, command: CommandObject, desk: Desk) -> None:
    name, states = _words(command), await desk.reading.workflows.all()
    watched = desk.watch.workflows().keys()
    if not name or name in states:
        whose = HistoryButton(workflow=states[name].id if name else None)
        await desk.answer(message, await _page(desk, whose))
    elif name in watched:
        await desk.answer(message, workflow_view.not_yet(name))
    else:
        await desk.answer(message, workflow_view.unknown(name, states.keys() | watched))


async def history_of(query: CallbackQuery, callback_data: RunButton, desk: Desk) -> None:
    about = await desk.reading.runs.get(callback_data.run)
    state = await desk.reading.workflows.get(about.workflow) if about else None
    shown = await _page(desk, HistoryButton(workflow=state.id)) if state else view.gone()
    await desk.answer(query, shown)


async def page_pressed(query: CallbackQuery, callback_data: HistoryButton, desk: Desk) -> None:
    await desk.replace(query, await _page(desk, callback_data))


async def choice_pressed(query: CallbackQuery, callback_data: ChoiceButton, desk: Desk) -> None:
    states = await desk.reading.workflows.all()
    watched = desk.watch.workflows()
    shown = sorted(states.values(), key=lambda state: (state.name not in watched, state.name))
    await desk.replace(query, pages.choice(shown, callback_data.outcome))


async def _page(desk: Desk, asked: HistoryButton) -> Screen:
    states = await desk.reading.workflows.all()
    whose = next((state for state in states.values() if state.id == asked.workflow), None)
    verdicts, has_newer, has_older = await _verdicts(desk, whose.name if whose else None, asked)
    page = Page(
        workflow=whose,
        outcome=asked.outcome,
        verdicts=verdicts,
        has_newer=has_newer,
        has_older=has_older,
        has_choice=len(states) > 1,
    )
    return pages.history(page, desk.clock.now(), desk.zone)


async def _verdicts(
    desk: Desk, whose: str | None, asked: HistoryButton
) -> tuple[list[RecordedVerdict], bool, bool]:
    """Return the verdicts of a page, and whether there are newer and older ones."""
    reading, past = desk.reading.verdicts, asked.past
    if asked.turn is Turn.NEWER and past is not None:
        found = list(await reading.page_after(whose, asked.outcome, past, _SHOWN + 1))
        if len(found) > _SHOWN:
            return found[1:], True, True
        # The newest page is a full one.
        past = None
    found = list(await reading.page(whose, asked.outcome, past, _SHOWN + 1))
    return found[:_SHOWN], past is not None, len(found) > _SHOWN


def _words(command: CommandObject) -> str:
    return (command.args or "").strip()
