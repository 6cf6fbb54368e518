"""How a command ends by a signal."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_ENDING: Final = (signal.SIGTERM, signal.SIGHUP)
_BY_SIGNAL: Final = 128
"""What a shell adds to the number of a signal."""


@contextmanager
def orderly_ends() -> Iterator[None]:
    """Let no signal end the block without what it has started; one that is ignored, as under nohup, stays so."""
    heard = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, _end) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _: object) -> None:
    sys.exit(_BY_SIGNAL + number)
