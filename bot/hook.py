"""`loopwarden hook PROGRAM`: what an agent's own post-tool hook calls. Its input becomes a line of a gateway log.

An agent must not notice it: whatever happens, it says nothing and exits with 0. It is started for every call, so it
imports next to nothing.
"""

import errno
import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from time import sleep
from typing import Any, Final

from bot.clock import SystemClock
from bot.data_dir import data_dir

FOLDER: Final = "hook"
"""In the data directory; a file for each program."""

_LONGEST_INPUT: Final = 16 << 20
"""Bytes. More is read, lest its writer fail, and given up."""
_MOST_READ: Final = 256 << 20
_PIECE: Final = 1 << 16
_LONGEST_ARGS: Final = 1 << 20
"""Characters. Of longer arguments only the hash is kept."""
_LARGEST_FILE: Final = 64 << 20
_TRIES: Final = 400
_PAUSE: Final = 0.005
"""Seconds between two tries to have the file for oneself."""

_SHELLS: Final = frozenset({"sh", "ash", "bash", "dash", "fish", "ksh", "zsh", "busybox"})
_MOST_SHELLS: Final = 4

_CANCELLED: Final = (
    "Sibling tool call errored",
    "<tool_use_error>Sibling tool call errored",
    "Cancelled: parallel tool call ",
    "<tool_use_error>Cancelled: parallel tool call ",
)
"""How Claude Code begins what it tells of a call because another one of the same message has failed."""
_VARYING: Final = frozenset(
    {"durationMs", "duration_ms", "totalDurationMs", "totalTokens", "usage", "agentId"}
)
"""Fields of answers that differ between equal ones."""
_CODEX_CODES: Final = ("Exit code: ", "Process exited with code ")
_LONGEST_HEADER: Final = 8
"""Lines."""
_GEMINI_SHELL: Final = "run_shell_command"
_GEMINI_END: Final = "</untrusted_context>"
_GEMINI_PROCESSES: Final = ("Process Group PGID: ", "Background PIDs: ")
_GEMINI_FAILURES: Final = ("Exit Code: ", "Signal: ")

Event = Mapping[str, Any]
Line = dict[str, object]
"""Without what is None: that is left out."""


def hook(arguments: Sequence[str]) -> int:
    """Read what a program's hook is given, and keep it if it tells of a call that is over. Returns 0."""
    with suppress(BaseException):
        (program,) = arguments
        _keep(program, PROGRAMS[program])
    return 0


def _keep(program: str, read: Callable[[Event], Line | None]) -> None:
    given = _input()
    call = read(json.loads(given.decode(errors="replace"), parse_constant=lambda _: None))
    if call is None:
        return
    folder = data_dir()
    for path in (folder, f"{folder}/{FOLDER}"):
        with suppress(FileExistsError):
            os.makedirs(path, mode=0o700)
    _append(f"{folder}/{FOLDER}/{program}.jsonl", _written({"ts": SystemClock().now(), **call}))


def _input() -> bytes:
    """Return all of the standard input. Raises ValueError if it is too long."""
    parts, size = [], 0
    while size <= _MOST_READ and (part := os.read(0, _PIECE)):
        size += len(part)
        if size <= _LONGEST_INPUT:
            parts.append(part)
    if size > _LONGEST_INPUT:
        raise ValueError("too long")
    return b"".join(parts)


# ── what each program tells ───────────────────────────────────────────────────────────────────────


def _claude_code(event: Event) -> Line | None:
    kind = event["hook_event_name"]
    if kind not in {"PostToolUse", "PostToolUseFailure"}:
        return None
    has_failed = kind == "PostToolUseFailure"
    answer = event.get("error" if has_failed else "tool_response")
    return {
        **_origin(event, _folder(event.get("cwd")) or "claude-code"),
        "callId": _text(event, "tool_use_id"),
        "pid": _number(os.environ.get("CLAUDE_PID")) or _asker(),
        **_call(_text(event, "tool_name"), event.get("tool_input")),
        "is_error": has_failed and not str(answer).startswith(_CANCELLED),
        "result_hash": _digest(answer),
    }


def _codex(event: Event) -> Line | None:
    if event["hook_event_name"] != "PostToolUse":
        return None
    has_failed, answer = _codex_answer(event.get("tool_response"))
    return {
        **_origin(event, _folder(event.get("cwd")) or "codex"),
        "callId": _text(event, "tool_use_id"),
        "pid": _asker(),
        **_call(_text(event, "tool_name"), event.get("tool_input")),
        "is_error": has_failed,
        "result_hash": _digest(answer),
    }


def _gemini_cli(event: Event) -> Line | None:
    if event["hook_event_name"] != "AfterTool":
        return None
    tool, log = _text(event, "tool_name"), _text(event, "transcript_path")
    has_failed, answer = _gemini_answer(event.get("tool_response"), tool)
    # .../tmp/<project>/chats/session-....jsonl: the log's agent is named for the project.
    project = log.rpartition("/chats/")[0] if log else event.get("cwd")
    return {
        **_origin(event, _folder(project) or "gemini"),
        "pid": _asker(),
        **_call(tool, event.get("tool_input")),
        "is_error": has_failed,
        "result_hash": _digest(answer),
    }


def _opencode(event: Event) -> Line | None:
    told, answer = event["input"], event["output"]
    if (
        not isinstance(told, dict)
        or not isinstance(answer, dict)
        or "args" not in told
        or "output" not in answer
    ):
        return None
    metadata = answer.get("metadata")
    code = metadata.get("exit") if isinstance(metadata, dict) else None
    share = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return {
        "agentId": _folder(event.get("directory")) or "opencode",
        "sessionId": _required(told, "sessionID"),
        "log": f"{share}/opencode/opencode.db",
        "callId": _text(told, "callID"),
        "pid": _number(event.get("pid")),
        **_call(_text(told, "tool"), told["args"]),
        "is_error": bool(code) and isinstance(code, int),
        "result_hash": _digest(answer["output"]),
    }


PROGRAMS: Final[Mapping[str, Callable[[Event], Line | None]]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "gemini-cli": _gemini_cli,
    "opencode": _opencode,
}
"""By the name of the log format that tells of the same sessions under the same ids."""


def _origin(event: Event, name: str) -> Line:
    """Return whose call it is: the session's own, whose agent is called `name`, or a sub-agent's."""
    session, agent = _required(event, "session_id"), _text(event, "agent_id")
    return {
        "agentId": (_text(event, "agent_type") or name) if agent else name,
        "sessionId": agent or session,
        "parentId": session if agent else None,
        "log": _text(event, "transcript_path"),
    }


def _call(tool: str | None, args: object) -> Line:
    if tool is None:
        raise ValueError("a call without a tool")
    written = _json(args)
    if len(written) > _LONGEST_ARGS:
        return {"tool": tool, "args_hash": hashlib.sha256(written.encode()).hexdigest()}
    return {"tool": tool, "args": args if args is not None else {}}


# ── answers ───────────────────────────────────────────────────────────────────────────────────────


def _codex_answer(answer: object) -> tuple[bool, object]:
    """Return whether a text says that its command has failed, and what follows its header."""
    if not isinstance(answer, str):
        return False, answer
    lines = answer.split("\n", _LONGEST_HEADER)
    if "Output:" not in lines[:_LONGEST_HEADER]:
        return False, answer
    end = lines.index("Output:")
    return _names_failure(lines[:end], _CODEX_CODES), "\n".join(lines[end + 1 :])


def _gemini_answer(answer: object, tool: str | None) -> tuple[bool, object]:
    """Return whether a call has failed, and what it came to without the ids of its processes."""
    if not isinstance(answer, dict):
        return False, answer
    content = answer.get("llmContent")
    is_error = bool(answer.get("error"))
    if tool != _GEMINI_SHELL or not isinstance(content, str):
        return is_error, content
    lines = [line for line in content.split("\n") if not line.startswith(_GEMINI_PROCESSES)]
    if lines[-1] == _GEMINI_END:
        lines.pop()
    return is_error or _names_failure(lines[-1:], _GEMINI_FAILURES), "\n".join(lines)


def _names_failure(lines: Iterable[str], beginnings: Sequence[str]) -> bool:
    values = (line[len(begin) :].strip() for line in lines for begin in beginnings if line.startswith(begin))
    return any(value != "0" for value in values)


def _digest(answer: object) -> str:
    """Return a hash that is equal for equal answers."""
    if isinstance(answer, dict):
        answer = {key: value for key, value in answer.items() if key not in _VARYING}
    return hashlib.blake2b(_json(answer).encode(), digest_size=8).hexdigest()


# ── fields ────────────────────────────────────────────────────────────────────────────────────────


def _text(event: Event, key: str) -> str | None:
    value = event.get(key)
    return value if isinstance(value, str) and value else None


def _required(event: Event, key: str) -> str:
    value = _text(event, key)
    if value is None:
        raise ValueError(f"no {key}")
    return value


def _folder(path: object) -> str | None:
    return path.rstrip("/").rpartition("/")[2] or None if isinstance(path, str) else None


def _number(value: object) -> int | None:
    """Return a process id; 0 and 1 are no agent's."""
    with suppress(TypeError, ValueError):
        number = int(value)  # type: ignore[call-overload]  # of whatever type: that is what is asked
        return number if number > 1 and not isinstance(value, bool) else None
    return None


def _asker() -> int | None:
    """Return the process that has started this one, past the shells between them."""
    pid = os.getppid()
    for _ in range(_MOST_SHELLS):
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                name, _, rest = file.read().partition(b"(")[2].rpartition(b")")
        except OSError:
            break  # a system without /proc
        if name.decode(errors="replace") not in _SHELLS:
            break
        pid = int(rest.split()[1])
    return pid if pid > 1 else None


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _written(line: Line) -> bytes:
    return (_json({key: value for key, value in line.items() if value is not None}) + "\n").encode()


# ── the file ──────────────────────────────────────────────────────────────────────────────────────


def _append(path: str, line: bytes) -> None:
    """Add a line in one write; a line that does not fit is taken out again."""
    file = _opened(path)
    try:
        is_alone = _lock(file)
        if is_alone and _has_been_moved(path, file):
            os.close(file)
            file = _opened(path)
            is_alone = _lock(file)
        end = os.lseek(file, 0, os.SEEK_END)
        if is_alone and end and os.pread(file, 1, end - 1) != b"\n":
            line = b"\n" + line  # somebody was killed in the midst of it
        if os.write(file, line) < len(line) and is_alone:
            os.ftruncate(file, end)
    finally:
        os.close(file)


def _opened(path: str) -> int:
    # Should a pipe or a terminal lie there, opening it neither waits nor takes the terminal.
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    file = os.open(path, flags, 0o600)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "not a regular file")
    return file


def _lock(file: int) -> bool:
    """Have the file for oneself; not for ever: a hook that was suspended must not keep the others waiting."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sleep(_PAUSE)
        except OSError:
            break
        else:
            return True
    return False


def _has_been_moved(path: str, file: int) -> bool:
    """Move a file away that is large; whether this or another hook has done so."""
    own = os.fstat(file)
    with suppress(FileNotFoundError):
        if not os.path.samestat(own, os.stat(path)):
            return True
        if own.st_size < _LARGEST_FILE:
            return False
        os.replace(path, f"{path}.1")
    return True
