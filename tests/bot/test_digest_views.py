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
from jobs.digest.digest import Answer, Away, Digest
from jobs.digest.figures import CheckFigures, Figures, RunFigures
from jobs.verification.drift import Alarm, Drift
from jobs.verification.verdict import Check
from tests.bot.drawn_digests import digests
from tests.bot.safety import LARGEST_ID, NOW, UTC_ZONE, assert_safe, few
from tests.digests import SUNDAY, a_digest, an_eventful_digest

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
    assert_safe(view.page(LARGEST_ID, digest, number, UTC_ZONE, NOW))
    lines = list(view.written(digest, UTC_ZONE))
    pages = [page.render()[0] for page in paged(lines)]
    shown = [line for page in pages for line in page.split("\n") if line]
    assert shown == [line.content.render()[0] for line in lines]
    assert all(units(page) <= MESSAGE_LIMIT for page in pages)
    assert [line for line in view.plain(digest, UTC_ZONE).split("\n") if line] == shown


def test_buttons_lead_to_the_pages_beside() -> None:
    """Each names its page; the first and the last page have one, a digest of one page has none."""
    long = a_digest(absences=(), answers=tuple(a_digest().answers[:1]) * 400)
    pages = [view.page(7, long, number, UTC_ZONE, SUNDAY) for number in (1, 2, 99)]
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
    assert view.page(7, a_digest(), 1, UTC_ZONE, SUNDAY).keyboard is None


def test_no_digest_has_too_many_pages() -> None:
    long = a_digest(answers=(Answer(question="Why?", answer="a" * 4000),) * 1000)
    last = view.page(LARGEST_ID, long, 9999, UTC_ZONE, SUNDAY)
    assert last.keyboard
    assert last.keyboard.inline_keyboard[0][0].text == "Page 1000 of 1001"


def test_a_notice_shows_the_first_page() -> None:
    told = DigestNotice(digest=3, body=a_digest())
    assert notice.render(told, NOW, UTC_ZONE) == view.page(3, a_digest(), 1, UTC_ZONE, NOW)


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
        ("2026-W48", 1, "Week 48"),
        ("2027-W01", 1, "Week 1"),
        (None, 1, "The week so far"),
        (None, 2, "The last 2 weeks"),
        (None, 12, "The last 12 weeks"),
    ],
)
def test_its_title_says_of_which_time_it_is(week: str | None, weeks: int, says: str) -> None:
    """Whatever zone that was counted in."""
    assert title(a_digest(week=week, weeks=weeks)) == says


@pytest.mark.parametrize(
    ("week", "later", "is_late"),
    [("2026-W48", 3600, False), ("2026-W48", 3601, True), (None, 3601, False)],
    ids=["within an hour", "later", "asked for"],
)
def test_it_is_late_if_its_message_is_sent_more_than_an_hour_after_its_slot(
    week: str | None, later: float, *, is_late: bool
) -> None:
    """Not if it is composed by then: a chat may take no messages for days."""
    told = DigestNotice(digest=3, body=a_digest(week=week))
    shown = notice.render(told, SUNDAY + later, UTC_ZONE).text
    assert (", late · " in shown.split("\n")[0]) is is_late


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
        "📊 Week 48 · 22 to 29 Nov 2026",
        "28 of 30 runs passed, 2 failed, 2 missing.",
        "⚠️ Drift",
        (
            "nightly, fields: 5 of 30 runs failed, 2 of 210 in the weeks before; if nothing has changed, the chance of that"
            " is 1 in 83\u202f000."
        ),
        "weekly: no run came; 1 was due; the last one came in 2026-W47.",
        "hourly, count: never tried in 168 runs, as an earlier check had failed in each.",
        "❌ Said done, but was not",
        "nightly: 2 runs",
        "❌ Missing: 2 runs",
        "nightly, weekly",
        "Checks",
        "nightly: 28 of 30 runs passed, 3 honest failures among them, 1 missing",
        "✗ fields: 28 passed, 2 failed",
        "✓ exists, parses: 30 passed; fresh: 28 passed, 2 not reached",
        "weekly: no run came, 1 missing",
        "Can they still fail?",
        (
            "No failure for weeks. How likely that is if they fail as often as before, or once in 100 runs where they never"
            " did:"
        ),
        "nightly: exists: 93 runs of 3 weeks, 11 %, as 5 of 210 failed before",
        "nightly: parses: 93 runs of 3 weeks, 39 %",
        "Self-test: 52 of 53 mutants detected",
        "✗ nightly, status: status renamed was not noticed",
        "Made up after its specification, for want of a good output: weekly",
        "🛑 Loops stopped: 1",
        (
            "Tue 24 Nov, 18:00: worker-3 of gateway; read_file, thrash_loop:10; 166 calls in 11 min, 149\u202f903 tokens,"
            " $1.20; another hour of it: 817\u202f653 tokens, $6.55"
        ),
        "Pins changed: 3",
        "At first use, killers: stopper",
        "Wed 25 Nov, 18:00: workflow nightly, aaaaaaaa → bbbbbbbb, approved by 4711",
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
        "No drift. No run said that it was done and was not. No run is missing."
        " No loop was stopped. No pin changed. The bot was never away."
    ) in text
    assert not {"Drift", "Missing", "Checks", "Self-test", "Loops", "Pins"} & set(text.split())


@pytest.mark.parametrize(
    ("fields", "silent"),
    [({"week": None}, "No drift"), ({"is_watched": False}, "never away")],
    ids=["too early", "nobody there"],
)
def test_what_is_not_known_is_not_said_to_have_not_happened(fields: dict[str, object], silent: str) -> None:
    assert silent not in view.plain(a_digest(**fields), UTC_ZONE)


def test_a_week_that_is_told_again_says_why() -> None:
    first, _ = view.plain(a_digest(is_told_again=True), UTC_ZONE).split("\n", 1)
    assert first == "📊 Week 48, told again: the clock had been ahead · 22 to 29 Nov 2026"


def test_of_several_weeks_an_alarm_says_in_which_it_was() -> None:
    silent = Alarm(drift=Drift.NO_RUNS, workflow="weekly", week="2026-W46")
    good = Alarm(drift=Drift.TOO_GOOD, workflow="n", check=Check.FRESH, week="2026-W47", runs=30, weeks=3)
    text = view.plain(a_digest(week=None, weeks=4, alarms=(silent, good)), UTC_ZONE)
    assert "\nweekly, 2026-W46: no run came; none has ever come.\n" in text
    assert "\nn: fresh, 2026-W47: 30 runs of 3 weeks, " in text


def test_the_workflows_are_named_that_were_not_tested() -> None:
    """Also if none ever was."""
    tested = an_eventful_digest().selftests
    for tests, result in ((tested, "52 of 53 mutants detected"), ((), "none yet")):
        told = view.plain(a_digest(selftests=tests, untested=("a", "b")), UTC_ZONE)
        assert f"\nSelf-test: {result}\n" in told
        assert "\nNot tested this week: a, b\n" in told


def test_what_is_too_good_alike_shares_a_line() -> None:
    """Checks of a workflow, and workflows, in order of what is the least likely; the sentence is said once."""
    good = Alarm(
        drift=Drift.TOO_GOOD, workflow="nightly", check=Check.EXISTS, weeks=3, runs=93, likelihood=0.39
    )
    alarms = (
        replace(good, workflow="hourly", runs=300, earlier_runs=900, earlier_failed=9, likelihood=0.05),
        *(replace(good, workflow=f"w{n}", check=check) for n in range(9) for check in (None, Check.PARSES)),
        *(good, replace(good, check=Check.PARSES), replace(good, workflow="weekly")),
    )
    text = view.plain(a_digest(alarms=alarms), UTC_ZONE)
    section = text.partition("Can they still fail?\n")[2].partition("\n\n")[0].split("\n")
    assert section[1:] == [
        "hourly: exists: 300 runs of 3 weeks, 5 %, as 9 of 900 failed before",
        "w0, w1, w2, w3, w4, w5, w6, w7: parses: 93 runs of 3 weeks, 39 %",
        "w8: parses: 93 runs of 3 weeks, 39 %",
        "nightly: exists, parses: 93 runs of 3 weeks, 39 %",
        "weekly: exists: 93 runs of 3 weeks, 39 %",
    ]
    assert "Drift" not in text


def test_a_jump_from_nothing_is_measured_by_what_is_assumed() -> None:
    jump = replace(an_eventful_digest().alarms[0], earlier_failed=0)
    text = view.plain(a_digest(alarms=(jump,)), UTC_ZONE)
    assert "0 of 210 in the weeks before; if 1 in 100 fails, the chance of that is" in text


def test_checks_that_are_never_reached_share_a_line() -> None:
    alarm = Alarm(drift=Drift.NEVER_REACHED, workflow="nightly", check=Check.FIELDS, runs=3)
    text = view.plain(a_digest(alarms=(alarm, replace(alarm, check=Check.FRESH))), UTC_ZONE)
    assert "\nnightly, fields, fresh: never tried in 3 runs, as an earlier check had failed in each." in text


def test_a_check_that_was_never_tried_has_not_passed() -> None:
    """But one that was tried now and then has."""
    counted = tuple(
        CheckFigures(workflow="nightly", check=check, passed=passed, failed=failed, not_reached=not_reached)
        for check, passed, failed, not_reached in (
            (Check.EXISTS, 7, 0, 0),
            (Check.PARSES, 1, 6, 0),
            (Check.FIELDS, 1, 0, 6),
            (Check.STATUS, 0, 0, 7),
        )
    )
    figures = Figures(runs=(RunFigures(workflow="nightly", passed=1, failed=6),), checks=counted)
    text = view.plain(a_digest(figures=figures), UTC_ZONE)
    assert (
        "\n✗ parses: 1 passed, 6 failed"
        "\n✓ exists: 7 passed; fields: 1 passed, 6 not reached"
        "\n\u2013 status: 7 not reached\n"
    ) in text


@pytest.mark.parametrize(
    ("tries", "says"), [(1, "after 1 failed try"), (5, "after 5 failed tries")], ids=["one", "many"]
)
def test_what_has_failed_until_it_passed_is_told(tries: int, says: str) -> None:
    runs = (RunFigures(workflow="nightly", passed=1, said_done=1, failed_tries=tries),)
    text = view.plain(a_digest(figures=Figures(runs=runs)), UTC_ZONE)
    assert f"\n1 run passed, {says}.\n" in text
    assert "\nnightly: 1 run\n" in text
    assert f"\nnightly: 1 of 1 run passed, {says}\n" in text


def test_a_workflow_whose_every_run_has_passed_takes_a_line() -> None:
    runs = RunFigures(workflow="nightly", passed=7, missing=1)
    checks = tuple(
        CheckFigures(workflow="nightly", check=check, passed=7) for check in (Check.EXISTS, Check.PARSES)
    )
    text = view.plain(a_digest(figures=Figures(runs=(runs,), checks=checks)), UTC_ZONE)
    assert "\nnightly: 7 of 7 runs passed, 1 missing; ✓ exists, parses\n\n" in text


@pytest.mark.parametrize(
    ("bad", "rest"),
    [
        (3, "… and 100 more, all of whose runs passed"),
        (103, "… and 100 more, 3 with runs that failed or did not come"),
    ],
)
def test_of_many_workflows_the_worst_are_shown(bad: int, rest: str) -> None:
    runs = tuple(RunFigures(workflow=f"w{n}", passed=1, failed=max(0, n + bad - 199)) for n in range(200))
    checks = tuple(CheckFigures(workflow=run.workflow, check=Check.EXISTS, passed=1) for run in runs)
    text = view.plain(a_digest(figures=Figures(runs=runs, checks=checks)), UTC_ZONE)
    section = text.partition("\nChecks\n")[2].partition("\n\n")[0].split("\n")
    workflows = [line for line in section if line.startswith("w")]
    assert len(workflows) == 100
    assert workflows[0].startswith(f"w199: 1 of {bad + 1} runs passed")
    assert section[-1] == rest


def test_of_many_names_the_first_are_shown() -> None:
    """In every list."""
    many = tuple(f"w{n}" for n in range(150))
    alarms = tuple(
        replace(alarm, workflow=each) for alarm in an_eventful_digest().alarms[2:4] for each in many
    )
    text = view.plain(a_digest(alarms=alarms, untested=many, selftests=()), UTC_ZONE)
    assert text.count("… and 50 more") == 2
    assert "\nw99, count: never tried" in text
    assert "\nw100, count: never tried" not in text


def test_what_was_pinned_at_first_use_is_told_in_a_line() -> None:
    """Of each kind: at the first start that is all there is."""
    pin = an_eventful_digest().pins[1]
    pins = tuple(replace(pin, kind="workflow", name=f"w{n}") for n in range(10))
    text = view.plain(a_digest(pins=(*pins, pin)), UTC_ZONE)
    assert text.partition("Pins changed: 11\n")[2].partition("\n\n")[0].split("\n") == [
        "At first use, workflows: w0, w1, w2, w3, w4, w5, w6, w7",
        "w8, w9",
        "At first use, killers: stopper",
    ]


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
    """Those of a workflow that have fared alike share one that tells of runs; the last bar is the sum of all others."""
    checks = tuple(
        CheckFigures(
            workflow=f"w{n}", check=check, passed=100, failed=n if check is Check.FIELDS else 0, not_reached=0
        )
        for n in range(7)
        for check in (Check.EXISTS, Check.PARSES, Check.FIELDS)
    )
    runs = tuple(RunFigures(workflow=f"w{n}", passed=100) for n in range(7))
    bars = picture(a_digest(figures=Figures(runs=runs, checks=checks)), UTC_ZONE).bars
    assert [(bar.workflow, bar.check, bar.passed, bar.failed) for bar in bars] == [
        *((f"w{n}", "fields", 100, n) for n in range(6, 0, -1)),
        ("w0", "3 checks, each", 100, 0),
        ("", "12 more checks, in all", 1200, 0),
    ]


def test_what_failed_stands_beside_what_did_not_of_one_workflow() -> None:
    """First the workflow with the worst."""
    checks = tuple(
        CheckFigures(
            workflow=f"w{n}", check=check, passed=100, failed=n if check is Check.FIELDS else 0, not_reached=0
        )
        for n in (1, 2)
        for check in (Check.EXISTS, Check.PARSES, Check.FIELDS, Check.FRESH, Check.STATUS)
    )
    runs = tuple(RunFigures(workflow=f"w{n}", passed=100) for n in (1, 2))
    bars = picture(a_digest(figures=Figures(runs=runs, checks=checks)), UTC_ZONE).bars
    assert [(bar.workflow, bar.check) for bar in bars] == [
        ("w2", "fields"),
        ("w2", "4 checks, each"),
        ("w1", "fields"),
        ("w1", "4 checks, each"),
    ]


def test_a_picture_has_long_names_to_their_ends() -> None:
    """Which of it fits, only who draws it knows."""
    name = f"/srv/{'x' * 180}/report.json"
    checks = (CheckFigures(workflow=name, check=Check.EXISTS, passed=1, failed=0, not_reached=0),)
    figures = Figures(runs=(RunFigures(workflow=name, passed=1),), checks=checks)
    assert [bar.workflow for bar in picture(a_digest(figures=figures), UTC_ZONE).bars] == [name]


def test_a_picture_of_no_runs_says_so_once() -> None:
    shown = picture(a_digest(figures=Figures()), UTC_ZONE)
    assert (shown.headline, shown.summary) == ("No runs", "")


@few
@given(digests)
def test_a_picture_leaves_out_no_number(digest: Digest) -> None:
    """However many checks there are, the bars add up, each as often as it has checks."""
    bars = picture(digest, UTC_ZONE).bars
    assert len(bars) <= MOST_BARS
    often = [int(bar.check.split()[0]) if bar.check.endswith(", each") else 1 for bar in bars]
    for name in ("passed", "failed", "not_reached"):
        shown = sum(getattr(bar, name) * times for bar, times in zip(bars, often, strict=True))
        assert shown == sum(getattr(check, name) for check in digest.figures.checks)
