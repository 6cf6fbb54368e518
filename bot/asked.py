"""What `loopwarden verify` is asked: its words, and the watch list or the defaults -> what is to be verified.

With a watch list, the first word is the name of a workflow in it; without one, any name for the history, or none: then
the output's own path is its name, so that different outputs are different workflows. By which specification a workflow
of that name is judged is then for `enforced` to say.
"""

import glob
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Final

import msgspec

from jobs.artifacts.find import absolute
from jobs.verification.spec import DEFAULT_SPEC, Format, WorkflowSpec
from jobs.verification.wording import one_line
from jobs.watchlist.error import unknown
from jobs.watchlist.workflows import read_workflows

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

_USAGE: Final = """
usage: loopwarden verify NAME [PATH] [--run ID]    a workflow of the watch list, or what else lies at PATH
       loopwarden verify [NAME] PATH [--run ID]    without a watch list: status, result and timestamp at PATH"""

_WATCHLIST: Final = "loopwarden.toml"
_LONGEST_NAME: Final = 200
"""Characters of a path that becomes the name of a workflow."""
_PACKED: Final = (".gz", ".bz2", ".xz", ".zst")
_FORMATS: Final = {
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".csv": Format.CSV,
    ".toml": Format.TOML,
    ".yaml": Format.YAML,
    ".yml": Format.YAML,
}


class UsageError(Exception):
    """It was asked wrongly; the message says how."""


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """What was typed, and where the watch list is looked for."""

    words: tuple[str, ...]
    """`NAME [PATH]`; without a watch list `[NAME] PATH`, unless NAME is pinned."""
    run: str | None
    """The reporter's id of the run."""
    zone: tzinfo
    watchlist: str
    has_watchlist: bool
    """Whether there should be one at that path."""

    @property
    def name(self) -> str:
        """The first word, as the database can keep it."""
        return _text(self.words[0])


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be verified."""

    spec: WorkflowSpec
    path: str | None = None
    """In place of the newest output."""
    run: str | None
    zone: tzinfo
    is_default: bool = False
    """Whether there is no watch list that says what the output must be."""


def words_of(arguments: Sequence[str], environment: Mapping[str, str]) -> Words:
    """Return the words of the command. Raises `UsageError` if they make no sense."""
    words, run = _words_and_run(arguments)
    if not words or len(words) > 2:  # noqa: PLR2004 - a name and a path
        raise UsageError(("what is to be verified?" if not words else "too many words") + _USAGE)
    if "" in words:
        raise UsageError("a word is empty; a variable that is not set?" + _USAGE)
    named, watchlist = environment.get("LOOPWARDEN_WATCHLIST"), watchlist_path(environment)
    return Words(
        words=tuple(words),
        run=run,
        zone=_zone(environment.get("LOOPWARDEN_TZ")),
        watchlist=watchlist,
        has_watchlist=bool(named) or os.path.lexists(watchlist),
    )


def watchlist_path(environment: Mapping[str, str]) -> str:
    """Return where the watch list is looked for."""
    return os.path.expanduser(environment.get("LOOPWARDEN_WATCHLIST") or _WATCHLIST)


def as_written(given: Words) -> Asked:
    """Return what the words mean by the watch list, or by the defaults where there is none.

    Raises:
        UsageError: they name no workflow, or one whose schema cannot be used.
        WatchlistError: the watch list is wrong.
    """
    if given.has_watchlist:
        return by(_workflow(given), given)
    *names, path = given.words
    if not names:
        _check_meant(path)
    spec = _default(path, given.name if names else _name_of(path))
    return Asked(spec=spec, path=path, run=given.run, zone=given.zone, is_default=True)


def by(spec: WorkflowSpec, given: Words) -> Asked:
    """Return what the words mean if the first one names this workflow."""
    path = given.words[1] if given.words[1:] else None
    return Asked(spec=spec, path=path, run=given.run, zone=given.zone)


def at_path(asked: Asked) -> Asked:
    """Let the output at the path be the only one, where one was given."""
    if asked.path is None:
        return asked
    path = absolute(asked.path)
    output = glob.escape(path).replace("{", "[{]")
    return msgspec.structs.replace(asked, spec=msgspec.structs.replace(asked.spec, output=output), path=path)


def _words_and_run(arguments: Sequence[str]) -> tuple[list[str], str | None]:
    words: list[str] = []
    run: str | None = None
    given = iter(arguments)
    for argument in given:
        option, equals, value = argument.partition("=")
        if argument == "--":
            words += given
        elif option == "--run":
            run = _text(value if equals else next(given, ""))
            _check_run(run)
        elif argument.startswith("-"):
            raise UsageError("no option but --run; what begins with a hyphen goes behind --" + _USAGE)
        else:
            words.append(argument)
    return words, run


def _check_run(run: str) -> None:
    if not run:
        raise UsageError("--run: an id must follow" + _USAGE)
    from bot.reported import flaw_of  # noqa: PLC0415 - many give none

    if flaw := flaw_of(run):
        raise UsageError(f"--run: {flaw}")


def _workflow(given: Words) -> WorkflowSpec:
    workflows = read_workflows(given.watchlist)
    if given.name not in workflows:
        why = unknown("no workflow of that name", given.name, workflows)
        raise UsageError(f"{given.watchlist}: {why}{_how_to_name(*given.words)}")
    check_schema(workflows[given.name])
    return workflows[given.name]


def _how_to_name(word: str, *more: str) -> str:
    """Say how the output is asked for that somebody has named as if there were no watch list."""
    is_output = not more and os.path.lexists(word)
    return f"; with a watch list: loopwarden verify NAME {one_line(word)}" if is_output else ""


def check_schema(spec: WorkflowSpec) -> None:
    """Raise `UsageError` if nothing could be judged by the schema that a workflow names."""
    if spec.schema is None:
        return
    from jobs.artifacts.schema import flaw_of_schema  # noqa: PLC0415 - many have none

    if flaw := flaw_of_schema(spec.schema):
        raise UsageError(one_line(flaw))


def _check_meant(word: str) -> None:
    """Refuse a word that is more likely the name of a workflow than the path of an output that is missing."""
    if "." not in word and "/" not in word and not os.path.lexists(word):
        raise UsageError(
            f"neither is there a watch list at {absolute(_WATCHLIST)} (LOOPWARDEN_WATCHLIST names another),"
            f" nor a file {one_line(word)}"
        )


def _name_of(path: str) -> str:
    return one_line(_text(absolute(path))[-_LONGEST_NAME:], _LONGEST_NAME)


def _default(path: str, name: str) -> WorkflowSpec:
    end = os.path.splitext(path)
    if end[1].lower() in _PACKED:
        end = os.path.splitext(end[0])
    form = _FORMATS.get(end[1].lower(), Format.JSON)
    return msgspec.structs.replace(DEFAULT_SPEC, name=name, format=form)


def _text(argument: str) -> str:
    """Return an argument as the database can keep it: one may hold bytes that are no text."""
    return os.fsencode(argument).decode(errors="replace")


def _zone(name: str | None) -> tzinfo:
    return known_zone(name) if name else UTC


def known_zone(name: str) -> "ZoneInfo":
    """Return the zone that LOOPWARDEN_TZ names. Raises `UsageError` if there is none."""
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - many need none

    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        raise UsageError("LOOPWARDEN_TZ: is no known time zone; use a name such as Europe/Berlin") from None
