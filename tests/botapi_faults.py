"""The bad days of the loopback Bot API server: faults that a test sets, and the limits that keep floods out."""
# ruff: noqa: ASYNC109 - a test states its patience where it waits

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from aiohttp import web

from tests.botapi_model import Call, Json, Refusal

Work = Callable[[], Awaitable[web.Response]]
Course = Callable[[Work], Awaitable[web.Response | None]]
"""How a call goes: it does the work or not, and tells the answer, None if the connection is dropped."""

PROXY_PAGE = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"


@dataclass(frozen=True, slots=True, kw_only=True)
class FloodLimits:
    """A chat hears one message in `gap` seconds; a group besides that hears at most `most` in `window` seconds.

    A message up to `tolerance` seconds too early is accepted: not all are equally long under way.
    """

    gap: float = 1.0
    most: int = 20
    window: float = 60.0
    tolerance: float = 0.1

    def wait(self, chat: int, accepted: Sequence[float], now: float) -> float:
        """Seconds until the chat may hear another message, after those accepted; 0 or less: it may by now."""
        open_again = [accepted[-1] + self.gap] if accepted else [now]
        if chat < 0 and len(accepted) >= self.most:
            open_again.append(accepted[-self.most] + self.window)
        return max(open_again) - now


class Held:
    """A call that waits on the server until it is released."""

    def __init__(self) -> None:
        self._arrival = asyncio.Event()
        self._release = asyncio.Event()

    async def arrived(self, *, timeout: float = 10.0) -> None:
        """Wait until the call is there and, unless it is held undone, has had its effect."""
        async with asyncio.timeout(timeout):
            await self._arrival.wait()

    def release(self) -> None:
        self._release.set()

    async def keep(self, *, seconds: float | None = None) -> None:
        """The server's side: keep the call, for some seconds at most if that is told."""
        self._arrival.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._release.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What befalls the next call of a method, with `chat` the next one for that chat."""

    chat: int | None
    course: Course

    def befalls(self, call: Call) -> bool:
        return self.chat is None or self.chat == call.params.get("chat_id")


class BadDays:
    """Faults wait for the calls of a method, in the order in which they were set; each befalls one call.

    A fault for one `chat` lets the calls for others pass and waits on. `times` sets a fault several times. `done`
    says whether the call has its effect in spite of the fault.
    """

    def __init__(self) -> None:
        self._faults: defaultdict[str, list[Fault]] = defaultdict(list)
        self._held: list[Held] = []

    def fault(
        self,
        method: str,
        *,
        error_code: int,
        description: str,
        parameters: Json | None = None,
        chat: int | None = None,
        times: int = 1,
    ) -> None:
        """The call is refused and has no effect."""

        async def refuse(_: Work) -> web.Response:
            return Refusal(error_code, description, parameters).answer

        self._set(method, refuse, chat, times)

    def drop(self, method: str, *, done: bool = False, chat: int | None = None, times: int = 1) -> None:
        """The connection is cut before anything is done; if `done`, afterwards: only the answer is lost."""

        async def cut(work: Work) -> None:
            if done:
                await work()

        self._set(method, cut, chat, times)

    def garble(
        self,
        method: str,
        *,
        status: int = 502,
        page: str | bytes = PROXY_PAGE,
        done: bool = False,
        chat: int | None = None,
        times: int = 1,
    ) -> None:
        """A proxy answers, in JSON or not; it says that it is in UTF-8."""

        async def show_page(work: Work) -> web.Response:
            if done:
                await work()
            body = page.encode() if isinstance(page, str) else page
            return web.Response(status=status, body=body, content_type="text/html", charset="utf-8")

        self._set(method, show_page, chat, times)

    def delay(self, method: str, *, seconds: float, chat: int | None = None, times: int = 1) -> None:
        """The call has its effect at once and its answer so much later; 0 s is a call that goes well."""

        async def answer_late(work: Work) -> web.Response:
            answer = await work()
            await self._new_held().keep(seconds=seconds)
            return answer

        self._set(method, answer_late, chat, times)

    def hold(self, method: str, *, done: bool = True, chat: int | None = None) -> Held:
        """The call has its effect and then waits for its answer until released; unless `done`, for both."""
        held = self._new_held()

        async def wait(work: Work) -> web.Response:
            if not done:
                await held.keep()
                return await work()
            answer = await work()
            await held.keep()
            return answer

        self._set(method, wait, chat, 1)
        return held

    def _set(self, method: str, course: Course, chat: int | None, times: int) -> None:
        self._faults[method] += [Fault(chat=chat, course=course)] * times

    def _new_held(self) -> Held:
        held = Held()
        self._held.append(held)
        return held

    def _release_all(self) -> None:
        """Nothing is kept waiting when the server goes."""
        for held in self._held:
            held.release()

    def _course(self, call: Call) -> Course:
        """How a call goes: as the first fault that befalls it has it, which is used up."""
        faults = self._faults[call.method]
        fault = next((fault for fault in faults if fault.befalls(call)), None)
        if fault is None:
            return lambda work: work()
        faults.remove(fault)
        return fault.course
