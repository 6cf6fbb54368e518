"""The decisions of the scan over an old log."""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from jobs.ports import Batch
from jobs.replay.event import Event, EventKind
from jobs.replay.session import Piece, Played, pieces_of
from jobs.thrash.assess import Action, assess
from jobs.thrash.beside import Beside
from jobs.thrash.heard import Heard
from jobs.thrash.policy import ThrashPolicy
from jobs.thrash.price import NO_PRICES, Prices
from jobs.thrash.session import count_in, subject_of, take_in
from jobs.thrash.streak import Look


@dataclass(slots=True, kw_only=True)
class Replay:
    """One log, of one file or of several that follow each other. Nothing is stopped and nobody told.

    1. A call is seen at the first beat at or after its time. The beats begin at the log's first call; each session
       has those at which there is something new of it, so that hours without a call cost nothing.
    2. At a beat the detector takes in the new calls of the session, its streak advances, and its incident opens, grows
       or ends: by the very functions that the scan uses.
    3. An incident that opens is an alert, a stop is one, too. A session is stopped once; what it does afterwards is
       what the stop would have saved.

    What another file has told of a session before, as a backup does, counts for nothing.
    """

    source: str
    policy: ThrashPolicy
    prices: Prices = NO_PRICES
    bytes_held: int = 16 << 20
    calls_held: int = 40_000
    """So much waits at most for the looks that will see it. Then it goes into the sessions' states, unjudged."""
    calls: int = 0
    """Read so far."""
    _origin: float | None = None
    _read: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    _sessions: dict[str, Played] = field(default_factory=dict)
    _waiting: dict[str, Heard] = field(default_factory=dict)
    """By session: what is not yet in its state."""
    _bytes_waiting: int = 0
    _calls_waiting: int = 0

    @property
    def sessions(self) -> int:
        """How many have made a call."""
        return sum(bool(played.path) for played in self._sessions.values())

    def hear(self, batch: Batch, *, is_database: bool = False) -> list[Event]:
        """Take in the next piece of the log and return the alerts it leads to."""
        pieces = pieces_of(batch, self._read, is_database=is_database)
        events: list[Event] = []
        for name, piece in pieces.items():
            if name not in self._sessions:
                self._sessions[name] = Played(self.prices)
            played = self._sessions[name]
            played.leave_out_copies(piece)
            self.calls += len(piece.calls)
            events += self._hear(name, played, piece)
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

    def _hear(self, name: str, played: Played, piece: Piece) -> Iterator[Event]:
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

    def _wait(self, name: str, played: Played, piece: Piece, start: int, stop: int) -> None:
        """Keep calls for the look that will see them."""
        calls = piece.calls[start:stop]
        if not calls:
            return
        if played.kill:
            played.save(calls)
            return
        if name not in self._waiting:
            self._waiting[name] = Heard(calls[0], self.policy.remembered)
        self._waiting[name].add(calls, played.beside.before(calls))
        played.new_calls += len(calls)
        played.path, played.call = piece.path, piece.numbers[stop - 1]

    def _take_in(self, name: str, played: Played) -> None:
        heard = self._waiting.pop(name, None)
        if heard is not None:
            played.session, played.finding = take_in(
                played.session, self.source, heard, self.policy, played.due
            )

    def _take_in_all(self) -> None:
        for name in tuple(self._waiting):
            self._take_in(name, self._sessions[name])
        self._bytes_waiting = self._calls_waiting = 0

    def _look(self, name: str, played: Played) -> Iterator[Event]:
        self._take_in(name, played)
        if played.session is None or not played.new_calls:
            return
        session = count_in(played.session, 0, played.beside)
        played.beside = Beside()
        look = Look(new_calls=played.new_calls, pid=session.pid, finding=played.finding)
        result = assess(subject_of(session), look, played.incident, self.policy, played.due)
        played.session, played.new_calls, played.finding = replace(session, streak=result.streak), 0, None
        if result.current and (played.incident is None or result.ended):
            yield played.event(EventKind.ALERT, result.current, session)
        if result.current or result.ended:
            played.incident = result.current
        if result.current and result.action is Action.STOP:
            played.kill = played.event(EventKind.KILL, result.current, session)
            played.session = played.incident = None
