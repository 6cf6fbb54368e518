"""Old logs on their own clock: what would have been alerted and stopped, when, and what that would have saved."""

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

import msgspec

from jobs.ports import Batch, CallSource, Cursor
from jobs.thrash.assess import Action, assess
from jobs.thrash.beside import Beside
from jobs.thrash.call import LoggedCall, Usage
from jobs.thrash.finding import Finding
from jobs.thrash.heard import Heard
from jobs.thrash.incident import Incident
from jobs.thrash.policy import ThrashPolicy
from jobs.thrash.price import NO_PRICES
from jobs.thrash.session import Session, count_in, subject_of, take_in
from jobs.thrash.streak import Look

_MILLISECONDS: Final = 3
"""Digits of a second that are worth telling."""


class EventKind(StrEnum):
    """What would have happened."""

    ALERT = "alert"
    KILL = "kill"


class Saved(msgspec.Struct, frozen=True, kw_only=True):
    """What a session did after it would have been stopped."""

    calls: int = 0
    seconds: float = 0
    """From the stop to its last call."""
    tokens: int | None = None
    """None if the log has none."""


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An alert or a stop."""

    event: EventKind
    path: str
    session: str
    """The source's own id."""
    agent: str
    call: int
    """The newest call of the session that had been seen, counted from 0 among all calls of its file."""
    ts: float
    """Epoch seconds of the look, on the log's clock."""
    kind: str
    tool: str
    score: int
    reason: str
    saved: Saved | None = None
    """Of a stop, once the log has been read to its end."""


@dataclass(slots=True)
class _Piece:
    """What a batch holds of one session."""

    path: str
    calls: list[LoggedCall] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    """Of the calls among all of the file."""
    usages: deque[Usage] = field(default_factory=deque)
    """Told beside the calls."""


@dataclass(slots=True)
class _Played:
    """One session on its way through the log."""

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

    def use(self, usages: deque[Usage], until: float) -> None:
        """Count what the model used up to a time beside its calls."""
        used = []
        while usages and usages[0].ts <= until:
            used.append(usages.popleft())
        if self.kill:
            self.save((), used)
        else:
            self.beside.hear(used, NO_PRICES)

    def save(self, calls: Sequence[LoggedCall], usages: Iterable[Usage]) -> None:
        """Count what would not have happened."""
        self.saved_calls += len(calls)
        self.last_ts = max(self.last_ts, *(call.ts for call in calls)) if calls else self.last_ts
        used = [call.tokens for call in calls if call.tokens is not None] + [each.tokens for each in usages]
        if used:
            self.saved_tokens = (self.saved_tokens or 0) + sum(used)

    def killed(self, kill: Event) -> Event:
        """Return the stop with all that it would have saved."""
        seconds = round(max(0, self.last_ts - kill.ts), _MILLISECONDS)
        saved = Saved(calls=self.saved_calls, seconds=seconds, tokens=self.saved_tokens)
        return msgspec.structs.replace(kill, saved=saved)


@dataclass(slots=True, kw_only=True)
class Replay:
    """One log, of one file or of several that follow each other. Nothing is stopped and nobody told.

    1. A call is seen at the first beat at or after its time. The beats begin at the log's first call; each session
       has those at which there is something new of it, so that hours without a call cost nothing.
    2. At a beat the detector takes in the new calls of the session, its streak advances, and its incident opens, grows
       or ends: by the very functions that the scan uses.
    3. An incident that opens is an alert, a stop is one, too. A session is stopped once; what it does afterwards is
       what the stop would have saved.
    """

    source: str
    policy: ThrashPolicy
    bytes_held: int = 16 << 20
    calls_held: int = 40_000
    """So much waits at most for the looks that will see it. Then it goes into the sessions' states, unjudged."""
    calls: int = 0
    """Read so far."""
    _origin: float | None = None
    _read: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """By path: how many calls."""
    _sessions: dict[str, _Played] = field(default_factory=lambda: defaultdict(_Played))
    _waiting: dict[str, Heard] = field(default_factory=dict)
    """By session: what is not yet in its state."""
    _bytes_waiting: int = 0
    _calls_waiting: int = 0

    @property
    def sessions(self) -> int:
        """How many have made a call."""
        return sum(bool(played.path) for played in self._sessions.values())

    def hear(self, batch: Batch) -> list[Event]:
        """Take in the next piece of the log and return the alerts it leads to."""
        pieces = _by_session(batch, self._read[batch.path])
        self._read[batch.path] += len(batch.calls)
        self.calls += len(batch.calls)
        events: list[Event] = []
        for name, piece in pieces.items():
            events += self._hear(name, self._sessions[name], piece)
        self._bytes_waiting += batch.size
        self._calls_waiting += len(batch.calls)
        if self._bytes_waiting >= self.bytes_held or self._calls_waiting >= self.calls_held:
            self._take_in_all()
        return events

    def end(self) -> Iterator[Event]:
        """Yield the alerts of the last looks, then every stop."""
        for name, played in self._sessions.items():
            yield from self._look(name, played)
        for played in self._sessions.values():
            if played.kill:
                yield played.killed(played.kill)

    def _hear(self, name: str, played: _Played, piece: _Piece) -> Iterator[Event]:
        start, first, due = 0, played.due - self.policy.expires, played.due
        for index, call in enumerate(piece.calls):
            ts = call.ts
            # A line that bears an earlier time is written after those before it all the same. Only where the clock
            # was set back, or an older file comes later, it is as if the bot had been there then: one time from the
            # far future must not hide all that follows.
            if not first <= ts <= due:
                played.use(piece.usages, due)
                self._wait(name, played, piece, start, index)
                yield from self._look(name, played)
                start, played.due = index, self._beat_after(ts)
                first, due = played.due - self.policy.expires, played.due
        played.use(piece.usages, math.inf)
        self._wait(name, played, piece, start, len(piece.calls))

    def _beat_after(self, ts: float) -> float:
        if self._origin is None:
            self._origin = ts
        beats = math.ceil((ts - self._origin) / self.policy.every)
        return max(self._origin + beats * self.policy.every, ts)

    def _wait(self, name: str, played: _Played, piece: _Piece, start: int, stop: int) -> None:
        """Keep calls for the look that will see them."""
        calls = piece.calls[start:stop]
        if not calls:
            return
        if played.kill:
            played.save(calls, ())
            return
        if name not in self._waiting:
            self._waiting[name] = Heard(calls[0], self.policy.remembered)
        self._waiting[name].add(calls, played.beside.before(calls))
        played.new_calls += len(calls)
        played.path, played.call = piece.path, piece.numbers[stop - 1]

    def _take_in(self, name: str, played: _Played) -> None:
        heard = self._waiting.pop(name, None)
        if heard is not None:
            played.session, played.finding = take_in(
                played.session, self.source, heard, self.policy, played.due
            )

    def _take_in_all(self) -> None:
        for name in tuple(self._waiting):
            self._take_in(name, self._sessions[name])
        self._bytes_waiting = self._calls_waiting = 0

    def _look(self, name: str, played: _Played) -> Iterator[Event]:
        self._take_in(name, played)
        if played.session is None or not played.new_calls:
            return
        session = count_in(played.session, 0, played.beside.total.tokens)
        played.beside = Beside()
        look = Look(new_calls=played.new_calls, pid=session.pid, finding=played.finding)
        result = assess(subject_of(session), look, played.incident, self.policy, played.due)
        played.session, played.new_calls, played.finding = replace(session, streak=result.streak), 0, None
        if result.current and (played.incident is None or result.ended):
            yield _event(EventKind.ALERT, result.current, played, session)
        if result.current or result.ended:
            played.incident = result.current
        if result.current and result.action is Action.STOP:
            played.kill = _event(EventKind.KILL, result.current, played, session)
            played.session = played.incident = None


def read_all(source: CallSource, now: float) -> Iterator[Batch]:
    """Yield all that a source holds, in as many looks as that takes."""
    cursors: dict[str, Cursor] = {}
    before: Mapping[str, Cursor] | None = None
    # A look leaves the rest of a very long file for the next one. A file that cannot be read on stays behind.
    while before is None or (_are_behind(cursors) and _places(cursors) != _places(before)):
        before = dict(cursors)
        for batch in source.read_new(before, now):
            cursors[batch.path] = batch.cursor
            yield batch


def _are_behind(cursors: Mapping[str, Cursor]) -> bool:
    return any(cursor.is_behind for cursor in cursors.values())


def _places(cursors: Mapping[str, Cursor]) -> dict[str, tuple[int, str]]:
    return {path: (cursor.offset, cursor.state) for path, cursor in cursors.items()}


def _event(kind: EventKind, incident: Incident, played: _Played, session: Session) -> Event:
    return Event(
        event=kind,
        path=played.path,
        session=session.session,
        agent=session.agent,
        call=played.call,
        ts=round(played.due, _MILLISECONDS),
        kind=incident.kind,
        tool=incident.tool,
        score=incident.score,
        reason=incident.reason,
    )


def _by_session(batch: Batch, first: int) -> Mapping[str, _Piece]:
    pieces: dict[str, _Piece] = defaultdict(lambda: _Piece(batch.path))
    for number, call in enumerate(batch.calls, first):
        piece = pieces[call.session]
        piece.calls.append(call)
        piece.numbers.append(number)
    for usage in batch.usages:
        if not usage.has_call:
            pieces[usage.session].usages.append(usage)
    return pieces
