"""Delivery: nothing is lost, nothing overtakes, no chat is written to faster than it may be."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.alert.notice import AnyNotice, UndeliveredNotice
from jobs.alert.outgoing import Mode, Outgoing, Queued
from jobs.alert.pace import TELEGRAM_PACE, UNPACED, PacePolicy
from jobs.alert_delivery import AlertDelivery
from jobs.ports import NotifyError
from jobs.store.database import Database, open_database
from jobs.store.outbox import OutboxCounts
from tests.fakes import HOME, NOON, HandClock, ScriptedNotifier

LONG_OUTAGE = 1100
"""Attempts at one message: some days."""
OTHER = "-2002"
ADMINS = ("11", "12")


@dataclass(slots=True, kw_only=True)
class TimedChat(ScriptedNotifier):
    """Notes when each chat was written to."""

    clock: HandClock
    moments: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    is_understood: bool = True
    """Whether what it says of a message that was sent makes sense."""

    async def send(self, message: Queued) -> int | None:
        self.moments[message.chat_id].append(self.clock.now())
        sent = await ScriptedNotifier.send(self, message)
        return sent if self.is_understood else None


class Post:
    """Chats, and the job that delivers to them."""

    def __init__(
        self,
        store: Database,
        chat: TimedChat | None = None,
        *,
        home: str = HOME,
        others: tuple[str, ...] = (),
        pace: PacePolicy = TELEGRAM_PACE,
    ) -> None:
        self.store = store
        self.chat = chat or TimedChat(clock=HandClock())
        self.clock = self.chat.clock
        self.deliver = AlertDelivery(
            store=store, notifier=self.chat, clock=self.clock, home=home, others=others, pace=pace
        )

    async def put(
        self,
        body: str,
        mode: Mode = Mode.SEND,
        *,
        subject: str | None = None,
        chat: str | None = None,
        urgent: bool = False,
    ) -> int:
        outgoing = Outgoing(
            kind="notice", body=body.encode(), mode=mode, subject=subject, chat=chat, urgent=urgent
        )
        async with self.store.transaction() as tables:
            return await tables.outbox.put(outgoing, self.clock.now())

    async def deliver_all(self) -> None:
        """Deliver until nothing waits, as early as allowed."""
        while (wait := await self.deliver()) is not None:
            self.clock.go_on(wait)

    async def is_hanging(self) -> "asyncio.Task[bool]":
        """Begin to send what is due, and leave it on its way."""
        self.chat.asked.clear()
        sending = asyncio.ensure_future(self.deliver.send_next())
        await self.chat.asked.wait()
        return sending

    @property
    def sent(self) -> list[str]:
        return [message.body for message in self.chat.sent]

    def sent_to(self, chat: str) -> list[str]:
        return [message.body for message in self.chat.sent if message.chat == chat]

    @property
    def alerts(self) -> set[tuple[str, UndeliveredNotice]]:
        """What the chats heard of each other."""
        notices = [(message.chat, _notice(message.body)) for message in self.chat.sent]
        alerts = [(chat, notice) for chat, notice in notices if isinstance(notice, UndeliveredNotice)]
        assert len(set(alerts)) == len(alerts), "told twice"
        return set(alerts)

    async def counts(self) -> OutboxCounts:
        return await self.store.reading.outbox.counts(0)


def _notice(body: str) -> object:
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(body, type=AnyNotice)
    return None


@pytest.fixture
def post(store: Database) -> Post:
    return Post(store)


@pytest.fixture
def watched_post(store: Database) -> Post:
    """With admins who hear of it when a chat takes no messages."""
    return Post(store, others=ADMINS)


def busy(retry_after: float = 5) -> NotifyError:
    return NotifyError("too many requests", retry_after=retry_after)


BLOCKED = NotifyError("the bot was blocked", is_chat_lost=True)
REJECTED = NotifyError("BUTTON_DATA_INVALID")
"""One message, for good; the chat takes others."""
DAY = 86_400


def lost(chat: str, error: str = "the bot was blocked") -> UndeliveredNotice:
    return UndeliveredNotice(chat=chat, error=error, is_chat_lost=True)


def given_up(chat: str, error: str = "BUTTON_DATA_INVALID") -> UndeliveredNotice:
    return UndeliveredNotice(chat=chat, error=error, is_chat_lost=False)


# ── sent ──────────────────────────────────────────────────────────────────────────────────────────


async def test_what_is_due_is_sent_oldest_first_and_once(post: Post) -> None:
    for n in range(3):
        await post.put(f"{n}")
    await post.deliver_all()
    await post.deliver_all()
    assert post.sent == ["0", "1", "2"]
    assert await post.counts() == OutboxCounts(waiting=0, parked=0)


async def test_a_message_whose_id_is_not_known_is_sent_and_what_is_said_of_it_later_is_said_anew(
    post: Post,
) -> None:
    await post.put("alert", subject="incident:1")
    post.chat.is_understood = False
    await post.deliver_all()
    post.chat.is_understood = True
    await post.put("step 2", Mode.EDIT, subject="incident:1")
    await post.put("stopped", Mode.REPLY, subject="incident:1")
    await post.deliver_all()
    assert post.sent == ["alert", "step 2", "stopped"]
    assert [message.target_message for message in post.chat.sent] == [None, None, 2]
    assert await post.counts() == OutboxCounts(waiting=0, parked=0)


async def test_it_asks_to_be_run_again_when_a_message_may_be_sent(post: Post) -> None:
    """At once after one was sent; when the next chat is free; not before something changes if nothing waits."""
    assert await post.deliver() is None
    await post.put("one")
    await post.put("two")
    assert [await post.deliver(), await post.deliver()] == [0, 1]
    post.clock.go_on(0.75)
    assert await post.deliver() == 0.25
    post.clock.go_on(0.25)
    assert [await post.deliver(), await post.deliver()] == [0, None]
    assert post.sent == ["one", "two"]


@dataclass(slots=True)
class MovingClock(HandClock):
    """Is later whenever it is looked at."""

    def now(self) -> float:
        self.time += 1
        return self.time


@pytest.mark.parametrize("free_at", [NOON + 0.5 + n for n in range(6)])
async def test_a_chat_that_comes_free_while_it_is_looked_at_is_not_forgotten(
    store: Database, free_at: float
) -> None:
    """Nothing would wake the job for what waits there."""
    post = Post(store)
    await post.put("one")
    await post.put("two")
    post.chat.failures.append(busy(free_at - NOON))
    await post.deliver()
    moving = AlertDelivery(store=store, notifier=post.chat, clock=MovingClock(NOON), home=HOME)
    assert await moving() is not None


async def test_a_reply_finds_the_alert_that_was_sent_just_before_it(post: Post) -> None:
    """After an outage both are due at once."""
    await post.put("alert", subject="incident:1")
    await post.put("stopped", Mode.REPLY, subject="incident:1")
    await post.deliver_all()
    assert [message.target_message for message in post.chat.sent] == [None, 1]


async def test_a_stop_is_told_before_whatever_else_waits(post: Post) -> None:
    """With the alert that it answers."""
    await post.put("digest")
    await post.put("alert", subject="incident:1")
    await post.put("stopped", Mode.REPLY, subject="incident:1", urgent=True)
    await post.deliver_all()
    assert [(message.body, message.target_message) for message in post.chat.sent] == [
        ("alert", None),
        ("stopped", 1),
        ("digest", None),
    ]


async def test_a_change_that_comes_while_another_message_is_sent_is_not_lost(post: Post) -> None:
    await post.put("another")
    await post.put("step 1", subject="incident:1")
    post.chat.may_send.clear()
    delivering = await post.is_hanging()
    await post.put("step 2", Mode.EDIT, subject="incident:1")
    post.chat.may_send.set()
    await delivering
    await post.deliver_all()
    assert post.sent == ["another", "step 2"]


async def test_a_change_that_comes_while_its_own_message_is_sent_is_an_edit_of_it(post: Post) -> None:
    await post.put("step 1", subject="incident:1")
    post.chat.may_send.clear()
    delivering = await post.is_hanging()
    await post.put("step 2", Mode.EDIT, subject="incident:1")
    post.chat.may_send.set()
    await delivering
    await post.deliver_all()
    assert [(message.body, message.mode, message.target_message) for message in post.chat.sent] == [
        ("step 1", Mode.SEND, None),
        ("step 2", Mode.EDIT, 1),
    ]


async def test_an_edit_is_not_lost_between_the_look_and_the_lease(post: Post) -> None:
    await post.put("step 1", subject="incident:1")
    async with post.store.transaction() as tables:
        delivering = asyncio.ensure_future(post.deliver())
        await asyncio.sleep(0)
        # Answered after the job's own question: by now the job waits for its turn to write.
        for _ in range(2):
            assert await post.store.reading.outbox.due(post.clock.now(), HOME)
        edit = Outgoing(kind="notice", body=b"step 2", mode=Mode.EDIT, subject="incident:1")
        await tables.outbox.put(edit, post.clock.now())
    await delivering
    assert post.sent == ["step 2"]


# ── several at once ───────────────────────────────────────────────────────────────────────────────


async def test_two_runs_send_to_two_chats_at_once(post: Post) -> None:
    await post.put("first")
    await post.put("second")
    await post.put("elsewhere", chat=OTHER)
    post.chat.may_send.clear()
    sending = [await post.is_hanging(), await post.is_hanging()]
    assert await post.deliver() is None, "the second one waits for the first, and for a change"
    post.chat.may_send.set()
    assert await asyncio.gather(*sending) == [True, True]
    assert set(post.sent) == {"first", "elsewhere"}
    await post.deliver_all()
    assert post.sent[-1] == "second"


@pytest.mark.parametrize("same", [HOME, f"{HOME}/17"])
async def test_a_chat_whose_sending_hangs_keeps_no_other_waiting(post: Post, same: str) -> None:
    await post.put("hangs")
    await post.put("behind it", chat=same, urgent=True)
    for n in range(3):
        await post.put(f"{n}", chat=OTHER)
    post.chat.hanging = {int(HOME)}
    hanging = await post.is_hanging()
    await post.deliver_all()
    assert post.sent == ["0", "1", "2"]
    assert await post.counts() == OutboxCounts(waiting=2, parked=0)
    hanging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hanging


async def test_two_runs_never_take_the_same_message(post: Post) -> None:
    await post.put("alert")
    assert sorted(await asyncio.gather(*(post.deliver.send_next() for _ in range(3)))) == [False, False, True]
    assert post.sent == ["alert"]


async def test_many_runs_send_everything_once_and_in_the_order_of_each_chat(store: Database) -> None:
    post = Post(store, pace=UNPACED)
    chats = [None, OTHER, "-3003", "4004", "5005"]
    for n in range(40):
        await post.put(f"{n}", chat=chats[n % 5])

    async def run() -> None:
        while (await post.counts()).waiting:
            await post.deliver()

    await asyncio.gather(*(run() for _ in range(4)))
    assert sorted(map(int, post.sent)) == list(range(40))
    for first, chat in enumerate(chats):
        assert list(map(int, post.sent_to(chat or HOME))) == list(range(first, 40, 5))


# ── as fast as allowed ────────────────────────────────────────────────────────────────────────────


async def test_a_private_chat_gets_one_message_a_second(post: Post) -> None:
    for n in range(30):
        await post.put(f"{n}", chat="11")
    await post.deliver_all()
    assert post.chat.moments == {11: [NOON + n for n in range(30)]}


@pytest.mark.parametrize("chats", [(None,), (OTHER,), (f"{OTHER}/17", f"{OTHER}/18", OTHER)])
async def test_a_group_gets_twenty_messages_a_minute(post: Post, chats: tuple[str | None, ...]) -> None:
    """Whatever its topics: the limit is the group's."""
    for n in range(45):
        await post.put(f"{n}", chat=chats[n % len(chats)])
    await post.deliver_all()
    assert list(post.chat.moments.values()) == [
        [NOON + 60 * (n // 20) + n % 20 for n in range(45)],
    ]


async def test_every_chat_has_a_pace_of_its_own(post: Post) -> None:
    chats = ("-11", "-22", "33", "44")
    for n in range(40):
        await post.put(f"{n}", chat=chats[n % 4])
    await post.deliver_all()
    assert post.chat.moments == {int(chat): [NOON + n for n in range(10)] for chat in chats}


async def test_an_attempt_that_failed_counts(post: Post) -> None:
    """Telegram may count it, too."""
    await post.put("alert")
    post.chat.failures += [busy(0), REJECTED]
    await post.put("next")
    await post.deliver_all()
    assert post.chat.moments == {int(HOME): [NOON, NOON + 1, NOON + 2]}


async def test_the_pace_is_kept_after_a_crash(tmp_path: Path) -> None:
    """What was being sent counts, since it may have arrived."""
    chat = TimedChat(clock=HandClock())
    async with open_database(tmp_path) as store:
        post = Post(store, chat)
        for n in range(22):
            await post.put(f"{n}")
        for _ in range(19):
            assert await post.deliver.send_next()
            post.clock.go_on(1)
        chat.may_send.clear()
        sending = await post.is_hanging()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
    async with open_database(tmp_path) as store:
        chat.may_send.set()
        post = Post(store, chat)
        await post.deliver.recover()
        assert await post.deliver() == 60 - 19
        await post.deliver_all()
        assert post.sent == [f"{n}" for n in range(22)]
    assert chat.moments[int(HOME)][19:] == [NOON + 19, NOON + 60, NOON + 61, NOON + 62]


async def test_a_clock_that_is_set_back_keeps_no_chat_waiting(post: Post) -> None:
    for n in range(25):
        await post.put(f"{n}")
    for _ in range(20):
        assert await post.deliver.send_next()
        post.clock.go_on(1)
    assert not await post.deliver.send_next()
    post.clock.go_on(-3600)
    for _ in range(5):
        assert await post.deliver.send_next()
        post.clock.go_on(1)
    assert post.sent == [f"{n}" for n in range(25)]


# ── not sent ──────────────────────────────────────────────────────────────────────────────────────


async def test_what_can_never_be_sent_is_given_up_and_holds_up_nothing(post: Post) -> None:
    await post.put("to nobody")
    await post.put("next")
    post.chat.failures.append(REJECTED)
    await post.deliver_all()
    assert post.sent == ["next"]
    assert await post.counts() == OutboxCounts(waiting=0, parked=1)


async def test_what_cannot_be_rendered_is_given_up_and_holds_up_nothing(post: Post) -> None:
    await post.put("broken")
    await post.put("next")
    post.chat.failures.append(KeyError("a notice of an older release"))
    await post.deliver_all()
    assert post.sent == ["next"]
    assert await post.counts() == OutboxCounts(waiting=0, parked=1)


async def test_what_may_work_later_is_tried_again_when_it_may(post: Post) -> None:
    """However often, and as it stands by then."""
    await post.put("alert")
    waits = [2, 4, 8, 300, 300]
    post.chat.failures += [busy(wait) for wait in waits]
    await post.deliver_all()
    assert [later - earlier for earlier, later in pairwise(post.chat.moments[int(HOME)])] == waits
    (message,) = post.chat.sent
    assert (message.body, message.attempts) == ("alert", 5)


async def test_a_wait_that_the_chat_asks_for_is_kept_by_that_chat_alone(post: Post) -> None:
    """By all that waits for it, however urgent; the others go on at their own pace."""
    await post.put("first")
    await post.put("in a topic", chat=f"{HOME}/17")
    await post.put("stopped", chat=HOME, urgent=True)
    for n in range(3):
        await post.put(f"{n}", chat=OTHER)
    post.chat.failures.append(busy(retry_after=37))
    await post.deliver_all()
    assert post.chat.moments == {
        int(HOME): [NOON, NOON + 37, NOON + 38, NOON + 39],
        int(OTHER): [NOON, NOON + 1, NOON + 2],
    }
    assert post.sent == ["0", "1", "2", "stopped", "first", "in a topic"]


async def test_no_outage_is_too_long(post: Post) -> None:
    queued = await post.put("alert")
    async with post.store.transaction() as tables:
        for _ in range(LONG_OUTAGE):
            await tables.outbox.put_back(queued, "no network")
    post.chat.failures.append(busy(300))
    assert [await post.deliver(), await post.deliver()] == [0, 300]
    await post.deliver_all()
    assert post.sent == ["alert"]


async def test_nothing_overtakes_a_message_of_its_chat_that_waits(post: Post) -> None:
    await post.put("first")
    await post.put("second")
    await post.put("elsewhere", chat="-100")
    post.chat.failures.append(busy(2))
    assert await post.deliver.send_next()
    assert post.sent == []
    await post.deliver_all()
    assert post.sent == ["elsewhere", "first", "second"]


# ── a chat that moves ─────────────────────────────────────────────────────────────────────────────


def moved(to: int) -> NotifyError:
    return NotifyError("group chat was upgraded to a supergroup chat", moved_to=to)


@pytest.mark.parametrize("chat", [None, HOME, f"{HOME}/17", OTHER, f"{OTHER}/17"])
async def test_a_chat_that_has_moved_is_followed_at_once(post: Post, chat: str | None) -> None:
    """With all that waits for it, in its order; nothing is given up, and its new place has a pace of its own."""
    old = int((chat or HOME).partition("/")[0])
    await post.put("first", chat=chat)
    await post.put("second", chat=chat)
    post.chat.failures.append(moved(-3003))
    await post.deliver_all()
    assert post.sent_to("-3003") == post.sent == ["first", "second"]
    assert post.chat.moments == {old: [NOON], -3003: [NOON, NOON + 1]}
    assert (await post.store.reading.chats.get(old)).moved_to == -3003
    assert await post.counts() == OutboxCounts(waiting=0, parked=0)


@pytest.mark.parametrize("home", [HOME, f"{HOME}/17"])
async def test_home_is_where_it_has_moved_to_also_after_a_restart(tmp_path: Path, home: str) -> None:
    """Though the settings name its old place."""
    async with open_database(tmp_path) as store:
        post = Post(store, home=home)
        await post.put("first")
        post.chat.failures.append(moved(-3003))
        await post.deliver_all()
        await post.put("second")
    async with open_database(tmp_path) as store:
        again = Post(store, home=home)
        await again.deliver.recover()
        await again.deliver_all()
        assert again.sent_to("-3003") == again.sent == ["second"]


async def test_a_message_that_stayed_in_the_old_place_is_sent_anew(post: Post) -> None:
    """Its id means another message in the new place, or none."""
    await post.put("alert", subject="incident:1")
    await post.deliver_all()
    await post.put("step 2", Mode.EDIT, subject="incident:1")
    post.clock.go_on(1)
    post.chat.failures.append(moved(-3003))
    await post.deliver_all()
    post.clock.go_on(1)
    await post.put("step 3", Mode.EDIT, subject="incident:1")
    await post.deliver_all()
    assert [(message.chat, message.body, message.target_message) for message in post.chat.sent] == [
        (HOME, "alert", None),
        ("-3003", "step 2", None),
        ("-3003", "step 3", 2),
    ]


async def test_two_chats_that_are_said_to_have_become_each_other_are_tried_now_and_then(post: Post) -> None:
    """And not in a circle without end: whenever that is over, what waits arrives."""
    await post.put("alert")
    post.chat.failures += [moved(-3003), moved(int(HOME)), moved(int(HOME))]
    await post.deliver_all()
    assert post.sent_to("-3003") == post.sent == ["alert"]
    assert post.chat.moments == {int(HOME): [NOON], -3003: [NOON, NOON + 60, NOON + 120]}


async def test_a_chat_is_followed_when_it_says_itself_that_it_has_moved(post: Post) -> None:
    """Said again, it changes nothing: what was sent to the new place since then can be edited."""
    await post.put("alert", subject="incident:1")
    await post.deliver.follow(int(HOME), -3003)
    await post.deliver_all()
    await post.deliver.follow(int(HOME), -3003)
    await post.put("step 2", Mode.EDIT, subject="incident:1")
    await post.deliver_all()
    assert [(message.chat, message.target_message) for message in post.chat.sent] == [
        ("-3003", None),
        ("-3003", 1),
    ]


async def test_a_chat_is_followed_as_part_of_what_its_message_brings_about(post: Post) -> None:
    """Undone with it, so that it is handled again."""

    async def follow_and_fail() -> None:
        async with post.store.transaction():
            await post.deliver.follow(int(HOME), -3003)
            raise ZeroDivisionError

    await post.put("alert", chat=HOME)
    with pytest.raises(ZeroDivisionError):
        await follow_and_fail()
    await post.deliver_all()
    assert post.sent_to(HOME) == ["alert"]


# ── a chat that takes no messages ─────────────────────────────────────────────────────────────────


async def test_the_others_hear_once_of_a_chat_that_takes_no_messages(watched_post: Post) -> None:
    for n in range(3):
        await watched_post.put(f"{n}", chat="11")
    watched_post.chat.refusing[11] = BLOCKED
    await watched_post.deliver_all()
    assert watched_post.alerts == {(HOME, lost("11")), ("12", lost("11"))}
    assert len(watched_post.sent) == 2
    assert await watched_post.counts() == OutboxCounts(waiting=0, parked=3)


async def test_they_hear_of_it_again_when_it_had_taken_one_in_between(watched_post: Post) -> None:
    for reason in ("the bot was blocked", "user is deactivated"):
        watched_post.chat.refusing[11] = NotifyError(reason, is_chat_lost=True)
        for _ in range(2):
            await watched_post.put("lost", chat="11")
        await watched_post.deliver_all()
        del watched_post.chat.refusing[11]
        await watched_post.put("taken", chat="11")
        await watched_post.deliver_all()
    told = [lost("11", why) for why in ("the bot was blocked", "user is deactivated")]
    assert watched_post.alerts == {(chat, notice) for chat in (HOME, "12") for notice in told}


async def test_the_others_hear_of_every_message_that_was_given_up_for_its_own_sake(
    watched_post: Post,
) -> None:
    """The chat goes on; it is not lost, and hears nothing of it itself."""
    reasons = ["BUTTON_DATA_INVALID", "message is too long"]
    for reason in reasons:
        await watched_post.put(reason, chat="11", urgent=True)
        watched_post.chat.refusing[11] = NotifyError(reason)
        await watched_post.deliver_all()
    watched_post.chat.refusing.clear()
    await watched_post.put("next", chat="11")
    await watched_post.deliver_all()
    told = [given_up("11", reason) for reason in reasons]
    assert watched_post.alerts == {(chat, notice) for chat in (HOME, "12") for notice in told}
    assert watched_post.sent_to("11") == ["next"]
    assert (await watched_post.store.reading.chats.get(11)).lost_at is None
    assert await watched_post.counts() == OutboxCounts(waiting=0, parked=2)


async def test_of_a_lost_chat_a_message_that_is_given_up_for_its_own_sake_is_no_news(
    watched_post: Post,
) -> None:
    await watched_post.put("first", chat="11")
    await watched_post.put("second", chat="11")
    watched_post.chat.failures.append(BLOCKED)
    await watched_post.deliver()
    before = await watched_post.store.reading.chats.get(11)
    assert before.lost_at == NOON
    watched_post.chat.refusing[11] = REJECTED
    await watched_post.deliver_all()
    assert {notice for _, notice in watched_post.alerts} == {lost("11")}
    assert (await watched_post.store.reading.chats.get(11)).lost_at == NOON


async def test_a_chat_that_is_only_busy_is_not_lost(watched_post: Post) -> None:
    await watched_post.put("alert", chat="11")
    watched_post.chat.failures += [busy(), busy(), busy()]
    await watched_post.deliver_all()
    assert watched_post.sent == ["alert"]


@pytest.mark.parametrize("home", [HOME, f"{HOME}/17"])
async def test_a_lost_chat_hears_nothing_of_itself_or_of_another(store: Database, home: str) -> None:
    post = Post(store, home=home, others=ADMINS)
    post.chat.refusing = {int(HOME): BLOCKED, 11: BLOCKED}
    await post.put("alert")
    await post.deliver_all()
    told = {("12", lost(HOME)), ("12", lost("11"))}
    assert post.alerts == told
    await post.put("answer", chat="12")
    post.chat.refusing[12] = BLOCKED
    await post.deliver_all()
    assert post.alerts == told
    assert await post.counts() == OutboxCounts(waiting=0, parked=3)


async def test_when_every_chat_is_lost_it_is_over(watched_post: Post) -> None:
    """No alert about an alert about an alert."""
    watched_post.chat.refusing = dict.fromkeys(map(int, (HOME, *ADMINS)), BLOCKED)
    await watched_post.put("alert")
    await watched_post.deliver_all()
    assert watched_post.sent == []
    # The message; what both admins were told of home; what the second one was told of the first.
    assert await watched_post.counts() == OutboxCounts(waiting=0, parked=4)


async def test_the_others_hear_of_it_where_home_is_now(watched_post: Post) -> None:
    await watched_post.deliver.follow(int(HOME), -3003)
    await watched_post.put("alert", chat="11")
    watched_post.chat.refusing[11] = BLOCKED
    await watched_post.deliver_all()
    assert {chat for chat, _ in watched_post.alerts} == {"-3003", "12"}


async def test_what_cannot_be_rendered_is_told_by_the_kind_of_its_error(watched_post: Post) -> None:
    await watched_post.put("broken")
    watched_post.chat.failures.append(KeyError("a secret of somebody"))
    await watched_post.deliver_all()
    assert watched_post.alerts == {(admin, given_up(HOME, "KeyError")) for admin in ADMINS}


# ── in place of a chat that takes no messages ─────────────────────────────────────────────────────


async def test_what_is_about_a_stop_is_told_to_the_others_while_its_chat_is_lost(watched_post: Post) -> None:
    """From the message on that found out; what is not urgent is not, and the news of the loss comes first."""
    watched_post.chat.refusing[int(HOME)] = BLOCKED
    await watched_post.put("alert")
    await watched_post.put("stopped", urgent=True)
    await watched_post.put("digest")
    await watched_post.deliver_all()
    await watched_post.put("stopped again", Mode.REPLY, subject="incident:1", urgent=True)
    await watched_post.deliver_all()
    assert watched_post.alerts == {(admin, lost(HOME)) for admin in ADMINS}
    for admin in ADMINS:
        said = [body for body in watched_post.sent_to(admin) if _notice(body) is None]
        assert said == ["stopped", "stopped again"]
    copies = [message for message in watched_post.chat.sent if message.body == "stopped again"]
    assert {(copy.mode, copy.subject, copy.target_message) for copy in copies} == {(Mode.SEND, None, None)}


async def test_an_answer_to_a_person_is_nobody_elses(watched_post: Post) -> None:
    """However urgent: its buttons are for one chat."""
    watched_post.chat.refusing[11] = BLOCKED
    question = Outgoing(kind="screen", body=b"Stop worker-3?", chat="11", urgent=True)
    async with watched_post.store.transaction() as tables:
        await tables.outbox.put(question, NOON)
    await watched_post.deliver_all()
    assert {_notice(body) for body in watched_post.sent} == {lost("11")}


async def test_what_is_told_in_place_of_one_lost_chat_goes_to_no_other_lost_one(watched_post: Post) -> None:
    """Nor round and round between them; home hears it where it is now."""
    await watched_post.deliver.follow(int(HOME), -3003)
    watched_post.chat.refusing = {11: BLOCKED, 12: BLOCKED}
    for admin in ADMINS:
        await watched_post.put("hello", chat=admin)
    await watched_post.deliver_all()
    await watched_post.put("stopped", chat="11", urgent=True)
    await watched_post.deliver_all()
    assert watched_post.sent_to("-3003")[-1] == "stopped"
    assert watched_post.sent.count("stopped") == 1


# ── a chat that takes messages again ──────────────────────────────────────────────────────────────


async def test_a_chat_that_takes_messages_again_gets_what_was_given_up_for_it_in_the_last_day(
    watched_post: Post,
) -> None:
    """In its order, once; what was about a stop, too, which only the others had heard."""
    watched_post.chat.refusing[11] = BLOCKED
    await watched_post.put("too old", chat="11")
    await watched_post.deliver_all()
    watched_post.clock.go_on(DAY)
    for body, urgent in (("alert", False), ("stopped", True)):
        await watched_post.put(body, chat="11", urgent=urgent)
    await watched_post.put("of another chat", chat=OTHER)
    await watched_post.deliver_all()
    del watched_post.chat.refusing[11]
    await watched_post.put("hello again", chat="11")
    watched_post.clock.go_on(5)
    await watched_post.deliver_all()
    assert watched_post.sent_to("11") == ["hello again", "stopped", "alert"]
    assert await watched_post.counts() == OutboxCounts(waiting=0, parked=1)
    await watched_post.put("goodbye", chat="11")
    await watched_post.deliver_all()
    assert watched_post.sent_to("11") == ["hello again", "stopped", "alert", "goodbye"]


async def test_a_chat_that_was_never_lost_gets_nothing_a_second_time(watched_post: Post) -> None:
    """What Telegram rejects for its own sake it would reject again."""
    await watched_post.put("rejected", chat="11")
    watched_post.chat.failures.append(REJECTED)
    await watched_post.put("next", chat="11")
    await watched_post.deliver_all()
    assert watched_post.sent_to("11") == ["next"]
    assert await watched_post.counts() == OutboxCounts(waiting=0, parked=1)


async def test_a_chat_that_takes_messages_again_does_not_hear_the_first_word_last(
    watched_post: Post,
) -> None:
    """What has been said anew meanwhile is not followed by what was said before it; an answer is not said anew."""
    watched_post.chat.refusing[int(HOME)] = BLOCKED
    await watched_post.put("step 1", subject="incident:1")
    await watched_post.put("step 1 of another", subject="incident:2")
    await watched_post.put("stopped", Mode.REPLY, subject="incident:1")
    await watched_post.deliver_all()
    await watched_post.put("step 2 of another", Mode.EDIT, subject="incident:2")
    await watched_post.deliver_all()
    watched_post.chat.refusing.clear()
    await watched_post.put("step 2", Mode.EDIT, subject="incident:1")
    await watched_post.deliver_all()
    assert watched_post.sent_to(HOME) == ["step 2", "step 1 of another", "stopped", "step 2 of another"]
    assert [message.target_message for message in watched_post.chat.sent[-2:]] != [None, None]


# ── what the log says ─────────────────────────────────────────────────────────────────────────────


async def test_an_error_that_comes_again_and_again_is_one_line_in_the_log(
    post: Post, caplog: pytest.LogCaptureFixture
) -> None:
    """Until it is another one; for who looks closely all are there."""
    caplog.set_level(logging.DEBUG, "jobs.alert_delivery")
    await post.put("alert")
    why = ["no route to host"] * 3 + ["Bad Gateway"] * 2 + ["no route to host"]
    post.chat.failures += [NotifyError(each, retry_after=1) for each in why]
    await post.deliver_all()
    failed = [record for record in caplog.records if "not sent" in record.getMessage()]
    assert [record.levelno == logging.WARNING for record in failed] == [True, *[False] * 2, True, False, True]
    assert {record.levelno for record in failed} == {logging.WARNING, logging.DEBUG}


# ── cut short ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_message_whose_sending_was_cut_short_is_sent_after_the_next_start(tmp_path: Path) -> None:
    """It may have arrived: it is repeated rather than lost."""
    async with open_database(tmp_path) as store:
        post = Post(store)
        await post.put("alert")
        post.chat.may_send.clear()
        delivering = await post.is_hanging()
        delivering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await delivering
        assert await post.deliver() is None
    async with open_database(tmp_path) as store:
        post = Post(store)
        await post.deliver.recover()
        await post.deliver_all()
        assert post.sent == ["alert"]


# ── a file that fails ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        pytest.param(None, ["alert", "next"], id="sent"),
        pytest.param(busy(), ["alert", "next"], id="busy"),
        pytest.param(moved(-3003), ["alert", "next"], id="moved"),
        pytest.param(REJECTED, ["next"], id="given up"),
        pytest.param(BLOCKED, ["next", "alert"], id="lost and found"),
    ],
)
async def test_what_became_of_a_message_is_noted_though_the_file_fails_meanwhile(
    post: Post, ending: Exception | None, expected: list[str]
) -> None:
    """In memory, and in the file when it works again: no chat waits for ever, and nothing is sent twice."""
    await post.put("alert")
    await post.put("next")
    post.chat.failures.append(ending)
    post.chat.may_send.clear()
    delivering = await post.is_hanging()
    await post.store._opened.writer.execute("PRAGMA query_only = ON")
    post.chat.may_send.set()
    assert await delivering
    assert post.store.trouble == "attempt to write a readonly database"
    await post.deliver_all()
    assert post.sent == expected
    assert await post.store.recover()
    await post.deliver.recover()
    await post.deliver_all()
    assert post.sent == expected
    assert await post.counts() == OutboxCounts(waiting=0, parked=2 - len(expected))


async def test_what_cannot_be_noted_for_another_reason_is_raised(post: Post) -> None:
    """So that it becomes the failure of the job."""
    await post.put("alert")
    post.chat.may_send.clear()
    delivering = await post.is_hanging()
    async with post.store.transaction() as tables:
        await tables.connection.execute("DROP TABLE chat")
    post.chat.may_send.set()
    with pytest.raises(Exception, match="no such table: chat"):
        await delivering
    assert post.store.trouble is None


# ── the law ───────────────────────────────────────────────────────────────────────────────────────

SUBJECTS = {"incident:1": HOME, "incident:2": "-100", "incident:3": HOME}
"""Each with the chat that hears of it."""

puts = st.tuples(st.sampled_from(Mode), st.sampled_from(sorted(SUBJECTS)), st.booleans())
attempts = st.sampled_from(["sent", "busy", "crash before", "crash after"])
waits = st.integers(1, 8).map(lambda quarters: quarters / 4)
deeds = st.lists(puts | attempts | waits, max_size=30)


@dataclass(slots=True, kw_only=True)
class CrashingChat(TimedChat):
    """The process may be gone before a message has left, or before anybody has noted that it has."""

    crash: str = ""

    async def send(self, message: Queued) -> int | None:
        if self.crash == "crash before":
            raise _Crash
        sent = await TimedChat.send(self, message)
        if self.crash == "crash after":
            raise _Crash
        return sent


class _Crash(BaseException):
    """Nothing that comes after it happens."""


@settings(max_examples=40)
@given(drawn=deeds)
async def test_whatever_fails_or_crashes_the_last_word_arrives_and_nothing_overtakes(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[Mode, str, bool] | str | float]
) -> None:
    """But what is about a stop; and no chat is written to faster than it may be."""
    async with open_database(tmp_path_factory.mktemp("post")) as store:
        chat = CrashingChat(clock=HandClock())
        post = Post(store, chat)
        last_words: dict[str, str] = {}
        replies: set[str] = set()
        urgent: dict[str, int] = {}
        for number, deed in enumerate(drawn):
            if isinstance(deed, float):
                post.clock.go_on(deed)
                continue
            if isinstance(deed, str):
                await _attempt(post, chat, deed)
                continue
            mode, subject, is_urgent = deed
            where = None if subject == "incident:1" else SUBJECTS[subject]
            queued = await post.put(f"{number}", mode, subject=subject, chat=where, urgent=is_urgent)
            if is_urgent:
                # An edit may have taken the place of an earlier message.
                urgent[subject] = max(queued, urgent.get(subject, 0))
            if mode is Mode.REPLY:
                replies.add(f"{number}")
            else:
                last_words[subject] = f"{number}"
        chat.crash = ""
        await post.deliver_all()
        assert await post.counts() == OutboxCounts(waiting=0, parked=0)
        assert replies <= set(post.sent)
        for subject in SUBJECTS:
            words = [m.body for m in chat.sent if m.subject == subject and m.mode is not Mode.REPLY]
            assert words[-1:] == [last_words[subject]] if subject in last_words else not words
        _assert_order(chat.sent, urgent)
        for moments in chat.moments.values():
            assert all(later - earlier >= 1 for earlier, later in pairwise(moments))
            assert all(after - first >= 60 for first, after in zip(moments, moments[20:], strict=False))


async def _attempt(post: Post, chat: CrashingChat, ending: str) -> None:
    chat.crash = ending
    if ending == "busy":
        chat.failures.append(busy(3))
    with suppress(_Crash):
        await post.deliver.send_next()
    chat.failures.clear()
    await post.deliver.recover()


def _assert_order(sent: Iterable[Queued], urgent: dict[str, int]) -> None:
    """What overtook another message of its chat is of another subject, and urgent or answered by what is."""
    so_far: list[Queued] = []
    for message in sent:
        for overtook in so_far:
            if overtook.chat_id == message.chat_id and overtook.id > message.id:
                assert overtook.subject is not None
                assert overtook.subject != message.subject
                assert overtook.id <= urgent.get(overtook.subject, 0)
        so_far.append(message)
