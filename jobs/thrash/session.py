"""What is known of one session, and how that grows by what is heard of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from jobs.thrash.assess import Subject
from jobs.thrash.beside import NOTHING_USED, Beside, with_tokens
from jobs.thrash.finding import Finding
from jobs.thrash.heard import Heard
from jobs.thrash.hooked import as_hooked, as_logged
from jobs.thrash.locality import NOTHING_SEEN, LocalityState, detect_locality, pass_over
from jobs.thrash.policy import ThrashPolicy
from jobs.thrash.price import MOST, plus
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

    Of a hook's calls only `since_log`.
    """
    session = known if known is None or is_hook else _as_logged(known)
    if session is None or not session.memory.calls:
        session = _first_seen(session, source, heard)
    memory = pass_over(session.memory, heard.passed, heard.passed_tokens)
    memory, finding = detect_locality(memory, heard.newest, policy, now, heard.used)
    if is_hook:
        memory = as_hooked(session.memory, memory, heard.errors)
    elif known is not None and known.memory.logged is not None:
        session = replace(session, streak=_renumbered(known.streak, memory, known.last_ts))
    return _after(session, heard, memory, now), finding


def news_in(heard: Heard, known: Session | None, *, is_hook: bool) -> int:
    """Return how many calls are new: a log may tell what a hook has told before."""
    if is_hook or known is None or known.memory.logged is None:
        return heard.calls
    return sum(call.ts > known.last_ts for call in heard.newest)


def logged_until(session: Session, log_ts: float, now: float) -> Session:
    """Return a session of whose log the newest entry is from that time."""
    # A log's clock may be ahead of ours, and must not hide what a hook tells for as long.
    log_ts = max(session.memory.log_ts, min(log_ts, now))
    return replace(session, memory=msgspec.structs.replace(session.memory, log_ts=log_ts))


def told_by_subagents(session: Session) -> Session:
    """Return a session whose sub-agents' logs go on: what a hook has told of it may have been theirs."""
    if session.memory.logged is None:
        return session
    logged = _as_logged(session)
    return replace(logged, streak=_renumbered(session.streak, logged.memory, session.last_ts))


def named(session: Session, hooked: Heard) -> Session:
    """Return a session under the name that a hook tells until it has made a call."""
    return session if session.memory.calls else replace(session, agent=hooked.newest[-1].agent)


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


def count_in(session: Session, errors: int, beside: Beside, currency: str | None = None) -> Session:
    """Add what answers and the model's own accounts tell beside the calls."""
    used = beside.total
    if not errors and used == NOTHING_USED:
        return session
    memory = msgspec.structs.replace(
        session.memory,
        tokens=with_tokens(session.memory.tokens, used.tokens),
        cost=plus(session.memory.cost, used.cost),
        unpriced=min(session.memory.unpriced + used.unpriced, MOST),
        newest=beside.newest or session.memory.newest,
    )
    currency = session.currency if used.cost is None else currency
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
        unpriced=session.memory.unpriced,
        currency=session.currency,
    )


def _first_seen(known: Session | None, source: str, heard: Heard) -> Session:
    newest = heard.newest[-1]
    session = known or without_calls(source, newest.session, newest.ts)
    return replace(session, parent=heard.first.parent, first_ts=heard.first.ts)


def _as_logged(session: Session) -> Session:
    errors = session.errors - session.memory.hook_errors
    return replace(session, errors=errors, memory=as_logged(session.memory))


def _renumbered(streak: Streak, memory: LocalityState, until: float) -> Streak:
    """Let a streak go on where calls are numbered anew: what was told before is no news."""
    if not streak.newest_repeat:
        return streak
    counted = max((call.number for call in memory.recent if call.ts <= until), default=0)
    return msgspec.structs.replace(streak, newest_repeat=counted)


def _after(session: Session, heard: Heard, memory: LocalityState, now: float) -> Session:
    newest = heard.newest[-1]
    # A hook names the root as the parent of every sub-agent, and not its task: where the log tells them, they stay.
    if memory.logged is None or not memory.logged.calls:
        session = replace(session, agent=newest.agent, parent=newest.parent or session.parent)
    return replace(
        run_by(session, heard.pids, now),
        last_ts=newest.ts,
        seen_at=now,
        errors=session.errors + heard.errors,
        memory=memory,
    )
