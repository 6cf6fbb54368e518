"""One session on its way through a log."""

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from jobs.ports import Batch
from jobs.replay.event import Event, EventKind, Saved
from jobs.thrash.beside import Beside
from jobs.thrash.call import LoggedCall, Usage
from jobs.thrash.finding import Finding
from jobs.thrash.incident import Incident
from jobs.thrash.price import NO_PRICES, UNIT, Prices, money_of, plus, unpriced
from jobs.thrash.session import Session

_MILLISECONDS: Final = 3
"""Digits of a second that are worth telling."""


@dataclass(slots=True)
class Piece:
    """What a batch holds of one session."""

    path: str
    calls: list[LoggedCall] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    """Of the calls, as an event names them."""
    usages: deque[Usage] = field(default_factory=deque)


def pieces_of(batch: Batch, read: dict[tuple[str, str], int], *, is_database: bool) -> Mapping[str, Piece]:
    """Return a batch by session, and add its calls to those of each path, in a database of each path and session."""
    pieces: dict[str, Piece] = defaultdict(lambda: Piece(batch.path))
    for number, call in enumerate(batch.calls, read[batch.path, ""]):
        piece = pieces[call.session]
        piece.calls.append(call)
        piece.numbers.append(number)
    for usage in batch.usages:
        pieces[usage.session].usages.append(usage)
    if not is_database:
        read[batch.path, ""] += len(batch.calls)
        return pieces
    for name, piece in pieces.items():
        first = read[batch.path, name]
        read[batch.path, name] += len(piece.calls)
        piece.numbers = list(range(first, first + len(piece.calls)))
    return pieces


@dataclass(slots=True)
class _Telling:
    """What one file has told of a session."""

    first: tuple[float, str, str | int]
    """Its first call there."""
    copied_until: float
    """So far other files that begin with the same call have told it."""
    until: float


@dataclass(slots=True)
class Played:
    """What is known of it, and what it would have been spared."""

    prices: Prices
    session: Session | None = None
    """As it was at its last look, and what has been taken in since; None again once it is stopped."""
    incident: Incident | None = None
    due: float = -math.inf
    """The beat at which it will see what waits."""
    new_calls: int = 0
    """Of those that will be seen then."""
    finding: Finding | None = None
    """What they show, as far as they are in the state."""
    beside: Beside = field(default_factory=Beside)
    """What was used beside the calls, and is not yet in the state."""
    path: str = ""
    call: int = 0
    """Where the newest of them is."""
    kill: Event | None = None
    last_ts: float = -math.inf
    """Of its calls after the stop."""
    saved_calls: int = 0
    saved_tokens: int | None = None
    saved_cost: int | None = None
    saved_unpriced: int = 0
    _told: dict[str, _Telling] = field(default_factory=dict)
    """By path."""

    def leave_out_copies(self, piece: Piece) -> None:
        """Take out of a piece what other files have told of the session: a log may be there with a copy of it."""
        if not piece.calls:
            return
        begun, newest = piece.calls[0], piece.calls[-1]
        telling = self._told.get(piece.path)
        if telling is None:
            first = begun.ts, begun.tool, begun.call_id or hash(begun.args)
            until = max(
                (each.until for each in self._told.values() if each.first == first), default=-math.inf
            )
            telling = self._told[piece.path] = _Telling(first, until, newest.ts)
        telling.until = max(telling.until, newest.ts)
        if begun.ts <= telling.copied_until:
            new = [index for index, call in enumerate(piece.calls) if call.ts > telling.copied_until]
            piece.calls = [piece.calls[index] for index in new]
            piece.numbers = [piece.numbers[index] for index in new]
            piece.usages = deque(usage for usage in piece.usages if usage.ts > telling.copied_until)

    def use(self, usages: deque[Usage], until: float) -> None:
        """Count what the model used up to a time."""
        used = []
        while usages and usages[0].ts <= until:
            used.append(usages.popleft())
        beside = [usage for usage in used if not usage.has_call]
        if self.kill:
            self._save_tokens([usage.tokens for usage in beside])
            self._save_money(used)
        else:
            self.beside.hear(beside, NO_PRICES)

    def save(self, calls: Sequence[LoggedCall]) -> None:
        """Count what would not have happened."""
        self.saved_calls += len(calls)
        self.last_ts = max(self.last_ts, *(call.ts for call in calls))
        self._save_tokens([call.tokens for call in calls if call.tokens is not None])

    def event(self, kind: EventKind, incident: Incident, session: Session) -> Event:
        """Return what happens to it now."""
        return Event(
            event=kind,
            path=self.path,
            session=session.session,
            agent=session.agent,
            call=self.call,
            ts=round(self.due, _MILLISECONDS),
            kind=incident.kind,
            tool=incident.tool,
            score=incident.score,
            reason=incident.reason,
        )

    def killed(self, kill: Event) -> Event:
        """Return the stop with all that it would have saved."""
        saved = Saved(
            calls=self.saved_calls,
            seconds=round(max(0, self.last_ts - kill.ts), _MILLISECONDS),
            tokens=self.saved_tokens,
            cost=None if self.saved_cost is None else self.saved_cost / UNIT,
            currency=None if self.saved_cost is None else self.prices.currency,
            unpriced=0 if self.saved_cost is None else self.saved_unpriced,
        )
        return msgspec.structs.replace(kill, saved=saved)

    def _save_tokens(self, tokens: Sequence[int]) -> None:
        if tokens:
            self.saved_tokens = plus(self.saved_tokens, sum(tokens))

    def _save_money(self, used: Iterable[Usage]) -> None:
        for usage in used:
            money = money_of(usage, self.prices)
            self.saved_cost = plus(self.saved_cost, money)
            self.saved_unpriced += unpriced(usage, money)
