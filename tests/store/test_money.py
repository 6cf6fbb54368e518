"""A database from before money was counted, and messages that were queued then."""

import sqlite3
from dataclasses import replace
from importlib import resources
from pathlib import Path

import msgspec
import pytest

from jobs.alert.notice import AnyNotice, BackNotice, IncidentNotice, Outlook, StopNotice
from jobs.store.database import open_database
from jobs.store.schema import FILE_NAME
from jobs.thrash.beside import Beside, Used
from jobs.thrash.policy import OnDetection
from jobs.thrash.price import MOST
from jobs.thrash.session import count_in
from tests.fakes import NOON
from tests.store.rows import a_session, an_incident

MONEY = "0003_money.sql"
MEMORY = (
    '{"calls":2,"tokens":30,"recent":[[1,5.0,"exec","x",false,false,null],[2,6.0,"exec","x",false,true,9]]}'
)


def before_money(folder: Path) -> None:
    """A session and its incident, as the schema just before kept them."""
    scripts = sorted(
        (entry for entry in resources.files("jobs.store").joinpath("migrations").iterdir()),
        key=lambda entry: entry.name,
    )
    older = [script for script in scripts if script.name.endswith(".sql") and script.name < MONEY]
    connection = sqlite3.connect(folder / FILE_NAME)
    for script in older:
        connection.executescript(script.read_text())
    connection.execute(f"PRAGMA user_version = {len(older)}")
    connection.execute(
        """INSERT INTO session (source, session, agent, first_ts, last_ts, seen_at, errors, memory, streak)
           VALUES ('gateway', 's-1', 'coder', 5, 6, 7, 1, ?, '{}')""",
        (MEMORY,),
    )
    connection.execute(
        """INSERT INTO incident (session_id, agent, source, opened_at, updated_at, first_call, first_ts, tokens_before,
               kind, tool, score, steps, calls, newest_ts, tokens, status)
           VALUES (1, 'coder', 'gateway', 7, 7, 1, 5, 9, 'thrash_loop', 'exec', 8, 1, 2, 6, 21, 'open')"""
    )
    connection.commit()
    connection.close()


async def test_rows_from_before_have_no_money(tmp_path: Path) -> None:
    """And all else that they had."""
    before_money(tmp_path)
    async with open_database(tmp_path) as store:
        session = await store.reading.sessions.get(1)
        incident = await store.reading.incidents.get(1)
    assert session is not None
    assert incident is not None
    assert (session.memory.calls, session.memory.tokens, session.errors) == (2, 30, 1)
    assert (session.memory.cost, session.currency) == (None, None)
    assert [(call.tokens_before, call.cost_before) for call in session.memory.recent] == [
        (None, None),
        (9, None),
    ]
    assert (incident.tokens, incident.tokens_before) == (21, 9)
    assert (incident.cost, incident.cost_before, incident.currency, incident.unpriced) == (
        None,
        None,
        None,
        0,
    )


async def test_such_a_database_counts_money_from_then_on(tmp_path: Path) -> None:
    before_money(tmp_path)
    async with open_database(tmp_path) as store:
        session = await store.reading.sessions.get(1)
        incident = await store.reading.incidents.get(1)
        assert session is not None
        assert incident is not None
        paid = replace(incident, cost_before=1, cost=MOST, currency="EUR", unpriced=30)
        async with store.transaction() as tables:
            await tables.sessions.save(count_in(session, 0, Beside(Used(cost=5)), "EUR"))
            await tables.incidents.save(paid)
    async with open_database(tmp_path) as store:
        assert await store.reading.incidents.get(1) == paid
        counted = await store.reading.sessions.get(1)
    assert counted is not None
    assert (counted.memory.cost, counted.currency) == (5, "EUR")


OUTLOOK = Outlook(can_stop=True, on_detection=OnDetection.STOP, kill_after=3, ask_grace=300)
OPEN = an_incident(a_session())


@pytest.mark.parametrize(
    "notice",
    [
        IncidentNotice(incident=OPEN, outlook=OUTLOOK),
        BackNotice(since=NOON - 60, back_at=NOON, incidents=(OPEN,)),
        StopNotice(
            session=1,
            agent="coder",
            source="gateway",
            incident=OPEN,
            reason="thrash_loop:8",
            outcome="stopped",
            detail="process 1234 has exited",
            took=1,
            ordered_by=None,
            escalated=False,
        ),
    ],
)
def test_a_message_queued_before_can_still_be_sent(notice: AnyNotice) -> None:
    """Its incident has no word of money, and it says nothing of who has started the agent."""
    queued = msgspec.json.encode(notice)
    for name in ("cost_before", "cost", "currency", "starter"):
        queued = queued.replace(f',"{name}":null'.encode(), b"")
    queued = queued.replace(b',"unpriced":0', b"")
    assert b"cost" not in queued
    assert b"starter" not in queued
    assert msgspec.json.decode(queued, type=AnyNotice) == notice
