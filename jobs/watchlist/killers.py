"""`[killers.NAME]`: what stops a session."""

from collections.abc import Mapping
from typing import ClassVar, Final

import msgspec

from jobs.watchlist.entries import absolute, check_keys, check_name, compiled, convert, table_of, type_of
from jobs.watchlist.error import WatchlistError, key_of, listed, unknown
from jobs.watchlist.templates import parse_argv

PLACEHOLDERS: Final = ("session", "agent", "reason", "score")
"""What a command's argv may hold in braces."""

_LONGEST_WAIT: Final = 300
"""Seconds a killer may be given: a stop that takes longer has not worked."""


class CommandSpec(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="command"
):
    """A killer that runs a program."""

    argv: tuple[str, ...]
    """Templates: `{session}` and the other placeholders, braces doubled. The first holds no placeholder."""
    timeout: float = 30.0
    """Seconds."""
    then: str | None = None
    """The killer used if a stop did not hold."""
    folder: str = "/"
    files: dict[str, str] | None = None
    """Filled in, as is the folder: as of a workflow's command."""


class ProcessSpec(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="process"
):
    """A killer that signals a process and its descendants."""

    match: str
    """A regular expression, searched for in the command line (its arguments joined by spaces)."""
    pid_file: str | None = None
    """Absolute once parsed."""
    grace: float = 10.0
    """Seconds between SIGTERM and SIGKILL."""
    then: str | None = None
    """The killer used if a stop did not hold."""


class DryRunSpec(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="dry_run"
):
    """A killer that only says what it would stop."""

    then: ClassVar[str | None] = None


KillerSpec = CommandSpec | ProcessSpec | DryRunSpec
_KINDS: Final[Mapping[str, type[KillerSpec]]] = {
    "command": CommandSpec,
    "process": ProcessSpec,
    "dry_run": DryRunSpec,
}


def parse_killers(entries: object, folder: str) -> dict[str, KillerSpec]:
    killers: dict[str, KillerSpec] = {}
    for name, entry in table_of(entries, "killers").items():
        place = f"killers.{key_of(name)}"
        check_name(name, place)
        killers[name] = _killer(entry, place, folder)
    for name in killers:
        _check_chain(name, killers)
    return killers


def _killer(entry: object, place: str, folder: str) -> KillerSpec:
    kind = _kind(table_of(entry, place), f"{place}.kind")
    known = ("kind", *(each for each in kind.__struct_fields__ if each not in {"folder", "files"}))
    check_keys(table_of(entry, place), known, place, "key")
    match convert(entry, kind, place):
        case CommandSpec() as command:
            return _command(command, place, folder)
        case ProcessSpec() as process:
            return _process(process, place, folder)
        case dry_run:
            return dry_run


def _kind(entry: Mapping[str, object], place: str) -> type[KillerSpec]:
    match entry.get("kind"):
        case None:
            raise WatchlistError(f"{place}: missing; known: {listed(_KINDS)}")
        case str() as kind if kind in _KINDS:
            return _KINDS[kind]
        case str() as kind:
            raise WatchlistError(f"{place}: {unknown('unknown kind', kind, _KINDS)}")
        case other:
            raise WatchlistError(f"{place}: expected str, got {type_of(other)}")


def _command(command: CommandSpec, place: str, folder: str) -> CommandSpec:
    _check_seconds(command.timeout, f"{place}.timeout")
    argv = parse_argv(command.argv, f"{place}.argv", folder, PLACEHOLDERS)
    return msgspec.structs.replace(command, argv=argv, folder=folder)


def _process(process: ProcessSpec, place: str, folder: str) -> ProcessSpec:
    _check_seconds(process.grace, f"{place}.grace")
    _check_match(process.match, f"{place}.match")
    if process.pid_file is None:
        return process
    pid_file = absolute(process.pid_file, folder, f"{place}.pid_file", str)
    return msgspec.structs.replace(process, pid_file=pid_file)


def _check_chain(name: str, killers: Mapping[str, KillerSpec]) -> None:
    place = f"killers.{key_of(name)}.then"
    passed, then = {name}, killers[name].then
    while then is not None:
        if then not in killers:
            raise WatchlistError(f"{place}: {unknown('no killer of that name', then, killers)}")
        if then in passed:
            raise WatchlistError(f"{place}: leads in a circle")
        passed.add(then)
        then = killers[then].then


def _check_seconds(seconds: float, place: str) -> None:
    if not 0 < seconds <= _LONGEST_WAIT:
        raise WatchlistError(f"{place}: must be more than 0 and at most {_LONGEST_WAIT} seconds")


def _check_match(pattern: str, place: str) -> None:
    if compiled(pattern, place).search(""):
        raise WatchlistError(f"{place}: must not match an empty text: it would match every process")
