"""loopwarden.toml -> typed sources, killers and prices. An error names the entry, and never a value that stands in it."""

import difflib
import glob
import re
import stat
import string
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, TypeVar

import msgspec

from jobs.thrash.policy import OnDetection
from jobs.thrash.price import NO_PRICES, Price, Prices

PLACEHOLDERS: Final = ("session", "agent", "reason", "score")
"""What a command's argv may hold in braces."""

AUTO: Final = "auto"
"""In place of a format's name: each file's own is found out."""

_LARGEST_FILE: Final = 1024 * 1024
_LONGEST_WAIT: Final = 300
"""Seconds a killer may be given: a stop that takes longer has not worked."""
_LONGEST_KEY: Final = 60
_DEAREST: Final = 100_000_000
"""Money for a million tokens: more than any model takes in any currency."""
_CURRENCY: Final = re.compile(r"[A-Z]{3}")
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


class WatchlistError(Exception):
    """One line: the place in the watch list and what is wrong there, fit for the chat."""


# ── what the watch list holds ─────────────────────────────────────────────────────────────────────


class SourceSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A `[[sources]]` entry: where tool calls are logged, and what a detection there leads to."""

    name: str
    format: str = AUTO
    path: str
    """A glob, absolute once parsed."""
    killer: str | None = None
    on_detection: OnDetection | None = None
    """None leaves it to the settings."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Watchlist:
    """All of a watch list, checked: every name in it leads somewhere."""

    sources: tuple[SourceSpec, ...]
    killers: Mapping[str, KillerSpec]
    prices: Prices = NO_PRICES


# ── reading ───────────────────────────────────────────────────────────────────────────────────────


def read_watchlist(path: Path, formats: Collection[str]) -> Watchlist:
    """Read and parse the file; its relative paths start from its folder. Blocks.

    Raises:
        WatchlistError: the file cannot be read (the message says what to do), or is wrong.
    """
    return parse_watchlist(_text(path), path.absolute().parent, formats)


def parse_watchlist(text: str, folder: Path, formats: Collection[str]) -> Watchlist:
    """Parse a watch list whose relative paths start from `folder` and whose logs have one of `formats`.

    Raises:
        WatchlistError: the first thing that is wrong.
    """
    tables = _toml(text)
    _check_keys(tables, ("sources", "killers", "prices"), "", "table")
    prices = _prices(tables.get("prices", {}))
    killers = _killers(tables.get("killers", {}), folder)
    sources = tuple(_sources(tables.get("sources", []), folder))
    for source in sources:
        _check_names_in(source, killers, formats)
    return Watchlist(sources=sources, killers=killers, prices=prices)


def _text(path: Path) -> str:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise WatchlistError(f"{path}: not a regular file; name the watch list itself")
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except FileNotFoundError:
        hint = "write one after loopwarden.example.toml, or let LOOPWARDEN_WATCHLIST name yours"
        raise WatchlistError(f"{path}: no such file; {hint}") from None
    except OSError as error:
        raise WatchlistError(f"{path}: cannot be read ({error.strerror}); check its owner and mode") from None
    if len(content) > _LARGEST_FILE:
        raise WatchlistError(f"{path}: larger than 1 MiB; is that the watch list?")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise WatchlistError(f"{path}: not UTF-8 at byte {error.start + 1}; save it as UTF-8") from None


# ── TOML ──────────────────────────────────────────────────────────────────────────────────────────

_SYNTAX_ERROR: Final = re.compile(
    r"(?P<what>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)", re.DOTALL
)
_ECHOES_NOTHING: Final = frozenset(
    {
        "Cannot overwrite a value",
        "Expected '=' after a key in a key/value pair",
        "Expected ']' at the end of a table declaration",
        "Expected ']]' at the end of an array declaration",
        "Expected newline or end of document after a statement",
        "Invalid date or datetime",
        "Invalid hex value",
        "Invalid initial character for a key part",
        "Invalid statement",
        "Invalid value",
        "Unclosed array",
        "Unclosed inline table",
        "Unescaped '\\' in a string",
        "Unterminated string",
    }
)


def _toml(text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise WatchlistError(_syntax_error(str(error), text)) from None
    except (ValueError, RecursionError):
        # Numbers of thousands of digits, brackets nested a thousand deep: tomllib lets these through.
        raise WatchlistError("not readable as TOML: nested too deeply, or a number too long") from None


def _syntax_error(message: str, text: str) -> str:
    found = _SYNTAX_ERROR.fullmatch(message)
    what = found["what"] if found else ""
    line = (found and found["line"]) or text.count("\n") + 1
    column = (found and found["column"]) or len(text) - text.rfind("\n")
    # Messages that are not known to be free of values are cut.
    wording = what[0].lower() + what[1:] if what in _ECHOES_NOTHING else "not valid TOML, or defined twice"
    return f"line {line}, column {column}: {wording}"


# ── entries ───────────────────────────────────────────────────────────────────────────────────────

_Spec = TypeVar("_Spec", bound=msgspec.Struct)
_KINDS: Final[Mapping[str, type[KillerSpec]]] = {
    "command": CommandSpec,
    "process": ProcessSpec,
    "dry_run": DryRunSpec,
}


def _sources(entries: object, folder: Path) -> Iterator[SourceSpec]:
    if not isinstance(entries, list):
        raise WatchlistError(
            f"sources: expected array, got {_type_of(entries)}; each begins with [[sources]]"
        )
    if not entries:
        raise WatchlistError("sources: there is none; each begins with [[sources]]")
    places: dict[str, str] = {}
    for index, entry in enumerate(entries):
        place = f"sources[{index}]"
        source = _source(entry, place, folder)
        if source.name in places:
            raise WatchlistError(f"{place}.name: already the name of {places[source.name]}")
        places[source.name] = place
        yield source


def _source(entry: object, place: str, folder: Path) -> SourceSpec:
    source = _convert(entry, SourceSpec, place)
    _check_name(source.name, f"{place}.name")
    path = _absolute(source.path, folder, f"{place}.path", glob.escape)
    return msgspec.structs.replace(source, path=path)


def _killers(entries: object, folder: Path) -> dict[str, KillerSpec]:
    killers: dict[str, KillerSpec] = {}
    for name, entry in _table(entries, "killers").items():
        place = f"killers.{_key(name)}"
        _check_name(name, place)
        killers[name] = _killer(entry, place, folder)
    for name in killers:
        _check_chain(name, killers)
    return killers


def _killer(entry: object, place: str, folder: Path) -> KillerSpec:
    match _convert(entry, _kind(_table(entry, place), f"{place}.kind"), place):
        case CommandSpec() as command:
            return _command(command, place, folder)
        case ProcessSpec() as process:
            return _process(process, place, folder)
        case dry_run:
            return dry_run


def _kind(entry: Mapping[str, object], place: str) -> type[KillerSpec]:
    match entry.get("kind"):
        case None:
            raise WatchlistError(f"{place}: missing; known: {_listed(_KINDS)}")
        case str() as kind if kind in _KINDS:
            return _KINDS[kind]
        case str() as kind:
            raise WatchlistError(f"{place}: {_unknown('unknown kind', kind, _KINDS)}")
        case other:
            raise WatchlistError(f"{place}: expected str, got {_type_of(other)}")


def _command(command: CommandSpec, place: str, folder: Path) -> CommandSpec:
    _check_seconds(command.timeout, f"{place}.timeout")
    if not command.argv:
        raise WatchlistError(f"{place}.argv: must not be empty")
    for index, template in enumerate(command.argv):
        _check_template(template, f"{place}.argv[{index}]")
    program, *rest = command.argv
    program = _program(program, f"{place}.argv[0]", folder)
    return msgspec.structs.replace(command, argv=(program, *rest))


def _program(template: str, place: str, folder: Path) -> str:
    if any(field is not None for _, field, _, _ in string.Formatter().parse(template)):
        raise WatchlistError(f"{place}: must not hold a placeholder; a program is not for a log to choose")
    if "/" in template:
        return _absolute(template, folder, place, _escape_braces)
    _check_text(template, place)
    return template


def _process(process: ProcessSpec, place: str, folder: Path) -> ProcessSpec:
    _check_seconds(process.grace, f"{place}.grace")
    _check_match(process.match, f"{place}.match")
    if process.pid_file is None:
        return process
    pid_file = _absolute(process.pid_file, folder, f"{place}.pid_file", str)
    return msgspec.structs.replace(process, pid_file=pid_file)


def _prices(entries: object) -> Prices:
    models = dict(_table(entries, "prices"))
    currency = models.pop("currency", NO_PRICES.currency)
    return Prices(
        models={model: _price(model, entry) for model, entry in models.items()}, currency=_currency(currency)
    )


def _price(model: str, entry: object) -> Price:
    place = f"prices.{_key(model)}"
    _check_name(model, place)
    table = _table(entry, place)
    if table.keys().isdisjoint(Price.__struct_fields__) and any(isinstance(v, dict) for v in table.values()):
        raise WatchlistError(f"{place}: a name with a dot in it must stand in quotes")
    price = _convert(table, Price, place)
    for name in Price.__struct_fields__:
        _check_price(getattr(price, name), f"{place}.{name}")
    return price


def _currency(code: object) -> str:
    if not isinstance(code, str):
        raise WatchlistError(f"prices.currency: expected str, got {_type_of(code)}")
    if not _CURRENCY.fullmatch(code):
        raise WatchlistError("prices.currency: must be three capital letters, such as USD")
    return code


# ── conversion ────────────────────────────────────────────────────────────────────────────────────

_MISSING: Final = re.compile(r"Object missing required field `(?P<field>\w+)`")


def _convert(entry: object, spec: type[_Spec], place: str) -> _Spec:
    known = spec.__struct_fields__
    if spec.__struct_config__.tag_field:
        known = (spec.__struct_config__.tag_field, *known)
    _check_keys(_table(entry, place), known, place, "key")
    try:
        return msgspec.convert(entry, spec)
    except msgspec.ValidationError as error:
        # Without the cause: its message may hold the value, and a traceback would print it.
        raise WatchlistError(_conversion_error(str(error), place)) from None


def _conversion_error(message: str, place: str) -> str:
    if missing := _MISSING.fullmatch(message):
        return f"{place}.{missing['field']}: missing"
    # From the right: an echoed value may hold the separator, a path of known fields never does.
    what, _, path = message.rpartition(" - at `$")
    return f"{place}{path.rstrip('`')}: {_reworded(what)}"


def _reworded(what: str) -> str:
    if what.startswith("Expected "):
        return (
            what.replace("Expected", "expected")
            .replace("`", "")
            .replace(" | null", "")
            .replace("object", "table")
        )
    if what.startswith("Invalid enum value"):
        return f"expected one of: {_listed(OnDetection)}"
    return "out of range"


def _table(entry: object, place: str) -> dict[str, object]:
    if not isinstance(entry, dict):
        raise WatchlistError(f"{place}: expected table, got {_type_of(entry)}")
    return entry


def _type_of(value: object) -> str:
    match value:
        case dict():
            return "table"
        case list():
            return "array"
        case _:
            return type(value).__name__


def _absolute(text: str, folder: Path, place: str, escape: Callable[[str], str]) -> str:
    """Return the path with `~` expanded and relative to `folder`; what is put in front of `text` is escaped."""
    _check_text(text, place)
    if not text.startswith("~"):
        return str(Path(escape(str(folder.absolute()))) / text)
    user, slash, rest = text.partition("/")
    try:
        return escape(str(Path(user).expanduser())) + slash + rest
    except RuntimeError:
        raise WatchlistError(f"{place}: no home folder is known for what follows ~") from None


def _escape_braces(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


# ── checks ────────────────────────────────────────────────────────────────────────────────────────


def _check_keys(table: Mapping[str, object], known: Collection[str], place: str, what: str) -> None:
    for key in table:
        if key not in known:
            where = f"{place}.{_key(key)}" if place else _key(key)
            raise WatchlistError(f"{where}: {_unknown(f'unknown {what}', key, known)}")


def _check_names_in(source: SourceSpec, killers: Collection[str], formats: Collection[str]) -> None:
    place = f"sources.{_key(source.name)}"
    formats = (AUTO, *formats)
    if source.format not in formats:
        raise WatchlistError(f"{place}.format: {_unknown('unknown format', source.format, formats)}")
    if source.killer is not None and source.killer not in killers:
        raise WatchlistError(f"{place}.killer: {_unknown('no killer of that name', source.killer, killers)}")


def _check_chain(name: str, killers: Mapping[str, KillerSpec]) -> None:
    place = f"killers.{_key(name)}.then"
    passed, then = {name}, killers[name].then
    while then is not None:
        if then not in killers:
            raise WatchlistError(f"{place}: {_unknown('no killer of that name', then, killers)}")
        if then in passed:
            raise WatchlistError(f"{place}: leads in a circle")
        passed.add(then)
        then = killers[then].then


def _check_name(name: str, place: str) -> None:
    if not name:
        raise WatchlistError(f"{place}: must not be empty")
    if not name.isprintable():
        raise WatchlistError(f"{place}: must not hold control or invisible characters")


def _check_text(text: str, place: str) -> None:
    if not text:
        raise WatchlistError(f"{place}: must not be empty")
    if "\0" in text:
        raise WatchlistError(f"{place}: must not hold a NUL character")


def _check_seconds(seconds: float, place: str) -> None:
    if not 0 < seconds <= _LONGEST_WAIT:
        raise WatchlistError(f"{place}: must be more than 0 and at most {_LONGEST_WAIT} seconds")


def _check_price(price: float | None, place: str) -> None:
    # Written so that not-a-number fails, too.
    if price is not None and not 0 <= price <= _DEAREST:
        raise WatchlistError(f"{place}: must be from 0 to {_DEAREST:,}, money for a million tokens")


def _check_match(pattern: str, place: str) -> None:
    try:
        matches_nothing = re.search(pattern, "") is not None
    except re.error as error:
        where = f" at character {error.pos + 1}" if error.pos is not None else ""
        raise WatchlistError(f"{place}: not a regular expression{where}") from None
    except (OverflowError, RecursionError):
        raise WatchlistError(f"{place}: a regular expression too large") from None
    if matches_nothing:
        raise WatchlistError(f"{place}: must not match an empty text: it would match every process")


def _check_template(template: str, place: str) -> None:
    if "\0" in template:
        raise WatchlistError(f"{place}: must not hold a NUL character")
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError:
        raise WatchlistError(f"{place}: a single brace; one that is meant is written {{{{ or }}}}") from None
    for _, field, options, conversion in parts:
        if field is None:
            continue
        if field not in PLACEHOLDERS:
            raise WatchlistError(f"{place}: {_unknown('unknown placeholder', field, PLACEHOLDERS, '{%s}')}")
        if options or conversion:
            raise WatchlistError(f"{place}: a placeholder takes neither format nor conversion")


# ── wording ───────────────────────────────────────────────────────────────────────────────────────


def _key(key: str) -> str:
    if _BARE_KEY.fullmatch(key):
        return key[:_LONGEST_KEY]
    # repr: a quoted TOML key may hold line ends, and the message is one line.
    return repr(key[:_LONGEST_KEY])


def _unknown(what: str, given: str, known: Collection[str], form: str = "%s") -> str:
    close = difflib.get_close_matches(given, known, 1)
    hint = f" (did you mean {form % close[0]}?)" if close else ""
    return f"{what}{hint}; known: {_listed(known, form)}"


def _listed(names: Iterable[str], form: str = "%s") -> str:
    return ", ".join(form % name for name in sorted(names)) or "none"
