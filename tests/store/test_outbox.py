"""The outbox: what collapses, what waits for what, and which message a later one is about."""

import pytest

from jobs.alert.outgoing import Mode, Outgoing
from jobs.store.database import Database, Tables
from jobs.store.outbox import OutboxCounts
from tests.fakes import NOON

MANY = 100


def message(
    body: str,
    mode: Mode = Mode.SEND,
    *,
    subject: str | None = "incident:1",
    chat: str | None = None,
    target: int | None = None,
) -> Outgoing:
    return Outgoing(
        kind="notice", body=body.encode(), mode=mode, subject=subject, chat=chat, target_message=target
    )


async def put(store: Database, *messages: Outgoing) -> list[int]:
    async with store.transaction() as tables:
        return [await tables.outbox.put(each, NOON) for each in messages]


async def send(tables: Tables, queued: int, *, as_message: int) -> None:
    await tables.outbox.lease(queued)
    await tables.outbox.mark_sent(queued, as_message, NOON)


async def due(store: Database, now: float = NOON) -> list[str]:
    return [queued.body for queued in await store.reading.outbox.due(now, MANY)]


# ── edits ─────────────────────────────────────────────────────────────────────────────────────────


async def test_an_edit_takes_the_place_of_a_message_that_still_waits(store: Database) -> None:
    first, edited, again = await put(
        store, message("one"), message("two", Mode.EDIT), message("three", Mode.EDIT)
    )
    assert first == edited == again
    (queued,) = await store.reading.outbox.due(NOON, MANY)
    assert (queued.body, queued.mode) == ("three", Mode.SEND)


async def test_an_edit_takes_the_place_of_an_edit_that_still_waits(store: Database) -> None:
    (first,) = await put(store, message("one"))
    async with store.transaction() as tables:
        await send(tables, first, as_message=41)
    edit, again = await put(store, message("two", Mode.EDIT), message("three", Mode.EDIT))
    assert first != edit == again
    (queued,) = await store.reading.outbox.due(NOON, MANY)
    assert (queued.body, queued.mode, queued.target_message) == ("three", Mode.EDIT, 41)


@pytest.mark.parametrize("mode", [Mode.SEND, Mode.EDIT])
async def test_an_edit_never_changes_a_message_that_is_being_sent(store: Database, mode: Mode) -> None:
    """Its text has been read already: the change would be lost."""
    (first,) = await put(store, message("one", mode))
    async with store.transaction() as tables:
        await tables.outbox.lease(first)
    (edit,) = await put(store, message("two", Mode.EDIT))
    assert edit != first
    assert await due(store) == ["two"]


async def test_an_edit_collapses_again_into_one_that_was_put_off(store: Database) -> None:
    (first,) = await put(store, message("one"))
    async with store.transaction() as tables:
        await tables.outbox.lease(first)
        await tables.outbox.put_off(first, "busy", NOON + 5)
    assert await put(store, message("two", Mode.EDIT)) == [first]
    assert await due(store, NOON + 5) == ["two"]


async def test_an_edit_never_takes_the_place_of_a_reply(store: Database) -> None:
    await put(store, message("stopped", Mode.REPLY), message("two", Mode.EDIT))
    assert await due(store) == ["stopped", "two"]


async def test_an_edit_is_of_its_own_subject_alone(store: Database) -> None:
    await put(
        store,
        message("one", subject="incident:1"),
        message("two", Mode.EDIT, subject="incident:12"),
        message("three", Mode.EDIT, subject=None),
        message("four", Mode.EDIT, subject=None),
    )
    assert await due(store) == ["one", "two", "three", "four"]


@pytest.mark.parametrize("mode", [Mode.SEND, Mode.REPLY])
async def test_nothing_but_an_edit_collapses(store: Database, mode: Mode) -> None:
    await put(store, message("one", mode), message("two", mode))
    assert await due(store) == ["one", "two"]


# ── order ─────────────────────────────────────────────────────────────────────────────────────────


async def test_messages_are_due_oldest_first(store: Database) -> None:
    await put(store, *(message(f"{n}", subject=None) for n in range(5)))
    assert await due(store) == ["0", "1", "2", "3", "4"]
    assert [queued.body for queued in await store.reading.outbox.due(NOON, 2)] == ["0", "1"]


@pytest.mark.parametrize(("chat", "other"), [(None, "-100"), ("-100", None), ("-100/17", "-100/18")])
async def test_one_that_was_put_off_holds_up_its_own_chat_alone(
    store: Database, chat: str | None, other: str | None
) -> None:
    first, _, _ = await put(
        store,
        message("first", subject=None, chat=chat),
        message("second", subject=None, chat=chat),
        message("elsewhere", subject=None, chat=other),
    )
    async with store.transaction() as tables:
        await tables.outbox.put_off(first, "busy", NOON + 5)
    assert await due(store, NOON + 4.9) == ["elsewhere"]
    assert await due(store, NOON + 5) == ["first", "second", "elsewhere"]
    (queued, *_) = await store.reading.outbox.due(NOON + 5, MANY)
    assert queued.attempts == 1


async def test_one_that_was_given_up_holds_up_nothing(store: Database) -> None:
    first, _ = await put(store, message("first"), message("second", Mode.REPLY))
    async with store.transaction() as tables:
        await tables.outbox.put_off(first, "busy", NOON + 5)
        await tables.outbox.park(first, "the bot was blocked")
    assert await due(store) == ["second"]
    assert await store.reading.outbox.counts() == OutboxCounts(waiting=1, parked=1)


async def test_what_was_being_sent_is_queued_again(store: Database) -> None:
    first, second, third = await put(store, *(message(text, subject=None) for text in ("a", "b", "c")))
    async with store.transaction() as tables:
        await tables.outbox.lease(first)
        await send(tables, second, as_message=41)
        await tables.outbox.park(third, "no")
    assert await due(store) == []
    async with store.transaction() as tables:
        await tables.outbox.release_all()
    assert await due(store) == ["a"]


# ── which message ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", [Mode.EDIT, Mode.REPLY])
async def test_a_later_message_is_about_the_one_its_subject_was_sent_as(store: Database, mode: Mode) -> None:
    sent, other = await put(store, message("one"), message("other", subject="incident:2"))
    async with store.transaction() as tables:
        await send(tables, sent, as_message=41)
        await send(tables, other, as_message=42)
    await put(store, message("two", mode))
    (queued,) = await store.reading.outbox.due(NOON, MANY)
    assert queued.target_message == 41


@pytest.mark.parametrize("mode", [Mode.EDIT, Mode.REPLY])
async def test_a_later_message_is_never_about_a_reply(store: Database, mode: Mode) -> None:
    """The buttons and the numbers are in the alert."""
    sent, reply = await put(store, message("alert"), message("stopped", Mode.REPLY))
    async with store.transaction() as tables:
        await send(tables, sent, as_message=41)
        await send(tables, reply, as_message=42)
    await put(store, message("two", mode))
    (queued,) = await store.reading.outbox.due(NOON, MANY)
    assert queued.target_message == 41


async def test_a_subject_that_had_to_be_sent_anew_goes_on_there(store: Database) -> None:
    """An edit of a message that somebody deleted becomes a message."""
    sent, _ = await put(store, message("one"), message("another", Mode.REPLY))
    async with store.transaction() as tables:
        await send(tables, sent, as_message=41)
    (edit,) = await put(store, message("two", Mode.EDIT))
    async with store.transaction() as tables:
        await send(tables, edit, as_message=50)
    await put(store, message("three", Mode.EDIT))
    assert [queued.target_message for queued in await store.reading.outbox.due(NOON, MANY)] == [41, 50]


async def test_a_message_that_was_never_sent_is_nobodys_target(store: Database) -> None:
    (first,) = await put(store, message("one"))
    async with store.transaction() as tables:
        await tables.outbox.park(first, "no")
    await put(store, message("two", Mode.EDIT))
    (queued,) = await store.reading.outbox.due(NOON, MANY)
    assert queued.target_message is None


async def test_an_edit_that_was_given_up_does_not_hide_the_message_it_was_for(store: Database) -> None:
    (first,) = await put(store, message("one"))
    async with store.transaction() as tables:
        await send(tables, first, as_message=41)
    (edit,) = await put(store, message("two", Mode.EDIT))
    async with store.transaction() as tables:
        await tables.outbox.park(edit, "no")
    await put(store, message("three", Mode.EDIT))
    (queued,) = await store.reading.outbox.due(NOON, MANY)
    assert queued.target_message == 41


async def test_a_message_can_name_its_target_itself(store: Database) -> None:
    await put(store, message("answer", Mode.REPLY, subject=None, target=7))
    (queued,) = await store.reading.outbox.due(NOON, MANY)
    assert queued.target_message == 7


async def test_a_message_has_an_id_in_the_chat_once_it_is_sent(store: Database) -> None:
    (queued,) = await put(store, message("one"))
    assert await store.reading.outbox.message_of(queued) is None
    async with store.transaction() as tables:
        await send(tables, queued, as_message=41)
    assert await store.reading.outbox.message_of(queued) == 41
    assert await store.reading.outbox.message_of(queued + 1) is None
