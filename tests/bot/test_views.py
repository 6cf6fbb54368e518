"""Every screen, whatever agents, tools and sources call themselves."""

import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args
from zoneinfo import ZoneInfo

import pytest
from aiogram.filters.callback_data import CallbackData
from hypothesis import given
from hypothesis import strategies as st

from bot.callbacks import ConfirmButton, IncidentButton, IncidentVerb, KillButton
from bot.views import agent, incident, measure, notice, status, stop
from bot.views.screen import Screen
from bot.views.status import SourceStatus, Status
from jobs.agent_stop import Order
from jobs.alert.digest_notice import DigestNotice
from jobs.alert.notice import (
    AnyNotice,
    AskNotice,
    BackNotice,
    IncidentNotice,
    JobFailedNotice,
    Outlook,
    PricesNotice,
    Starter,
    StillRunningNotice,
    StopNotice,
    StorageNotice,
    UndeliveredNotice,
    WatchlistNotice,
)
from jobs.alert.outgoing import Notice
from jobs.alert.pin_notice import AlteredNotice, FirstUseNotice, LetGoNotice, ProposalNotice, ProposalsNotice
from jobs.alert.run_notice import RunNotice, UnverifiedNotice, VerifiedNotice
from jobs.alert.selftest_notice import SelftestNotice
from jobs.ports import Outcome
from jobs.schedule import Runs
from jobs.thrash.incident import Incident, IncidentStatus
from jobs.thrash.locality import LocalityState, SeenCall
from jobs.thrash.policy import OnDetection, ThrashPolicy
from jobs.thrash.price import MOST, UNIT
from jobs.thrash.session import Session
from jobs.thrash.streak import Ended, Streak
from tests.bot.drawn_digests import digest_notices
from tests.bot.drawn_pins import (
    altered_notices,
    differing,
    first_use_notices,
    let_go_notices,
    proposal_notices,
    proposals_notices,
)
from tests.bot.drawn_runs import run_notices, unverified_notices, verified_notices
from tests.bot.drawn_selftests import selftest_notices
from tests.bot.hostile import texts
from tests.bot.safety import LARGEST_ID, NOW, UTC_ZONE, assert_safe, counts, few, foreign, ids, moments
from tests.store.rows import a_session, an_incident

# ── values with foreign text in them ──────────────────────────────────────────────────────────────


incidents = st.builds(
    Incident,
    id=ids,
    session_id=ids,
    agent=foreign,
    source=foreign,
    opened_at=moments,
    updated_at=moments,
    first_call=counts,
    first_ts=moments,
    tokens_before=st.none() | counts,
    kind=st.just("thrash_loop"),
    tool=foreign,
    score=counts,
    steps=counts,
    calls=counts,
    newest_ts=moments,
    tokens=st.none() | counts,
    status=st.sampled_from(IncidentStatus),
    ended=st.none() | st.sampled_from(Ended),
    snoozed_until=st.none() | moments,
    closed_at=st.none() | moments,
    cost=st.none() | st.integers(0, MOST),
    currency=st.none() | st.sampled_from(["USD", "EUR", "CHF"]),
)
calls = st.builds(
    SeenCall,
    number=counts,
    ts=moments,
    tool=foreign,
    identity=foreign,
    is_hash=st.booleans(),
    is_error=st.booleans(),
)
memories = st.builds(
    LocalityState,
    calls=counts,
    tokens=st.none() | counts,
    recent=st.lists(calls, max_size=20).map(tuple),
)
sessions = st.builds(
    Session,
    id=ids,
    source=foreign,
    session=foreign,
    agent=foreign,
    parent=st.none() | foreign,
    pid=st.none() | st.integers(1, 2**31),
    pid_since_ts=st.none() | moments,
    first_ts=moments,
    last_ts=moments,
    seen_at=moments,
    errors=counts,
    memory=st.builds(
        LocalityState,
        calls=counts,
        tokens=st.none() | counts,
        recent=st.just(()),
        cost=st.none() | st.integers(0, MOST),
    ),
    currency=st.none() | st.sampled_from(["USD", "EUR", "CHF"]),
    streak=st.builds(Streak, steps=counts),
)
policies = st.builds(ThrashPolicy, last=st.integers(2, 100), on_detection=st.sampled_from(OnDetection))
outlooks = st.builds(
    Outlook, can_stop=st.booleans(), on_detection=st.sampled_from(OnDetection), kill_after=counts
)
starters = st.builds(Starter, agent=foreign, session=st.none() | ids, shares_process=st.booleans())
NOTICES: dict[type[Notice], st.SearchStrategy[AnyNotice]] = {
    IncidentNotice: st.builds(
        IncidentNotice, incident=incidents, outlook=outlooks, starter=st.none() | starters
    ),
    AskNotice: st.builds(AskNotice, incident=incidents, stops_at=moments, starter=st.none() | starters),
    StopNotice: st.builds(
        StopNotice,
        session=ids,
        agent=foreign,
        source=foreign,
        incident=st.none() | incidents,
        reason=foreign,
        outcome=st.sampled_from(Outcome),
        detail=foreign,
        took=st.floats(0, 1e6),
        ordered_by=st.none() | ids,
        escalated=st.booleans(),
        starter=st.none() | starters,
    ),
    StillRunningNotice: st.builds(
        StillRunningNotice,
        session=ids,
        agent=foreign,
        source=foreign,
        incident=st.none() | ids,
        pid=st.none() | ids,
        newest_ts=moments,
        stopped_at=moments,
        escalating=st.booleans(),
        starter=st.none() | starters,
    ),
    PricesNotice: st.builds(PricesNotice),
    WatchlistNotice: st.builds(WatchlistNotice, error=st.none() | foreign),
    StorageNotice: st.builds(StorageNotice, trouble=st.none() | foreign, set_aside=st.none() | foreign),
    BackNotice: st.builds(
        BackNotice, since=moments, back_at=moments, incidents=st.lists(incidents, max_size=12).map(tuple)
    ),
    JobFailedNotice: st.builds(JobFailedNotice, job=st.just("thrash_scan"), error=foreign),
    UndeliveredNotice: st.builds(UndeliveredNotice, chat=foreign, error=foreign, is_chat_lost=st.booleans()),
    RunNotice: run_notices,
    UnverifiedNotice: unverified_notices,
    VerifiedNotice: verified_notices,
    FirstUseNotice: first_use_notices,
    LetGoNotice: let_go_notices,
    ProposalNotice: proposal_notices,
    ProposalsNotice: proposals_notices,
    AlteredNotice: altered_notices,
    SelftestNotice: selftest_notices,
    DigestNotice: digest_notices,
}
notices = st.one_of(*NOTICES.values())
runs = st.builds(Runs, worked_at=st.none() | moments, took=st.floats(0, 1e4), failures=counts, error=foreign)
sources = st.builds(
    SourceStatus,
    name=foreign,
    files=counts,
    sessions=counts,
    unreadable=st.dictionaries(foreign, counts, max_size=5),
    stops=st.just("on detection stop"),
    missing_killer=st.none() | foreign,
    problems=st.lists(foreign, max_size=8),
)
states = st.builds(
    Status,
    started_at=moments,
    scan=runs,
    other_jobs=st.dictionaries(st.sampled_from(["agent_stop", "alert_delivery"]), runs),
    sources=st.lists(sources, max_size=8),
    watchlist_error=st.none() | foreign,
    differing=st.lists(differing, max_size=8),
    open_incidents=counts,
    unstopped=counts,
    waiting=counts,
    parked=counts,
    lost_chats=st.dictionaries(ids | ids.map(lambda chat: -chat), moments, max_size=5),
    held_chats=st.dictionaries(ids | ids.map(lambda chat: -chat), moments, max_size=5),
    refused=counts,
    set_aside=counts,
    not_polling=st.none() | texts(300),
)
WELL = Status(
    started_at=NOW - 60,
    scan=Runs(worked_at=NOW),
    other_jobs={},
    sources=[],
    watchlist_error=None,
    differing=[],
    open_incidents=0,
    unstopped=0,
    waiting=0,
    parked=0,
    lost_chats={},
    held_chats={},
    refused=0,
    set_aside=0,
    not_polling=None,
)


# ── the screens ───────────────────────────────────────────────────────────────────────────────────


def test_there_is_an_example_of_every_notice() -> None:
    assert set(NOTICES) == set(get_args(AnyNotice))


@few
@given(notices)
def test_what_the_jobs_have_to_say_is_safe(told: AnyNotice) -> None:
    assert_safe(notice.render(told, NOW, UTC_ZONE))


@few
@given(st.lists(incidents, max_size=10), st.dictionaries(ids, starters, max_size=5))
def test_the_list_of_incidents_is_safe(shown: Sequence[Incident], starters: dict[int, Starter]) -> None:
    assert_safe(incident.incident_list(shown, starters, NOW, UTC_ZONE))


@few
@given(incidents, sessions, memories, policies)
def test_the_details_of_an_incident_are_safe(
    shown: Incident, about: Session, memory: LocalityState, policy: ThrashPolicy
) -> None:
    about = replace(about, memory=memory)
    assert_safe(incident.details(shown, about, policy, NOW, UTC_ZONE))


@few
@given(st.lists(sessions, max_size=20), st.dictionaries(ids, starters, max_size=5), counts)
def test_the_list_of_sessions_is_safe(
    shown: Sequence[Session], starters: dict[int, Starter], more: int
) -> None:
    assert_safe(agent.agent_list(shown, {session.id for session in shown}, starters, more, NOW))


@few
@given(shown=sessions, memory=memories, policy=policies, starter=st.none() | starters, yes=st.booleans())
def test_a_session_is_safe(
    shown: Session, memory: LocalityState, policy: ThrashPolicy, starter: Starter | None, *, yes: bool
) -> None:
    shown = replace(shown, memory=memory)
    screen = agent.agent(shown, policy, NOW, UTC_ZONE, is_stopped=yes, can_stop=yes, starter=starter)
    assert_safe(screen)


@few
@given(foreign, st.lists(sessions, max_size=20))
def test_words_that_lead_nowhere_are_repeated_safely(words: str, found: Sequence[Session]) -> None:
    assert_safe(agent.not_found(words))
    assert_safe(agent.ambiguous(words, found, NOW))


@few
@given(sessions, st.booleans(), st.none() | starters, st.lists(ids, max_size=9))
def test_the_question_before_a_stop_is_safe(
    about: Session,
    yes: bool,
    starter: Starter | None,
    beside: Sequence[int],
) -> None:
    assert_safe(question(about, yes=yes, starter=starter, beside=beside))


def question(
    about: Session, *, yes: bool = False, starter: Starter | None = None, beside: Sequence[int] = ()
) -> Screen:
    return stop.confirmation(
        about,
        "A" * 16,
        60,
        NOW,
        UTC_ZONE,
        is_stopped=yes,
        is_dry_run=yes,
        starter=starter,
        beside=beside,
    )


@pytest.mark.parametrize(
    ("beside", "said"),
    [
        ([4], "Process 4711 also runs session 4."),
        ([4, 5], "Process 4711 also runs sessions 4 and 5."),
        ([4, 5, 6, 7, 8], "Process 4711 also runs sessions 4, 5, 6, 7 and 8."),
        ([4, 5, 6, 7, 8, 9, 10], "Process 4711 also runs sessions 4, 5, 6, 7, 8 and 2 more."),
    ],
)
def test_who_else_is_in_the_process_is_said_before_a_stop(beside: list[int], said: str) -> None:
    about = replace(a_session(), id=5, pid=4711)
    assert said in question(about, beside=beside).text.splitlines()
    assert "also runs" not in question(about).text


@pytest.mark.parametrize(
    ("starter", "said"),
    [
        (Starter(agent="s-1"), "Sub-agent of s-1"),
        (Starter(agent="claude-delegate", session=4), "Sub-agent of claude-delegate, session 4"),
        (
            Starter(agent="claude-delegate", session=4, shares_process=True),
            "Sub-agent of claude-delegate, session 4, in one process with it: a signal ends both",
        ),
    ],
)
def test_whose_sub_agent_it_is_is_said_wherever_a_stop_is_spoken_of(starter: Starter, said: str) -> None:
    session = replace(a_session(), id=5)
    about = replace(an_incident(session), id=7)
    outlook = Outlook(can_stop=True, on_detection=OnDetection.ASK, kill_after=3, ask_grace=300)
    told: list[AnyNotice] = [
        IncidentNotice(incident=about, outlook=outlook, starter=starter),
        AskNotice(incident=replace(about, status=IncidentStatus.ASKED), stops_at=NOW + 300, starter=starter),
        StopNotice(
            session=1,
            agent="worker-3",
            source="gateway",
            incident=None,
            reason="ordered",
            outcome=Outcome.STOPPED,
            detail="process 4711 has exited",
            took=0,
            ordered_by=1,
            escalated=False,
            starter=starter,
        ),
        StillRunningNotice(
            session=1,
            agent="worker-3",
            source="gateway",
            incident=None,
            pid=4711,
            newest_ts=NOW,
            stopped_at=NOW,
            had_stopped=True,
            escalating=False,
            starter=starter,
        ),
    ]
    screens = [*(notice.render(each, NOW, UTC_ZONE) for each in told), question(session, starter=starter)]
    assert all(said in screen.text.splitlines() for screen in screens)


@few
@given(states)
def test_the_status_is_safe(state: Status) -> None:
    assert_safe(status.status(state, NOW, UTC_ZONE))


@pytest.mark.parametrize("text", ["", "\u200b", "\x1b[0m"])
def test_a_text_of_which_nothing_is_left_is_still_a_message(text: str) -> None:
    assert_safe(agent.not_found(text))
    assert_safe(agent.ambiguous(text, [], NOW))
    assert_safe(notice.render(WatchlistNotice(error=text), NOW, UTC_ZONE))


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (StorageNotice(trouble="disk full", set_aside=None), "The database cannot be used\ndisk full"),
        (StorageNotice(trouble=None, set_aside="x.damaged"), "The damaged one was kept as x.damaged."),
        (StorageNotice(trouble=None, set_aside=None), "The database can be used again."),
    ],
)
def test_what_becomes_of_the_database_is_told(told: StorageNotice, said: str) -> None:
    assert said in notice.render(told, NOW, UTC_ZONE).text


@pytest.mark.parametrize(
    ("is_chat_lost", "said"),
    [
        (
            True,
            [
                "⚠️ I can no longer write to chat -100123",
                "Bad Request: no",
                "New loops and what is about a stop come here until I can again; the rest of the last day follows there then.",
            ],
        ),
        (
            False,
            [
                "⚠️ A message was given up, for chat -100123",
                "Bad Request: no",
                "/status counts what was given up.",
            ],
        ),
    ],
    ids=["chat", "message"],
)
def test_what_cannot_be_said_in_a_chat_is_told_to_the_others(said: list[str], *, is_chat_lost: bool) -> None:
    """Whether it is the chat or one message, and what becomes of it."""
    told = UndeliveredNotice(chat="-100123", error="Bad Request: no", is_chat_lost=is_chat_lost)
    assert notice.render(told, NOW, UTC_ZONE).text.splitlines() == said


@pytest.mark.parametrize(
    ("fields", "light", "said"),
    [
        ({}, "🟢", "Messages waiting: 0, given up in 24 h: 0"),
        ({"waiting": 7}, "🟢", "Messages waiting: 7, given up in 24 h: 0"),
        ({"parked": 2}, "🟡", "Messages waiting: 0, given up in 24 h: 2"),
        ({"lost_chats": {-100123: NOW - 60}}, "🟡", "⚠️ Chat -100123 has taken no message since 11:59:00"),
        ({"lost_chats": {1: 0, 7: NOW - 60}}, "🟡", "⚠️ Chat 7 has taken no message since 11:59:00"),
        (
            {"held_chats": {-100123: NOW + 61, 7: NOW + 86_400}},
            "🟢",
            "⏳ Chat 7 is written to again at 2100-05-02 12:00: Telegram wants it so, or fails",
        ),
        (
            {"held_chats": {-100123: NOW + 61, 7: NOW + 86_400}},
            "🟢",
            "⏳ Chat -100123 is written to again at 12:01:01: Telegram wants it so, or fails",
        ),
        ({"refused": 1234}, "🟢", "Updates refused: 1\u202f234"),
        ({"set_aside": 1}, "🟡", "Updates set aside in 24 h, see the log: 1"),
        ({"not_polling": "another poller is running"}, "🟡", "⚠️ another poller is running"),
        ({"not_polling": "a" * 500}, "🟡", f"⚠️ {'a' * 199}…"),
        ({"not_polling": "x", "unstopped": 1}, "🔴", "⚠️ x"),
    ],
)
def test_status_says_how_messages_come_and_go(fields: dict[str, Any], light: str, said: str) -> None:
    shown = status.status(replace(WELL, **fields), NOW, UTC_ZONE).text
    assert shown.startswith(light)
    assert f"\n{said}\n" in f"{shown}\n"


def test_status_says_nothing_of_what_there_is_none_of() -> None:
    shown = status.status(WELL, NOW, UTC_ZONE).text
    assert shown.splitlines() == [
        "🟢 Loopwarden, up 1 min",
        "Last scan 0 s ago (12:00:00), took 0.00 s",
        "Incidents open: 0",
        "Messages waiting: 0, given up in 24 h: 0",
    ]


@pytest.mark.parametrize(
    ("age", "told"), [(121, "2 min 1 s"), (180, "3 min"), (36_000, "10 h"), (1e10, "115740 d 17 h")]
)
def test_a_command_that_came_too_late_is_answered_with_its_age(age: float, told: str) -> None:
    assert (
        status.ignored(age).text
        == f"Ignored, {told} old by this machine's clock: send it again if you still want it."
    )


@pytest.mark.parametrize(
    "button",
    [
        *(IncidentButton(verb=verb, incident=LARGEST_ID) for verb in IncidentVerb),
        KillButton(session=LARGEST_ID),
        ConfirmButton(nonce=secrets.token_urlsafe(12), is_yes=True),
    ],
)
def test_every_button_has_room_for_the_largest_id(button: CallbackData) -> None:
    packed = button.pack()
    assert len(packed.encode()) <= 64
    assert type(button).unpack(packed) == button


@pytest.mark.parametrize("shown", [*map(stop.refused, stop.Refusal), *map(stop.ordered, Order)])
def test_every_answer_to_a_press_has_words(shown: Screen) -> None:
    assert_safe(shown)


# ── times and amounts ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "0 s"),
        (0.4, "0 s"),
        (59, "59 s"),
        (59.6, "1 min"),
        (125, "2 min 5 s"),
        (3600, "1 h"),
        (3725, "1 h 2 min"),
        (86_399, "23 h 59 min"),
        (86_400, "1 d"),
        (90_000, "1 d 1 h"),
    ],
)
def test_a_length_of_time_is_told_in_its_two_largest_units(seconds: float, shown: str) -> None:
    assert measure.span(seconds) == shown


@pytest.mark.parametrize(
    ("at", "zone", "shown"),
    [
        (NOW, "UTC", "12:00:00"),
        (NOW, "Europe/Berlin", "14:00:00"),
        (NOW - 86_400, "UTC", "2100-04-30 12:00"),
        (NOW + 11 * 3600, "Europe/Berlin", "2100-05-02 01:00"),
        (-1, "UTC", "?"),
        (1e11, "UTC", "?"),
        (float("nan"), "UTC", "?"),
    ],
)
def test_a_moment_is_told_with_its_date_unless_that_is_today(at: float, zone: str, shown: str) -> None:
    assert measure.moment(at, NOW, ZoneInfo(zone)) == shown


@pytest.mark.parametrize(("number", "shown"), [(0, "0 calls"), (1, "1 call"), (12_345, "12\u202f345 calls")])
def test_an_amount_has_its_noun(number: int, shown: str) -> None:
    assert measure.plural(number, "call") == shown


@pytest.mark.parametrize(
    ("units", "currency", "shown"),
    [
        (0, "USD", "$0.00"),
        (0.42, "USD", "$0.42"),
        (0.42, None, "$0.42"),
        (0.1, "USD", "$0.10"),
        (0.042, "USD", "$0.042"),
        (0.0042, "USD", "$0.0042"),
        (0.00042, "USD", "$0.0004"),
        (0.0001, "USD", "$0.0001"),
        (0.00009, "USD", "under $0.0001"),
        (1.005, "EUR", "€1.00"),
        (12.5, "GBP", "£12.50"),
        (1_234_567.891, "USD", "$1\u202f234\u202f567.89"),
        (3.2, "CHF", "3.20\u00a0CHF"),
        (0.00001, "CHF", "under 0.0001\u00a0CHF"),
    ],
)
def test_money_is_told_in_cents_and_a_small_sum_in_its_first_digits(
    units: float, currency: str | None, shown: str
) -> None:
    assert measure.money(round(units * UNIT), currency) == shown


@pytest.mark.parametrize(
    ("units", "shown"),
    [
        (1.2, "at least €1.20"),
        (0, "at least €0.00"),
        (0.0042, "at least €0.0042"),
        (0.00001, "more than €0"),
    ],
)
def test_a_part_of_a_sum_is_told_as_one(units: float, shown: str) -> None:
    assert measure.money(round(units * UNIT), "EUR", is_part=True) == shown


@given(st.integers(0, MOST), st.integers(0, MOST))
def test_a_larger_sum_never_looks_smaller(one: int, other: int) -> None:
    less, more = (
        float("".join(filter(set("0123456789.").__contains__, measure.money(sum_, "USD"))))
        for sum_ in sorted((one, other))
    )
    assert less <= more


@given(incidents)
def test_an_incident_tells_its_money_where_it_is_known(about: Incident) -> None:
    since = replace(about, calls=8, first_ts=NOW - 120, newest_ts=NOW, tokens=12_300, unpriced=0)
    known = replace(since, cost=UNIT * 42 // 100, currency="USD")
    assert incident.damage(known) == "8 calls in 2 min, 12\u202f300 tokens, $0.42"
    assert incident.damage(replace(known, tokens=None, currency="EUR")) == "8 calls in 2 min, €0.42"
    assert incident.damage(replace(known, unpriced=9)).endswith(", at least $0.42")
    assert incident.damage(replace(known, cost=None, unpriced=9)) == "8 calls in 2 min, 12\u202f300 tokens"
    assert incident.row(known, NOW, UTC_ZONE).as_html().endswith("8 calls, 12\u202f300 tokens, $0.42")
