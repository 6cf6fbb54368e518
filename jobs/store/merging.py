"""What commands have recorded in the file while the bot was in memory, made to fit what the bot brings back."""

from typing import Any, Final

import aiosqlite

_OF_ANOTHER_ID: Final = "SELECT id FROM run WHERE workflow = ? AND key = ? AND id <> ?"
# A run that the chat was told of needs no second alert.
_TOLD_TWICE: Final = "DELETE FROM outbox WHERE subject = 'run:' || :old AND mode = 'send' AND :told"
_MOVE: Final = (
    "UPDATE verdict SET run_id = :new WHERE run_id = :old",
    "UPDATE report SET run_id = :new WHERE run_id = :old",
    "UPDATE workflow SET last_run = :new WHERE last_run = :old",
    "UPDATE workflow SET alerted_run = :new WHERE alerted_run = :old",
    "UPDATE outbox SET subject = 'run:' || :new WHERE subject = 'run:' || :old",
    # The run that an alert shows may be a later one than it was told of.
    *(
        f"""UPDATE outbox SET body = json_replace(body, '$.{name}', :new)
            WHERE subject BETWEEN 'run:' AND 'run;' AND json_extract(body, '$.{name}') = :old"""  # noqa: S608 - constants
        for name in ("run", "alert")
    ),
)
_MOVE_WORKFLOW: Final = """UPDATE outbox SET body = json_replace(body, '$.workflow_id', :new)
    WHERE subject BETWEEN 'run:' AND 'run;' AND json_extract(body, '$.workflow_id') = :old"""
_STANDING: Final = """UPDATE workflow SET last_run = :last_run, failures = :failures, alerted_run = :alerted_run
    WHERE name = :name AND coalesce(last_run, 0) < :last_run"""


async def rename_runs(source: aiosqlite.Connection, target: aiosqlite.Connection) -> None:
    """Give what both know the ids that it has in `source`, which the chat has heard of."""
    for new, workflow, key in await source.execute_fetchall("SELECT id, workflow, key FROM run"):
        for (old,) in await target.execute_fetchall(_OF_ANOTHER_ID, (workflow, key, new)):
            ids = {"old": old, "new": new, "told": await _is_told(source, new)}
            for sql in (_TOLD_TWICE, *_MOVE):
                await target.execute(sql, ids)
    for new, name in await source.execute_fetchall("SELECT id, name FROM workflow"):
        sql = "SELECT id FROM workflow WHERE name = ? AND id <> ?"
        for (old,) in await target.execute_fetchall(sql, (name, new)):
            await target.execute(_MOVE_WORKFLOW, {"old": old, "new": new})


async def _is_told(source: aiosqlite.Connection, run_id: int) -> bool:
    sql = "SELECT 1 FROM outbox WHERE subject = 'run:' || ? AND mode = 'send'"
    return bool(await source.execute_fetchall(sql, (run_id,)))


async def standings(target: aiosqlite.Connection) -> list[dict[str, Any]]:
    """Return how the workflows stand by what is in the file."""
    names = ("name", "last_run", "failures", "alerted_run")
    sql = "SELECT name, last_run, failures, alerted_run FROM workflow WHERE last_run IS NOT NULL"
    return [dict(zip(names, row, strict=True)) for row in await target.execute_fetchall(sql)]


async def keep_newer(target: aiosqlite.Connection, theirs: list[dict[str, Any]]) -> None:
    """Let a workflow stand as it did in the file, where that had a newer run than what was brought back."""
    await target.executemany(_STANDING, theirs)


async def count_newest(source: aiosqlite.Connection, target: aiosqlite.Connection) -> None:
    """Let the newest verdict count of each run that `source` knows, whoever has recorded it."""
    sql = "UPDATE verdict SET is_newest = id = (SELECT max(id) FROM verdict WHERE run_id = ?1) WHERE run_id = ?1"
    await target.executemany(sql, await source.execute_fetchall("SELECT id FROM run"))


async def lacks_pins(source: aiosqlite.Connection, target: aiosqlite.Connection) -> bool:
    """Whether there are pins in `target`, of a bot or a person, that were not known in `source`.

    Then what was pinned there at first sight was so for want of what is approved: the next look decides anew.
    """
    rows = await target.execute_fetchall("SELECT id FROM pin WHERE how <> 'first verify'")
    known = await source.execute_fetchall("SELECT id FROM pin")
    return not {pin_id for (pin_id,) in rows} <= {pin_id for (pin_id,) in known}
