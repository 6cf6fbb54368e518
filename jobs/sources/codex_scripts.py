"""Calls of Codex that have no output yet, and which of them has failed.

In code mode a call is a script, and each command that it runs ends in a record of its own, under an id of its own.
"""

from typing import Final

import msgspec
from msgspec import Raw

from jobs.sources.codex_records import Payload
from jobs.sources.fields import name
from jobs.sources.once import MOST_OPEN

_KEPT_OF_SCRIPTS: Final = 1 << 16
"""Bytes of all that are open, in which commands are looked for."""
_FAILED: Final = frozenset({"failed", "declined"})
_QUOTES: Final = bytes.maketrans(b"\\'`", b'"""')

_decode_strings: Final = msgspec.json.Decoder(list[str]).decode


class _Open(msgspec.Struct):
    script: str | None
    """Its script, in code mode, or as much as there was room for."""
    has_failed: bool = False


class OpenCalls(msgspec.Struct):
    """Calls without an output, newest last."""

    calls: dict[str, _Open] = {}

    def begin(self, call_id: str, payload: Payload) -> None:
        """Remember a call."""
        self.calls[call_id] = _Open(self._script(payload))
        if len(self.calls) > MOST_OPEN:
            del self.calls[next(iter(self.calls))]

    def close(self, call_id: str) -> _Open | None:
        """Return a call that has got its output; None if it is not known, or had one."""
        return self.calls.pop(call_id, None)

    def end(self, payload: Payload) -> None:
        """Take the end of a command or the like."""
        if (item := payload.item) and (item.status in _FAILED or item.exit_code):
            self._fail(name(item.id), item.command)

    def end_old(self, payload: Payload) -> None:
        """Take it as older releases tell it."""
        if payload.exit_code or payload.success is False:
            self._fail(name(payload.call_id), payload.command)

    def _fail(self, ended: str | None, command: Raw) -> None:
        """Note the failure of a call, or of a command that a script runs.

        What fails after its call has got an output is left to the call that waits for it.
        """
        scripts = [call for call in self.calls.values() if call.script is not None]
        if ended in self.calls:
            self.calls[ended].has_failed = True
        elif scripts:
            # Scripts run one after the other, but all that the model has asked for at once are open.
            sought = _in_script(command) if len(scripts) > 1 else ""
            named = (call for call in scripts if sought and sought in str(call.script))
            next(named, scripts[0]).has_failed = True

    def _script(self, payload: Payload) -> str | None:
        """Return the script that a call runs; "" if it waits for one that runs already."""
        match payload.type, payload.name:
            case "custom_tool_call", "exec":
                kept = sum(len(call.script or "") for call in self.calls.values())
                return _alike(bytes(payload.input)[: max(_KEPT_OF_SCRIPTS - kept, 0)])
            case "function_call", "wait":
                return ""
            case _:
                return None


def _in_script(command: Raw) -> str:
    """Return how a command is found in the script of a call; "" if that is not known."""
    try:
        return _alike(msgspec.json.encode(_decode_strings(command)[-1]))
    except (ValueError, IndexError):
        return ""


def _alike(quoted: bytes) -> str:
    """Make a text the same, however often and by which quotes it is quoted."""
    text = quoted.translate(_QUOTES)
    while b'""' in text:
        text = text.replace(b'""', b'"')
    return text.decode(errors="replace")
