"""What is known of one session, and how that grows by what is heard of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import msgspec

from jobs.thrash.assess import Subject
from jobs.thrash.beside import with_tokens
from jobs.thrash.finding import Finding
from jobs.thrash.heard import Heard
from jobs.thrash.locality import NOTHING_SEEN, LocalityState, detect_locality, pass_over
from jobs.thrash.policy import ThrashPolicy
from jobs.thrash.price import plus
from jobs.thrash.streak import Streak


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation of one agent, named by (source, session); the host is the database's own."""

    id: int
    """Its short id in the chat; 0 until stored."""
    source: str
    session: str
    agent: str
    parent: str | None
    pid: int | None
    pid_since_ts: float | None
    first_ts: float
    last_ts: float
    seen_at: float
    """When its newest call was read."""
    errors: int
    memory: LocalityState
    streak: Streak
    currency: str | None = None
    """Of its money."""


class Counting(StrEnum):
    """What becomes of calls, so that each counts once, whether a log tells it, a hook or both."""

    ADD = "add"
    ANEW = "anew"
    """A log tells all calls of a session from its first: those that a hook has told before are in it."""
    NONE = "none"
    """A log tells them, or soon will."""


def counting(known: LocalityState, *, is_hook: bool) -> Counting:
    """Decide on calls that a log tells, or a hook.

    The two are not joined call by call: not every program's hook tells an id, and some tell other ids than the log.
    """
    if not known.calls or known.is_hooked is is_hook:
        return Counting.ADD
    return Counting.NONE if is_hook else Counting.ANEW


def take_in(
    known: Session | None,
    source: str,
    heard: Heard,
    policy: ThrashPolicy,
    now: float,
    *,
    is_hook: bool = False,
) -> tuple[Session, Finding | None]:
    """Return a session after calls of it were read, and what they show; `known` is None if nothing was before.

    Not for calls of a hook that do not count.
    """
    if known is None or not known.memory.calls:
        session = _first_seen(known, source, heard)
    elif counting(known.memory, is_hook=is_hook) is Counting.ANEW:
        session = _anew(known, heard)
    else:
        session = known
    memory = pass_over(session.memory, heard.passed, heard.passed_tokens)
    memory, finding = detect_locality(memory, heard.newest, policy, now, heard.used)
    memory = msgspec.structs.replace(memory, is_hooked=is_hook)
    return _after(_renumbered(session, memory, known), heard, memory, now), finding


def run_by(session: Session, pids: Sequence[tuple[int, float]], now: float) -> Session:
    """Return a session after each change of its process, told with its time."""
    pid, since = session.pid, session.pid_since_ts
    for changed, ts in pids:
        if changed != pid:
            # A log's clock may be ahead of ours, and the process is not younger than the line that names it.
            pid, since = changed, min(ts, now)
    return replace(session, pid=pid, pid_since_ts=since)


def without_calls(source: str, session: str, now: float) -> Session:
    """Return a session of which only is known what its model has used. It is not seen until it makes a call."""
    return Session(
        id=0,
        source=source,
        session=session,
        agent=session,
        parent=None,
        pid=None,
        pid_since_ts=None,
        first_ts=now,
        last_ts=now,
        seen_at=0,
        errors=0,
        memory=NOTHING_SEEN,
        streak=Streak(),
    )


def count_in(
    session: Session, errors: int, tokens: int, cost: int | None = None, currency: str | None = None
) -> Session:
    """Add what answers and the model's own accounts tell beside the calls."""
    if not (errors or tokens) and cost is None:
        return session
    used = with_tokens(session.memory.tokens, tokens)
    memory = msgspec.structs.replace(session.memory, tokens=used, cost=plus(session.memory.cost, cost))
    currency = session.currency if cost is None else currency
    return replace(session, errors=session.errors + errors, memory=memory, currency=currency)


def subject_of(session: Session) -> Subject:
    """Return what an assessment asks about a session."""
    return Subject(
        session_id=session.id,
        source=session.source,
        agent=session.agent,
        streak=session.streak,
        calls=session.memory.calls,
        newest_ts=session.last_ts,
        tokens=session.memory.tokens,
        cost=session.memory.cost,
        currency=session.currency,
    )


def _first_seen(known: Session | None, source: str, heard: Heard) -> Session:
    newest = heard.newest[-1]
    session = known or without_calls(source, newest.session, newest.ts)
    return replace(session, parent=heard.first.parent, first_ts=heard.first.ts)


def _anew(known: Session, heard: Heard) -> Session:
    # Tokens and money are the log's own: no hook tells them.
    memory = LocalityState(tokens=known.memory.tokens, cost=known.memory.cost)
    return replace(known, parent=heard.first.parent, first_ts=heard.first.ts, errors=0, memory=memory)


def _renumbered(session: Session, memory: LocalityState, known: Session | None) -> Session:
    """Let the streak go on where a session's calls are counted anew: what was seen of them is no news."""
    if known is None or not known.memory.is_hooked or memory.is_hooked or not known.streak.newest_repeat:
        return session
    counted = max((call.number for call in memory.recent if call.ts <= known.last_ts), default=0)
    return replace(session, streak=msgspec.structs.replace(session.streak, newest_repeat=counted))


def _after(session: Session, heard: Heard, memory: LocalityState, now: float) -> Session:
    newest = heard.newest[-1]
    return replace(
        run_by(session, heard.pids, now),
        agent=newest.agent,
        parent=newest.parent or session.parent,
        last_ts=newest.ts,
        seen_at=now,
        errors=session.errors + heard.errors,
        memory=memory,
    )
