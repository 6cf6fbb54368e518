"""Sessions: the list and one of them."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from zoneinfo import ZoneInfo

from aiogram.types import InlineKeyboardButton
from aiogram.utils.formatting import Bold, Code, Text

from bot.callbacks import KillButton
from bot.views.cleaning import clean
from bot.views.incident import last_calls
from bot.views.measure import amount, moment, money, plural, span
from bot.views.screen import Screen, lines, screen
from bot.views.text import name
from jobs.alert.notice import Starter
from jobs.thrash.policy import ThrashPolicy
from jobs.thrash.session import Session


def agent_list(
    sessions: Sequence[Session],
    stopped: AbstractSet[int],
    starters: Mapping[int, Starter],
    more: int,
    now: float,
) -> Screen:
    """Render the newest sessions; `stopped` are the ids of those that were stopped, `more` were left out."""
    if not sessions:
        return screen(Text("No agent has made a call in the last 24 hours."))
    rest = f"… and {amount(more)} more" if more > 0 else None
    return screen(
        lines(
            Bold("Sessions of the last 24 hours"),
            *(
                _row(session, now, is_stopped=session.id in stopped, starter=starters.get(session.id))
                for session in sessions
            ),
            rest,
            "/agent ID shows one, /kill ID stops it.",
        )
    )


def agent(
    session: Session,
    policy: ThrashPolicy,
    now: float,
    zone: ZoneInfo,
    *,
    is_stopped: bool,
    can_stop: bool,
    starter: Starter | None = None,
) -> Screen:
    """Render one session and its last calls."""
    kill = InlineKeyboardButton(
        text="Kill", callback_data=KillButton(session=session.id).pack(), style="danger"
    )
    process = "unknown" if session.pid is None else str(session.pid)
    tokens = "unknown" if session.memory.tokens is None else amount(session.memory.tokens)
    return screen(
        lines(
            Text(Bold(name(session.agent)), f", session {session.id}"),
            Text("Source ", name(session.source), ", own id ", name(session.session)),
            None if starter is None else _started_by(starter),
            Text(f"Process {process}, first call {moment(session.first_ts, now, zone)}"),
            Text(
                f"{plural(session.memory.calls, 'call')}, {plural(session.errors, 'error')},"
                f" tokens {tokens}{_cost(session)}"
            ),
            Text(f"Streak {session.streak.steps} of {policy.kill_after}"),
            "🛑 It was stopped and has made no call since." if is_stopped else None,
            Bold("Last calls"),
            *last_calls(session, policy, now, zone),
        ),
        *([[kill]] if can_stop else []),
    )


def not_found(words: str) -> Screen:
    """Say that an id means nothing."""
    return screen(Text("No session ", Code(clean(words, 64) or "?"), ". /agents lists them."))


def ambiguous(words: str, sessions: Sequence[Session], now: float) -> Screen:
    """Say that a name means several sessions."""
    head = Text("Several sessions look like ", Code(clean(words, 64)), ". Use the id:")
    return screen(lines(head, *(_row(session, now) for session in sessions)))


def which(command: str) -> Screen:
    """Say that an id is missing."""
    return screen(Text(f"Which one? /{command} ID, with an id from /agents."))


def _started_by(starter: Starter) -> Text:
    session = "" if starter.session is None else f"session {starter.session}, "
    return Text(f"Started by {session}", name(starter.agent))


def _row(session: Session, now: float, *, is_stopped: bool = False, starter: Starter | None = None) -> Text:
    of = f" of {starter.session}" if starter and starter.session is not None else ""
    streak = f", 🔁 streak {session.streak.steps}" if session.streak.steps else ""
    tokens = "" if session.memory.tokens is None else f", {amount(session.memory.tokens)} tokens"
    return Text(
        "🛑 " if is_stopped else "",
        Bold(f"{session.id}"),
        " ",
        name(session.agent, 32),
        f"{of} in ",
        name(session.source, 24),
        f": {span(now - session.last_ts)} ago, {plural(session.memory.calls, 'call')}{tokens}{_cost(session)}{streak}",
    )


def _cost(session: Session) -> str:
    cost, is_part = session.memory.cost, session.memory.unpriced > 0
    return "" if cost is None else f", {money(cost, session.currency, is_part=is_part)}"
