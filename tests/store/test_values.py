"""Every value comes back from its table as it went in."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.alert.outgoing import Outgoing, Queued
from jobs.alert.pace import Pace
from jobs.ports import ChatState, Confirmation, Cursor, Received, Stop
from jobs.store.database import Database, Tables
from jobs.thrash.incident import Incident
from jobs.thrash.session import Session
from tests.drawn import confirmations, cursors, incidents, names, numbers, outgoings, sessions, stops, times
from tests.fakes import HOME
from tests.store.conftest import Undone, drawing
from tests.store.rows import a_session, an_incident


@drawing
@given(source=names, drawn=st.dictionaries(names, cursors, max_size=3))
async def test_cursors(undone: Undone, source: str, drawn: dict[str, Cursor]) -> None:
    async with undone() as tables:
        await tables.cursors.save(source, drawn)
        assert await tables.cursors.of_source(source) == drawn
        assert await tables.cursors.of_source(f"{source}!") == {}


@drawing
@given(first=sessions, later=sessions)
async def test_sessions(undone: Undone, first: Session, later: Session) -> None:
    async with undone() as tables:
        saved = await tables.sessions.save(first)
        assert saved == replace(first, id=saved.id)
        assert await tables.sessions.get(saved.id) == saved
        changed = replace(later, id=saved.id)
        assert await tables.sessions.save(changed) == changed
        assert await tables.sessions.of_source(later.source, [later.session]) == {later.session: changed}


@drawing
@given(first=incidents, later=incidents)
async def test_incidents(undone: Undone, first: Incident, later: Incident) -> None:
    async with undone() as tables:
        session = await tables.sessions.save(a_session())
        added = await tables.incidents.add(replace(first, session_id=session.id))
        assert await tables.incidents.get(added.id) == added
        changed = replace(later, id=added.id, session_id=session.id)
        await tables.incidents.save(changed)
        assert await tables.incidents.newest(1) == [changed]


@drawing
@given(first=stops, later=stops)
async def test_stops(undone: Undone, first: Stop, later: Stop) -> None:
    async with undone() as tables:
        session = await tables.sessions.save(a_session())
        incident = await tables.incidents.add(an_incident(session))
        added = await tables.stops.add(replace(first, session_id=session.id, incident_id=incident.id))
        assert await tables.stops.of_session(session.id, 1) == [added]
        changed = replace(later, id=added.id, session_id=session.id)
        await tables.stops.save(changed)
        assert await tables.stops.in_state(later.state) == [changed]
        harder = replace(first, session_id=session.id, escalates=added.id, state=first.state.OVER)
        assert (await tables.stops.add(harder)).escalates == added.id


@drawing
@given(confirmation=confirmations, now=times)
async def test_confirmations(undone: Undone, confirmation: Confirmation, now: float) -> None:
    async with undone() as tables:
        session = await tables.sessions.save(a_session())
        shown = replace(confirmation, session_id=session.id)
        await tables.confirmations.add(shown)
        assert await tables.confirmations.get(shown.nonce) == shown
        await tables.confirmations.mark_used(shown.nonce, now)
        assert await tables.confirmations.get(shown.nonce) == replace(shown, used_at=now)
        assert await tables.confirmations.get("another") is None


@drawing
@given(outgoing=outgoings, now=times)
async def test_messages(undone: Undone, outgoing: Outgoing, now: float) -> None:
    async with undone() as tables:
        queued = await tables.outbox.put(outgoing, now)
        assert await tables.outbox.due(now, HOME) == Queued(
            id=queued,
            kind=outgoing.kind,
            body=outgoing.body.decode(),
            mode=outgoing.mode,
            subject=outgoing.subject,
            target_message=outgoing.target_message,
            chat=HOME if outgoing.chat is None else outgoing.chat,
            silent=outgoing.silent,
            urgent=outgoing.urgent,
            attempts=0,
            error=None,
            created_at=now,
        )


paces = st.builds(Pace, sent=st.lists(times, max_size=3).map(tuple))
chat_ids = st.integers(-(2**52), 2**52)
chats = st.builds(
    ChatState,
    id=chat_ids,
    moved_to=chat_ids | st.none(),
    pace=paces,
    held_at=times,
    free_at=times,
    lost_at=times | st.none(),
)


@drawing
@given(first=chats, later=chats)
async def test_chats(undone: Undone, first: ChatState, later: ChatState) -> None:
    async with undone() as tables:
        assert await tables.chats.get(first.id) == ChatState(id=first.id)
        await tables.chats.save(first)
        assert await tables.chats.get(first.id) == first
        changed = replace(later, id=first.id)
        await tables.chats.save(changed)
        assert await tables.chats.get(first.id) == changed


@drawing
@given(bot_id=numbers, update_id=numbers, body=st.text(), now=times)
async def test_updates(undone: Undone, *, bot_id: int, update_id: int, body: str, now: float) -> None:
    async with undone() as tables:
        await tables.inbox.add(bot_id, {update_id: body}, now)
        received = await tables.inbox.next(bot_id)
        assert received == Received(
            id=received.id if received else 0,
            update_id=update_id,
            body=body,
            received_at=now,
        )


# ── what a table is asked ─────────────────────────────────────────────────────────────────────────


async def test_a_session_is_known_by_source_and_name(undone: Undone) -> None:
    async with undone() as tables:
        one, other = await _saved(tables, a_session(source="one"), a_session(source="other"))
        assert await tables.sessions.of_source("one", ["s-1", "s-2"]) == {"s-1": one}
        assert await tables.sessions.get(other.id) == other
        assert await tables.sessions.get(other.id + 1) is None


async def test_any_number_of_sessions_can_be_asked_for(undone: Undone) -> None:
    """SQLite takes only so many values in one question."""
    sought = [f"s-{n}" for n in range(1001)]
    async with undone() as tables:
        await _saved(tables, *(a_session(session=name) for name in sought))
        assert (await tables.sessions.of_source("gateway", sought)).keys() == set(sought)
        assert await tables.sessions.of_source("gateway", []) == {}


async def test_sessions_are_listed_newest_first(undone: Undone) -> None:
    async with undone() as tables:
        old, new, newest = await _saved(
            tables, *(a_session(session=f"s-{n}", seen_at=n, agent="coder") for n in (1, 2, 3))
        )
        assert await tables.sessions.newest(2, 10) == [newest, new]
        assert await tables.sessions.newest(0, 1) == [newest]
        assert await tables.sessions.find("coder", 2) == [newest, new]
        assert await tables.sessions.find("s-1", 2) == [old]
        assert await tables.sessions.counts(2) == {"gateway": 2}


async def test_only_incidents_that_are_not_closed_are_unclosed(undone: Undone) -> None:
    async with undone() as tables:
        one, other = await _saved(tables, a_session(), a_session(session="s-2"))
        over = await tables.incidents.add(an_incident(one, closed_at=1))
        going_on = await tables.incidents.add(an_incident(one))
        await tables.incidents.add(an_incident(other, closed_at=1))
        assert await tables.incidents.unclosed() == {one.id: going_on}
        assert await tables.incidents.unclosed_of(one.id) == going_on
        assert await tables.incidents.unclosed_of(other.id) is None
        assert await tables.incidents.get(over.id) == over
        assert await tables.incidents.get(over.id + 100) is None


async def test_the_stop_that_is_only_intended_is_found(undone: Undone) -> None:
    async with undone() as tables:
        session = await tables.sessions.save(a_session())
        first = await tables.stops.add(Stop.intended(session, None, ordered_by=None, now=1))
        assert await tables.stops.intended_of(session.id) == first
        await tables.stops.save(replace(first, state=first.state.WATCHED))
        assert await tables.stops.intended_of(session.id) is None


async def test_sessions_are_saved_together_new_ones_and_known_ones(undone: Undone) -> None:
    async with undone() as tables:
        known = await tables.sessions.save(a_session(session="s-1"))
        await tables.sessions.save_all([a_session(session="s-2"), replace(known, errors=7)])
        await tables.sessions.save_all([])
        found = await tables.sessions.of_source("gateway", ["s-1", "s-2"])
    assert found["s-1"] == replace(known, errors=7)
    assert found["s-2"] == replace(a_session(session="s-2"), id=found["s-2"].id)


async def test_the_latest_stop_of_each_session_is_found(undone: Undone) -> None:
    async with undone() as tables:
        one, other, never = await _saved(tables, *(a_session(session=f"s-{n}") for n in range(3)))
        latest = []
        for session in (one, one, other):
            stop = await tables.stops.add(Stop.intended(session, None, ordered_by=None, now=1))
            stop = replace(stop, state=stop.state.OVER)
            await tables.stops.save(stop)
            latest.append(stop)
        assert await tables.stops.latest_of([one.id, other.id, never.id]) == latest[1:]
        assert await tables.stops.latest_of([other.id]) == latest[2:]
        assert await tables.stops.latest_of([]) == []


@pytest.mark.parametrize("text", ["", "\0", "😀", "\u202e", "a" * 100_000])
async def test_text_of_agents_is_only_text(undone: Undone, text: str) -> None:
    async with undone() as tables:
        saved = await tables.sessions.save(a_session(agent=text))
        assert await tables.sessions.find(text, 1) == [saved]


async def test_what_was_committed_is_read_beside_the_writer(store: Database) -> None:
    async with store.transaction() as tables:
        saved = await tables.sessions.save(a_session())
        assert await store.reading.sessions.get(saved.id) is None
    assert await store.reading.sessions.get(saved.id) == saved


async def _saved(tables: Tables, *values: Session) -> list[Session]:
    return [await tables.sessions.save(value) for value in values]
