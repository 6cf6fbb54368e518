"""OpenClaw's index beside the files of older releases, `sessions.json`: which session a key names, and who started it.

{"agent:main:subagent:7e1c": {"sessionId": "5f0f6d0e-…", "spawnedBy": "agent:main:main", …}, …}
"""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from jobs.opening import opened_to_read
from jobs.sources.openclaw_keys import agent_in, agent_of, of_agent

_LONGEST: Final = 32 << 20
"""Bytes. It is rewritten at every turn, so no gateway works with one that is any longer."""


class _Entry(msgspec.Struct, gc=False, rename="camel"):
    session_id: str = ""
    spawned_by: str | None = None
    parent_session_key: str | None = None


_Entries = Mapping[str, _Entry]
_decode: Final = msgspec.json.Decoder(dict[str, _Entry]).decode


@dataclass(frozen=True, slots=True)
class Index:
    """What the index in the folder of a session's file says, and those of other agents."""

    path: str
    """Of the session's file."""

    def starter_of(self, session: str) -> str | None:
        """Return the session that has started another one."""
        entries = _read(self._place)
        own = next((entry for entry in entries.values() if entry.session_id == session), None)
        key = own and (own.spawned_by or own.parent_session_key)
        starter = self.session_of(key) if key else None
        return None if starter == session else starter

    def session_of(self, key: str) -> str | None:
        """Return the session that a key names now."""
        agent = agent_of(key) or agent_in(self.path)
        place = self._place if agent == agent_in(self.path) else of_agent(self._place, agent)
        entry = place and _read(place).get(key)
        return (entry and entry.session_id) or None

    @property
    def _place(self) -> str:
        return f"{self.path.rpartition('/')[0]}/sessions.json"


def _read(place: str) -> _Entries:
    try:
        seen = Path(place).stat()
        return _entries(place, seen.st_ino, seen.st_size, seen.st_mtime_ns)
    except OSError:
        return {}


@lru_cache(maxsize=32)
def _entries(place: str, _inode: int, size: int, _mtime: int) -> _Entries:
    if size > _LONGEST:
        return {}
    with os.fdopen(opened_to_read(place), "rb") as file:
        content = file.read(size) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
    try:
        return _decode(content)
    except (ValueError, RecursionError):
        return {}
