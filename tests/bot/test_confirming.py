"""Whether a press on a confirmation counts."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.confirming import VALID_FOR, Press, reason_to_refuse
from bot.views.stop import Refusal
from jobs.ports import Confirmation
from jobs.store.outbox import Sent

ASKED = Confirmation(
    nonce="n", session_id=1, pid=4321, user_id=1, chat_id=-100, outgoing_id=7, expires_at=60.0
)
PRESS = Press(user_id=1, chat_id=-100, message_id=500)
SENT = Sent(message=500, at=0.0)


@pytest.mark.parametrize("now", [0.0, 59.9, 60.0])
def test_the_one_who_was_asked_may_press_for_as_long_as_was_said(now: float) -> None:
    assert reason_to_refuse(ASKED, PRESS, SENT, now) is None


@pytest.mark.parametrize(
    ("confirmation", "press", "sent", "now", "reason"),
    [
        (None, PRESS, None, 0.0, Refusal.UNKNOWN),
        (ASKED, replace(PRESS, user_id=2), SENT, 0.0, Refusal.FOREIGN),
        (ASKED, replace(PRESS, chat_id=1), SENT, 0.0, Refusal.FOREIGN),
        (ASKED, replace(PRESS, message_id=501), SENT, 0.0, Refusal.ELSEWHERE),
        (ASKED, PRESS, None, 0.0, Refusal.EARLY),
        (ASKED, replace(PRESS, user_id=2), None, 0.0, Refusal.FOREIGN),
        (replace(ASKED, used_at=1.0), PRESS, SENT, 2.0, Refusal.USED),
        (ASKED, PRESS, SENT, 60.1, Refusal.EXPIRED),
        (replace(ASKED, used_at=1.0), PRESS, SENT, 99.0, Refusal.USED),
        (replace(ASKED, used_at=1.0), replace(PRESS, user_id=2), SENT, 99.0, Refusal.FOREIGN),
    ],
)
def test_anything_else_is_refused_for_the_reason_that_matters_most(
    confirmation: Confirmation | None, press: Press, sent: Sent | None, now: float, reason: Refusal
) -> None:
    assert reason_to_refuse(confirmation, press, sent, now) is reason


@pytest.mark.parametrize(
    ("sent_at", "now", "reason"),
    [
        (300.0, 300.0, None),
        (300.0, 360.0, None),
        (300.0, 360.1, Refusal.EXPIRED),
        (-3600.0, 60.0, None),
        (-3600.0, 60.1, Refusal.EXPIRED),
    ],
)
def test_the_minute_begins_when_the_question_was_sent(
    sent_at: float, now: float, reason: Refusal | None
) -> None:
    """It may have waited for its chat; a clock that was set back meanwhile takes nothing away from it."""
    assert reason_to_refuse(ASKED, PRESS, replace(SENT, at=sent_at), now) is reason


@given(st.data())
def test_no_press_counts_unless_everything_is_as_it_was_asked(data: Any) -> None:
    numbers = st.integers(-2, 2)
    press = Press(user_id=data.draw(numbers), chat_id=data.draw(numbers), message_id=data.draw(numbers))
    sent = data.draw(st.none() | st.builds(Sent, message=numbers, at=st.floats(0, 120)))
    now = data.draw(st.floats(0, 240))
    asked = replace(ASKED, user_id=1, chat_id=1, used_at=data.draw(st.none() | st.floats(0, 120)))
    counts = reason_to_refuse(asked, press, sent, now) is None
    is_asked = sent is not None and press == Press(user_id=1, chat_id=1, message_id=sent.message)
    is_in_time = sent is not None and now <= sent.at + VALID_FOR
    assert counts == (is_asked and asked.used_at is None and is_in_time)
