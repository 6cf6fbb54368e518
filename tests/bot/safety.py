"""What every screen must be, whatever agents, tools and workflows call themselves."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from hypothesis import settings
from hypothesis import strategies as st

from bot.views.cleaning import units
from bot.views.screen import Screen
from bot.views.text import MESSAGE_LIMIT
from tests.bot.hostile import is_harmless, texts
from tests.botapi import read_buttons, read_text

UTC_ZONE = ZoneInfo("UTC")
NOW = datetime(2100, 5, 1, 12, tzinfo=UTC).timestamp()
LARGEST_ID = 2**63 - 1
MARK = "ξ"
"""In every foreign text, and in none of ours."""

foreign = texts(40).map(lambda text: f"{MARK}{text}{MARK}")
ids = st.integers(1, LARGEST_ID)
counts = st.integers(0, 10**12)
moments = st.floats(0, 253_402_300_799)
few = settings(max_examples=40)
"""Each of these values holds a dozen texts."""


def assert_safe(shown: Screen) -> None:
    """A screen that the server takes, in which foreign text cannot be taken for anything else."""
    assert units(shown.text) <= MESSAGE_LIMIT
    # Our own symbols have variation selectors.
    assert is_harmless(shown.text.replace("\ufe0f", ""))
    assert {entity.type for entity in shown.entities} <= {"bold", "code", "italic"}
    as_sent = shown.model_dump(exclude_none=True, mode="json")
    read_text(as_sent, too_long="too long")
    read_buttons({"reply_markup": as_sent.get("keyboard", {})})
    assert MARK not in outside_code(shown)
    assert MARK not in str(as_sent.get("keyboard", ""))


def outside_code(shown: Screen) -> str:
    left = shown.text.encode("utf-16-le")
    for entity in shown.entities:
        if entity.type == "code":
            start, end = 2 * entity.offset, 2 * (entity.offset + entity.length)
            left = left[:start] + b" \x00" * entity.length + left[end:]
    return left.decode("utf-16-le")
