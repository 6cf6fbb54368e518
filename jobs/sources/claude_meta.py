"""What is told beside a log of Claude Code: whose it is by its name, and of a sub-agent's by what lies beside it.

A session's log is `<session>.jsonl`, a sub-agent's `agent-<id>.jsonl` with `agent-<id>.meta.json` beside it:

    {"agentType": "general-purpose", "description": "Count the rows", "toolUseId": "toolu_01", "spawnDepth": 1}
"""

import functools
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from stat import S_ISREG
from threading import Lock
from typing import Final, TypeGuard

import msgspec

from jobs.opening import opened_to_read
from jobs.ports import Cursor
from jobs.sources.fields import LONGEST_NAME, paired, short
from jobs.sources.lenient import is_overfull
from jobs.sources.tail import ReadLimits, read_new

_AGENT: Final = "agent-"
_SUFFIX: Final = ".jsonl"
_SESSION_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LONGEST: Final = 1 << 16
_TREE: Final = "/subagents/"
"""Holds the logs of all sub-agents of a session, those of a workflow in a folder of their own."""
_MOST_LOGS: Final = 500
"""And as many folders of a tree."""
_SEARCHED: Final = 32 << 20
"""Bytes of logs in which calls are looked for."""
_MOST_CALLS: Final = 20_000
"""Of all these logs."""
_FOLDERS: Final = 8
"""Folders, or trees, whose calls are known at a time."""


class Meta(msgspec.Struct, rename="camel"):
    """How a sub-agent has come to be."""

    description: str | None = None
    agent_type: str | None = None
    tool_use_id: str | None = None
    """The call that has started it."""
    spawn_depth: int | None = None
    """1 if that was the session's own."""


class _Block(msgspec.Struct, gc=False):
    type: str
    id: str | None = None


class _Message(msgspec.Struct):
    content: str | list[_Block] | None = None


class _Record(msgspec.Struct, rename="camel", kw_only=True):
    agent_id: str | None = None
    message: _Message | None = None
    type: str


_decode_meta: Final = msgspec.json.Decoder(Meta).decode
_decode: Final = msgspec.json.Decoder(_Record).decode


# ── what its name tells ───────────────────────────────────────────────────────────────────────────


def session_of(path: str) -> str:
    """Return the session, or the sub-agent, that a log is named for, "" if it bears another name."""
    name = _name(path)
    if name.startswith(_AGENT):
        return short(name.removeprefix(_AGENT) or name)
    return short(name) if _SESSION_ID.fullmatch(name) else ""


def is_agents(path: str) -> bool:
    """Whether a log is a sub-agent's."""
    return _name(path).startswith(_AGENT)


def _name(path: str) -> str:
    """Return a log's name as text, without its suffix, and without what it was given when it was put away."""
    name = path.rpartition("/")[2].encode(errors="replace").decode()
    return name.partition(_SUFFIX)[0] or name


# ── what lies beside it ───────────────────────────────────────────────────────────────────────────


def read_meta(path: str) -> Meta | None:
    """Return what is told beside the log at `path`, if it is there and whole. Never raises."""
    try:
        with open(f"{path.removesuffix(_SUFFIX)}.meta.json", "rb", opener=_open) as file:
            if S_ISREG(os.fstat(file.fileno()).st_mode):
                return _decode_meta(paired(file.read(_LONGEST)))
    except (OSError, ValueError, RecursionError):
        pass
    return None


def caller(call: str, path: str) -> str | None:
    """Return the sub-agent that has made a call, if it is for certain one of the session's.

    First of those with logs beside `path`: in the whole tree there may be too many.
    """
    folder, _, name = path.rpartition("/")
    session, tree, _ = f"{folder}/".rpartition(_TREE)
    places = [_calls_in(folder), *([_calls_in(f"{session}{tree}", is_tree=True)] if tree else [])]
    for place in places:
        try:
            callers = place.callers(call) - {_name(name).removeprefix(_AGENT)}
        except OSError:
            continue
        if callers:
            return callers.pop() if len(callers) == 1 else None
    return None


def _open(path: str, _flags: int) -> int:
    return opened_to_read(path)


@dataclass(slots=True)
class _Calls:
    """Which sub-agent has made which call, by the logs in one folder, or in all folders of a tree.

    Hundreds of sub-agents may ask at one look: so what is known is kept, and each line is read once.
    """

    folder: str
    is_tree: bool
    lock: Lock = field(default_factory=Lock)
    """Two sources may read the same folder."""
    _callers: dict[str, set[str]] = field(default_factory=dict)
    _read: dict[str, tuple[os.stat_result, Cursor]] = field(default_factory=dict)
    """By path: what the log was, and how far it has been read."""

    def callers(self, call: str) -> set[str]:
        """Return who has made a call; nobody if there is too much to be looked through. Raises OSError."""
        with self.lock:
            logs = _logs_in(self.folder, is_tree=self.is_tree)
            if len(logs) > _MOST_LOGS or sum(seen.st_size for seen in logs.values()) > _SEARCHED:
                return set()
            for path, seen in logs.items():
                self._read_on(path, seen)
            return set(self._callers.get(call, ())) if len(self._callers) <= _MOST_CALLS else set()

    def _read_on(self, path: str, seen: os.stat_result) -> None:
        before, cursor = self._read.get(path, (None, None))
        if before is not None and (before.st_size, before.st_ctime_ns) == (seen.st_size, seen.st_ctime_ns):
            return
        self._read.pop(
            path, None
        )  # should it be another file by now, it is read from its start the next time
        agent = _name(path).removeprefix(_AGENT)
        for chunk in read_new(path, seen, cursor, 0, ReadLimits()):
            self._read[path] = seen, chunk.cursor
            for call in _calls(agent, chunk.lines):
                if len(self._callers) <= _MOST_CALLS:
                    self._callers.setdefault(call, set()).add(agent)


@functools.lru_cache(_FOLDERS)
def _calls_in(folder: str, *, is_tree: bool = False) -> _Calls:
    return _Calls(folder, is_tree)


def _logs_in(folder: str, *, is_tree: bool) -> dict[str, os.stat_result]:
    """Return the sub-agents' logs, more than `_MOST_LOGS` only if there are as many. Raises OSError."""
    logs: list[str] = []
    for within, _, names in islice(os.walk(folder), _MOST_LOGS if is_tree else 1):
        logs += [f"{within}/{name}" for name in names if name.startswith(_AGENT) and name.endswith(_SUFFIX)]
        if len(logs) > _MOST_LOGS:
            break
    found = {log: os.stat(log) for log in logs}  # noqa: PTH116 - to make a Path takes longer than to look
    return {path: seen for path, seen in found.items() if S_ISREG(seen.st_mode)}


def _calls(agent: str, lines: Iterable[bytes]) -> Iterator[str]:
    """Yield the calls that a sub-agent's lines tell; a line that names another one is a copy."""
    for line in lines:
        if b"tool_use" not in line or is_overfull(_Record, line):
            continue
        try:
            record = _decode(line)
        except (ValueError, RecursionError):
            continue
        content = record.message.content if record.type == "assistant" and record.message else None
        if record.agent_id == agent and isinstance(content, list):
            yield from (block.id for block in content if block.type == "tool_use" and _is_id(block.id))


def _is_id(given: str | None) -> TypeGuard[str]:
    return given is not None and len(given) <= LONGEST_NAME
