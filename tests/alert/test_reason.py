"""What of an incident the chat hears, and as what kind of message."""

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.alert.notice import AnyNotice, AskNotice, IncidentNotice, Outlook
from jobs.alert.outgoing import Mode, Outgoing, told
from jobs.alert.reason import Reason, is_snoozed, reason_to_notify, tellings
from jobs.thrash.incident import Incident, IncidentStatus
from jobs.thrash.policy import OnDetection
from tests.drawn import incidents, times
from tests.fakes import NOON

OUTLOOK = Outlook(can_stop=True, on_detection=OnDetection.STOP, kill_after=3, ask_grace=300)
OPEN = Incident(
    id=3,
    session_id=7,
    agent="coder",
    source="gateway",
    opened_at=NOON - 120,
    updated_at=NOON - 60,
    first_call=4,
    first_ts=NOON - 100,
    tokens_before=900,
    kind="thrash_loop",
    tool="read",
    score=6,
    steps=1,
    calls=12,
    newest_ts=NOON - 60,
    tokens=2000,
)
GREW = replace(OPEN, steps=2, calls=30, updated_at=NOON)
ASKED = replace(GREW, status=IncidentStatus.ASKED)


def snoozed(incident: Incident, until: float = NOON + 900) -> Incident:
    return replace(incident, snoozed_until=until)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        pytest.param(None, OPEN, Reason.NEW, id="new"),
        pytest.param(None, snoozed(OPEN), Reason.NEW, id="new and snoozed"),
        pytest.param(OPEN, OPEN, None, id="unchanged"),
        pytest.param(OPEN, GREW, Reason.NUMBERS, id="it goes on"),
        pytest.param(OPEN, ASKED, Reason.STATUS, id="status"),
        pytest.param(OPEN, snoozed(OPEN), Reason.SNOOZE, id="snoozed"),
        pytest.param(snoozed(OPEN), snoozed(OPEN, NOON + 3600), Reason.SNOOZE, id="snoozed for longer"),
        pytest.param(snoozed(OPEN), snoozed(GREW), None, id="it goes on, snoozed"),
        pytest.param(snoozed(OPEN, NOON), snoozed(GREW, NOON), Reason.NUMBERS, id="it goes on, awake again"),
        pytest.param(snoozed(OPEN), snoozed(ASKED), Reason.STATUS, id="status, though snoozed"),
    ],
)
def test_why_a_change_is_told(before: Incident | None, after: Incident, reason: Reason | None) -> None:
    assert reason_to_notify(before, after, NOON) is reason


@given(incidents, incidents, times)
def test_a_change_of_status_is_always_told(before: Incident, after: Incident, now: float) -> None:
    if before.status != after.status:
        assert reason_to_notify(before, after, now) is Reason.STATUS


@given(incidents, st.integers(), times)
def test_numbers_alone_are_told_unless_the_incident_is_snoozed(
    before: Incident, calls: int, now: float
) -> None:
    after = replace(before, calls=calls)
    expected = None if after == before or is_snoozed(after, now) else Reason.NUMBERS
    assert reason_to_notify(before, after, now) is expected


@pytest.mark.parametrize(
    ("until", "expected"), [(None, False), (NOON - 1, False), (NOON, False), (NOON + 0.5, True)]
)
def test_a_snooze_ends_by_itself(until: float | None, *, expected: bool) -> None:
    assert is_snoozed(replace(OPEN, snoozed_until=until), NOON) is expected


# ── the message ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("before", "after", "mode"),
    [
        pytest.param(None, OPEN, Mode.SEND, id="the alert"),
        pytest.param(OPEN, GREW, Mode.EDIT, id="the same message, as it stands now"),
        pytest.param(OPEN, ASKED, Mode.EDIT, id="status"),
        pytest.param(OPEN, snoozed(OPEN), Mode.EDIT, id="snoozed"),
    ],
)
def test_an_incident_is_one_message_that_is_kept_up_to_date(
    before: Incident | None, after: Incident, mode: Mode
) -> None:
    message, *_ = tellings(before, after, OUTLOOK, NOON)
    assert message.alarm is (before is None)
    assert (message.mode, message.subject, message.silent) == (mode, "incident:3", False)
    assert msgspec.json.decode(message.body, type=AnyNotice) == IncidentNotice(
        incident=after, outlook=OUTLOOK
    )


def test_what_is_not_worth_telling_is_no_message() -> None:
    assert list(tellings(OPEN, OPEN, OUTLOOK, NOON)) == []


@pytest.mark.parametrize(
    ("before", "after", "mode", "stops_at"),
    [
        pytest.param(OPEN, ASKED, Mode.SEND, 300, id="asked"),
        pytest.param(None, ASKED, Mode.SEND, 300, id="asked at once"),
        pytest.param(OPEN, snoozed(ASKED), Mode.SEND, 900, id="asked while snoozed: it is given longer"),
        pytest.param(ASKED, snoozed(ASKED), Mode.EDIT, 900, id="snoozed after it was asked"),
        pytest.param(ASKED, replace(ASKED, status=IncidentStatus.STOPPING), Mode.EDIT, 300, id="answered"),
        pytest.param(ASKED, replace(ASKED, score=10), None, 300, id="only numbers moved"),
        pytest.param(OPEN, GREW, None, 300, id="never asked"),
    ],
)
def test_a_question_is_a_message_of_its_own_that_is_kept_up_to_date(
    before: Incident | None, after: Incident, mode: Mode | None, stops_at: float
) -> None:
    """It names the time at which it is over, and is closed when that has come."""
    after = replace(after, asked_at=NOON) if after.status is IncidentStatus.ASKED else after
    questions = [m for m in tellings(before, after, OUTLOOK, NOON) if m.subject == "question:3"]
    assert [message.mode for message in questions] == ([] if mode is None else [mode])
    for message in questions:
        notice = msgspec.json.decode(message.body, type=AnyNotice)
        assert isinstance(notice, AskNotice)
        assert (notice.incident, notice.stops_at) == (after, NOON + stops_at)


@given(incident=incidents, silent=st.booleans())
def test_a_notice_keeps_its_kind_on_the_way(incident: Incident, *, silent: bool) -> None:
    notice = IncidentNotice(incident=incident, outlook=OUTLOOK)
    message = told(notice, silent=silent)
    assert message == Outgoing(
        kind="notice", body=msgspec.json.encode(notice), mode=Mode.SEND, subject=None, silent=silent
    )
    assert msgspec.json.decode(message.body, type=AnyNotice) == notice
