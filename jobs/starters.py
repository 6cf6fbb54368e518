"""Which session has started a sub-agent, as far as its source tells."""

from collections import defaultdict
from collections.abc import Iterable

from jobs.alert.notice import Starter
from jobs.ports import Sessions
from jobs.thrash.session import Session


async def starter_of(sessions: Sessions, session_id: int) -> Starter | None:
    """Return what has started a session; None if that is not told, or it is no sub-agent."""
    session = await sessions.get(session_id)
    return None if session is None else (await starters_of(sessions, [session])).get(session_id)


async def starters_of(sessions: Sessions, some: Iterable[Session]) -> dict[int, Starter]:
    """Return what has started those of `some` that are sub-agents, by their ids."""
    by_source: dict[str, dict[int, tuple[Session, str]]] = defaultdict(dict)
    for session in some:
        if session.parent and session.parent != session.session:
            by_source[session.source][session.id] = session, session.parent
    starters: dict[int, Starter] = {}
    for source, children in by_source.items():
        known = await sessions.of_source(source, list({parent for _, parent in children.values()}))
        for id_, (child, parent) in children.items():
            starters[id_] = _starter(child, parent, known.get(parent))
    return starters


def _starter(child: Session, name: str, parent: Session | None) -> Starter:
    if parent is None:
        return Starter(agent=name)
    shares_process = parent.pid is not None and parent.pid == child.pid
    return Starter(agent=parent.agent, session=parent.id, shares_process=shares_process)
