"""Fakes of the ports, each small enough to be seen to be right."""

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from jobs.alert.outgoing import Mode, Queued
from jobs.ports import (
    Batch,
    CallSource,
    Clock,
    Cursor,
    Killer,
    Notifier,
    Outcome,
    Stopped,
    Target,
    Watch,
    Watched,
)
from jobs.thrash.call import ToolCall
from jobs.verification.spec import WorkflowSpec

NOON = 1_800_000_000.0
HOME = "-1001"
"""The configured chat, a group."""


def call(
    ts: float = NOON,
    command: str = "pytest -x",
    *,
    agent: str = "coder",
    session: str = "s-1",
    tool: str = "exec",
    args: bytes | None = None,
    args_hash: str | None = None,
    pid: int | None = None,
    is_error: bool = False,
    tokens: int | None = None,
) -> ToolCall:
    """A call that repeats every other one, unless told otherwise."""
    written = msgspec.json.encode({"command": command}) if args is None else args
    return ToolCall(
        session=session,
        agent=agent,
        ts=ts,
        tool=tool,
        args=written,
        args_hash=args_hash,
        pid=pid,
        is_error=is_error,
        tokens=tokens,
    )


@dataclass(slots=True)
class HandClock(Clock):
    """Stands still until it is moved."""

    time: float = NOON

    def now(self) -> float:
        return self.time

    def go_on(self, seconds: float) -> None:
        self.time += seconds


@dataclass(slots=True, kw_only=True)
class CallLog(CallSource):
    """A log in memory, whose cursor counts calls instead of bytes."""

    name: str = "gateway"
    calls: list[ToolCall] = field(default_factory=list)
    per_batch: int = 1_000_000
    breaks: Exception | None = None
    """Raised after all that is new was read."""

    def read_new(self, cursors: Mapping[str, Cursor], now: float) -> Iterator[Batch]:
        start = cursors["log"].offset if "log" in cursors else 0
        ends = range(start + self.per_batch, len(self.calls), self.per_batch)
        for end in (*ends, len(self.calls)):
            cursor = Cursor(device=1, inode=1, offset=end, head="", tail="", read_at=now)
            yield Batch(path="log", cursor=cursor, calls=tuple(self.calls[start:end]))
            start = end
        if self.breaks:
            raise self.breaks

    def problems(self) -> Sequence[str]:
        return ()


@dataclass(slots=True, kw_only=True)
class ScriptedKiller(Killer):
    """Ends each attempt as written, then as a success."""

    outcomes: deque[Stopped | Exception] = field(default_factory=deque)
    alive: bool | None = None
    breaks: Exception | None = None
    """Raised when it is asked whether the target lives."""
    attempts: list[Target] = field(default_factory=list)
    harder: list[bool] = field(default_factory=list)
    """Of every attempt."""
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once an attempt or a question has come in."""
    may_answer: asyncio.Event = field(default_factory=lambda: _set(asyncio.Event()))
    """Cleared, it keeps attempts and questions waiting."""

    async def stop(self, target: Target, *, harder: bool) -> Stopped:
        self.attempts.append(target)
        self.harder.append(harder)
        await self._pause()
        ending = self.outcomes.popleft() if self.outcomes else exited(Outcome.STOPPED)
        if isinstance(ending, Exception):
            raise ending
        return ending

    async def is_alive(self, target: Target) -> bool | None:  # noqa: ARG002 - the script knows
        await self._pause()
        if self.breaks:
            raise self.breaks
        return self.alive

    async def _pause(self) -> None:
        self.asked.set()
        await self.may_answer.wait()


def exited(outcome: Outcome) -> Stopped:
    return Stopped(outcome=outcome, detail="process 1234 has exited")


@dataclass(slots=True, kw_only=True)
class ScriptedNotifier(Notifier):
    """Ends each sending as written, then as a success; the chat numbers messages from 1."""

    failures: deque[Exception | None] = field(default_factory=deque)
    sent: list[Queued] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    may_send: asyncio.Event = field(default_factory=lambda: _set(asyncio.Event()))
    """Cleared, it keeps sendings waiting."""
    hanging: set[int] = field(default_factory=set)
    """The chats whose sendings never end."""
    refusing: dict[int, Exception] = field(default_factory=dict)
    """What every sending to a chat ends with."""

    async def send(self, message: Queued) -> int | None:
        self.asked.set()
        await self.may_send.wait()
        if message.chat_id in self.hanging:
            await asyncio.Event().wait()
        if message.chat_id in self.refusing:
            raise self.refusing[message.chat_id]
        if self.failures and (failure := self.failures.popleft()):
            raise failure
        self.sent.append(message)
        if message.target_message is not None and message.mode is Mode.EDIT:
            return message.target_message
        return len(self.sent)


@dataclass(slots=True, kw_only=True)
class FixedWatch(Watch):
    """A watch list that changes only when told."""

    watched: list[Watched] = field(default_factory=list)
    specs: list[WorkflowSpec] = field(default_factory=list)

    def sources(self) -> Mapping[str, Watched]:
        return {watched.source.name: watched for watched in self.watched}

    def workflows(self) -> Mapping[str, WorkflowSpec]:
        return {spec.name: spec for spec in self.specs}


def _set(event: asyncio.Event) -> asyncio.Event:
    event.set()
    return event
