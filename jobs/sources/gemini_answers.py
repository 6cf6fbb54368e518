r"""What a call of Gemini CLI came to: whether it failed, and its text without what differs between equal results.

    Output: pending\nExit Code: 1\nBackground PIDs: 78\nProcess Group PGID: 77

The status of a call is `error` if the tool failed or was refused. It is `success` for every command that could be
started, so an exit code that is not 0 counts as a failure, too, as it does where a log flags it, such as Claude Code's.
"""

import re
from typing import Final

import msgspec

from jobs.sources.gemini_records import Call, Part

_SHELL: Final = "run_shell_command"
_UNTRUSTED: Final = "\n</untrusted_context>"
_PROCESS: Final = "\nProcess Group PGID: "
_BACKGROUND: Final = "\nBackground PIDs: "
_FAILURES: Final = ("\nSignal: ", "\nExit Code: ")
_MAY_VARY: Final = ("Command moved to background ", "Output too large. ")
"""How an output begins that bears a process id, or the name of the file that it was saved to."""
_VARYING: Final = re.compile(r"(?<=\(PID: )\d+|(?<=For full output see: ).+")


class _Response(msgspec.Struct, gc=False):
    output: str | None = None
    error: str | None = None


_decode_response: Final = msgspec.json.Decoder(_Response).decode


def result(call: Call) -> tuple[bytes, bool]:
    """Return what a call came to, without what varies, and whether it has failed."""
    pieces = call.result if isinstance(call.result, list) else (call.result,)
    texts, has_failed = [], call.status == "error"
    for piece in pieces:
        if piece is not None:
            text, is_failure = _piece(piece, call.name)
            texts.append(text)
            has_failed |= is_failure
    return b"\0".join(texts), has_failed


def _piece(part: Part | str, tool: str) -> tuple[bytes, bool]:
    if isinstance(part, str):
        return part.encode(), False
    if part.answer is None:
        return b"".join((part.text, part.image, part.file)), False
    try:
        told = _decode_response(part.answer.response)
    except (ValueError, RecursionError):
        told = _Response()
    text = told.output if told.output is not None else told.error
    if text is None:
        return b"".join((part.answer.response, part.answer.parts)), False
    text, is_failure = _without_end(text) if tool == _SHELL else (text, False)
    if text.startswith(_MAY_VARY):
        text = _VARYING.sub("", text, count=1)
    answer = text.encode()
    return (answer + bytes(part.answer.parts) if part.answer.parts else answer), is_failure


def _without_end(text: str) -> tuple[str, bool]:
    """Cut the process ids that the program adds to a command's output; return whether it adds a failure, too."""
    text = text.removesuffix(_UNTRUSTED)
    last = text.rfind("\n")
    for line in (_PROCESS, _BACKGROUND):
        if last >= 0 and text.startswith(line, last):
            text = text[:last]
            last = text.rfind("\n")
    return text, last >= 0 and text.startswith(_FAILURES, last)
