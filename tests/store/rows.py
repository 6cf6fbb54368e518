"""Plain values for rows, where a test does not care for most of the fields."""

from jobs.thrash.incident import Incident
from jobs.thrash.locality import NOTHING_SEEN
from jobs.thrash.session import Session
from jobs.thrash.streak import Streak
from tests.fakes import NOON


def a_session(
    *, source: str = "gateway", session: str = "s-1", agent: str = "coder", seen_at: float = NOON
) -> Session:
    return Session(
        id=0,
        source=source,
        session=session,
        agent=agent,
        parent=None,
        pid=None,
        pid_since_ts=None,
        first_ts=NOON,
        last_ts=NOON,
        seen_at=seen_at,
        errors=0,
        memory=NOTHING_SEEN,
        streak=Streak(),
    )


def an_incident(session: Session, *, closed_at: float | None = None) -> Incident:
    return Incident(
        id=0,
        session_id=session.id,
        agent=session.agent,
        source=session.source,
        opened_at=NOON,
        updated_at=NOON,
        first_call=1,
        first_ts=NOON,
        tokens_before=None,
        kind="thrash_loop",
        tool="exec",
        score=8,
        steps=1,
        calls=10,
        newest_ts=NOON,
        tokens=None,
        closed_at=closed_at,
    )
