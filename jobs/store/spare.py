"""Takes what guarding needs from one database to another: into memory when the file fails, and back."""

from typing import Final

import aiosqlite

from jobs.store.merging import count_newest, keep_newer, lacks_pins, rename_runs, standings

# Of every workflow those that new ones are compared with, and those of the run whose alert is open.
_LATE_VERDICTS: Final = """SELECT id FROM verdict WHERE run_id IN (SELECT alerted_run FROM workflow)
    UNION ALL SELECT v.id FROM workflow w CROSS JOIN verdict v WHERE v.workflow = w.name AND v.id >= (
        SELECT min(id) FROM (SELECT id FROM verdict l WHERE l.workflow = w.name ORDER BY id DESC LIMIT 40))"""

_LIVE: Final = {
    "presence": "true",
    "cursor": "true",
    # Of the last day, and all that something refers to.
    "session": """seen_at > (SELECT max(seen_at) FROM session) - 86400
        OR id IN (SELECT session_id FROM incident WHERE closed_at IS NULL)
        OR id IN (SELECT session_id FROM stop WHERE state <> 'over')""",
    "incident": "closed_at IS NULL OR id IN (SELECT incident_id FROM stop WHERE state <> 'over')",
    "stop": "state <> 'over'",
    "confirmation": "used_at IS NULL",
    "workflow": "true",
    "report": "true",
    "run": f"id IN (SELECT run_id FROM verdict WHERE id IN ({_LATE_VERDICTS}))",  # noqa: S608 - constants
    "verdict": f"id IN ({_LATE_VERDICTS})",
    # All of it, for what was approved is what is enforced.
    "pin": "true",
    "proposal": "true",
    "good_output": "true",
    "selftest": "id IN (SELECT max(id) FROM selftest GROUP BY workflow)",
    "absence": "until > (SELECT max(until) FROM absence) - 14 * 86400",
    "digest": "until > (SELECT max(until) FROM digest) - 14 * 86400",
    "run_figure": "true",
    "check_figure": "true",
    # With what was handled of late, lest it is taken for new.
    "inbox": "true",
    "chat": "true",
    # With the messages that later ones edit or answer.
    "outbox": """state IN ('queued', 'sending')
        OR subject IN (SELECT 'incident:' || id FROM incident WHERE closed_at IS NULL)
        OR subject IN (SELECT 'question:' || id FROM incident WHERE closed_at IS NULL)
        OR subject BETWEEN 'pin:' AND 'pin;'
        OR subject BETWEEN 'run:' AND 'run;' AND created_at > (SELECT max(created_at) FROM outbox) - 7 * 86400
        OR id IN (SELECT outgoing_id FROM confirmation WHERE used_at IS NULL)""",
    # So that an id is never given twice.
    "sqlite_sequence": "true",
}

_NUMBERED: Final = (
    *("session", "incident", "stop", "inbox", "outbox"),
    *("workflow", "report", "run", "verdict"),
    *("pin", "proposal", "selftest", "absence", "digest"),
)
_FAR_AHEAD: Final = 1_000_000_000
"""An id that no database has come to."""
_WRITTEN_BESIDE: Final = ("workflow", "run", "verdict", "outbox", "pin", "selftest")
_NO_FIRST_USE: Final = "how <> 'first use'"
_GAP: Final = 100_000
"""Ids that are left to the commands that may still write to the file."""


async def copy_live_rows(source: aiosqlite.Connection | None, target: aiosqlite.Connection) -> bool:
    """Copy what is still going on; what cannot be read is begun anew, with ids that no earlier row can have.

    Return whether all of it could be read.
    """
    await target.execute("PRAGMA foreign_keys = OFF")
    missing = [
        table for table, is_live in _LIVE.items() if not await _is_copied(source, target, table, is_live)
    ]
    for table in _NUMBERED if missing else _WRITTEN_BESIDE:
        start = _FAR_AHEAD if missing else await _sequence(target, table) + _GAP
        await target.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
        await target.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, start))
    return not missing


async def _sequence(connection: aiosqlite.Connection, table: str) -> int:
    sql = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ?"
    [(seq,)] = await connection.execute_fetchall(sql, (table,))
    return int(seq)


async def bring_back(source: aiosqlite.Connection, target: aiosqlite.Connection) -> None:
    """Copy every row, in one transaction; rows with the same key are overwritten. Raises if that fails."""
    # Rows refer to each other, and not always to earlier ones.
    await target.execute("PRAGMA foreign_keys = OFF")
    await target.execute("BEGIN IMMEDIATE")
    try:
        # Nobody sends by the leases of an earlier life; those of this one come from memory.
        await target.execute("UPDATE outbox SET state = 'queued' WHERE state = 'sending'")
        if await _sequence(source, "report") < _FAR_AHEAD:
            # All were known in memory: those that are not there any more have their verdict.
            await target.execute("DELETE FROM report")
        await rename_runs(source, target)
        theirs = await standings(target)
        is_behind = await lacks_pins(source, target)
        for table in _LIVE:
            await _copy(source, target, table, _NO_FIRST_USE if is_behind and table == "pin" else "true")
        await keep_newer(target, theirs)
        await count_newest(source, target)
        for table in ("confirmation", "stop", "incident"):
            # Of a session that is known under another id by now.
            await target.execute(f"DELETE FROM {table} WHERE session_id NOT IN (SELECT id FROM session)")  # noqa: S608
        await target.commit()
    except BaseException:
        await target.rollback()
        raise
    await target.execute("PRAGMA foreign_keys = ON")


async def _is_copied(
    source: aiosqlite.Connection | None, target: aiosqlite.Connection, table: str, is_live: str
) -> bool:
    if source is None:
        return False
    try:
        await _copy(source, target, table, is_live)
    except aiosqlite.Error:
        return False
    return True


async def _copy(source: aiosqlite.Connection, target: aiosqlite.Connection, table: str, where: str) -> None:
    if table == "sqlite_sequence":
        await target.execute("DELETE FROM sqlite_sequence")
    # By name, since the file of another release may have other columns, or the same in another order.
    names = ", ".join(await _columns(source, table) & await _columns(target, table))
    rows = await source.execute_fetchall(f"SELECT {names} FROM {table} WHERE {where}")  # noqa: S608 - names from above
    marks = ", ".join("?" * (names.count(",") + 1))
    sql = f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({marks})"  # noqa: S608
    await target.executemany(sql, rows)


async def _columns(connection: aiosqlite.Connection, table: str) -> set[str]:
    rows = await connection.execute_fetchall(f"SELECT name FROM pragma_table_xinfo('{table}')")  # noqa: S608
    return {f"{name}" for (name,) in rows}
