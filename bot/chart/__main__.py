"""Draws one picture and exits; see `bot.drawing`."""

import math
import resource
import signal
import sys
from contextlib import suppress

import msgspec

from bot.chart.picture import Order


def main() -> None:
    """Answer the order on the standard input."""
    order = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Order)
    _limit(order)
    from bot.chart.draw import draw  # noqa: PLC0415 - it looks through all fonts: within the limits, too

    sys.stdout.buffer.write(draw(order.picture))
    sys.stdout.buffer.flush()


def _limit(order: Order) -> None:
    # The timer ends it also when nobody is left who would.
    signal.setitimer(signal.ITIMER_REAL, order.seconds)
    _lower(resource.RLIMIT_CPU, math.ceil(order.seconds))
    _lower(resource.RLIMIT_AS, order.memory)


def _lower(limit: int, most: int) -> None:
    _, hard = resource.getrlimit(limit)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    # Not every system can limit everything.
    with suppress(ValueError, OSError):
        resource.setrlimit(limit, (most, hard))


if __name__ == "__main__":
    main()
