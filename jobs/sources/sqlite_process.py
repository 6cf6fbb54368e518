"""The bot's side of the process that reads databases: started when it is needed, and anew when it was lost."""

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import IO, Final, Self, cast

from jobs.program.environment import environment
from jobs.sources.sqlite_talk import HEADER, LONGEST, Done, Reply, Request, decode_reply, packed

# Nothing lives long there, and to look for cycles takes a tenth of the time.
# msgspec does without `typing_extensions`, whose import would take a seventh of the start.
SPARING: Final = "import gc, sys; gc.disable(); sys.modules['typing_extensions'] = None"
PROGRAM: Final = f"{SPARING}; from jobs.sources.sqlite_child import main; sys.exit(main())"
"""In Python."""
_AHEAD: Final = 1 << 20
"""Bytes of replies that may wait to be taken."""
_FAREWELL: Final = 5
"""Seconds that the process has to end by itself once its pipes are closed."""


def _written() -> list[tuple[str, int, int]]:
    """Return what is not the same any more when the program's files have been replaced."""
    files = [(path.name, path.stat()) for path in Path(__file__).parent.glob("*.py")]
    return sorted((name, found.st_ino, found.st_mtime_ns) for name, found in files)


_AS_STARTED: Final = _written()


class ReaderLostError(Exception):
    """The process that read a database did not do so to the end; the message says why."""


class _SilentError(Exception):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class _Child:
    process: subprocess.Popen[bytes]
    requests: IO[bytes]
    replies: IO[bytes]


@dataclass(slots=True)
class TableReader:
    """A process for one look at any number of databases, one request after the other."""

    patience: float = 30
    """Seconds to wait for the next reply: what SQLite does is limited to a few."""
    _child: _Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(_FAREWELL)

    def ask(self, request: Request) -> Iterator[Reply]:
        """Yield the replies to a request; if not all are taken, the process ends. Raises `ReaderLostError`."""
        child, is_done = self._started(), False
        try:
            _send(child.requests, packed(request), self.patience)
            while not isinstance(reply := _received(child.replies, self.patience), Done):
                yield reply
            is_done = True
        except _SilentError:
            raise ReaderLostError(f"its reader took longer than {self.patience:g} s") from None
        except (EOFError, BrokenPipeError):
            raise ReaderLostError(_with_advice(_how_it_ended(self._end(_FAREWELL)))) from None
        except (ValueError, RecursionError):
            raise ReaderLostError(_with_advice("its reader makes no sense")) from None
        finally:
            if not is_done:
                self._end(0)

    def _started(self) -> _Child:
        if self._child is None:
            try:
                self._child = _start()
            except OSError as error:
                why = f"its reader cannot be started: {error.strerror}"
                raise ReaderLostError(_with_advice(why)) from error
        return self._child

    def _end(self, seconds: float) -> int:
        """End the process if there is one, by force after some seconds; return its exit code."""
        if self._child is None:
            return 0
        child, self._child = self._child, None
        child.requests.close()
        child.replies.close()
        try:
            return child.process.wait(seconds)
        except subprocess.TimeoutExpired:
            child.process.kill()
            return child.process.wait()


def _start() -> _Child:
    # -P: a file in the folder where the bot was started is no module of its.
    process = subprocess.Popen(  # noqa: S603 - this program itself
        [sys.executable, "-P", "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        pipesize=_AHEAD,
        env=environment(),  # whoever gets the better of the reader shall not find the bot's token there
    )
    requests, replies = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
    for pipe in (requests, replies):
        os.set_blocking(pipe.fileno(), False)
    return _Child(process=process, requests=requests, replies=replies)


def _send(pipe: IO[bytes], message: bytes, patience: float) -> None:
    rest, until = memoryview(message), monotonic() + patience
    while rest:
        _wait(pipe, select.POLLOUT, until)
        rest = rest[os.write(pipe.fileno(), rest) :]


def _received(pipe: IO[bytes], patience: float) -> Reply:
    until = monotonic() + patience
    length = int.from_bytes(_bytes_of(pipe, HEADER, until))
    if length > LONGEST:
        raise ValueError("too long")
    return decode_reply(_bytes_of(pipe, length, until))


def _bytes_of(pipe: IO[bytes], length: int, until: float) -> bytes:
    got = bytearray()
    while len(got) < length:
        _wait(pipe, select.POLLIN, until)
        data = os.read(pipe.fileno(), length - len(got))
        if not data:
            raise EOFError
        got += data
    return bytes(got)


def _wait(pipe: IO[bytes], event: int, until: float) -> None:
    ready = select.poll()
    ready.register(pipe, event)
    if not ready.poll(max(until - monotonic(), 0) * 1000):
        raise _SilentError


def _how_it_ended(code: int) -> str:
    return (
        f"its reader was ended by signal {-code}" if code < 0 else f"its reader ended with exit code {code}"
    )


def _with_advice(why: str) -> str:
    """Say what to do where the reader is of another release than the bot."""
    try:
        is_same = _written() == _AS_STARTED
    except FileNotFoundError:  # they are being replaced
        is_same = False
    if is_same:
        return why
    return f"{why}, and the program was replaced after the bot had started: restart the bot"
