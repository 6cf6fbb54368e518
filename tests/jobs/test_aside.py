"""Work that blocks is done aside, and what never comes back is given up."""

import asyncio
import threading
from concurrent.futures import Future

import pytest

from jobs.aside import Aside, OverdueError

LONG = 60.0


async def test_what_work_returns_or_raises_is_the_callers() -> None:
    aside = Aside()
    assert await aside("a", LONG, lambda: 42) == 42
    with pytest.raises(ZeroDivisionError):
        await aside("a", LONG, lambda: 1 // 0)
    with pytest.raises(TimeoutError):
        await aside("a", LONG, lambda: Future[None]().result(0))
    assert not aside.under_way


async def test_work_that_does_not_come_back_is_given_up() -> None:
    """And of its name nothing is begun until it has, nor does it keep other work waiting."""
    aside, may_end = Aside(), threading.Event()
    with pytest.raises(OverdueError, match="hangs has not come back within 0 s"):
        await aside("hangs", 0, may_end.wait)
    with pytest.raises(OverdueError, match="hangs, begun before"):
        await aside("hangs", LONG, may_end.wait)
    assert await aside("other", LONG, lambda: "done") == "done"
    may_end.set()
    [thread] = [thread for thread in threading.enumerate() if thread.name == "hangs"]
    thread.join()
    assert await aside("hangs", LONG, lambda: "done") == "done"


async def test_who_waits_may_be_cut_short() -> None:
    aside, may_end = Aside(), threading.Event()
    waiting = asyncio.ensure_future(aside("a", LONG, may_end.wait))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert aside.under_way
    may_end.set()
