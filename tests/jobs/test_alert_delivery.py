"""Delivery: nothing is lost, nothing overtakes, what may work later is tried later."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.alert.outgoing import Mode, Outgoing
from jobs.alert_delivery import AlertDelivery
from jobs.ports import NotifyError, Queued
from jobs.store.database import Database, open_database
from jobs.store.outbox import OutboxCounts
from tests.fakes import HandClock, ScriptedNotifier

LONG_OUTAGE = 1100
"""Attempts at one message: some days."""


class Post:
    """A chat, and the job that delivers to it."""

    def __init__(self, store: Database, chat: ScriptedNotifier | None = None) -> None:
        self.store = store
        self.clock = HandClock()
        self.chat = chat or ScriptedNotifier()
        self.deliver = AlertDelivery(store=store, notifier=self.chat, clock=self.clock)

    async def put(
        self, body: str, mode: Mode = Mode.SEND, *, subject: str | None = None, chat: str | None = None
    ) -> int:
        outgoing = Outgoing(kind="notice", body=body.encode(), mode=mode, subject=subject, chat=chat)
        async with self.store.transaction() as tables:
            return await tables.outbox.put(outgoing, self.clock.now())

    @property
    def sent(self) -> list[str]:
        return [message.body for message in self.chat.sent]

    async def counts(self) -> OutboxCounts:
        return await self.store.reading.outbox.counts()


@pytest.fixture
def post(store: Database) -> Post:
    return Post(store)


def busy(retry_after: float | None = None) -> NotifyError:
    return NotifyError("too many requests", permanent=False, retry_after=retry_after)


# ── sent ──────────────────────────────────────────────────────────────────────────────────────────


async def test_what_is_due_is_sent_oldest_first_and_once(post: Post) -> None:
    for n in range(3):
        await post.put(f"{n}")
    await post.deliver()
    await post.deliver()
    assert post.sent == ["0", "1", "2"]
    assert await post.counts() == OutboxCounts(waiting=0, parked=0)


async def test_a_reply_finds_the_alert_that_was_sent_just_before_it(post: Post) -> None:
    """After an outage both are due at once."""
    await post.put("alert", subject="incident:1")
    await post.put("stopped", Mode.REPLY, subject="incident:1")
    await post.deliver()
    assert [message.target_message for message in post.chat.sent] == [None, 1]


async def test_a_change_that_comes_while_another_message_is_sent_is_not_lost(post: Post) -> None:
    await post.put("another")
    await post.put("step 1", subject="incident:1")
    post.chat.may_send.clear()
    delivering = asyncio.ensure_future(post.deliver())
    await post.chat.asked.wait()
    await post.put("step 2", Mode.EDIT, subject="incident:1")
    post.chat.may_send.set()
    await delivering
    await post.deliver()
    assert post.sent[-1] == "step 2"


async def test_a_change_that_comes_while_its_own_message_is_sent_is_an_edit_of_it(post: Post) -> None:
    await post.put("step 1", subject="incident:1")
    post.chat.may_send.clear()
    delivering = asyncio.ensure_future(post.deliver())
    await post.chat.asked.wait()
    await post.put("step 2", Mode.EDIT, subject="incident:1")
    post.chat.may_send.set()
    await delivering
    await post.deliver()
    assert [(message.body, message.mode, message.target_message) for message in post.chat.sent] == [
        ("step 1", Mode.SEND, None),
        ("step 2", Mode.EDIT, 1),
    ]


# ── not sent ──────────────────────────────────────────────────────────────────────────────────────


async def test_what_can_never_be_sent_is_given_up_and_holds_up_nothing(post: Post) -> None:
    await post.put("to nobody")
    await post.put("next")
    post.chat.failures.append(NotifyError("chat not found", permanent=True))
    await post.deliver()
    await post.deliver()
    assert post.sent == ["next"]
    assert await post.counts() == OutboxCounts(waiting=0, parked=1)


async def test_what_cannot_be_rendered_is_given_up_and_holds_up_nothing(post: Post) -> None:
    await post.put("broken")
    await post.put("next")
    post.chat.failures.append(KeyError("a notice of an older release"))
    await post.deliver()
    assert post.sent == ["next"]
    assert await post.counts() == OutboxCounts(waiting=0, parked=1)


async def test_what_may_work_later_is_tried_again_after_growing_waits(post: Post) -> None:
    await post.put("alert")
    waits = []
    for _ in range(10):
        post.chat.failures.append(busy())
        await post.deliver()
        waits.append(await _wait_of(post))
        post.clock.go_on(waits[-1])
    await post.deliver()
    assert waits == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    assert post.sent == ["alert"]


async def test_a_wait_that_the_chat_asks_for_is_kept(post: Post) -> None:
    await post.put("alert")
    post.chat.failures.append(busy(retry_after=37))
    await post.deliver()
    assert await _wait_of(post) == 37
    post.clock.go_on(36.5)
    await post.deliver()
    assert post.sent == []
    post.clock.go_on(0.5)
    await post.deliver()
    assert post.sent == ["alert"]


async def test_no_outage_is_too_long(post: Post) -> None:
    queued = await post.put("alert")
    async with post.store.transaction() as tables:
        for _ in range(LONG_OUTAGE):
            await tables.outbox.put_off(queued, "no network", post.clock.now())
    post.chat.failures.append(busy())
    await post.deliver()
    assert await _wait_of(post) == 300
    post.clock.go_on(300)
    await post.deliver()
    assert post.sent == ["alert"]


async def test_nothing_overtakes_a_message_of_its_chat_that_waits(post: Post) -> None:
    await post.put("first")
    await post.put("second")
    await post.put("elsewhere", chat="-100")
    post.chat.failures.append(busy())
    await post.deliver()
    assert post.sent == []
    await post.deliver()
    assert post.sent == ["elsewhere"]
    post.clock.go_on(2)
    await post.deliver()
    assert post.sent == ["elsewhere", "first", "second"]


async def _wait_of(post: Post) -> float:
    """For how long nothing is due, in halves of a second."""
    waits = (half / 2 for half in range(1000))
    for wait in waits:
        if await post.store.reading.outbox.due(post.clock.now() + wait, 1):
            return wait
    raise AssertionError("nothing is ever due again")


# ── cut short ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_message_whose_sending_was_cut_short_is_sent_after_the_next_start(tmp_path: Path) -> None:
    """It may have arrived: it is repeated rather than lost."""
    async with open_database(tmp_path) as store:
        post = Post(store)
        await post.put("alert")
        post.chat.may_send.clear()
        delivering = asyncio.ensure_future(post.deliver())
        await post.chat.asked.wait()
        delivering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await delivering
    async with open_database(tmp_path) as store:
        post = Post(store)
        await post.deliver.recover()
        await post.deliver()
        assert post.sent == ["alert"]


# ── the law ───────────────────────────────────────────────────────────────────────────────────────

SUBJECTS = {"incident:1": None, "incident:2": "-100"}
"""Each with the chat that hears of it."""

puts = st.tuples(st.sampled_from(Mode), st.sampled_from(sorted(SUBJECTS)))
attempts = st.sampled_from(["sent", "put off", "crash before", "crash after"])
deeds = st.lists(puts | attempts, max_size=25)


class _CrashingChat(ScriptedNotifier):
    """The process may be gone before a message has left, or before anybody has noted that it has."""

    crash: str = ""

    async def send(self, message: Queued) -> int:
        if self.crash == "crash before":
            raise _Crash
        sent = await super().send(message)
        if self.crash == "crash after":
            raise _Crash
        return sent


class _Crash(BaseException):
    """Nothing that comes after it happens."""


@settings(max_examples=30)
@given(drawn=deeds)
async def test_whatever_fails_or_crashes_the_last_word_arrives_and_nothing_overtakes(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[Mode, str] | str]
) -> None:
    async with open_database(tmp_path_factory.mktemp("post")) as store:
        post = Post(store, _CrashingChat())
        last_words: dict[str, str] = {}
        replies: set[str] = set()
        for number, deed in enumerate(drawn):
            if isinstance(deed, str):
                await _attempt(post, deed)
                continue
            mode, subject = deed
            await post.put(f"{number}", mode, subject=subject, chat=SUBJECTS[subject])
            if mode is Mode.REPLY:
                replies.add(f"{number}")
            else:
                last_words[subject] = f"{number}"
        while (await post.counts()).waiting:
            post.clock.go_on(300)
            await _attempt(post, "sent")
        assert replies <= set(post.sent)
        for subject, chat in SUBJECTS.items():
            in_chat = [message for message in post.chat.sent if message.chat == chat]
            assert in_chat == sorted(in_chat, key=lambda message: message.id)
            words = [message.body for message in in_chat if message.mode is not Mode.REPLY]
            assert words[-1:] == [last_words[subject]] if subject in last_words else not words


async def _attempt(post: Post, ending: str) -> None:
    assert isinstance(post.chat, _CrashingChat)
    post.chat.crash = ending
    if ending == "put off":
        post.chat.failures.append(busy())
    with suppress(_Crash):
        await post.deliver()
    post.chat.failures.clear()
    await post.deliver.recover()


async def test_an_edit_is_not_lost_between_the_look_and_the_lease(post: Post) -> None:
    await post.put("step 1", subject="incident:1")
    async with post.store.transaction() as tables:
        delivering = asyncio.ensure_future(post.deliver())
        await asyncio.sleep(0)
        # Answered after the job's own question: by now the job waits for its turn to write.
        assert await post.store.reading.outbox.due(post.clock.now(), 1)
        edit = Outgoing(kind="notice", body=b"step 2", mode=Mode.EDIT, subject="incident:1")
        await tables.outbox.put(edit, post.clock.now())
    await delivering
    assert post.sent == ["step 2"]
