"""Work that blocks, and may never come back: a file system that hangs keeps a thread for ever."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeVar

_Result = TypeVar("_Result")


class OverdueError(Exception):
    """Work has not come back in time; the message says which and how long."""


@dataclass(frozen=True, slots=True)
class Aside:
    """Does each piece of work in a thread of its own, of each name one at a time, so that what hangs piles up nothing.

    Not `asyncio.to_thread`: of its threads there are few, which all jobs share, and an exit would wait for them.
    """

    under_way: set[str] = field(default_factory=set)
    """By name, what nobody waits for any more included."""

    async def __call__(self, name: str, seconds: float | None, work: Callable[[], _Result]) -> _Result:
        """Return or raise what the work does; raise `OverdueError` if that or what came before takes too long.

        Without `seconds` whoever asks waits as long as it takes.
        """
        if name in self.under_way:
            raise OverdueError(f"{name}, begun before, has still not come back")
        done: Future[_Result] = Future()
        done.add_done_callback(lambda _: self.under_way.discard(name))
        self.under_way.add(name)
        try:
            threading.Thread(target=_run, args=(work, done), name=name, daemon=True).start()
        except RuntimeError:  # there are no more threads: nothing is under way
            done.cancel()
            raise
        waiting = asyncio.wrap_future(done)
        try:
            if not (await asyncio.wait({waiting}, timeout=seconds))[0]:
                raise OverdueError(f"{name} has not come back within {seconds:g} s")
            return waiting.result()
        finally:
            waiting.cancel()


def _run(work: Callable[[], _Result], done: "Future[_Result]") -> None:
    done.set_running_or_notify_cancel()
    try:
        result = work()
    except Exception as error:  # noqa: BLE001 - it belongs to whoever waits
        done.set_exception(error)
    else:
        done.set_result(result)
