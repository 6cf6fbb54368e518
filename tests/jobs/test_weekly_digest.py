"""Every week is told once, whatever befalls the bot, its clock and its zone; and what is told is what was."""

import random
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from datetime import UTC, date, datetime, time, tzinfo
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec
import pytest

from jobs.digest.digest import Digest
from jobs.digest.week import last_ended, shifted, slot
from jobs.store.database import Database, open_database
from jobs.verification.verdict import Check
from tests.fakes import HandClock
from tests.jobs.runs import at
from tests.jobs.weeks import DAY, HOUR, WEEK, Weeks, judged
from tests.verdicts import MISSING

WEDNESDAY = at("2026-11-25T12:00")
SUNDAY = at("2026-11-29T18:00")
"""The end of 2026-W48."""


@pytest.fixture
async def weeks(store: Database) -> Weeks:
    """A bot that was started on a Wednesday."""
    weeks = Weeks(store=store, clock=HandClock(WEDNESDAY))
    await weeks.look()
    return weeks


def _go_to(weeks: Weeks, moment: float) -> None:
    weeks.clock.time = moment


# ── when ──────────────────────────────────────────────────────────────────────────────────────────


async def test_the_first_digest_is_told_at_the_end_of_the_week_in_which_the_bot_was_started(
    weeks: Weeks,
) -> None:
    """Not one of the week before, of which it knows nothing."""
    assert await weeks.weeks() == []
    _go_to(weeks, SUNDAY - 1)
    await weeks.look()
    assert await weeks.weeks() == []
    await weeks.look(later=1)
    await weeks.look(later=60)
    [notice] = await weeks.told()
    assert notice.body.week == "2026-W48"
    assert (notice.body.since, notice.body.until) == (SUNDAY - WEEK, SUNDAY)
    assert not notice.body.is_late(weeks.clock.now())


async def test_the_years_end_is_a_week_like_any_other(weeks: Weeks) -> None:
    _go_to(weeks, at("2026-12-27T18:00"))
    await weeks.look()
    for _ in range(3):
        await weeks.look(later=WEEK)
    assert (await weeks.weeks())[-4:] == ["2026-W52", "2026-W53", "2027-W01", "2027-W02"]


async def test_weeks_that_were_missed_are_told_oldest_first_and_called_late(weeks: Weeks) -> None:
    """Months of them, too; the last one only if its slot is more than an hour ago."""
    await weeks.look(later=SUNDAY - WEDNESDAY + 20 * WEEK + HOUR)
    told = [notice.body for notice in await weeks.told()]
    assert [digest.week for digest in told] == [shifted("2026-W48", n) for n in range(21)]
    assert [digest.is_late(weeks.clock.now()) for digest in told] == [True] * 20 + [False]
    assert weeks.tested == [told[-1].until]


async def test_after_more_than_a_year_the_weeks_begin_anew(weeks: Weeks) -> None:
    """As with a clock that did not know the year when the bot was first started."""
    await weeks.look(later=55 * WEEK)
    assert await weeks.weeks() == []
    await weeks.look(later=WEEK)
    assert len(await weeks.weeks()) == 1


async def test_a_clock_that_is_set_back_repeats_no_week(weeks: Weeks) -> None:
    _go_to(weeks, SUNDAY)
    await weeks.look()
    for moment in (SUNDAY - HOUR, SUNDAY - 3 * WEEK, SUNDAY - HOUR, SUNDAY, SUNDAY + WEEK):
        _go_to(weeks, moment)
        await weeks.look()
    assert await weeks.weeks() == ["2026-W48", "2026-W49"]


async def test_a_clock_that_was_ahead_for_a_while_loses_no_week_that_it_has_skipped(weeks: Weeks) -> None:
    """It was ahead for years: the weeks between are told when they are over, those that were told then are not again."""
    far = SUNDAY + 200 * WEEK
    _go_to(weeks, far)
    await weeks.look()
    await weeks.look(later=WEEK)
    [early] = await weeks.weeks()
    _go_to(weeks, SUNDAY)
    await weeks.look()
    await weeks.look(later=WEEK)
    assert await weeks.weeks() == [early, "2026-W48", "2026-W49"]
    _go_to(weeks, far - WEEK)
    await weeks.look()
    for _ in range(4):
        await weeks.look(later=WEEK)
    told = await weeks.weeks()
    assert len(told) == len(set(told))
    assert told.count(early) == 1


async def test_a_week_that_was_told_by_a_clock_that_was_ahead_is_told_again_if_runs_have_come_since(
    weeks: Weeks,
) -> None:
    """Under its subject, in the row that its pages are in; once, also if the clock is set back again a little."""
    await weeks.look(later=4 * WEEK)
    early = [notice.digest for notice in await weeks.told()]
    for week in range(4):
        _go_to(weeks, SUNDAY - 60 + week * WEEK)
        await weeks.record(*[judged()] * (week % 2))
        for moment in (60, 0, 120, 60):
            _go_to(weeks, SUNDAY + moment + week * WEEK)
            await weeks.look()
    told = await weeks.told()
    assert await weeks.weeks() == [*(f"2026-W{48 + n}" for n in range(4)), "2026-W49", "2026-W51"]
    assert [notice.digest for notice in told] == [*early, early[1], early[3]]
    assert [notice.body.is_told_again for notice in told] == [False] * 4 + [True] * 2
    assert [sum(run.passed for run in notice.body.figures.runs) for notice in told[4:]] == [1, 1]
    row = await weeks.store.reading.digests.get(early[1])
    assert row
    assert row.body
    assert msgspec.json.decode(row.body, type=Digest) == told[4].body
    assert [rate.passed for rate in await weeks.store.reading.counts.rates()] == [1, 1]
    await weeks.look(later=WEEK)
    assert (await weeks.weeks())[-1] == "2026-W52"


async def test_the_week_before_the_first_is_told_if_a_clock_was_ahead_when_the_bot_was_first_started(
    store: Database,
) -> None:
    weeks = Weeks(store=store, clock=HandClock(WEDNESDAY + WEEK))
    await weeks.look()
    _go_to(weeks, WEDNESDAY)
    await weeks.look()
    await weeks.record(judged())
    _go_to(weeks, SUNDAY)
    await weeks.look()
    [notice] = await weeks.told()
    assert (notice.body.week, notice.body.is_told_again) == ("2026-W48", False)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Europe/Berlin", "America/New_York"),
        ("America/New_York", "Europe/Berlin"),
        ("Etc/GMT+12", "Etc/GMT-14"),
    ],
)
async def test_a_week_is_told_once_also_where_its_end_comes_twice(
    weeks: Weeks, before: str, after: str
) -> None:
    """TZ was changed within the day; the next week begins where the last one has ended."""
    weeks.zone = ZoneInfo(before)
    _go_to(weeks, slot("2026-W48", weeks.zone))
    await weeks.look()
    weeks.zone = ZoneInfo(after)
    await weeks.look()
    await weeks.look(later=DAY)
    assert await weeks.weeks() == ["2026-W48"]
    _go_to(weeks, slot("2026-W49", weeks.zone))
    await weeks.look()
    first, second = [notice.body for notice in await weeks.told()]
    assert (first.week, second.week) == ("2026-W48", "2026-W49")
    assert first.until == second.since == slot("2026-W48", ZoneInfo(before))


async def test_a_clock_that_was_set_back_in_another_zone_repeats_no_week(weeks: Weeks) -> None:
    weeks.zone = ZoneInfo("America/New_York")
    _go_to(weeks, slot("2026-W48", weeks.zone))
    await weeks.look()
    weeks.zone = UTC
    await weeks.look(later=-HOUR)
    assert await weeks.weeks() == ["2026-W48"]


async def test_self_tests_that_break_do_not_keep_a_week_from_being_told(weeks: Weeks) -> None:
    weeks.breaks = RuntimeError("no")
    _go_to(weeks, SUNDAY)
    await weeks.look()
    assert await weeks.weeks() == ["2026-W48"]


async def test_no_week_is_counted_while_the_database_lives_in_memory(weeks: Weeks) -> None:
    """It does not hold all of it. The week is told once the file can be used again."""
    _go_to(weeks, SUNDAY)
    weeks.store.trouble = "disk I/O error"
    await weeks.look()
    assert await weeks.weeks() == []
    weeks.store.trouble = None
    await weeks.look()
    assert await weeks.weeks() == ["2026-W48"]


async def test_a_digest_is_kept_for_its_pages(weeks: Weeks) -> None:
    await weeks.record(judged(), judged(Check.FRESH, said="ok"))
    _go_to(weeks, SUNDAY)
    await weeks.look()
    [notice] = await weeks.told()
    row = await weeks.store.reading.digests.get(notice.digest)
    assert row
    assert row.body
    assert msgspec.json.decode(row.body, type=Digest) == notice.body


async def test_a_week_is_told_or_nothing_of_it_is_kept(weeks: Weeks) -> None:
    """Figures, digest and message stand or fall together."""
    await weeks.record(judged())
    _go_to(weeks, SUNDAY)
    writer = weeks.store._opened.writer
    await writer.execute(
        "CREATE TEMP TRIGGER refuse BEFORE INSERT ON outbox BEGIN SELECT raise(ABORT, 'no'); END"
    )
    with pytest.raises(Exception, match="no"):
        await weeks.look()
    assert await weeks.store.reading.digests.of_week("2026-W48") is None
    assert await weeks.store.reading.counts.rates() == []
    await writer.execute("DROP TRIGGER refuse")
    await weeks.look()
    assert await weeks.weeks() == ["2026-W48"]


# ── a year ────────────────────────────────────────────────────────────────────────────────────────

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia")


class Bot:
    """A bot that may be away, over one database file."""

    def __init__(self, folder: Path, clock: HandClock, zone: str) -> None:
        self._folder = folder
        self._open = AsyncExitStack()
        self._weeks: Weeks | None = None
        self.clock = clock
        self.zone = zone

    async def start(self) -> Weeks:
        await self._open.aclose()
        store = await self._open.enter_async_context(open_database(self._folder))
        runs = self._weeks.runs if self._weeks else 0
        self._weeks = Weeks(store=store, clock=self.clock, zone=ZoneInfo(self.zone), runs=runs)
        return self._weeks

    async def stop(self) -> None:
        await self._open.aclose()


@pytest.fixture
async def bot(tmp_path: Path) -> AsyncIterator[Bot]:
    bot = Bot(tmp_path, HandClock(WEDNESDAY), "UTC")
    yield bot
    await bot.stop()


def _weeks_between(first: float, last: float, zone: ZoneInfo) -> list[str]:
    """The weeks that ended in a length of time, one by one."""
    found = []
    week = last_ended(first, zone)
    while (week := shifted(week, 1)) <= last_ended(last, zone):
        found.append(week)
    return found


def _monday(year: int, zone: tzinfo) -> float:
    """Noon of the day that the year's first ISO week begins with."""
    return datetime.combine(date.fromisocalendar(year, 1, 1), time(12), zone).timestamp()


@pytest.mark.parametrize(("year", "zone"), [*((2026, zone) for zone in ZONES), (2027, "Europe/Berlin")])
async def test_a_year_has_a_digest_for_each_of_its_weeks(bot: Bot, year: int, zone: str) -> None:
    """52 of them, or 53, through both changes of the clocks; every run is counted in one, also those of a downtime."""
    dice = random.Random(year)  # noqa: S311 - made-up lives
    bot.zone, start, end = zone, _monday(year, ZoneInfo(zone)), _monday(year + 1, ZoneInfo(zone))
    bot.clock.time = start
    weeks = await bot.start()
    await weeks.look()
    while weeks.clock.now() < end:
        await weeks.record(judged(dice.choice([None, None, Check.FRESH])), MISSING)
        if dice.random() < 0.03:
            # Away, while `loopwarden verify` goes on.
            weeks.clock.go_on(dice.uniform(0, 3 * WEEK))
            weeks = await bot.start()
        await weeks.look(later=dice.uniform(HOUR, 1.5 * DAY))
    told = [notice.body for notice in await weeks.told()]
    names = _weeks_between(start, weeks.clock.now(), ZoneInfo(zone))
    assert [digest.week for digest in told] == names
    assert len([name for name in names if name.startswith(f"{year}-")]) == (53 if year == 2026 else 52)
    assert all(before.until == after.since for before, after in pairwise(told))
    runs = [run for digest in told for run in digest.figures.runs]
    assert sum(run.missing for run in runs) == await _heard_of_until(weeks, told[-1])
    assert sum(run.passed + run.failed for run in runs) == await _heard_of_until(weeks, told[-1])


async def _heard_of_until(weeks: Weeks, last: Digest) -> int:
    """How many pairs of runs were recorded up to the end of a digest."""
    sql = "SELECT count(*) / 2 FROM run WHERE at < ?"
    [(count,)] = await weeks.store.reading.connection.execute_fetchall(sql, (last.until,))
    return int(count)


def _blows(dice: random.Random) -> Iterator[str]:
    while True:
        yield dice.choices(
            ["on", "long", "down", "restart", "ahead", "back", "right", "zone"], [40, 8, 3, 5, 2, 2, 3, 1]
        )[0]


@pytest.mark.parametrize("seed", range(8))
async def test_a_hard_year_has_the_same_digests(bot: Bot, seed: int) -> None:
    """With restarts, downtimes, other zones and a clock that goes wrong: each week once, in order."""
    dice = random.Random(seed)  # noqa: S311 - made-up lives
    bot.zone = dice.choice(ZONES)
    weeks, wrong, newest = await bot.start(), 0.0, 0.0
    await weeks.look()
    first = last_ended(WEDNESDAY, ZoneInfo(bot.zone))
    for blow in _blows(dice):
        seconds = dice.expovariate(1 / DAY)
        match blow:
            case "long" | "down":
                seconds = dice.uniform(0, 4 * WEEK)
            case "ahead" | "back":
                # By hours or days, and perhaps again in the other direction later.
                step = dice.choice([HOUR, DAY, 2 * WEEK]) * dice.random() * (1 if blow == "ahead" else -1)
                wrong, seconds = wrong + step, step
            case "right":
                wrong, seconds = 0.0, -wrong
            case "zone":
                bot.zone = dice.choice(ZONES)
        bot.clock.go_on(seconds)
        if blow in {"down", "restart", "zone"}:
            weeks = await bot.start()
        await weeks.look()
        newest = max(newest, bot.clock.now())
        if bot.clock.now() - wrong > WEDNESDAY + 52 * WEEK:
            break
    told = await weeks.weeks()
    assert len(told) >= 50
    assert told == [shifted(first, n + 1) for n in range(len(told))]
    assert shifted(first, len(told)) >= shifted(last_ended(newest, ZoneInfo(bot.zone)), -1)
