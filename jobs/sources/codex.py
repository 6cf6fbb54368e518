r"""Codex CLI's rollouts: `~/.codex/sessions/Y/M/D/rollout-<time>-<thread>.jsonl`, one record a line; one file a thread.

    {"timestamp": "2026-11-30T09:37:44.784Z", "ordinal": 18, "type": "response_item", "payload":
     {"type": "function_call", "name": "exec_command", "arguments": "{\"cmd\": \"pwd\"}", "call_id": "call_1M"}}

`session_meta` at the head names the thread, its parent and its nickname; a copied history has one of its own.
`response_item` tells calls and outputs. In code mode a call is `custom_tool_call` `exec` whose `input` is a script;
each command that a script runs ends in an `event_msg` of its own, `item_completed`, under an id of its own.
`token_usage_record` follows the calls of the model's answer; older releases have `token_count` alone. An output does
not tell whether it failed: the `item_completed` before it does, in older releases `exec_command_end` and the like.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from jobs.sources.codex_answers import read_output
from jobs.sources.codex_calls import args, tool
from jobs.sources.codex_records import Record, decode_record
from jobs.sources.codex_scripts import OpenCalls
from jobs.sources.codex_threads import Thread
from jobs.sources.codex_tokens import TokenCount
from jobs.sources.fields import digest, name
from jobs.sources.lenient import decode
from jobs.sources.log_files import LogFiles
from jobs.sources.log_format import Home, LogFormat
from jobs.sources.once import is_new
from jobs.thrash.call import Answer, Entry, ToolCall

_REMEMBERED: Final = 100
"""Ids of each kind."""


class _Memory(msgspec.Struct):
    thread: Thread
    calls: dict[str, None] = {}
    """Ids of what was told, newest last."""
    responses: dict[str, None] = {}
    """Those of the model's answers, whose tokens were told."""
    open: OpenCalls = msgspec.field(default_factory=OpenCalls)
    tokens: TokenCount = msgspec.field(default_factory=TokenCount)


_decode_memory: Final = msgspec.json.Decoder(_Memory).decode


class Rollout:
    """Reads one thread's log.

    A call is told with the next record, in which its tokens are; at once where the log is not known to tell them there.
    """

    def __init__(self, path: str, state: str, /) -> None:
        """Go on where `state` was given; begin anew if it is not one."""
        try:
            self._memory = _decode_memory(state)
        except (ValueError, RecursionError):
            self._memory = _Memory(thread=Thread.of_file(path))

    def state(self) -> str:
        """Return what is remembered."""
        return msgspec.json.encode(self._memory).decode()

    def read(self, line: bytes, /) -> Sequence[Entry] | None:
        """Return what a record tells; nothing if its type is not known."""
        record = decode(decode_record, line)
        if record is None or not record.type:
            return None
        try:
            return self._tell(record)
        except (ValueError, OverflowError):
            return None

    def _tell(self, record: Record) -> Sequence[Entry]:
        """Raises ValueError if a field is missing."""
        match record.type:
            case "response_item":
                return self._tell_item(record)
            case "event_msg":
                return self._tell_event(record)
            case "token_usage_record":
                return self._use(record)
            case "turn_context":
                self._memory.thread.go_on(record.payload)
            case "session_meta":
                self._memory.thread.meet(record.payload)
            case "compacted":
                # The model is asked to sum up only when all its calls have outputs; one it answers with is not run.
                self._memory.open.calls.clear()
        return self._memory.tokens.released()

    def _tell_item(self, record: Record) -> Sequence[Entry]:
        match record.payload.type:
            case "function_call" | "custom_tool_call" | "local_shell_call" | "web_search_call":
                return self._call(record)
            case "function_call_output" | "custom_tool_call_output":
                return self._answer(record)
            case _:
                return self._memory.tokens.released()

    def _tell_event(self, record: Record) -> Sequence[Entry]:
        memory, payload = self._memory, record.payload
        match payload.type:
            case "token_count":
                return self._count(record)
            case "item_completed":
                memory.open.end(payload)
            case "exec_command_end" | "patch_apply_end":
                memory.open.end_old(payload)
            case "task_started":
                # A process that was killed has left calls for which nothing comes any more.
                memory.open.calls.clear()
                memory.thread.go_on(payload)
        return memory.tokens.released()

    def _call(self, record: Record) -> Sequence[Entry]:
        payload, memory, thread = record.payload, self._memory, self._memory.thread
        call = ToolCall(
            session=thread.session,
            agent=thread.agent,
            parent=thread.parent,
            ts=record.ts,
            tool=tool(payload),
            call_id=name(payload.call_id),
            args=args(payload),
        )
        if thread.is_copying or not _is_new(call.call_id, memory.calls):
            return ()
        if call.call_id:
            memory.open.begin(call.call_id, payload)
        return () if memory.tokens.hold(call) else [*memory.tokens.released(), call]

    def _answer(self, record: Record) -> Sequence[Entry]:
        memory, ts, call_id = self._memory, record.ts, name(record.payload.call_id)
        if call_id is None:
            raise ValueError("an output without call")
        call, told = memory.open.close(call_id), memory.tokens.released()
        if call is None:
            return told  # of a copied call, or a note to one that has its answer
        failed, text = read_output(record.payload.output)
        answer = Answer(
            session=memory.thread.session,
            call_id=call_id,
            ts=ts,
            is_error=call.has_failed or failed,
            digest=digest(text),
        )
        return [*told, answer]

    def _use(self, record: Record) -> Sequence[Entry]:
        payload, memory, ts = record.payload, self._memory, record.ts
        if payload.usage is None:
            raise ValueError("no tokens")
        memory.tokens.has_records = True
        thread = memory.thread
        is_copy = thread.is_copying or name(payload.thread_id) not in {None, thread.session}
        if is_copy or not _is_new(payload.response_id, memory.responses):
            return memory.tokens.released()
        usage = memory.tokens.usage(payload.usage, thread, ts)
        return [*memory.tokens.released(usage.tokens), usage]

    def _count(self, record: Record) -> Sequence[Entry]:
        memory = self._memory
        told, used = memory.tokens.released(), memory.tokens.grown(record.payload.info)
        if used is None or memory.thread.is_copying:
            return told
        return [*told, memory.tokens.usage(used, memory.thread, record.ts)]


def _is_new(given: str | None, known: dict[str, None]) -> bool:
    """Whether it is told for the first time; what has no id always is."""
    return not given or is_new(given, known, None, _REMEMBERED)


FORMAT: Final = LogFormat(
    source=partial(LogFiles, format=Rollout),
    is_record=lambda record: record.keys() >= {"timestamp", "type", "payload"},
    home=Home(variable="CODEX_HOME", folders=("~/.codex",), patterns=("sessions/**/*.jsonl",)),
    # A server's process holds many conversations.
    process=r"^((\S*/)?node )?(\S*/)?codex(?! app-server)(?! mcp-server)(?!\S)",
)
