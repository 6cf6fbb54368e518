"""The digest in words: every line once and in order, on pages that Telegram takes; what it says of a week."""

from zoneinfo import ZoneInfo

import pytest
from aiogram.utils.formatting import Bold, Text
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bot.callbacks import DigestButton
from bot.views import digest as view
from bot.views import notice
from bot.views.cleaning import units
from bot.views.digest_pages import Line, paged
from bot.views.digest_picture import MOST_BARS, picture
from bot.views.digest_words import chance, dates, rate, summary, title
from bot.views.text import MESSAGE_LIMIT
from jobs.alert.digest_notice import DigestNotice
from jobs.digest.digest import Away, Digest
from jobs.digest.figures import CheckFigures, Figures, RunFigures
from jobs.verification.drift import Alarm, Drift
from jobs.verification.verdict import Check
from tests.bot.drawn_digests import digests
from tests.bot.safety import LARGEST_ID, NOW, UTC_ZONE, assert_safe, few
from tests.digests import SUNDAY, WEEK, a_digest, an_eventful_digest

# ── pages ─────────────────────────────────────────────────────────────────────────────────────────

LIMIT = 60
"""Of the pages in these tests: two headings and a line fit into it."""


@st.composite
def written(draw: st.DrawFn) -> list[Line]:
    """Lines that tell which they are; no three headings follow one another."""
    found: list[Line] = []
    for number in range(draw(st.integers(0, 40))):
        text = f"{number}:" + draw(st.text(st.sampled_from("a🙂"), max_size=8))
        is_heading = draw(st.booleans()) and not all(line.is_heading for line in found[-2:])
        found.append(Line(content=Text(Bold(text)), is_heading=is_heading, is_apart=draw(st.booleans())))
    return found


@given(written())
def test_every_line_is_on_one_page_once_and_in_order(lines: list[Line]) -> None:
    pages = [page.render()[0] for page in paged(lines, LIMIT)]
    shown = [line for page in pages for line in page.split("\n") if line]
    assert shown == [line.content.render()[0] for line in lines]
    assert all(units(page) <= LIMIT for page in pages)


@given(written())
def test_no_page_ends_with_a_heading_or_begins_with_a_gap(lines: list[Line]) -> None:
    """But for a heading that nothing follows at all."""
    headings = {line.content.render()[0] for line in lines if line.is_heading}
    pages = [page.render()[0].split("\n") for page in paged(lines, LIMIT)]
    assert all(page[-1] not in headings for page in pages[:-1])
    assert all(page[0] and page[-1] for page in pages)


@given(written())
def test_a_page_is_left_only_when_it_is_full(lines: list[Line]) -> None:
    pages = [page.render()[0] for page in paged(lines, LIMIT)]
    longest = 3 * (2 + 1 + 2 * 8 + 1)
    assert all(units(page) > LIMIT - longest - 1 for page in pages[:-1])


@few
@given(digests, st.integers(1, 99))
def test_a_page_of_any_digest_is_safe(digest: Digest, number: int) -> None:
    """And all pages together hold all its lines."""
    assert_safe(view.page(LARGEST_ID, digest, number, UTC_ZONE))
    lines = list(view.written(digest, UTC_ZONE))
    pages = [page.render()[0] for page in paged(lines)]
    shown = [line for page in pages for line in page.split("\n") if line]
    assert shown == [line.content.render()[0] for line in lines]
    assert all(units(page) <= MESSAGE_LIMIT for page in pages)
    assert [line for line in view.plain(digest, UTC_ZONE).split("\n") if line] == shown


def test_buttons_lead_to_the_pages_beside() -> None:
    """Each names its page; the first and the last page have one, a digest of one page has none."""
    long = a_digest(absences=(), answers=tuple(a_digest().answers[:1]) * 400)
    pages = [view.page(7, long, number, UTC_ZONE) for number in (1, 2, 99)]
    last = len(paged(list(view.written(long, UTC_ZONE))))
    labels = [
        [button.text for row in page.keyboard.inline_keyboard for button in row]
        for page in pages
        if page.keyboard
    ]
    assert labels == [
        [f"Page 2 of {last}"],
        [f"Page 1 of {last}", f"Page 3 of {last}"],
        [f"Page {last - 1} of {last}"],
    ]
    assert pages[0].keyboard
    assert pages[0].keyboard.inline_keyboard[0][0].callback_data == DigestButton(digest=7, page=2).pack()
    assert view.page(7, a_digest(), 1, UTC_ZONE).keyboard is None


def test_a_notice_shows_the_first_page() -> None:
    told = DigestNotice(digest=3, body=a_digest())
    assert notice.render(told, NOW, UTC_ZONE) == view.page(3, a_digest(), 1, UTC_ZONE)


# ── how it was ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("runs", "says", "percent"),
    [
        ((), "No runs", "No runs"),
        ((0, 0, 2), "No run came, 2 missing", "No runs"),
        ((1, 0, 0), "1 run passed", "100 %"),
        ((30, 0, 0), "All 30 runs passed", "100 %"),
        ((30, 0, 1), "All 30 runs passed, 1 missing", "100 %"),
        ((28, 2, 0), "28 of 30 runs passed, 2 failed", "93.3 %"),
        ((0, 1, 0), "0 of 1 run passed, 1 failed", "0.0 %"),
        ((99_999, 1, 3), "99\u202f999 of 100\u202f000 runs passed, 1 failed, 3 missing", "99.9 %"),
    ],
    ids=["nothing", "missing", "one", "all", "all that came", "some", "none", "nearly all"],
)
def test_a_line_says_how_the_runs_were(runs: tuple[int, ...], says: str, percent: str) -> None:
    """What is not all is never rounded up to it."""
    told = Figures(
        runs=tuple(
            RunFigures(workflow="nightly", passed=p, failed=f, missing=m)
            for p, f, m in ([runs] if runs else [])
        )
    )
    assert (summary(a_digest(figures=told)), rate(a_digest(figures=told))) == (says, percent)


@pytest.mark.parametrize(
    ("week", "weeks", "says"),
    [
        ("2026-W48", 1.0, "Week 48"),
        ("2027-W01", 1.0, "Week 1"),
        (None, 0.1, "The week so far"),
        (None, 0.999, "The week so far"),
        (None, 1.001, "The last 2 weeks"),
        (None, 11.5, "The last 12 weeks"),
    ],
)
def test_its_title_says_of_which_time_it_is(week: str | None, weeks: float, says: str) -> None:
    """A week that goes on counts as one."""
    until = SUNDAY if week else SUNDAY - 1
    start = SUNDAY - WEEK * (-(-weeks // 1))
    digest = a_digest(week=week, since=start, until=until if week else start + weeks * WEEK)
    assert title(digest, UTC_ZONE) == says


@pytest.mark.parametrize(
    ("days_before", "zone", "says"),
    [
        (7, "UTC", "22 to 29 Nov 2026"),
        (35, "UTC", "25 Oct to 29 Nov 2026"),
        (364, "UTC", "30 Nov 2025 to 29 Nov 2026"),
        (7, "Pacific/Kiritimati", "23 to 30 Nov 2026"),
    ],
)
def test_its_days_are_those_of_the_zone(days_before: int, zone: str, says: str) -> None:
    assert dates(a_digest(since=SUNDAY - days_before * 86_400), ZoneInfo(zone)) == says


@pytest.mark.parametrize(
    ("likelihood", "says"),
    [
        (1.0, "100 %"),
        (0.106, "11 %"),
        (0.01, "1 %"),
        (0.0099, "1 in 100"),
        (0.000012, "1 in 83\u202f000"),
        (0.0, "less than 1 in a billion"),
    ],
)
def test_a_chance_is_told_as_people_read_it(likelihood: float, says: str) -> None:
    assert chance(likelihood) == says


# ── what is told ──────────────────────────────────────────────────────────────────────────────────


def test_a_digest_tells_everything() -> None:
    """What is odd comes first, then what was counted, what was stopped and changed, and the three questions."""
    text = view.plain(an_eventful_digest(), UTC_ZONE)
    told = [
        "📊 Week 48, late · 22 to 29 Nov 2026",
        "28 of 30 runs passed, 2 failed, 2 missing.",
        "⚠️ Drift",
        (
            "nightly, fields: 5 of 30 runs failed, 2 of 210 in the weeks before; if nothing has changed, the chance of that"
            " is 1 in 83\u202f000."
        ),
        "weekly: no run came; 1 was due; 4 came in the weeks before.",
        "hourly, count: never tried in 168 runs, as an earlier check had failed in each.",
        (
            "nightly, exists: no failure in 93 runs of 3 weeks; 5 of 210 failed before, and if nothing has changed the"
            " chance of that is 11 %. Can it still fail?"
        ),
        (
            "nightly, parses: no failure in 93 runs of 3 weeks, nor before; with 1 failure in 100 runs the chance of that"
            " would be 39 %. Can it still fail?"
        ),
        "❌ Said done, but was not",
        "nightly: 2 runs",
        "❌ Missing",
        "nightly: 1 run",
        "weekly: 1 run",
        "Checks",
        "nightly: 28 of 30 runs passed, 3 honest failures among them, 1 missing",
        "✗ fields: 28 passed, 2 failed",
        "✓ exists, parses: 30 passed; fresh: 28 passed, 2 not reached",
        "weekly: no run came, 1 missing",
        "Self-test: 52 of 53 mutants detected",
        "✗ nightly, status: status renamed was not noticed",
        "Made up after its specification, for want of a good output: weekly",
        "🛑 Loops stopped: 1",
        (
            "Tue 24 Nov, 18:00: worker-3 of gateway; read_file, thrash_loop:10; 166 calls in 11 min, 149\u202f903 tokens,"
            " $1.20; another hour of it: 817\u202f653 tokens, $6.55"
        ),
        "Pins changed: 3",
        "Wed 25 Nov, 18:00: workflow nightly, aaaaaaaa → bbbbbbbb, approved by 4711",
        "Thu 26 Nov, 18:00: killer stopper, new → cccccccc, first use",
        "Fri 27 Nov, 18:00: source old, dddddddd → removed, approved by 4711",
        "The bot was away for 2 h 1 min",
        "Sat 28 Nov, 18:00: 2 h",
        "Sun 29 Nov, 17:00: 1 min 30 s",
        "Is a model in the verification path?",
        "No.",
        "Could each criterion be a unit test?",
        "Yes, but:",
        "nightly, weekly",
        "Did the pass rate ever go down?",
        "Yes, in 2026-W47.",
    ]
    assert [line for line in text.split("\n") if line] == told


def test_what_did_not_happen_is_said_without_a_heading() -> None:
    text = view.plain(a_digest(figures=Figures()), UTC_ZONE)
    assert (
        "No drift. No run said that it was done and was not. No run is missing. The verifier has not been tested."
        " No loop was stopped. No pin changed. The bot was never away."
    ) in text
    assert not {"Drift", "Missing", "Checks", "Self-test", "Loops", "Pins"} & set(text.split())


def test_checks_that_are_odd_alike_share_a_line() -> None:
    """Most checks of a good workflow are too good at once."""
    good = Alarm(
        drift=Drift.TOO_GOOD, workflow="nightly", check=Check.EXISTS, weeks=3, runs=93, likelihood=0.39
    )
    alarms = (good, replace(good, check=Check.PARSES), replace(good, workflow="weekly"))
    text = view.plain(a_digest(alarms=alarms), UTC_ZONE)
    assert "\nnightly, exists, parses: no failure" in text
    assert "\nweekly, exists: no failure" in text


def test_of_many_absences_the_longest_are_listed() -> None:
    """In order of time; the others as a sum."""
    away = tuple(Away(since=SUNDAY - 1000 * n, until=SUNDAY - 1000 * n + 60 * n) for n in range(15, 0, -1))
    text = view.plain(a_digest(absences=away), UTC_ZONE)
    section = text.partition("The bot was away for 2 h\n")[2].partition("\n\n")[0].split("\n")
    assert len(section) == 11
    assert section[0] == "Sun 29 Nov, 13:50: 15 min"
    assert section[-1] == "… and 5 shorter, 15 min in all"


# ── the picture ───────────────────────────────────────────────────────────────────────────────────


def test_a_picture_has_a_bar_for_each_check_and_the_rate_of_each_week() -> None:
    shown = picture(a_digest(), UTC_ZONE)
    assert [
        (bar.workflow, bar.place, bar.check, bar.passed, bar.failed, bar.not_reached) for bar in shown.bars
    ] == [
        ("nightly", 1, "exists", 30, 0, 0),
        ("nightly", 1, "parses", 30, 0, 0),
        ("nightly", 1, "fields", 28, 2, 0),
        ("nightly", 1, "fresh", 28, 0, 2),
    ]
    assert [(week.week, week.passed, week.failed) for week in shown.rates][-2:] == [
        ("47", 30, 0),
        ("48", 28, 2),
    ]
    assert (shown.title, shown.headline) == ("Week 48", "93.3 %")
    assert view.caption(a_digest(), UTC_ZONE) == f"Week 48, {shown.dates}: {shown.summary}"


def test_of_many_checks_the_worst_have_bars_of_their_own() -> None:
    """Those of a workflow that have not failed share one, and the last bar is of all others."""
    checks = tuple(
        CheckFigures(
            workflow=f"w{n}", check=check, passed=100, failed=n if check is Check.FIELDS else 0, not_reached=0
        )
        for n in range(7)
        for check in (Check.EXISTS, Check.PARSES, Check.FIELDS)
    )
    runs = tuple(RunFigures(workflow=f"w{n}", passed=100) for n in range(7))
    bars = picture(a_digest(figures=Figures(runs=runs, checks=checks)), UTC_ZONE).bars
    assert [(bar.workflow, bar.check, bar.failed) for bar in bars] == [
        *((f"w{n}", "fields", n) for n in range(6, 0, -1)),
        ("w0", "3 checks", 0),
        ("", "12 more checks", 0),
    ]


@few
@given(digests)
def test_a_picture_leaves_out_no_number(digest: Digest) -> None:
    """However many checks there are, the bars add up."""
    bars = picture(digest, UTC_ZONE).bars
    assert len(bars) <= MOST_BARS
    for name in ("passed", "failed", "not_reached"):
        assert sum(getattr(bar, name) for bar in bars) == sum(
            getattr(check, name) for check in digest.figures.checks
        )
