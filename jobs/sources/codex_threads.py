"""Whose rollout of Codex it is: the thread, who has started it, and which records come from another thread's history."""

import re
from pathlib import PurePath, PureWindowsPath
from typing import Final

import msgspec

from jobs.sources.codex_records import Payload
from jobs.sources.fields import name, short

_NO_NAME: Final = "codex"
_UUID_LENGTH: Final = 36
_UUID_VERSION: Final = 14
"""Where a UUID tells its version; those of version 7 sort by time."""
_IN_FILE_NAME: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$")


class Thread(msgspec.Struct):
    """What is known of the thread that a log is of."""

    session: str
    agent: str = _NO_NAME
    parent: str | None = None
    model: str | None = None
    is_named: bool = False
    """Whether the log itself has told what thread it is of."""
    is_copying: bool = False
    """Whether the records come from another thread's history."""

    @classmethod
    def of_file(cls, path: str) -> "Thread":
        """Return what a file's name tells."""
        stem = PurePath(path).stem
        found = _IN_FILE_NAME.search(stem)
        return cls(session=found[0] if found else short(stem.encode(errors="replace").decode()))

    def meet(self, payload: Payload) -> None:
        """Take what a head tells; a copied history has one of its own. Raises ValueError for one without id."""
        thread = name(payload.id)
        if thread is None:
            raise ValueError("a thread without id")
        if self.is_named:
            self.is_copying = thread != self.session
            return
        spawn = _spawn(payload)
        self.session, self.is_named = thread, True
        self.parent = name(spawn.parent_thread_id)
        self.agent = _agent(payload, spawn)
        self.is_copying = payload.forked_from_id is not None

    def go_on(self, payload: Payload) -> None:
        """Take what the beginning of a turn tells."""
        self.model = name(payload.model) or self.model
        if _is_own(payload.turn_id, self.session):
            self.is_copying = False


class _Spawn(msgspec.Struct):
    """How older releases tell what a sub-agent is."""

    parent_thread_id: str | None = None
    agent_path: str | None = None
    agent_nickname: str | None = None


class _Subagent(msgspec.Struct):
    thread_spawn: _Spawn


class _Source(msgspec.Struct):
    subagent: _Subagent


_decode_source: Final = msgspec.json.Decoder(_Source).decode


def _spawn(payload: Payload) -> _Spawn:
    """Return what is known of a sub-agent; nothing of another thread."""
    try:
        old = _decode_source(payload.source).subagent.thread_spawn
    except (ValueError, RecursionError):
        old = _Spawn()
    return _Spawn(
        parent_thread_id=payload.parent_thread_id or old.parent_thread_id,
        agent_path=payload.agent_path or old.agent_path,
        agent_nickname=payload.agent_nickname or old.agent_nickname,
    )


def _agent(payload: Payload, spawn: _Spawn) -> str:
    """Return a sub-agent's task or nickname; else the folder in which the thread works."""
    task, folder = (PureWindowsPath(path or "").name for path in (spawn.agent_path, payload.cwd))
    return name(task or spawn.agent_nickname or folder) or _NO_NAME


def _is_own(turn: str | None, session: str) -> bool:
    """Whether a turn is not older than the thread, as those of a copied history are."""
    has_times = turn and all(len(it) == _UUID_LENGTH and it[_UUID_VERSION] == "7" for it in (turn, session))
    return turn is None or not has_times or turn > session
