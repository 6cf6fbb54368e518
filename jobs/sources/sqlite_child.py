"""The process that reads databases for the bot, which `sqlite_process` starts.

A database is its writer's, who can end whatever process reads it, by cutting short a file that SQLite has mapped. So
that is this one and not the bot. It reads requests from its standard input, writes the replies to its standard
output, and ends when either is closed: it never outlives the bot.
"""

import gc
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any, BinaryIO, Final, assert_never

from jobs.sources.sqlite_kind import recognise
from jobs.sources.sqlite_look import look, near_end
from jobs.sources.sqlite_talk import (
    HEADER,
    Done,
    Look,
    NearEnd,
    Recognise,
    Reply,
    Request,
    decode_request,
    packed,
)
from jobs.sources.table_format import TableFormat

_MEMORY: Final = 1 << 30
"""Bytes of address space: some hundred times what reading takes."""
_CPU: Final = 600
"""Seconds for a request; the largest look takes a quarter of that."""
_OUTPUT: Final = 1


def main() -> int:
    """Answer requests until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the bot's to act on
    _limit(resource.RLIMIT_AS, _MEMORY)
    _limit(resource.RLIMIT_CORE, 0)
    with suppress(BrokenPipeError):
        while (request := _next(sys.stdin.buffer)) is not None:
            _limit(resource.RLIMIT_CPU, int(time.process_time()) + _CPU)
            for reply in answer(request):
                _say(reply)
            _say(Done())
    gc.freeze()  # else Python would look for cycles once more before it ends
    return 0


def answer(request: Request) -> Iterator[Reply]:
    """Yield the replies to a request."""
    formats = _formats(request.formats)
    match request:
        case Look():
            yield from look(request, formats)
        case NearEnd():
            yield near_end(request, formats)
        case Recognise():
            yield recognise(request, formats)
        case _:
            assert_never(request)


def _formats(names: Sequence[str]) -> list[TableFormat]:
    return [_format(name) for name in names]


@cache
def _format(name: str) -> TableFormat:
    module, _, kind = name.partition(":")
    found: Any = getattr(import_module(module), kind)
    form: TableFormat = found()
    return form


def _limit(what: int, most: int) -> None:
    _, hard = resource.getrlimit(what)
    with suppress(ValueError):  # somebody has set a lower limit
        resource.setrlimit(what, (most, hard))


def _next(requests: BinaryIO) -> Request | None:
    header = requests.read(HEADER)
    return decode_request(requests.read(int.from_bytes(header))) if header else None


def _say(reply: Reply) -> None:
    rest = memoryview(packed(reply))
    while rest:
        rest = rest[os.write(_OUTPUT, rest) :]
