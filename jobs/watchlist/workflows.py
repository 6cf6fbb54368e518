"""`[workflows.NAME]`: what a run leaves behind, and what that must be."""

import glob
import re
from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from jobs.verification.spec import (
    BandSpec,
    CommandCheck,
    CountSpec,
    FieldSpec,
    Format,
    Kind,
    StatusSpec,
    WorkflowSpec,
)
from jobs.watchlist.criteria import check_workflow
from jobs.watchlist.entries import absolute, check_keys, check_name, convert, table_of
from jobs.watchlist.error import WatchlistError, key_of, unknown
from jobs.watchlist.file import folder_of, text_of
from jobs.watchlist.quantity import DAY, seconds, size
from jobs.watchlist.syntax import tables_in
from jobs.watchlist.templates import parse_argv

PLACEHOLDERS: Final = ("path", "workflow", "run", "date")
"""What the argv of a check may hold in braces."""
_IN_OUTPUT: Final = ("date", "run")
_BRACED: Final = re.compile(r"\{([^{}]*)\}|[{}]")

_KEYS: Final = tuple(f for f in WorkflowSpec.__struct_fields__ if f not in {"name", "schema_text"})
_COMMAND_KEYS: Final = ("argv", "exit", "timeout")
_LONGEST: Final = 3660 * DAY
_DURATIONS: Final[Mapping[str, tuple[int, int]]] = {
    "max_age": (1, _LONGEST),
    "every": (60, _LONGEST),
    "grace": (0, _LONGEST),
    "settle": (0, DAY),
}
"""Seconds, at least and at most."""
_TABLES: Final[Mapping[str, type[StatusSpec | BandSpec | CountSpec]]] = {
    "status": StatusSpec,
    "size": BandSpec,
    "count": CountSpec,
}
_LONGEST_COMMAND: Final = 3600
_LARGEST_OUTPUT: Final = 4 * 10**9
"""Bytes; an output is judged as a whole, in memory."""


def read_workflows(path: str) -> dict[str, WorkflowSpec]:
    """Read the workflows alone: what else the watch list holds is of no concern to who verifies a run.

    Raises:
        WatchlistError: the file cannot be read, or what it says of workflows is wrong.
    """
    tables = tables_in(text_of(path))
    return parse_workflows(tables.get("workflows", {}), folder_of(path), _names_in(tables.get("sources")))


def _names_in(sources: object) -> list[str]:
    """Return the names of sources that nobody has looked at more closely."""
    entries = sources if isinstance(sources, list) else []
    return [f"{entry.get('name')}" for entry in entries if isinstance(entry, dict)]


def parse_workflows(entries: object, folder: str, sources: Collection[str]) -> dict[str, WorkflowSpec]:
    workflows: dict[str, WorkflowSpec] = {}
    for name, entry in table_of(entries, "workflows").items():
        place = f"workflows.{key_of(name)}"
        check_name(name, place)
        workflows[name] = _workflow(name, entry, place, folder)
        check_workflow(workflows[name], place, sources)
    return workflows


def _workflow(name: str, entry: object, place: str, folder: str) -> WorkflowSpec:
    table = table_of(entry, place)
    check_keys(table, _KEYS, place, "key")
    if "output" not in table:
        raise WatchlistError(f"{place}.output: missing")
    spec = convert(_converted(table, place, folder), WorkflowSpec, place)
    schema = None if spec.schema is None else absolute(spec.schema, folder, f"{place}.schema", str)
    output = _output(spec.output, f"{place}.output", folder)
    return msgspec.structs.replace(spec, name=name, output=output, schema=schema)


def _converted(table: Mapping[str, object], place: str, folder: str) -> dict[str, object]:
    """Return the entry with its durations, sizes and tables as the values that they stand for."""
    known = dict(table)
    _check_one_of(table, "format", Format, place)
    for key, bounds in _DURATIONS.items():
        if key in table:
            known[key] = seconds(table[key], f"{place}.{key}", *bounds)
    if "max_size" in table:
        known["max_size"] = size(table["max_size"], f"{place}.max_size", _LARGEST_OUTPUT)
    for key, spec in _TABLES.items():
        if key in table:
            known[key] = convert(table[key], spec, f"{place}.{key}")
    if "command" in table:
        known["command"] = _command(table["command"], f"{place}.command", folder)
    if "fields" in table:
        known["fields"] = _fields(table["fields"], f"{place}.fields")
    return known


def _command(entry: object, place: str, folder: str) -> CommandCheck:
    table = dict(table_of(entry, place))
    check_keys(table, _COMMAND_KEYS, place, "key")
    if "timeout" in table:
        table["timeout"] = seconds(table["timeout"], f"{place}.timeout", 1, _LONGEST_COMMAND)
    command = convert(table, CommandCheck, place)
    argv = parse_argv(command.argv, f"{place}.argv", folder, PLACEHOLDERS)
    return msgspec.structs.replace(command, argv=argv, folder=folder)


def _fields(entries: object, place: str) -> dict[str, FieldSpec]:
    fields = {}
    for path, entry in table_of(entries, place).items():
        where = f"{place}.{key_of(path)}"
        _check_one_of(table_of(entry, where), "type", Kind, where)
        fields[path] = convert(entry, FieldSpec, where)
    return fields


def _output(text: str, place: str, folder: str) -> str:
    for braced in _BRACED.finditer(text):
        if braced[1] not in _IN_OUTPUT:
            given = braced[1] or ""
            raise WatchlistError(f"{place}: {unknown('unknown placeholder', given, _IN_OUTPUT, '{%s}')}")
    return absolute(text, folder, place, _escape)


def _escape(text: str) -> str:
    # A brace in the folder's own name is no placeholder, and a glob finds it in brackets.
    return glob.escape(text).replace("{", "[{]")


def _check_one_of(table: Mapping[str, object], key: str, known: type[StrEnum], place: str) -> None:
    given = table.get(key)
    if isinstance(given, str) and given not in list(known):
        raise WatchlistError(f"{place}.{key}: {unknown(f'unknown {key}', given, list(known))}")
