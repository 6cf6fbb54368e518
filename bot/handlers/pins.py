"""/audit; the buttons under a proposal: Approve, Reject, and those that turn its pages."""

from typing import Final

import msgspec
from aiogram import F, Router
from aiogram.filters import Command
from aiogram.types import CallbackQuery, Message

from bot.callbacks import AuditButton, PinButton, PinVerb
from bot.desk import Desk
from bot.differing import find_differing
from bot.views import pin as view
from bot.views.audit import SHOWN, AuditPage
from bot.views.audit import audit as audit_view
from bot.views.screen import Screen
from jobs.alert.pin_notice import ProposalNotice, subject_of
from jobs.answering import Decided
from jobs.pinning.audit import Audited, audited
from jobs.pinning.pin import Pin

_DECISIONS: Final = {PinVerb.APPROVE, PinVerb.REJECT}


def build_router() -> Router:
    """Return the router of this area, new for every dispatcher."""
    router = Router(name="pins")
    router.message.register(audit, Command("audit"))
    router.callback_query.register(audit_page, AuditButton.filter())
    router.callback_query.register(decide, PinButton.filter(F.verb.in_(_DECISIONS)))
    router.callback_query.register(turn, PinButton.filter(F.verb == PinVerb.PAGE))
    router.callback_query.register(show, PinButton.filter(F.verb == PinVerb.SHOW))
    return router


async def audit(message: Message, desk: Desk) -> None:
    await desk.answer(message, await _page(desk, 0))


async def audit_page(query: CallbackQuery, callback_data: AuditButton, desk: Desk) -> None:
    await desk.replace(query, await _page(desk, callback_data.page))


async def decide(query: CallbackQuery, callback_data: PinButton, desk: Desk) -> None:
    act = desk.pinning.approve if callback_data.verb is PinVerb.APPROVE else desk.pinning.reject
    if await act(callback_data.proposal, query.from_user.id) is Decided.DONE:
        # Its own message is edited to say so; this one may be another that shows it.
        await turn(query, callback_data, desk)
    else:
        await desk.answer(query, view.past())


async def turn(query: CallbackQuery, callback_data: PinButton, desk: Desk) -> None:
    if notice := await _notice(desk, callback_data.proposal):
        shown = view.proposal(notice, desk.clock.now(), desk.zone, callback_data.page)
        await desk.replace(query, shown)
    else:
        await desk.answer(query, view.past())


async def show(query: CallbackQuery, callback_data: PinButton, desk: Desk) -> None:
    notice = await _notice(desk, callback_data.proposal)
    shown = view.proposal(notice, desk.clock.now(), desk.zone) if notice else view.past()
    await desk.answer(query, shown)


async def _notice(desk: Desk, proposal_id: int) -> ProposalNotice | None:
    """Return what was last told of a proposal; None if the file has changed since."""
    async with desk.store.transaction() as tables:
        found = await tables.proposals.get(proposal_id)
        told = await tables.outbox.last_told(subject_of(found.kind, found.name)) if found else None
    notice = msgspec.json.decode(told, type=ProposalNotice) if told else None
    return notice if notice and notice.proposal == proposal_id else await desk.pinning.asked(proposal_id)


async def _page(desk: Desk, number: int) -> Screen:
    first = number * SHOWN
    pins = await desk.reading.pins.page(first, SHOWN + 1)
    differing = (await find_differing(desk.reading))[first:]
    more = max(0, len(differing) - SHOWN)
    page = AuditPage(
        number=number,
        pins=[await _audited(desk, pin) for pin in pins[:SHOWN]],
        has_older=len(pins) > SHOWN or more > 0,
        differing=differing[:SHOWN],
        more_differing=more,
    )
    return audit_view(page, desk.clock.now(), desk.zone)


async def _audited(desk: Desk, pin: Pin) -> Audited:
    return audited(pin, await desk.reading.pins.before(pin), desk.policy.on_detection)
