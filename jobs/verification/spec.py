"""What a workflow's output must be: values that the watch list fills and the checks read.

Durations are seconds, sizes bytes, times epoch seconds.
"""

from enum import StrEnum
from typing import Final

import msgspec

MEGABYTE: Final = 1_000_000


class Format(StrEnum):
    """How an output is written."""

    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    TOML = "toml"
    YAML = "yaml"
    TEXT = "text"
    ANY = "any"

    @property
    def has_fields(self) -> bool:
        """Whether it holds values that a path can name."""
        return self not in {Format.TEXT, Format.ANY}

    @property
    def has_records(self) -> bool:
        """Whether it is a sequence of records: a path is looked up in every one of them."""
        return self in {Format.JSONL, Format.CSV}


class Kind(StrEnum):
    """The type of a value; a boolean is no number, and a whole number is an integer however it is written."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    ARRAY = "array"
    TABLE = "table"


class FieldSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the values at a path must be, where they are present; a cell of csv is of the type that it can be read as."""

    type: Kind | None = None
    min: float | None = None
    max: float | None = None
    min_length: int | None = None
    """Characters of a string, elements of an array, keys of a table."""
    max_length: int | None = None
    pattern: str | None = None
    """A regular expression that is found in the string."""


class StatusSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the run says how it went, and what it may say there."""

    field: str = "status"
    allowed: tuple[str, ...] = ("ok", "partial", "failed")


class BandSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far a number may lie from the median of the last runs: 0.5 is from half to one and a half times it."""

    within: float


class CountSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many values there must be at a path."""

    of: str = ""
    """A path such as `items[]`, or `items` for the same; empty: the records of jsonl and csv, the elements of a top-level
    array, lines of text."""
    within: float | None = None
    """As of a band."""
    min: int | None = None
    max: int | None = None


class CommandCheck(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A program that must agree; the run's tests, for example."""

    argv: tuple[str, ...]
    """Templates: `{path}` `{workflow}` `{run}` `{date}`. The first holds no placeholder."""
    exit: int = 0
    timeout: float = 60.0
    folder: str = "/"
    """Where it is run. Filled in: the watch list's own, which, unlike the output's, no agent writes to."""
    files: dict[str, str] | None = None
    """Filled in: the sha256, hex, of each argument that is a regular file, by its absolute path. Nothing
    else is run. None: whatever they are by then."""


class WorkflowSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A `[workflows.NAME]` entry, checked."""

    name: str = ""
    """Filled in from the key."""
    output: str = ""
    """A path or glob, absolute; `{date}` and `{run}` stand for themselves until a run is known."""
    format: Format = Format.JSON
    required: tuple[str, ...] = ()
    """Paths that hold real values."""
    placeholders: tuple[str, ...] = ("null", "n/a", "none")
    """Strings that are no real values, in any case, with blanks around them or not."""
    fields: dict[str, FieldSpec] = {}
    """By path."""
    schema: str | None = None
    """The path of a JSON Schema, absolute."""
    schema_text: str | None = None
    """Filled in: what it said when it was approved; None: it is read anew for every run."""
    timestamp: str | None = None
    """The path of the time the output was made; without one the file's own time counts."""
    max_age: float = 1800.0
    status: StatusSpec | None = None
    unchanged: bool = False
    """Whether the same content as the last run's, but for the timestamp, is a failure."""
    size: BandSpec | None = None
    count: CountSpec | None = None
    forbid: tuple[str, ...] = ()
    """Regular expressions none of which may be found in the output."""
    command: CommandCheck | None = None
    max_size: int = 256 * MEGABYTE
    """Of the output, also once it is decompressed."""
    expect: str | None = None
    """When a run is due: five cron fields, in the zone of the settings."""
    every: float | None = None
    """Or how long after the last run the next one is due."""
    grace: float = 1800.0
    """How late a run may be before it is missing."""
    after: str | None = None
    """`SOURCE:NAME`: the end of that agent's, or that session's, work is the end of a run."""
    settle: float = 10.0
    """How long an output must have stayed as it is, or a session quiet, before the watcher takes it for finished."""


DEFAULT_SPEC: Final = WorkflowSpec(
    name="output",
    required=("status", "result", "timestamp"),
    timestamp="timestamp",
    status=StatusSpec(),
)
"""What is checked where there is no watch list."""


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """What the placeholders in a workflow's output and command stand for."""

    date: str
    """`YYYY-MM-DD`, of the slot or of the day, in the zone of the settings."""
    run: str | None = None
    """The reporter's id of the run; None matches any."""
