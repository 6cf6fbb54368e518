"""Stops: the confirmation before, the report after."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

from aiogram.types import InlineKeyboardButton
from aiogram.utils.formatting import Bold, Code, Text

from bot.callbacks import ConfirmButton
from bot.views.cleaning import clean
from bot.views.incident import damage, started_by
from bot.views.measure import amount, moment, span
from bot.views.screen import Screen, lines, screen
from bot.views.text import name
from jobs.agent_stop import Order
from jobs.alert.notice import Starter, StillRunningNotice, StopNotice
from jobs.ports import Outcome
from jobs.thrash.session import Session

_DETAIL_LIMIT: Final = 600
_NAMED: Final = 5
"""So many of the sessions of one process are named."""
_TITLES: Final = {
    Outcome.STOPPED: ("🛑", "Stopped: "),
    Outcome.FAILED: ("🚨", "The stop failed: "),
    Outcome.REFUSED: ("🚨", "The stop was refused: "),
    Outcome.DRY_RUN: ("🧪", "Dry run: "),
}
_ORDERS: Final = {
    Order.TAKEN: "⏳ The stop was ordered; the report follows.",
    Order.UNDER_WAY: "It is being stopped already.",
    Order.UNKNOWN: "There is no such session any more.",
    Order.RESTARTED: "Nothing was stopped: another process has taken this session over since you were asked. Look again with /agents.",
    Order.NO_KILLER: "Nothing was stopped: this source has no killer in the watch list.",
}


class Refusal(StrEnum):
    """Why a press on a confirmation does nothing."""

    UNKNOWN = "unknown"
    EARLY = "early"
    """Pressed before it is known which message carries the button."""
    FOREIGN = "foreign"
    """Pressed by somebody else, or in another chat."""
    ELSEWHERE = "elsewhere"
    """Under another message: of a question that was sent twice, the older copy."""
    USED = "used"
    EXPIRED = "expired"


_REFUSALS: Final = {
    Refusal.UNKNOWN: "That confirmation is not known. Ask again with /kill ID.",
    Refusal.EARLY: "That was too quick, nothing was done. Press it again.",
    Refusal.FOREIGN: "Only who asked can confirm, and only where they asked. Nothing was done.",
    Refusal.ELSEWHERE: "That button is not under the newest copy of its question. Nothing was done; press it there.",
    Refusal.USED: "That button was used already. This press did nothing.",
    Refusal.EXPIRED: "Too late, the question has expired. Nothing was done; ask again with /kill ID.",
}


def report(notice: StopNotice) -> Screen:
    """Render what became of a stop."""
    icon, says = _TITLES[Outcome(notice.outcome)]
    who = "by the scan" if notice.ordered_by is None else f"by user {notice.ordered_by}"
    why = (
        Text("Reason ", Code(clean(notice.reason, 64)), f", ordered {who}")
        if notice.incident
        else Text(f"Ordered {who}")
    )
    took = f", took {span(notice.took)}" if notice.took >= 1 else ""
    again = ", second attempt" if notice.escalated else ""
    return screen(
        lines(
            Text(f"{icon} ", Bold(says), Bold(name(notice.agent))),
            Code(clean(notice.detail, _DETAIL_LIMIT)),
            None if notice.incident is None else Text(f"In circles: {damage(notice.incident)}."),
            Text(why, f"{took}{again}"),
            Text("Source ", name(notice.source), f", session {notice.session}"),
            started_by(notice.starter),
        )
    )


def still_running(notice: StillRunningNotice, now: float, zone: ZoneInfo) -> Screen:
    """Render that a stop did not hold, or had not worked to begin with."""
    stop = "stop" if notice.had_stopped else "failed stop"
    seen = (
        f"Process {notice.pid} still lives."
        if notice.pid is not None
        else f"It made calls after the {stop} of {moment(notice.stopped_at, now, zone)}."
    )
    next_step = (
        "One more attempt follows now."
        if notice.escalating
        else "Nothing more is tried: please stop it by hand."
    )
    return screen(
        lines(
            Text("🚨 ", Bold(name(notice.agent)), Bold(" is still running")),
            Text(seen),
            Text(next_step),
            Text("Source ", name(notice.source), f", session {notice.session}"),
            started_by(notice.starter),
        )
    )


def confirmation(
    session: Session,
    nonce: str,
    seconds: int,
    now: float,
    zone: ZoneInfo,
    *,
    is_stopped: bool,
    is_dry_run: bool,
    starter: Starter | None = None,
    beside: Sequence[int] = (),
) -> Screen:
    """Ask whether to stop a session; `beside` are the ids of others in its process."""
    process = "" if session.pid is None else f", process {session.pid}"
    return screen(
        lines(
            Text("Stop ", Bold(name(session.agent)), "?"),
            Text("Source ", name(session.source), f", session {session.id}{process}"),
            started_by(starter),
            f"Process {session.pid} also runs {_sessions(beside)}." if beside else None,
            "A dry run: nothing is really stopped." if is_dry_run else None,
            "It was stopped already and has made no call since." if is_stopped else None,
            Text(
                f"Last call at {moment(session.last_ts, now, zone)}. The button works once, for {seconds} s."
            ),
        ),
        [
            InlineKeyboardButton(
                text="Stop it", callback_data=ConfirmButton(nonce=nonce, is_yes=True).pack(), style="danger"
            ),
            InlineKeyboardButton(
                text="Cancel", callback_data=ConfirmButton(nonce=nonce, is_yes=False).pack()
            ),
        ],
    )


def _sessions(ids: Sequence[int]) -> str:
    """Name some sessions, and how many more there are."""
    if len(ids) == 1:
        return f"session {ids[0]}"
    shown, more = ids[:_NAMED], len(ids) - _NAMED
    *first, last = [*map(str, shown), *([f"{amount(more)} more"] if more > 0 else [])]
    return f"sessions {', '.join(first)} and {last}"


def ordered(order: Order) -> Screen:
    """Render what became of an order from the chat."""
    return screen(Text(_ORDERS[order]))


def cancelled() -> Screen:
    """Render that a stop was not confirmed."""
    return screen(Text("Cancelled, nothing was done."))


def refused(refusal: Refusal) -> Screen:
    """Render why a press on a confirmation does nothing."""
    return screen(Text(_REFUSALS[refusal]))
