"""What programs tell their hooks of a call, as a line of a gateway log.

`loopwarden hook` is called after every call of an agent, which waits for it: so this imports next to nothing.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

_LONGEST_ARGS: Final = 1 << 20
"""Characters. Of longer arguments only the hash is kept."""
_SHELLS: Final = frozenset({"sh", "ash", "bash", "dash", "fish", "ksh", "zsh", "busybox"})
_MOST_SHELLS: Final = 4
_LARGEST_PID: Final = 2**31 - 1

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
Environment = Mapping[str, str]
Line = dict[str, object]
"""Without what is None: that is left out."""


# ── what each program tells ───────────────────────────────────────────────────────────────────────


def _claude_code(event: Event, environment: Environment) -> Line | None:
    kind = event["hook_event_name"]
    if kind not in {"PostToolUse", "PostToolUseFailure"}:
        return None
    has_failed = kind == "PostToolUseFailure"
    answer = event.get("error" if has_failed else "tool_response")
    return {
        **_origin(event, _folder(event.get("cwd")) or "claude-code"),
        "callId": _text(event, "tool_use_id"),
        "pid": _number(environment.get("CLAUDE_PID")) or _asker(),
        **_call(_text(event, "tool_name"), event.get("tool_input")),
        "is_error": has_failed and not str(answer).startswith(_CANCELLED),
        "result_hash": _digest(answer),
    }


def _codex(event: Event, _environment: Environment) -> Line | None:
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


def _gemini_cli(event: Event, _environment: Environment) -> Line | None:
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


def _opencode(event: Event, environment: Environment) -> Line | None:
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
    share = environment.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
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


PROGRAMS: Final[Mapping[str, Callable[[Event, Environment], Line | None]]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "gemini-cli": _gemini_cli,
    "opencode": _opencode,
}
"""By the name of the log format that tells of the same sessions: what its program tells of a call that is over, or None
if it is not. Raises an exception for what makes no sense."""


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
    written = json_of(args)
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
    return hashlib.blake2b(json_of(answer).encode(), digest_size=8).hexdigest()


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
        return number if 1 < number <= _LARGEST_PID and not isinstance(value, bool) else None
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


def json_of(value: object) -> str:
    """Write a value in one line. Raises ValueError for numbers that JSON has not."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
