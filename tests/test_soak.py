"""Thousands of messages in bad weather: each arrives, in the order of its chat, and no chat hears more than it may.

Real are the file, the delivery as the bot runs it, the notifier and HTTP. The server keeps Telegram's limits without
any tolerance: the bot counts a chat's time from when an answer has come, or has failed to, which is never before the
message took effect. The weather of every chat is drawn beforehand, so that it is known what became of each call.
"""

import asyncio
import itertools
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from random import Random, SystemRandom
from typing import Final
from zoneinfo import ZoneInfo

import msgspec
import pytest
from aiogram import Bot
from aiogram.client.telegram import TelegramAPIServer
from aiogram.utils.backoff import BackoffConfig

from bot import notifier
from bot.clock import SystemClock
from bot.drawing import Drawing
from bot.notifier import TelegramNotifier
from bot.picturing import Picturing
from bot.session import TelegramSession
from jobs import schedule
from jobs.alert.notice import JobFailedNotice
from jobs.alert.outgoing import Mode, Outgoing
from jobs.alert.pace import TELEGRAM_PACE, PacePolicy
from jobs.alert_delivery import AlertDelivery
from jobs.schedule import StandingBy, Timetable
from jobs.store.database import Database, open_database
from jobs.store.outbox import OutboxCounts
from tests.botapi import BotApi, Call, FloodLimits

LONG: Final = 120
"""Seconds of patience."""
AT_ONCE: Final = 4
"""As in the bot."""
METHODS: Final = ("sendMessage", "editMessageText")
NUMBER: Final = re.compile(r"The job (\d+) fails")


# ── the weather ───────────────────────────────────────────────────────────────────────────────────


class Mishap(StrEnum):
    """What becomes of one call."""

    NONE = "none"
    LATE = "late"
    """The answer comes late."""
    FLOOD = "flood"
    """429, with seconds to wait."""
    BROKEN = "broken"
    """5xx."""
    REJECTED = "rejected"
    """400: the entities cannot be parsed; without any, the same text is accepted."""
    CUT = "cut"
    """Nothing is done and nothing answered."""
    LOST = "lost"
    """Done, and not answered."""
    PAGE = "page"
    """Not done; a proxy answers."""
    DONE_PAGE = "done page"
    """Done; a proxy answers."""


ODDS: Final = {
    Mishap.NONE: 760,
    Mishap.LATE: 60,
    Mishap.FLOOD: 30,
    Mishap.BROKEN: 30,
    Mishap.REJECTED: 30,
    Mishap.CUT: 30,
    Mishap.LOST: 30,
    Mishap.PAGE: 15,
    Mishap.DONE_PAGE: 15,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """A mishap, and the number that belongs to it: seconds of waiting, or an HTTP status."""

    mishap: Mishap
    number: float = 0

    def befall(self, api: BotApi, method: str, chat: int) -> None:
        """Let it befall the next call of a method for a chat that nothing has been set for."""
        status = int(self.number)
        match self.mishap:
            case Mishap.NONE | Mishap.LATE:
                api.delay(method, seconds=self.number, chat=chat)
            case Mishap.FLOOD:
                wait = {"retry_after": status}
                api.fault(method, error_code=429, description="Too Many Requests", parameters=wait, chat=chat)
            case Mishap.BROKEN:
                api.fault(method, error_code=status, description="Internal Server Error", chat=chat)
            case Mishap.REJECTED:
                api.fault(method, error_code=400, description="Bad Request: can't parse entities", chat=chat)
            case Mishap.CUT | Mishap.LOST:
                api.drop(method, done=self.mishap is Mishap.LOST, chat=chat)
            case Mishap.PAGE | Mishap.DONE_PAGE:
                api.garble(method, status=status, done=self.mishap is Mishap.DONE_PAGE, chat=chat)


@dataclass(frozen=True, slots=True, kw_only=True)
class Climate:
    """How often what happens; `storm` are the 429 that one may come after, of `floods` seconds each."""

    odds: Mapping[Mishap, int] = field(default_factory=lambda: ODDS)
    storm: Sequence[int] = (0, 0, 2)
    floods: Sequence[int] = (1, 1, 2)
    longest_delay: float = 0.3


def drawn(dice: Random, climate: Climate) -> Iterator[Weather]:
    """The weather for one call after another: floods come in storms, and plain text is not rejected."""
    before = Mishap.NONE
    while True:
        [mishap] = dice.choices(list(climate.odds), list(climate.odds.values()))
        number = 0.0
        match mishap:
            case Mishap.REJECTED if before is Mishap.REJECTED:
                continue
            case Mishap.LATE:
                number = dice.uniform(0, climate.longest_delay)
            case Mishap.FLOOD:
                yield from itertools.repeat(Weather(mishap=mishap, number=1), dice.choice(climate.storm))
                number = dice.choice(climate.floods)
            case Mishap.BROKEN:
                number = dice.choice((500, 502, 503))
            case Mishap.PAGE | Mishap.DONE_PAGE:
                number = dice.choice((200, 502))
            case _:
                pass
        yield Weather(mishap=mishap, number=number)
        before = mishap


# ── what is said ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of the outbox, and the numbers that its text has been: an edit may have taken the place of another."""

    chat: int
    mode: Mode
    subject: str
    numbers: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """A call for a message, and the weather it met."""

    call: Call
    weather: Weather
    number: int
    row: int

    @property
    def is_answered(self) -> bool:
        """Whether the bot was told that it is done; an edit that changes nothing any more is."""
        return self.weather.mishap in {Mishap.NONE, Mishap.LATE} and self.call.code in {200, 400}


@dataclass(slots=True, kw_only=True, repr=False)
class Soak:
    """The server, the bot's folder, and all that is said to the chats."""

    api: BotApi
    bot: Bot
    folder: Path
    dice: Random
    chats: Sequence[int]
    pace: PacePolicy
    weather: dict[tuple[str, int], list[Weather]]
    """By method and chat: what befalls one call after another. After the last one the sun shines."""
    rows: dict[int, Row] = field(default_factory=dict)
    cut_off: set[int] = field(default_factory=set)
    """Rows that were on their way when the delivery was ended."""
    numbers: Iterator[int] = field(default_factory=itertools.count)

    @asynccontextmanager
    async def delivering(self) -> AsyncIterator[Database]:
        """The bot's delivery from a start to an end."""
        clock = SystemClock()
        async with open_database(self.folder) as store:
            zone = ZoneInfo("UTC")
            picturing = Picturing(bot=self.bot, draw=Drawing(data_dir=self.folder).png, zone=zone)
            delivery = AlertDelivery(
                store=store,
                notifier=TelegramNotifier(bot=self.bot, clock=clock, zone=zone, picturing=picturing),
                clock=clock,
                home=f"{self.chats[0]}",
                pace=self.pace,
            )
            self.cut_off |= {row.id for row in await store.reading.outbox.leased(delivery.home)}
            await delivery.recover()
            timetable = Timetable((), store, clock)
            timetable.stand_by(
                StandingBy(name="alert_delivery", job=delivery, at_once=AT_ONCE, is_told=False)
            )
            timetable.start()
            try:
                yield store
            finally:
                await timetable.stop()

    async def tell(self, store: Database, chat: int) -> None:
        """Say something in a chat until that is a row of its own: a new subject, an answer to one, a change of one."""
        known = len(self.rows)
        while len(self.rows) == known:
            number = next(self.numbers)
            subjects = [row.subject for row in self.rows.values() if row.chat == chat][-8:]
            mode = self.dice.choice((*Mode, Mode.SEND)) if subjects else Mode.SEND
            subject = f"incident:{number}" if mode is Mode.SEND else self.dice.choice(subjects)
            body = msgspec.json.encode(JobFailedNotice(job=f"{number}", error="OSError: no space"))
            outgoing = Outgoing(kind="notice", body=body, mode=mode, subject=subject, chat=f"{chat}")
            async with store.transaction() as tables:
                row = await tables.outbox.put(outgoing, SystemClock().now())
            self.rows.setdefault(row, Row(chat=chat, mode=mode, subject=subject)).numbers.append(number)

    async def say(self, store: Database, rounds: Sequence[Sequence[int]], *, ahead: int) -> None:
        """Say something in every chat of each round, so many messages ahead of the delivery."""
        for chats in rounds:
            for chat in chats:
                await self.tell(store, chat)
            await self.api.until(partial(self._has_tried, len(self.rows) - ahead), timeout=LONG)

    def _has_tried(self, many: int) -> bool:
        return len(self.api.journal) >= many

    def tries(self, chat: int) -> list[Try]:
        """The calls for a chat, oldest first."""
        row_of = {number: row for row, told in self.rows.items() for number in told.numbers}
        weather = {method: iter(self.weather[method, chat]) for method in METHODS}
        found = []
        for call in self.api.journal:
            if call.params["chat_id"] == chat:
                [number] = map(int, NUMBER.findall(call.params["text"]))
                met = next(weather[call.method], Weather(mishap=Mishap.NONE))
                found.append(Try(call=call, weather=met, number=number, row=row_of[number]))
        return found


@asynccontextmanager
async def soaking(
    folder: Path,
    seed: int,
    *,
    chats: Sequence[int],
    calls: int,
    pace: PacePolicy = TELEGRAM_PACE,
    climate: Climate,
) -> AsyncIterator[Soak]:
    """A server in the weather of a seed, drawn for so many calls of each method in each chat."""
    print(f"seed {seed}")  # noqa: T201 - pytest shows it for a failure
    dice = Random(seed)  # noqa: S311 - weather
    async with BotApi(chats=chats) as api, TelegramSession(timeout=30) as session:
        api.flood = FloodLimits(gap=pace.gap, most=pace.group_limit, window=pace.group_window, tolerance=0)
        session.api = TelegramAPIServer.from_base(api.url)
        weather = {
            (method, chat): list(itertools.islice(drawn(dice, climate), calls))
            for method in METHODS
            for chat in chats
        }
        # Call by call, not chat by chat, so that the server finds each one near the beginning.
        for number, (method, chat) in itertools.product(range(calls), weather):
            weather[method, chat][number].befall(api, method, chat)
        bot = Bot(api.token, session=session)
        yield Soak(api=api, bot=bot, folder=folder, dice=dice, chats=chats, pace=pace, weather=weather)


async def delivered(store: Database) -> None:
    """Wait until nothing waits."""
    async with asyncio.timeout(LONG):
        while True:
            changed = store.changed
            if not (await store.reading.outbox.counts(0)).waiting:
                return
            await changed.wait()


# ── what must be so ───────────────────────────────────────────────────────────────────────────────


async def check_last_words(soak: Soak, store: Database) -> None:
    """Every answer is there and answers its subject; every subject shows what was said of it last; nothing is given up."""
    assert await store.reading.outbox.counts(0) == OutboxCounts(waiting=0, parked=0)
    shown = {(message.chat, message.id): message for message in soak.api.messages}
    heads: defaultdict[str, set[int]] = defaultdict(set)
    newest: dict[str, tuple[int, int, int]] = {}
    for number, row in soak.rows.items():
        sent = await store.reading.outbox.sent(number)
        assert sent is not None
        message = sent.message
        if row.mode is Mode.REPLY:
            assert str(row.numbers[-1]) in NUMBER.findall(shown[row.chat, message].text)
            assert shown[row.chat, message].reply_to in heads[row.subject]
        else:
            heads[row.subject].add(message)
            newest[row.subject] = (row.chat, message, row.numbers[-1])
    for chat, message, last in newest.values():
        assert NUMBER.findall(shown[chat, message].text) == [f"{last}"]


def check_order(soak: Soak, chat: int) -> None:
    """A chat's rows are tried one after another: none before the one ahead of it is done, and each until it is.

    A row is tried again only after a try that the bot has no answer to, or that was under way when it was ended; so
    a message that arrives twice does so directly after itself, with what has been said of it meanwhile.
    """
    tries = soak.tries(chat)
    rows = [(row, list(again)) for row, again in itertools.groupby(tries, key=lambda tried: tried.row)]
    assert [row for row, _ in rows] == [row for row, told in soak.rows.items() if told.chat == chat]
    for row, again in rows:
        assert again[-1].is_answered
        assert row in soak.cut_off or not any(tried.is_answered for tried in again[:-1])
        numbers = [tried.number for tried in again]
        assert numbers == sorted(numbers)
        assert numbers[-1] == soak.rows[row].numbers[-1]


def check_pace(soak: Soak, chat: int) -> None:
    """No chat hears more than it may, and none is tried before it has asked to be: the server refused nothing itself."""
    times, pace = soak.api.accepted(chat), soak.pace
    assert all(after - before >= pace.gap for before, after in itertools.pairwise(times))
    if chat < 0:
        apart = zip(times, times[pace.group_limit :], strict=False)
        assert all(after - before >= pace.group_window for before, after in apart)
    tries = soak.tries(chat)
    assert all((tried.call.code == 429) == (tried.weather.mishap is Mishap.FLOOD) for tried in tries)
    for tried, following in itertools.pairwise(tries):
        if tried.weather.mishap is Mishap.FLOOD and tried.row not in soak.cut_off:
            assert following.call.at - tried.call.at >= tried.weather.number


async def check(soak: Soak, store: Database) -> None:
    await check_last_words(soak, store)
    for chat in soak.chats:
        check_order(soak, chat)
        check_pace(soak, chat)


def dealt(dice: Random, turns: dict[int, int]) -> list[list[int]]:
    """Rounds in which every chat that has turns left has one, in any order."""
    left = [[chat for chat, many in turns.items() if many > number] for number in range(max(turns.values()))]
    return [dice.sample(chats, len(chats)) for chats in left]


async def soak_through(
    soak: Soak, turns: dict[int, int], *, lives: int, ahead: int, end: Callable[[float], None]
) -> None:
    """Say it all in so many lives of the delivery; `end` sets the seconds that runs get when a life ends.

    Every other time they get none, as in a crash.
    """
    patience = itertools.cycle((0, 2))
    rounds = dealt(soak.dice, turns)
    cuts = [0, *sorted(soak.dice.sample(range(1, len(rounds)), lives - 1)), len(rounds)]
    for begin, stop in itertools.pairwise(cuts):
        async with soak.delivering() as store:
            await soak.say(store, rounds[begin:stop], ahead=ahead)
            if stop == len(rounds):
                await delivered(store)
                await check(soak, store)
            end(next(patience))
    assert len(soak.rows) == sum(turns.values())


@pytest.fixture
def end(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    return lambda seconds: monkeypatch.setattr(schedule, "_PATIENCE", seconds)


@pytest.mark.prove
async def test_two_thousand_messages_arrive_in_order_at_telegrams_pace(
    tmp_path: Path, end: Callable[[float], None]
) -> None:
    """With all the weather there is, and a bot that is ended and started again meanwhile."""
    turns = dict.fromkeys(range(1, 41), 48) | dict.fromkeys(range(-4, 0), 20)
    seed = SystemRandom().randrange(10**6)
    async with soaking(tmp_path, seed, chats=tuple(turns), calls=100, climate=Climate()) as soak:
        await soak_through(soak, turns, lives=8, ahead=300, end=end)
        met = {tried.weather.mishap for chat in turns for tried in soak.tries(chat)}
        assert met == set(Mishap)
        assert soak.cut_off


QUICK: Final = PacePolicy(gap=0.02, group_limit=6, group_window=0.4)
SHOWERS: Final = Climate(odds=ODDS | {Mishap.FLOOD: 8}, storm=(0,), floods=(1,), longest_delay=0.05)
"""A 429 is never for less than a second."""


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        notifier, "_WAITS", BackoffConfig(min_delay=0.02, max_delay=0.1, factor=2, jitter=0.005)
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.usefixtures("_impatient")
async def test_messages_arrive_in_order_and_at_the_pace_of_their_chat(
    tmp_path: Path, end: Callable[[float], None], seed: int
) -> None:
    """As above in small, by a quicker clock."""
    turns = dict.fromkeys(range(1, 6), 8) | {-1: 12}
    async with soaking(tmp_path, seed, chats=tuple(turns), calls=30, pace=QUICK, climate=SHOWERS) as soak:
        await soak_through(soak, turns, lives=3, ahead=15, end=end)


@pytest.mark.usefixtures("_impatient")
async def test_a_chat_that_floods_is_waited_for_alone(tmp_path: Path) -> None:
    """It is told to wait again and again; the others hear everything meanwhile."""
    flooded, *others = chats = range(1, 5)
    async with soaking(tmp_path, 0, chats=chats, calls=0, pace=QUICK, climate=SHOWERS) as soak:
        storm = [Weather(mishap=Mishap.FLOOD, number=1)] * 2
        soak.weather["sendMessage", flooded] += storm
        for weather in storm:
            weather.befall(soak.api, "sendMessage", flooded)
        async with soak.delivering() as store:
            for chat in [*chats] * 6:
                await soak.tell(store, chat)
            await delivered(store)
            await check(soak, store)
    assert all(soak.api.accepted(other)[-1] < soak.api.accepted(flooded)[0] for other in others)
