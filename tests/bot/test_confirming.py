"""Whether a press on a confirmation counts."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.confirming import Press, reason_to_refuse
from bot.views.stop import Refusal
from jobs.ports import Confirmation

ASKED = Confirmation(
    nonce="n", session_id=1, pid=4321, user_id=1, chat_id=-100, outgoing_id=7, expires_at=60.0
)
PRESS = Press(user_id=1, chat_id=-100, message_id=500)
SENT_AS = 500


@pytest.mark.parametrize("now", [0.0, 59.9, 60.0])
def test_the_one_who_was_asked_may_press_for_as_long_as_was_said(now: float) -> None:
    assert reason_to_refuse(ASKED, PRESS, SENT_AS, now) is None


@pytest.mark.parametrize(
    ("confirmation", "press", "sent_as", "now", "reason"),
    [
        (None, PRESS, None, 0.0, Refusal.UNKNOWN),
        (ASKED, replace(PRESS, user_id=2), SENT_AS, 0.0, Refusal.FOREIGN),
        (ASKED, replace(PRESS, chat_id=1), SENT_AS, 0.0, Refusal.FOREIGN),
        (ASKED, replace(PRESS, message_id=501), SENT_AS, 0.0, Refusal.ELSEWHERE),
        (ASKED, PRESS, None, 0.0, Refusal.EARLY),
        (ASKED, replace(PRESS, user_id=2), None, 0.0, Refusal.FOREIGN),
        (replace(ASKED, used_at=1.0), PRESS, SENT_AS, 2.0, Refusal.USED),
        (ASKED, PRESS, SENT_AS, 60.1, Refusal.EXPIRED),
        (replace(ASKED, used_at=1.0), PRESS, SENT_AS, 99.0, Refusal.USED),
        (replace(ASKED, used_at=1.0), replace(PRESS, user_id=2), SENT_AS, 99.0, Refusal.FOREIGN),
    ],
)
def test_anything_else_is_refused_for_the_reason_that_matters_most(
    confirmation: Confirmation | None, press: Press, sent_as: int | None, now: float, reason: Refusal
) -> None:
    assert reason_to_refuse(confirmation, press, sent_as, now) is reason


@given(st.data())
def test_no_press_counts_unless_everything_is_as_it_was_asked(data: Any) -> None:
    numbers = st.integers(-2, 2)
    press = Press(user_id=data.draw(numbers), chat_id=data.draw(numbers), message_id=data.draw(numbers))
    sent_as, now = data.draw(st.none() | numbers), data.draw(st.floats(0, 120))
    asked = replace(ASKED, user_id=1, chat_id=1, used_at=data.draw(st.none() | st.floats(0, 120)))
    counts = reason_to_refuse(asked, press, sent_as, now) is None
    expected = press == Press(user_id=1, chat_id=1, message_id=sent_as if sent_as is not None else -99)
    assert counts == (expected and asked.used_at is None and now <= 60)
