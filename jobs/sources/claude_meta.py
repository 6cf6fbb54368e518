"""What lies beside the log of a sub-agent of Claude Code: `agent-<id>.meta.json`, and the logs of others.

{"agentType": "general-purpose", "description": "Count the rows", "toolUseId": "toolu_01", "spawnDepth": 1}
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath
from stat import S_ISREG
from typing import Final

import msgspec

from jobs.sources.fields import paired
from jobs.sources.tail import ReadLimits, read_new

_LONGEST: Final = 1 << 16
_SEARCHED: Final = 32 << 20
"""Bytes of logs in which a call is looked for."""


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


def read_meta(path: str) -> Meta | None:
    """Return what is told beside the log at `path`, if it is there and whole. Never raises."""
    try:
        with open(f"{path.removesuffix('.jsonl')}.meta.json", "rb", opener=_open) as file:
            if S_ISREG(os.fstat(file.fileno()).st_mode):
                return _decode_meta(paired(file.read(_LONGEST)))
    except (OSError, ValueError, RecursionError):
        pass
    return None


def caller(call: str, path: str) -> str | None:
    """Return the sub-agent that has made a call, if it is for certain one of those with logs beside `path`."""
    others = [log for log in Path(path).parent.glob("agent-*.jsonl") if log.name != PurePath(path).name]
    callers = set[str]()
    try:
        seen = {str(log): log.stat() for log in others}
        if sum(log.st_size for log in seen.values()) > _SEARCHED:
            return None
        for log in (log for log in seen if S_ISREG(seen[log].st_mode)):
            for chunk in read_new(log, seen[log], None, 0, ReadLimits()):
                callers.update(_callers(call, chunk.lines))
    except OSError:
        return None
    return callers.pop() if len(callers) == 1 else None


def _open(path: str, flags: int) -> int:
    # Should it be a pipe or a terminal, opening it neither waits for a writer nor takes the terminal.
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)


def _callers(call: str, lines: Iterable[bytes]) -> Iterator[str]:
    written = call.encode()
    for line in lines:
        if written not in line:
            continue
        try:
            record = _decode(line)
        except (ValueError, RecursionError):
            continue
        content = record.message.content if record.type == "assistant" and record.message else None
        blocks = content if isinstance(content, list) else ()
        if record.agent_id and any(block.type == "tool_use" and block.id == call for block in blocks):
            yield record.agent_id
