"""The inbox: every update is kept once, handed out in order, and remembered after it was handled."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from jobs.store.database import Database
from tests.fakes import NOON
from tests.store.conftest import Undone, drawing

BOT, ANOTHER = 42, 43
DAY = 86_400.0


async def add(store: Database, *updates: int, bot: int = BOT, now: float = NOON, body: str = "new") -> None:
    async with store.transaction() as tables:
        await tables.inbox.add(bot, {update: f"{update} {body}" for update in updates}, now)


async def waiting(store: Database, bot: int = BOT) -> str | None:
    """What is in the update to be handled next."""
    received = await store.reading.inbox.next(bot)
    return None if received is None else received.body


async def handle(store: Database, bot: int = BOT) -> int:
    async with store.transaction() as tables:
        received = await tables.inbox.next(bot)
        assert received is not None
        await tables.inbox.mark_handled(received.id)
        return received.update_id


async def set_aside(store: Database, why: str = "text: missing") -> None:
    async with store.transaction() as tables:
        received = await tables.inbox.next(BOT)
        assert received is not None
        await tables.inbox.set_aside(received.id, why)


async def rows(store: Database, column: str) -> list[object]:
    sql = f"SELECT {column} FROM inbox ORDER BY id"  # noqa: S608 - names from here
    return [value for (value,) in await store.reading.connection.execute_fetchall(sql)]


# ── order ─────────────────────────────────────────────────────────────────────────────────────────


async def test_nothing_waits_in_an_empty_inbox(store: Database) -> None:
    assert await waiting(store) is None
    await add(store)
    assert await waiting(store) is None


async def test_updates_are_handed_out_in_the_order_of_arrival(store: Database) -> None:
    """Not in that of their ids, which Telegram may begin anew."""
    await add(store, 7, 8)
    await add(store, 3)
    assert [await handle(store) for _ in range(3)] == [7, 8, 3]
    assert await waiting(store) is None


async def test_an_update_is_handed_out_until_it_is_handled(store: Database) -> None:
    await add(store, 7, 8)
    assert await waiting(store) == await waiting(store) == "7 new"
    await handle(store)
    assert await waiting(store) == "8 new"


async def test_it_is_known_when_an_update_came(store: Database) -> None:
    await add(store, 7)
    received = await store.reading.inbox.next(BOT)
    assert received is not None
    assert (received.update_id, received.received_at) == (7, NOON)


# ── once ──────────────────────────────────────────────────────────────────────────────────────────


async def test_an_update_that_is_delivered_again_is_kept_as_it_was(store: Database) -> None:
    await add(store, 7)
    await add(store, 7, 8, now=NOON + 30, body="again")
    received = await store.reading.inbox.next(BOT)
    assert received is not None
    assert (received.body, received.received_at) == ("7 new", NOON)
    assert [await handle(store) for _ in range(2)] == [7, 8]
    assert await waiting(store) is None


async def test_an_update_that_was_handled_is_not_handed_out_again(store: Database) -> None:
    """Telegram delivers for a day what was not confirmed."""
    await add(store, 7)
    await handle(store)
    for now in (NOON, NOON + DAY, NOON + 2 * DAY):
        await add(store, 7, now=now, body="again")
        assert await waiting(store) is None


async def test_after_two_days_it_is_forgotten_that_an_update_was_handled(store: Database) -> None:
    """By then its id may be another one's."""
    await add(store, 7)
    await handle(store)
    await add(store, now=NOON + 2 * DAY + 1)
    assert await rows(store, "update_id") == []
    await add(store, 7, now=NOON + 2 * DAY + 1, body="another")
    assert await waiting(store) == "7 another"


async def test_what_has_waited_for_long_or_was_set_aside_is_not_forgotten(store: Database) -> None:
    await add(store, 7, 8)
    await set_aside(store)
    await add(store, 9, now=NOON + 10 * DAY)
    assert await rows(store, "update_id") == [7, 8, 9]


async def test_what_was_in_an_update_is_forgotten_once_it_is_handled(store: Database) -> None:
    """People wrote it."""
    await add(store, 7, 8)
    await handle(store)
    assert await rows(store, "body") == ["", "8 new"]


@drawing
@given(
    polls=st.lists(
        st.dictionaries(st.integers(0, 9), st.text(max_size=3), max_size=4)
        | st.sampled_from(["handle", "set aside"]),
        max_size=20,
    )
)
async def test_however_often_an_update_is_delivered_it_is_handed_out_until_handled_and_no_longer(
    undone: Undone, polls: list[Mapping[int, str] | str]
) -> None:
    first: dict[int, str] = {}
    done: list[int] = []
    async with undone() as tables:
        for poll in polls:
            if isinstance(poll, str):
                if received := await tables.inbox.next(BOT):
                    done.append(received.update_id)
                    assert received.body == first[received.update_id]
                    if poll == "handle":
                        await tables.inbox.mark_handled(received.id)
                    else:
                        await tables.inbox.set_aside(received.id, "no")
                continue
            await tables.inbox.add(BOT, poll, NOON)
            for update, body in poll.items():
                first.setdefault(update, body)
        while received := await tables.inbox.next(BOT):
            done.append(received.update_id)
            await tables.inbox.mark_handled(received.id)
    assert done == list(first)


# ── another bot ───────────────────────────────────────────────────────────────────────────────────


async def test_the_updates_of_another_bot_are_not_handed_out(store: Database) -> None:
    """Nor taken for this one's: every bot counts its own."""
    await add(store, 7, bot=ANOTHER)
    assert await waiting(store) is None
    await add(store, 7)
    await handle(store)
    assert await waiting(store, ANOTHER) == "7 new"
    await add(store, 7, bot=ANOTHER)
    assert await handle(store, ANOTHER) == 7
    assert await waiting(store, ANOTHER) is None


# ── set aside ─────────────────────────────────────────────────────────────────────────────────────


async def test_an_update_that_is_not_understood_is_kept_and_counted_and_holds_up_nothing(
    store: Database,
) -> None:
    assert await store.reading.inbox.count_set_aside(NOON) == 0
    await add(store, 7, 8)
    await set_aside(store, "message.chat: missing")
    assert await store.reading.inbox.count_set_aside(NOON) == 1
    assert await waiting(store) == "8 new"
    assert await rows(store, "body") == ["7 new", "8 new"]
    assert await rows(store, "error") == ["message.chat: missing", None]


async def test_only_what_came_lately_is_counted_as_set_aside(store: Database) -> None:
    """By when it was received."""
    for update in (7, 8):
        await add(store, update, now=NOON + update)
        await set_aside(store)
    counted = [await store.reading.inbox.count_set_aside(NOON + since) for since in (7, 8, 9)]
    assert counted == [2, 1, 0]


async def test_an_update_that_was_set_aside_is_not_handed_out_again(store: Database) -> None:
    await add(store, 7)
    await set_aside(store)
    await add(store, 7, body="again")
    assert await waiting(store) is None
    assert await store.reading.inbox.count_set_aside(NOON) == 1


# ── old rows ──────────────────────────────────────────────────────────────────────────────────────


async def test_old_updates_are_deleted_whatever_became_of_them(store: Database) -> None:
    """What still waits after months is of a bot that is no longer used."""
    await add(store, 7)
    await add(store, 1, bot=ANOTHER)
    await set_aside(store)
    await add(store, 8, now=NOON + 1)
    async with store.transaction() as tables:
        assert await tables.delete_older_than(NOON, 99) == 0
        assert await tables.delete_older_than(NOON + 1, 99) == 2
    assert await rows(store, "update_id") == [8]
    assert await store.reading.inbox.count_set_aside(NOON) == 0
