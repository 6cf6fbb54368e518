"""Clock and time zone: with either wrong, the times in chat and log would be."""

from typing import Final
from zoneinfo import ZoneInfo

from bot.checking.finding import Finding, fine, warning
from bot.views.measure import moment

_CLOCK: Final = "clock"
_TOLERANCE: Final = 30
"""Seconds; a date in a header is cut to whole seconds, and an answer takes some."""


def check_zone(zone: ZoneInfo, now: float) -> Finding:
    """Say what time it is in the chat's zone, for the reader to compare."""
    return fine("time zone", f"{zone.key}, where it is {moment(now, now, zone)}")


def check_clock(now: float, server_now: float | None) -> Finding:
    """Compare the clock with the Bot API server's, both in epoch seconds and read at the same time."""
    if server_now is None:
        return fine(_CLOCK, "cannot be compared: the Bot API server tells no time")
    ahead = now - server_now
    if abs(ahead) <= _TOLERANCE:
        return fine(_CLOCK, "agrees with the Bot API server's")
    off = f"{abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} the Bot API server's"
    return warning(_CLOCK, off, "let it be set over the network, such as by `timedatectl set-ntp true`")
