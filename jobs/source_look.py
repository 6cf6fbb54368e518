"""What one look reads of one source: which calls are new, and what they make of each session."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

import msgspec

from jobs.ports import Batch, Cursor
from jobs.thrash.beside import NOTHING_USED, Beside
from jobs.thrash.call import LoggedCall, Usage
from jobs.thrash.finding import Finding
from jobs.thrash.heard import Heard
from jobs.thrash.hooked import since_log
from jobs.thrash.policy import ThrashPolicy
from jobs.thrash.price import NO_PRICES, Prices
from jobs.thrash.session import (
    Session,
    count_in,
    logged_until,
    named,
    news_in,
    run_by,
    take_in,
    told_by_subagents,
    without_calls,
)

_BYTES_HELD: Final = 16 << 20
_CALLS_HELD: Final = 40_000
"""Of a long log so much is in memory at a time, and then committed."""
_REMEMBERED_FOR: Final = 1800
"""Seconds for which cursors are not read again, nor written where nothing is new."""

_Told = TypeVar("_Told", LoggedCall, Usage)


@dataclass(slots=True, kw_only=True)
class Seen:
    """One session during one look."""

    new_calls: int = 0
    errors: int = 0
    """Answers that say so."""
    beside: Beside = field(default_factory=Beside)
    """What the model used, by its own account."""
    log_ts: float = 0
    """The newest time of which its log has told, or a sub-agent's."""
    has_logged_calls: bool = False
    """Whether its log has told some, or a sub-agent's log."""
    parent: str | None = None
    """As its log tells."""
    is_late: bool = False
    """Whether some of the new calls may long be over."""
    finding: Finding | None = None

    @property
    def has_more(self) -> bool:
        """Whether something was told beside the calls that is not yet in the session's state."""
        return bool(self.errors) or self.beside.total != NOTHING_USED


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of a source's files between two looks."""

    cursors: Mapping[str, Cursor] = field(default_factory=dict)
    """As they are in the database."""
    storage: tuple[object, ...] = ()
    """Which database that is."""
    loaded_at: float = -math.inf
    looked_at: Mapping[str, float] = field(default_factory=dict)
    """By path. A cursor of a file in which nothing was new is older."""

    def is_good(self, storage: tuple[object, ...], now: float) -> bool:
        return self.storage == storage and 0 <= now - self.loaded_at < _REMEMBERED_FOR


@dataclass(slots=True, kw_only=True)
class SourceLook:
    """What one look has read of one source so far."""

    source: str
    known: Known
    policy: ThrashPolicy
    now: float
    prices: Prices = NO_PRICES
    seen: dict[str, Seen] = field(default_factory=dict)
    heard: dict[str, Heard] = field(default_factory=dict)
    """By session: what is not yet in its state."""
    hooked: dict[str, Heard] = field(default_factory=dict)
    """The same, told by a hook."""
    looked_at: dict[str, float] = field(default_factory=dict)
    """By path."""
    changed: dict[str, Cursor] = field(default_factory=dict)
    cursors: dict[str, Cursor] = field(default_factory=dict)
    """Those of `changed` that are not yet committed."""
    bytes_held: int = 0
    calls_held: int = 0

    def read_on(self, batches: Iterator[Batch]) -> bool:
        """Read until enough is held; return whether there may be more. Blocks."""
        cursors, keeps_time = self.known.cursors, self.known.loaded_at == self.now
        for batch in batches:
            path = batch.path
            self.looked_at[path] = self.now
            if batch.cursor is not cursors.get(path):
                self._hear(batch)
            elif keeps_time:
                self._keep(path, msgspec.structs.replace(batch.cursor, read_at=self.now))
            if self.bytes_held >= _BYTES_HELD or self.calls_held >= _CALLS_HELD:
                return True
        return False

    def _hear(self, batch: Batch) -> None:
        is_late, heard = (
            self._is_late(batch.path),
            self.hooked if batch.is_hook else self.heard,
        )
        for name, usages in _by_session(batch.usages).items():
            self.seen.setdefault(name, Seen()).beside.hear(usages, self.prices)
        for name, calls in _by_session(batch.calls).items():
            seen = self.seen.setdefault(name, Seen())
            seen.is_late |= is_late
            if not batch.is_hook:
                seen.has_logged_calls = True
                seen.log_ts = max(seen.log_ts, calls[-1].ts)
                seen.parent = calls[-1].parent
            if name not in heard:
                heard[name] = Heard(calls[0], self.policy.remembered)
            heard[name].add(calls, seen.beside.before(calls))
        for answer in batch.answers:
            seen = self.seen.setdefault(answer.session, Seen())
            seen.errors += answer.is_error
            seen.log_ts = max(seen.log_ts, answer.ts)
        if not batch.is_hook:
            self._tell_parents({call.session for call in batch.calls if call.parent})
        self._keep(batch.path, batch.cursor)
        self.bytes_held += batch.size
        self.calls_held += len(batch.calls)

    def _tell_parents(self, names: Iterable[str]) -> None:
        """Let what was logged of sub-agents stand for their parents, too: see `hooked`."""
        for name in names:
            child = self.seen[name]
            if child.parent and child.parent != name:
                parent = self.seen.setdefault(child.parent, Seen())
                parent.has_logged_calls = True
                parent.log_ts = max(parent.log_ts, child.log_ts)

    def _keep(self, path: str, cursor: Cursor) -> None:
        self.cursors[path] = self.changed[path] = cursor

    def _is_late(self, path: str) -> bool:
        # What a log already held when it was first seen, or when the bot came back, may long be over.
        known = self.known.cursors.get(path)
        if known is None or known.is_behind:
            return True
        return self.now - self.known.looked_at.get(path, known.read_at) > self.policy.expires

    def take_in(self, name: str, stored: Session | None) -> Session | None:
        """Return a session with what was heard of it in its state."""
        seen, session, hooked = self.seen[name], stored, self.hooked.get(name)
        if heard := self.heard.get(name):
            session = self._after_calls(heard, seen, session)
        elif seen.has_logged_calls and (session or hooked):
            session = told_by_subagents(session or without_calls(self.source, name, self.now))
        if session and seen.log_ts:
            session = logged_until(session, seen.log_ts, self.now)
        if session and seen.parent and (asked := self.hooked.get(seen.parent)):
            session = run_by(session, asked.pids, self.now)
        if hooked:
            session = self._after_hook(hooked, seen, session)
        if session is None:
            if not seen.has_more:
                return None
            session = without_calls(self.source, name, self.now)
        session = count_in(session, seen.errors, seen.beside, self.prices.currency)
        seen.errors, seen.beside = 0, Beside()
        return session

    def _after_hook(self, hooked: Heard, seen: Seen, known: Session | None) -> Session:
        if known is None:
            return self._after_calls(hooked, seen, None, is_hook=True)
        rest = None if seen.has_logged_calls else since_log(hooked, known.memory)
        if rest is not None:
            known = self._after_calls(rest, seen, known, is_hook=True)
        return run_by(named(known, hooked), hooked.pids, self.now)

    def _after_calls(
        self, heard: Heard, seen: Seen, stored: Session | None, *, is_hook: bool = False
    ) -> Session:
        seen.new_calls += news_in(heard, stored, is_hook=is_hook)
        session, finding = take_in(stored, self.source, heard, self.policy, self.now, is_hook=is_hook)
        if seen.is_late and finding is not None and finding.newest_ts < self.now - self.policy.expires:
            # It stays among the newest calls for a while: it must not be taken for what comes after it.
            counted = max(session.streak.newest_repeat, finding.newest_repeat)
            streak = msgspec.structs.replace(session.streak, newest_repeat=counted)
            session, finding = replace(session, streak=streak), None
        seen.finding = finding
        return session

    def untaken(self) -> Sequence[str]:
        """Return the sessions of which something was heard that is not yet in their state."""
        return [
            name
            for name, seen in self.seen.items()
            if name in self.heard or name in self.hooked or seen.has_more
        ]

    def known_now(self) -> Known:
        """Return what is known once all is committed."""
        return replace(
            self.known,
            cursors={**self.known.cursors, **self.changed},
            looked_at={**self.known.looked_at, **self.looked_at},
        )

    def drop_held(self) -> None:
        self.heard.clear()
        self.hooked.clear()
        self.cursors.clear()
        self.bytes_held = self.calls_held = 0


def _by_session(told: Sequence[_Told]) -> dict[str, list[_Told]]:
    found: dict[str, list[_Told]] = defaultdict(list)
    for each in told:
        found[each.session].append(each)
    return found
