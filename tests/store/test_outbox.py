"""The outbox: what collapses, what waits for what, and which message a later one is about."""

from dataclasses import replace

import pytest

from jobs.alert.outgoing import Mode, Outgoing, Queued
from jobs.ports import ChatState
from jobs.store.database import Database, Tables
from jobs.store.outbox import OutboxCounts, Sent
from tests.fakes import HOME, NOON
from tests.store.conftest import Undone

OTHER = "-2002"
ABOUT = "incident:1"


def message(
    body: str,
    mode: Mode = Mode.SEND,
    *,
    subject: str | None = ABOUT,
    chat: str | None = None,
    target: int | None = None,
    urgent: bool = False,
) -> Outgoing:
    return Outgoing(
        kind="notice",
        body=body.encode(),
        mode=mode,
        subject=subject,
        chat=chat,
        target_message=target,
        urgent=urgent,
    )


def plain(body: str, *, chat: str | None = None, urgent: bool = False) -> Outgoing:
    """A message about nothing that others are about."""
    return message(body, subject=None, chat=chat, urgent=urgent)


async def put(store: Database, *messages: Outgoing) -> list[int]:
    async with store.transaction() as tables:
        return [await tables.outbox.put(each, NOON) for each in messages]


async def send(tables: Tables, queued: int, *, as_message: int) -> None:
    await tables.outbox.lease(queued)
    await tables.outbox.mark_sent(queued, as_message, NOON)


async def hold(store: Database, address: str, until: float = NOON + 5, *, held_at: float = NOON) -> ChatState:
    chat = ChatState(id=int(address), held_at=held_at, free_at=until)
    async with store.transaction() as tables:
        await tables.chats.save(chat)
    return chat


async def next_due(store: Database) -> Queued:
    queued = await store.reading.outbox.due(NOON, HOME)
    assert queued is not None
    return queued


async def due(undone: Undone, now: float = NOON) -> list[str]:
    """What may be sent, in the order in which it would be, if no chat had to wait after a message."""
    bodies = []
    async with undone() as tables:
        while queued := await tables.outbox.due(now, HOME):
            await tables.outbox.park(queued.id, "seen")
            bodies.append(queued.body)
    return bodies


# ── edits ─────────────────────────────────────────────────────────────────────────────────────────


async def test_an_edit_takes_the_place_of_a_message_that_still_waits(store: Database) -> None:
    first, edited, again = await put(
        store, message("one"), message("two", Mode.EDIT), message("three", Mode.EDIT)
    )
    assert first == edited == again
    queued = await next_due(store)
    assert (queued.body, queued.mode) == ("three", Mode.SEND)


async def test_an_edit_takes_the_place_of_an_edit_that_still_waits(store: Database) -> None:
    (first,) = await put(store, message("one"))
    async with store.transaction() as tables:
        await send(tables, first, as_message=41)
    edit, again = await put(store, message("two", Mode.EDIT), message("three", Mode.EDIT))
    assert first != edit == again
    queued = await next_due(store)
    assert (queued.body, queued.mode, queued.target_message) == ("three", Mode.EDIT, 41)


@pytest.mark.parametrize("mode", [Mode.SEND, Mode.EDIT])
async def test_an_edit_never_changes_a_message_that_is_being_sent(
    store: Database, undone: Undone, mode: Mode
) -> None:
    """Its text has been read already: the change would be lost."""
    (first,) = await put(store, message("one", mode))
    async with store.transaction() as tables:
        await tables.outbox.lease(first)
    (edit,) = await put(store, message("two", Mode.EDIT))
    assert edit != first
    assert [queued.body for queued in await store.reading.outbox.leased(HOME)] == ["one"]
    async with store.transaction() as tables:
        await tables.outbox.mark_sent(first, 41, NOON)
    assert await due(undone) == ["two"]


async def test_an_edit_collapses_again_into_one_that_was_put_back(store: Database) -> None:
    (first,) = await put(store, message("one"))
    async with store.transaction() as tables:
        await tables.outbox.lease(first)
        await tables.outbox.put_back(first, "busy")
    assert await put(store, message("two", Mode.EDIT)) == [first]
    queued = await next_due(store)
    assert (queued.body, queued.attempts) == ("two", 1)


async def test_edits_of_the_same_message_of_a_chat_collapse(store: Database, undone: Undone) -> None:
    """Pages that somebody leafs through: only the last one is of use."""
    first, again, of_another, elsewhere = await put(
        store,
        message("one", Mode.EDIT, subject=None, chat=OTHER, target=7),
        message("two", Mode.EDIT, subject=None, chat=OTHER, target=7),
        message("another", Mode.EDIT, subject=None, chat=OTHER, target=8),
        message("elsewhere", Mode.EDIT, subject=None, chat="-3003", target=7),
    )
    assert first == again
    assert len({first, of_another, elsewhere}) == 3
    assert await due(undone) == ["two", "another", "elsewhere"]


@pytest.mark.parametrize("mode", [Mode.SEND, Mode.REPLY])
async def test_an_edit_never_takes_the_place_of_an_answer_to_the_same_message(
    store: Database, undone: Undone, mode: Mode
) -> None:
    await put(
        store,
        message("answer", mode, subject=None, chat=OTHER, target=7),
        message("two", Mode.EDIT, subject=None, chat=OTHER, target=7),
    )
    assert await due(undone) == ["answer", "two"]


async def test_an_edit_never_takes_the_place_of_a_reply(store: Database, undone: Undone) -> None:
    await put(store, message("stopped", Mode.REPLY), message("two", Mode.EDIT))
    assert await due(undone) == ["stopped", "two"]


async def test_an_edit_is_of_its_own_subject_alone(store: Database, undone: Undone) -> None:
    await put(
        store,
        message("one", subject="incident:1"),
        message("two", Mode.EDIT, subject="incident:12"),
        message("three", Mode.EDIT, subject=None),
        message("four", Mode.EDIT, subject=None),
    )
    assert await due(undone) == ["one", "two", "three", "four"]


@pytest.mark.parametrize("mode", [Mode.SEND, Mode.REPLY])
async def test_nothing_but_an_edit_collapses(store: Database, undone: Undone, mode: Mode) -> None:
    await put(store, message("one", mode), message("two", mode))
    assert await due(undone) == ["one", "two"]


# ── order ─────────────────────────────────────────────────────────────────────────────────────────


async def test_messages_are_due_oldest_first(store: Database, undone: Undone) -> None:
    await put(store, *(plain(f"{n}", chat=OTHER if n % 2 else None) for n in range(5)))
    assert await due(undone) == ["0", "1", "2", "3", "4"]


async def test_an_urgent_message_is_due_before_all_others(store: Database, undone: Undone) -> None:
    """Among themselves urgent ones keep their order."""
    await put(
        store,
        plain("digest"),
        plain("elsewhere", chat=OTHER),
        plain("stopped", urgent=True),
        plain("still running", urgent=True),
    )
    assert await due(undone) == ["stopped", "still running", "digest", "elsewhere"]


async def test_an_alarm_is_due_after_what_is_urgent_and_before_all_others(
    store: Database, undone: Undone
) -> None:
    alarm = replace(plain("new loop"), alarm=True)
    await put(store, plain("digest"), alarm, plain("stopped", urgent=True), alarm)
    assert await due(undone) == ["stopped", "new loop", "new loop", "digest"]


async def test_what_an_urgent_message_answers_goes_before_it(store: Database, undone: Undone) -> None:
    """So does an edit of it; what is said of it later does not."""
    await put(
        store,
        plain("digest"),
        message("alert"),
        message("first answer", Mode.REPLY),
        message("another incident", subject="incident:2"),
        message("stopped", Mode.REPLY, urgent=True),
        message("later answer", Mode.REPLY),
    )
    assert await due(undone) == [
        *("alert", "first answer", "stopped"),
        *("digest", "another incident", "later answer"),
    ]


async def tried(store: Database, queued: int, times: int) -> None:
    async with store.transaction() as tables:
        for _ in range(times):
            await tables.outbox.put_back(queued, "Bad Gateway")


@pytest.mark.parametrize(("times", "is_overtaken"), [(4, False), (5, True)])
async def test_an_urgent_message_that_fails_again_and_again_holds_up_no_other_urgent_one(
    store: Database, undone: Undone, *, times: int, is_overtaken: bool
) -> None:
    """It may be the only one that fails; what is not urgent still waits for it."""
    digest, failing, other = await put(
        store, plain("digest"), plain("failing", urgent=True), plain("stopped", urgent=True)
    )
    assert digest < failing < other
    await tried(store, failing, times)
    urgent = ["stopped", "failing"] if is_overtaken else ["failing", "stopped"]
    assert await due(undone) == [*urgent, "digest"]


@pytest.mark.parametrize("is_urgent", [False, True])
async def test_what_fails_again_and_again_is_not_overtaken_by_its_own_answers(
    store: Database, undone: Undone, *, is_urgent: bool
) -> None:
    """But with them by other urgent messages."""
    alert, *_ = await put(
        store,
        message("alert", urgent=is_urgent),
        message("stopped", Mode.REPLY, urgent=True),
        plain("another", urgent=True),
    )
    await tried(store, alert, 5)
    assert await due(undone) == ["another", "alert", "stopped"]


async def test_what_an_urgent_message_that_was_sent_had_answered_is_not_urgent_any_more(
    store: Database, undone: Undone
) -> None:
    digest, answer, stopped = await put(
        store, plain("digest"), message("answer", Mode.REPLY), message("stopped", Mode.REPLY, urgent=True)
    )
    assert digest < answer
    async with store.transaction() as tables:
        await send(tables, stopped, as_message=41)
    assert await due(undone) == ["digest", "answer"]


# ── what waits ────────────────────────────────────────────────────────────────────────────────────

SAME_CHAT = [(None, None), (None, HOME), (HOME, None), (f"{HOME}/7", None), (OTHER, OTHER)]
SAME_CHAT += [(f"{OTHER}/17", OTHER), (f"{OTHER}/17", f"{OTHER}/18")]


@pytest.mark.parametrize(("chat", "same"), SAME_CHAT)
async def test_a_message_that_is_being_sent_keeps_its_chat_back(
    store: Database, undone: Undone, chat: str | None, same: str | None
) -> None:
    """Its topics, too: order and pace are the chat's. However urgent; and no other chat waits."""
    first, *_ = await put(
        store,
        plain("first", chat=chat),
        plain("second", chat=same, urgent=True),
        plain("elsewhere", chat="-3003"),
    )
    async with store.transaction() as tables:
        await tables.outbox.lease(first)
    assert await due(undone) == ["elsewhere"]
    assert await store.reading.outbox.next_at(NOON, HOME) is None
    async with store.transaction() as tables:
        await tables.outbox.mark_sent(first, 41, NOON)
    assert await due(undone) == ["second", "elsewhere"]


@pytest.mark.parametrize("home", ["-1001/5", "5"])
async def test_home_is_whatever_it_is_called_now(store: Database, home: str) -> None:
    await put(store, plain("to home"), plain("to the chat by its name", chat=home.partition("/")[0]))
    queued = await store.reading.outbox.due(NOON, home)
    assert queued is not None
    assert (queued.chat, queued.chat_id) == (home, int(home.partition("/")[0]))
    async with store.transaction() as tables:
        await tables.outbox.lease(queued.id)
    assert await store.reading.outbox.due(NOON, home) is None
    assert await store.reading.outbox.leased(home) == [queued]


@pytest.mark.parametrize(("chat", "same"), SAME_CHAT)
async def test_a_chat_that_is_held_keeps_its_messages_until_it_is_free(
    store: Database, undone: Undone, chat: str | None, same: str | None
) -> None:
    await put(
        store,
        plain("first", chat=chat),
        plain("second", chat=same, urgent=True),
        plain("elsewhere", chat="-3003"),
    )
    await hold(store, (chat or HOME).partition("/")[0])
    assert await due(undone, NOON + 4.9) == ["elsewhere"]
    assert await due(undone, NOON + 5) == ["second", "first", "elsewhere"]


async def test_a_chat_is_free_when_the_clock_was_set_back(store: Database, undone: Undone) -> None:
    """Otherwise it would wait until the clock has caught up."""
    await put(store, plain("alert"))
    await hold(store, HOME, NOON + 5)
    assert await due(undone, NOON) == []
    assert await due(undone, NOON - 3600) == ["alert"]


@pytest.mark.parametrize(("back", "is_free"), [(0.5, False), (1.0, False), (1.1, True)])
async def test_a_clock_that_is_only_adjusted_frees_no_chat(
    store: Database, undone: Undone, *, back: float, is_free: bool
) -> None:
    """By up to a second; else the pace would be lost whenever the machine's clock is corrected."""
    await put(store, plain("alert"))
    await hold(store, HOME, NOON + 5)
    assert await due(undone, NOON - back) == (["alert"] if is_free else [])
    expected = None if is_free else NOON + 5
    assert await store.reading.outbox.next_at(NOON - back, HOME) == expected


async def test_it_is_known_when_the_next_message_will_be_due(store: Database) -> None:
    """Of those that wait for their chat alone: what is due now, or behind one that is being sent, is not asked for."""
    outbox = store.reading.outbox
    await hold(store, HOME, NOON + 30)
    await hold(store, OTHER, NOON + 20)
    await hold(store, "-3003", NOON + 10)
    await hold(store, "-4004", NOON + 5)
    assert await outbox.next_at(NOON, HOME) is None
    *_, being_sent, _ = await put(
        store,
        plain("at 30"),
        plain("at 20", chat=f"{OTHER}/17"),
        plain("now", chat="-5005"),
        plain("being sent", chat="-3003"),
        plain("behind it", chat="-3003"),
    )
    async with store.transaction() as tables:
        await tables.outbox.lease(being_sent)
    assert await outbox.next_at(NOON, HOME) == NOON + 20
    assert await outbox.next_at(NOON + 20, HOME) == NOON + 30
    assert await outbox.next_at(NOON + 30, HOME) is None


async def test_one_that_was_given_up_holds_up_nothing(store: Database, undone: Undone) -> None:
    first, _ = await put(store, message("first"), message("second", Mode.REPLY))
    async with store.transaction() as tables:
        await tables.outbox.lease(first)
        await tables.outbox.park(first, "the bot was blocked")
    assert await due(undone) == ["second"]
    assert await store.reading.outbox.counts(NOON) == OutboxCounts(waiting=1, parked=1)


async def test_what_is_being_sent_is_known_and_can_be_put_back(store: Database, undone: Undone) -> None:
    first, second, third, fourth = await put(
        store, plain("a"), plain("b"), plain("c"), plain("d", chat=OTHER)
    )
    async with store.transaction() as tables:
        await send(tables, second, as_message=41)
        await tables.outbox.park(third, "no")
        await tables.outbox.lease(fourth)
        await tables.outbox.lease(first)
    assert await due(undone) == []
    leased = await store.reading.outbox.leased(HOME)
    assert [(queued.id, queued.chat) for queued in leased] == [(first, HOME), (fourth, OTHER)]
    assert await store.reading.outbox.counts(NOON) == OutboxCounts(waiting=2, parked=1)
    async with store.transaction() as tables:
        for queued in leased:
            await tables.outbox.put_back(queued.id, "interrupted")
    assert await store.reading.outbox.leased(HOME) == []
    assert await due(undone) == ["a", "d"]


# ── a chat that moves ─────────────────────────────────────────────────────────────────────────────


async def test_what_waits_for_a_chat_follows_it(store: Database) -> None:
    """Its topics stay behind: the new chat has none yet. Other chats, and home, stay what they are."""
    ids = await put(
        store,
        *(plain(f"{chat}", chat=chat) for chat in (OTHER, f"{OTHER}/17", f"{OTHER}0", None)),
        plain("being sent", chat=OTHER),
    )
    async with store.transaction() as tables:
        await tables.outbox.lease(ids[-1])
        await tables.outbox.move(int(OTHER), -3003, HOME)
    [leased] = await store.reading.outbox.leased(HOME)
    assert leased.chat == "-3003"
    async with store.transaction() as tables:
        await tables.outbox.put_back(leased.id, "moved")
        chats = []
        while queued := await tables.outbox.due(NOON, HOME):
            await tables.outbox.park(queued.id, "seen")
            chats.append(queued.chat)
    assert chats == ["-3003", "-3003", f"{OTHER}0", HOME, "-3003"]


async def test_the_message_ids_of_a_chat_that_moved_are_forgotten(store: Database) -> None:
    """In the new one they are other messages: what would have been an edit is a new message there."""
    sent, elsewhere = await put(
        store, message("alert"), message("elsewhere", subject="incident:2", chat=OTHER)
    )
    async with store.transaction() as tables:
        await send(tables, sent, as_message=41)
        await send(tables, elsewhere, as_message=42)
        await tables.outbox.move(int(HOME), -3003, HOME)
    assert await store.reading.outbox.sent(sent) is None
    await put(
        store,
        message("step 2", Mode.EDIT),
        message("answer", Mode.REPLY, subject="incident:2", chat=OTHER),
    )
    assert (await next_due(store)).target_message is None
    assert await store.reading.outbox.sent(elsewhere) == Sent(message=42, at=NOON)


async def test_a_message_that_names_its_target_does_not_take_it_along(store: Database) -> None:
    await put(store, message("answer", Mode.REPLY, subject=None, chat=OTHER, target=7))
    async with store.transaction() as tables:
        await tables.outbox.move(int(OTHER), -3003, HOME)
    queued = await next_due(store)
    assert (queued.chat, queued.target_message) == ("-3003", None)


# ── which message ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", [Mode.EDIT, Mode.REPLY])
async def test_a_later_message_is_about_the_one_its_subject_was_sent_as(store: Database, mode: Mode) -> None:
    sent, other = await put(store, message("one"), message("other", subject="incident:2"))
    async with store.transaction() as tables:
        await send(tables, sent, as_message=41)
        await send(tables, other, as_message=42)
    await put(store, message("two", mode))
    queued = await next_due(store)
    assert queued.target_message == 41


@pytest.mark.parametrize("mode", [Mode.EDIT, Mode.REPLY])
async def test_a_later_message_is_never_about_a_reply(store: Database, mode: Mode) -> None:
    """The buttons and the numbers are in the alert."""
    sent, reply = await put(store, message("alert"), message("stopped", Mode.REPLY))
    async with store.transaction() as tables:
        await send(tables, sent, as_message=41)
        await send(tables, reply, as_message=42)
    await put(store, message("two", mode))
    queued = await next_due(store)
    assert queued.target_message == 41


async def test_a_subject_that_had_to_be_sent_anew_goes_on_there(store: Database) -> None:
    """An edit of a message that somebody deleted becomes a message."""
    sent, reply = await put(store, message("one"), message("another", Mode.REPLY))
    async with store.transaction() as tables:
        await send(tables, sent, as_message=41)
    (edit,) = await put(store, message("two", Mode.EDIT))
    async with store.transaction() as tables:
        await send(tables, edit, as_message=50)
    await put(store, message("three", Mode.EDIT))
    assert (await next_due(store)).target_message == 41
    async with store.transaction() as tables:
        await tables.outbox.park(reply, "no")
    assert (await next_due(store)).target_message == 50


async def test_a_message_that_was_never_sent_is_nobodys_target(store: Database) -> None:
    (first,) = await put(store, message("one"))
    async with store.transaction() as tables:
        await tables.outbox.park(first, "no")
    await put(store, message("two", Mode.EDIT))
    queued = await next_due(store)
    assert queued.target_message is None


async def test_an_edit_that_was_given_up_does_not_hide_the_message_it_was_for(store: Database) -> None:
    (first,) = await put(store, message("one"))
    async with store.transaction() as tables:
        await send(tables, first, as_message=41)
    (edit,) = await put(store, message("two", Mode.EDIT))
    async with store.transaction() as tables:
        await tables.outbox.park(edit, "no")
    await put(store, message("three", Mode.EDIT))
    queued = await next_due(store)
    assert queued.target_message == 41


async def test_a_message_can_name_its_target_itself(store: Database) -> None:
    await put(store, message("answer", Mode.REPLY, subject=None, target=7))
    queued = await next_due(store)
    assert queued.target_message == 7


async def test_it_is_known_whether_a_message_was_new_after_a_time(store: Database) -> None:
    """An edit is none that was, nor is one that was given up."""
    outbox = store.reading.outbox
    (first,) = await put(store, message("one"))
    told = [await outbox.is_told(*asked) for asked in ((ABOUT, NOON - 1), (ABOUT, NOON), ("other", NOON - 1))]
    assert told == [True, False, False]
    async with store.transaction() as tables:
        await tables.outbox.park(first, "no")
    await put(store, message("two", Mode.EDIT))
    assert not await outbox.is_told(ABOUT, NOON - 1)


async def test_a_message_has_an_id_in_the_chat_and_a_time_once_it_is_sent(store: Database) -> None:
    (queued,) = await put(store, message("one"))
    assert await store.reading.outbox.sent(queued) is None
    async with store.transaction() as tables:
        await tables.outbox.lease(queued)
        await tables.outbox.mark_sent(queued, 41, NOON + 7)
    assert await store.reading.outbox.sent(queued) == Sent(message=41, at=NOON + 7)
    assert await store.reading.outbox.sent(queued + 1) is None


async def test_a_message_whose_id_in_the_chat_is_not_known_is_sent_and_nobodys_target(
    store: Database, undone: Undone
) -> None:
    (queued,) = await put(store, message("one"))
    async with store.transaction() as tables:
        await tables.outbox.lease(queued)
        await tables.outbox.mark_sent(queued, None, NOON)
    assert await store.reading.outbox.sent(queued) is None
    assert await due(undone) == []
    await put(store, message("two", Mode.EDIT))
    assert (await next_due(store)).target_message is None


async def test_an_edit_whose_id_is_not_known_does_not_hide_the_message_it_was_for(store: Database) -> None:
    (first,) = await put(store, message("one"))
    async with store.transaction() as tables:
        await send(tables, first, as_message=41)
    (edit,) = await put(store, message("two", Mode.EDIT))
    async with store.transaction() as tables:
        await tables.outbox.lease(edit)
        await tables.outbox.mark_sent(edit, None, NOON)
    await put(store, message("three", Mode.EDIT))
    assert (await next_due(store)).target_message == 41


async def test_what_was_said_anew_since_it_was_given_up_stays_given_up(
    store: Database, undone: Undone
) -> None:
    """Or the first word would be the last one; an answer, and what was given up again, is not said anew by that."""
    first, answer, second, other = await put(
        store,
        message("step 1"),
        message("answer", Mode.REPLY),
        message("another answer", Mode.REPLY),
        message("other", subject="incident:2"),
    )
    async with store.transaction() as tables:
        for queued in (first, answer, second, other):
            await tables.outbox.park(queued, "blocked")
    edit, gone = await put(
        store, message("step 2", Mode.EDIT), message("other 2", Mode.EDIT, subject="incident:2")
    )
    async with store.transaction() as tables:
        await send(tables, edit, as_message=41)
        await tables.outbox.park(gone, "blocked")
        assert await tables.outbox.unpark(int(HOME), NOON, HOME) == 4
    assert await due(undone) == ["answer", "another answer", "other", "other 2"]


# ── given up, and sent after all ──────────────────────────────────────────────────────────────────


async def test_only_what_was_given_up_lately_is_counted_and_all_that_waits(store: Database) -> None:
    """By when it was said: what is old is no news, given up or not."""
    for now in (NOON, NOON + 10, NOON + 20):
        async with store.transaction() as tables:
            await tables.outbox.put(plain("waits"), now)
            await tables.outbox.park(await tables.outbox.put(plain("given up"), now), "no")
    for since, parked in ((NOON, 3), (NOON + 1, 2), (NOON + 20, 1), (NOON + 21, 0)):
        assert await store.reading.outbox.counts(since) == OutboxCounts(waiting=3, parked=parked)


@pytest.mark.parametrize("chat", [None, HOME, f"{HOME}/7"])
async def test_what_was_given_up_for_a_chat_can_be_queued_again(
    store: Database, undone: Undone, chat: str | None
) -> None:
    """With its topics, in its order; what is too old stays given up, and so does what is of another chat."""
    async with store.transaction() as tables:
        for body, where, at in (
            ("too old", chat, NOON - 1),
            ("first", chat, NOON),
            ("second", chat, NOON + 5),
            ("of another", OTHER, NOON + 5),
        ):
            await tables.outbox.park(await tables.outbox.put(plain(body, chat=where), at), "blocked")
        assert await tables.outbox.unpark(int(HOME), NOON, HOME) == 2
        assert await tables.outbox.unpark(int(HOME), NOON, HOME) == 0
    assert await due(undone, NOON + 5) == ["first", "second"]
    assert await store.reading.outbox.counts(0) == OutboxCounts(waiting=2, parked=2)


async def test_a_digest_that_was_given_up_is_sent_however_late(store: Database, undone: Undone) -> None:
    """And is kept until it is."""
    async with store.transaction() as tables:
        for body, subject in (("alert", "incident:1"), ("digest", "digest:2026-W48")):
            queued = await tables.outbox.put(message(body, subject=subject), NOON - 1)
            await tables.outbox.park(queued, "blocked")
        await tables.delete_older_than(NOON, 99)
        assert await tables.outbox.unpark(int(HOME), NOON, HOME) == 1
        assert await tables.outbox.unpark(int(HOME), 0, HOME) == 0
    assert await due(undone) == ["digest"]


async def test_what_was_sent_is_never_queued_again(store: Database, undone: Undone) -> None:
    (queued,) = await put(store, plain("alert"))
    async with store.transaction() as tables:
        await send(tables, queued, as_message=41)
        assert await tables.outbox.unpark(int(HOME), 0, HOME) == 0
    assert await due(undone) == []


async def test_it_is_known_what_kept_a_message_from_being_sent_the_last_time(store: Database) -> None:
    """And forgotten once it is sent."""
    (queued,) = await put(store, message("one"))
    assert (await next_due(store)).error is None
    for why in ("no network", "busy"):
        async with store.transaction() as tables:
            await tables.outbox.lease(queued)
            await tables.outbox.put_back(queued, why)
        assert (await next_due(store)).error == why
