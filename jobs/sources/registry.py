"""Every log format by the name the watch list gives it. A new format is a module and a line here."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from jobs.ports import CallSource
from jobs.sources import claude_code, codex, gateway, gemini_cli, openclaw, opencode
from jobs.sources.auto import AutoLogs
from jobs.sources.hooked import with_hook
from jobs.sources.log_format import LogFormat
from jobs.sources.sqlite_rows import TableFormat
from jobs.watchlist import AUTO, SourceSpec

FORMATS: Final[Mapping[str, LogFormat]] = MappingProxyType(
    {
        "claude-code": claude_code.FORMAT,
        "codex": codex.FORMAT,
        "gateway": gateway.FORMAT,
        "gemini-cli": gemini_cli.FORMAT,
        "openclaw": openclaw.FORMAT,
        "opencode": opencode.FORMAT,
    }
)


HOOKED: Final = frozenset({"claude-code", "codex", "gemini-cli", "opencode"})
"""Formats of programs that `loopwarden hook` can be called by."""


def build_source(spec: SourceSpec, hooks: str | None = None) -> CallSource:
    """Return the source that an entry of the watch list describes, with what hooks tell in a folder, if it is given.

    Raises KeyError for an unknown format.
    """
    if spec.format == AUTO:
        logs: CallSource = AutoLogs(name=spec.name, pattern=spec.path, formats=FORMATS)
    else:
        logs = FORMATS[spec.format](name=spec.name, pattern=spec.path)
    if hooks is None or spec.format not in {AUTO, *HOOKED}:
        return logs
    return with_hook(logs, spec.path, None if spec.format == AUTO else spec.format, hooks)


def tables_of(format_name: str) -> Sequence[TableFormat]:
    """Return what the databases of a format may be."""
    formats = FORMATS.values() if format_name == AUTO else [FORMATS[format_name]]
    return [table for form in formats for table in form.tables]
