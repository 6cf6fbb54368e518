"""What a replay has found, as a table for a terminal."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from bot.views.cleaning import in_encoding, one_line
from bot.views.measure import amount, money, plural, span
from jobs.replay.event import Event, EventKind, Saved
from jobs.thrash.price import UNIT

_AGENT_LIMIT: Final = 24
_CLOSE_LOOKS: Final = 5
"""Seconds between looks that leave little to be saved by more of them."""
_SESSION_LIMIT: Final = 40
_STYLES: Final = {EventKind.ALERT: "yellow", EventKind.KILL: "bold red"}
_WORDS: Final = {EventKind.ALERT: "alerted", EventKind.KILL: "stopped"}


def lines_of(
    found: Sequence[Event], calls: int, sessions: int, every: float, encoding: str
) -> Iterator[Table | Text]:
    """Yield a table with a row for each event, the oldest first, and one line for all; `every` is the beat (s)."""
    if found:
        yield _table(sorted(found, key=lambda event: event.ts), encoding)
    yield Text(in_encoding(_total(found, calls, sessions), encoding))
    if calls and every > _CLOSE_LOOKS and not any(event.saved and event.saved.calls for event in found):
        hint = f"A look comes only every {span(every)}; --set thrash.every={_CLOSE_LOOKS} looks more often."
        yield Text(hint)


def _table(events: Sequence[Event], encoding: str) -> Table:
    table = Table(
        "When (UTC)",
        "Agent",
        "Session",
        "What",
        "Score",
        "It would have saved",
        box=SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
    )
    for event in events:
        cells = (
            f"{datetime.fromtimestamp(event.ts, UTC):%Y-%m-%d %H:%M:%S}",
            one_line(event.agent, _AGENT_LIMIT),
            one_line(event.session, _SESSION_LIMIT),
            f"{_WORDS[event.event]}: {event.kind}, {one_line(event.tool)}",
            amount(event.score),
            _amounts(event.saved) if event.saved else "",
        )
        table.add_row(*(Text(in_encoding(cell, encoding)) for cell in cells), style=_STYLES[event.event])
    return table


def _total(found: Sequence[Event], calls: int, sessions: int) -> str:
    read = f"{plural(calls, 'call')} of {plural(sessions, 'session')} read"
    if not found:
        return f"Nothing would have been alerted: {read}."
    saved = [event.saved for event in found if event.saved]
    told = f"{read}; {plural(len(found), 'session')} alerted, {amount(len(saved))} stopped"
    return f"{told}, which would have saved {_amounts(_sum(saved))}." if saved else f"{told}."


def _sum(saved: Sequence[Saved]) -> Saved:
    tokens = [each.tokens for each in saved if each.tokens is not None]
    priced = [each for each in saved if each.cost is not None]
    return Saved(
        calls=sum(each.calls for each in saved),
        seconds=sum(each.seconds for each in saved),
        tokens=sum(tokens) if tokens else None,
        cost=sum(each.cost or 0 for each in priced) if priced else None,
        currency=priced[0].currency if priced else None,
        unpriced=sum((each.tokens or 0) if each.cost is None else each.unpriced for each in saved),
    )


def _amounts(saved: Saved) -> str:
    if not (saved.calls or saved.tokens):
        return "nothing"
    parts = [plural(saved.calls, "call"), span(saved.seconds)]
    if saved.tokens is not None:
        parts.append(plural(saved.tokens, "token"))
    if saved.cost is not None:
        parts.append(money(round(saved.cost * UNIT), saved.currency, is_part=saved.unpriced > 0))
    return ", ".join(parts)
