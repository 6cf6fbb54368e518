"""Every log format by the name the watch list gives it. A new format is a module and a line here."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from jobs.ports import CallSource
from jobs.sources import claude_code, codex, gateway, gemini_cli, openclaw, opencode
from jobs.sources.auto import AutoLogs
from jobs.sources.hook_events import PROGRAMS
from jobs.sources.hooked import with_hook
from jobs.sources.log_format import LogFormat
from jobs.sources.overlap import Earlier
from jobs.sources.table_format import TableFormat
from jobs.watchlist.sources import AUTO, SourceSpec

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


HOOKED: Final = frozenset(PROGRAMS)
"""Formats of programs that `loopwarden hook` can be called by."""


def build_source(
    spec: SourceSpec, hooks: str | None = None, earlier: Sequence[SourceSpec] = ()
) -> CallSource:
    """Return the source that an entry of the watch list describes, with what hooks tell in a folder, if it is given.

    What entries `earlier` in the list read is left to them. Raises KeyError for an unknown format.
    """
    name, before = spec.format, Earlier.than(spec, earlier)
    if name == AUTO:
        logs: CallSource = AutoLogs(name=spec.name, pattern=spec.path, formats=FORMATS, earlier=before)
    else:
        takes = (lambda path: not before.reads(path, name)) if before.entries else None
        logs = FORMATS[name](name=spec.name, pattern=spec.path, takes=takes)
    if hooks is None or name not in {AUTO, *HOOKED}:
        return logs
    return with_hook(logs, spec.path, None if name == AUTO else name, hooks, before)


def tables_of(format_name: str) -> Sequence[TableFormat]:
    """Return what the databases of a format may be."""
    formats = FORMATS.values() if format_name == AUTO else [FORMATS[format_name]]
    return [table for form in formats for table in form.tables]
