"""A process that kills itself at one place: between two steps, where no signal from outside would hit."""

import functools
import itertools
import os
import pkgutil
import signal
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypedDict


class Crash(TypedDict):
    """A place in the program, and which of the times that it is reached."""

    when: Literal["before", "after"]
    step: str
    """A coroutine function of a class: `package.module:Class.method`."""
    time: int
    """From 1. A step that says that it found nothing to do, by returning False, has not been there."""


def arm(crash: Crash) -> None:
    """Put the crash into the class, so that whoever calls the method dies of it."""
    owner_name, _, method = crash["step"].rpartition(".")
    owner = pkgutil.resolve_name(owner_name)
    step: Callable[..., Awaitable[Any]] = getattr(owner, method)
    times = itertools.count(1)

    def reach(when: str) -> None:
        if when == crash["when"] and next(times) == crash["time"]:
            os.kill(os.getpid(), signal.SIGKILL)

    @functools.wraps(step)
    async def deadly(*args: Any, **kwargs: Any) -> Any:
        reach("before")
        result = await step(*args, **kwargs)
        if result is not False:
            reach("after")
        return result

    setattr(owner, method, deadly)
