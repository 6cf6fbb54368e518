"""What was sent stays for months, and no question reads it all to find what waits."""

from jobs.alert.outgoing import Mode, Outgoing
from jobs.store.database import Database
from tests.fakes import NOON

HOME = "1"


async def test_what_waits_is_found_by_an_index(store: Database) -> None:
    asked: list[str] = []
    async with store.transaction() as tables:
        await tables.connection.set_trace_callback(asked.append)
        edit = Outgoing(kind="notice", body=b"{}", mode=Mode.EDIT, subject="incident:1", chat=HOME)
        await tables.outbox.put(edit, NOON)
        await tables.outbox.due(NOON, HOME)
        await tables.outbox.next_at(NOON, HOME)
        await tables.outbox.leased(HOME)
        await tables.outbox.counts(NOON)
        await tables.connection.set_trace_callback(lambda _: None)
    questions = [sql for sql in asked if sql.lstrip().startswith("SELECT")]
    assert len(questions) == 5
    for sql in questions:
        plan = await store.reading.connection.execute_fetchall(f"EXPLAIN QUERY PLAN {sql}")
        steps = [f"{detail}" for *_, detail in plan]
        assert not [step for step in steps if step.startswith(("SCAN o", "SCAN s")) and "INDEX" not in step]
