"""`[workflows.NAME]` becomes a specification, or one line that names the place and never a value."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from jobs.watchlist.error import WatchlistError
from jobs.watchlist.reading import parse_watchlist, read_watchlist
from jobs.watchlist.workflows import read_workflows

FOLDER = Path("/etc/loopwarden")
HEAD = '[workflows.w]\noutput = "out.json"\n'


def parse(text: str, folder: Path = FOLDER) -> dict[str, WorkflowSpec]:
    return dict(parse_watchlist(text, folder, ("gateway",)).workflows)


def one(lines: str) -> WorkflowSpec:
    return parse(HEAD + lines)["w"]


def complaint(text: str) -> str:
    with pytest.raises(WatchlistError) as caught:
        parse(text)
    assert caught.value.__cause__ is None
    return str(caught.value)


# ── what is right ─────────────────────────────────────────────────────────────────────────────────


def test_an_output_is_enough() -> None:
    """Everything else has a default, and there need be no source."""
    assert one("") == WorkflowSpec(name="w", output="/etc/loopwarden/out.json")


def test_a_whole_workflow() -> None:
    """Durations, sizes and tables become values; what is relative starts from the watch list's folder."""
    text = """
        [[sources]]
        name = "gateway"
        format = "gateway"
        path = "calls.jsonl"

        [workflows.nightly]
        output = "out/report-{date}.json"
        format = "jsonl"
        required = ["status", "result.total", "items[].id", "timestamp"]
        placeholders = ["tbd"]
        schema = "schema.json"
        timestamp = "timestamp"
        max_age = "90m"
        status = { field = "state", allowed = ["ok"] }
        unchanged = true
        size = { within = 0.5 }
        count = { of = "items[]", within = 1, min = 1, max = 9 }
        forbid = ["Traceback"]
        command = { argv = ["./check", "{path}", "{workflow}", "{run}", "{date}"], exit = 3, timeout = "2m" }
        max_size = "1.5MB"
        expect = "0 2 * * MON-FRI"
        grace = "1h"
        after = "gateway:worker-3"
        settle = 0

        [workflows.nightly.fields]
        "result.total" = { type = "integer", min = 0, max = 10 }
        "items[].id" = { min_length = 1, max_length = 9, pattern = "^[a-z]+$" }
    """
    assert parse(text)["nightly"] == WorkflowSpec(
        name="nightly",
        output="/etc/loopwarden/out/report-{date}.json",
        format=Format.JSONL,
        required=("status", "result.total", "items[].id", "timestamp"),
        placeholders=("tbd",),
        fields={
            "result.total": FieldSpec(type=Kind.INTEGER, min=0, max=10),
            "items[].id": FieldSpec(min_length=1, max_length=9, pattern="^[a-z]+$"),
        },
        schema="/etc/loopwarden/schema.json",
        timestamp="timestamp",
        max_age=5400,
        status=StatusSpec(field="state", allowed=("ok",)),
        unchanged=True,
        size=BandSpec(within=0.5),
        count=CountSpec(of="items[]", within=1, min=1, max=9),
        forbid=("Traceback",),
        command=CommandCheck(
            argv=("/etc/loopwarden/check", "{path}", "{workflow}", "{run}", "{date}"),
            exit=3,
            timeout=120,
            folder="/etc/loopwarden",
        ),
        max_size=1_500_000,
        expect="0 2 * * MON-FRI",
        grace=3600,
        after="gateway:worker-3",
        settle=0,
    )


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("90", 90),
        ('"90s"', 90),
        ('"30m"', 1800),
        ('"2h"', 7200),
        ('"1d"', 86400),
        ('"1.5 h"', 5400),
        ("1.5", 1.5),
    ],
)
def test_a_duration_is_seconds_or_a_text_with_its_unit(written: str, seconds: float) -> None:
    assert one(f"max_age = {written}").max_age == seconds


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("5", 5),
        ('"5 B"', 5),
        ('"64KB"', 64_000),
        ('"256mb"', 256_000_000),
        ('"1GiB"', 2**30),
        ('"2kib"', 2048),
    ],
)
def test_a_size_is_bytes_or_a_text_with_its_unit(written: str, size: int) -> None:
    assert one(f"max_size = {written}").max_size == size


def test_a_count_needs_no_band() -> None:
    assert one("count = { min = 1 }").count == CountSpec(min=1)


@pytest.mark.parametrize("expression", ["0 0 * * 0", "0 0 * * 7", "*/5 9-17 1,15 JAN-MAR *", "30 4 29 2 *"])
def test_a_due_time_is_five_cron_fields(expression: str) -> None:
    assert one(f'expect = "{expression}"').expect == expression


def test_the_folder_of_an_output_stands_for_itself() -> None:
    """What a watch list's own folder is called is neither a glob nor a placeholder."""
    text = '[workflows.w]\noutput = "out-*.json"\ncommand = { argv = ["./check"] }'
    spec = parse(text, Path("/srv/[a]{date}"))["w"]
    assert spec.output == "/srv/[[]a][{]date}/out-*.json"
    assert spec.command is not None
    assert spec.command.argv == ("/srv/[a]{{date}}/check",)


@pytest.mark.parametrize(
    "written", ["loopwarden.toml", "./loopwarden.toml", "../here/../here/loopwarden.toml"]
)
def test_a_watch_list_says_the_same_however_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    """What was pinned under one name of it would else differ under another."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "loopwarden.toml").write_text(HEAD + 'command = { argv = ["./check"] }\nschema = "s.json"\n')
    monkeypatch.chdir(folder)
    whole = read_workflows(f"{folder}/loopwarden.toml")
    assert whole["w"].command == CommandCheck(argv=(f"{folder}/check",), folder=f"{folder}")
    assert read_workflows(written) == whole
    assert read_watchlist(Path(written), ()).workflows == whole
    assert read_watchlist(folder / written, ()).workflows == whole


def test_a_program_without_a_folder_is_looked_up_on_the_path() -> None:
    command = one('command = { argv = ["make", "test"] }').command
    assert command is not None
    assert command.argv == ("make", "test")


def test_the_workflows_are_read_without_the_rest(tmp_path: Path) -> None:
    """Who verifies a run is not kept from it by a killer that makes no sense."""
    path = tmp_path / "loopwarden.toml"
    path.write_text(
        HEAD
        + 'after = "a:b"\n[[sources]]\nname = "a"\nformat = "gateway"\npath = "x"\n[killers.k]\nkind = "none"'
    )
    assert read_workflows(str(path))["w"].output == str(tmp_path / "out.json")
    with pytest.raises(WatchlistError, match="unknown kind"):
        read_watchlist(path, ("gateway",))
    path.write_text('sources = 1\n[workflows.w]\noutput = "x"\nafter = "a:b"')
    with pytest.raises(WatchlistError, match="no source of that name"):
        read_workflows(str(path))


# ── what is wrong ─────────────────────────────────────────────────────────────────────────────────

DURATION = 'expected seconds, or a text such as "90s", "30m", "2h" or "1d"'
SIZE = 'expected bytes, or a text such as "64KB", "256MB" or "1GiB"'
FORMATS = "any, csv, json, jsonl, text, toml, yaml"
KINDS = "array, boolean, integer, number, string, table"
KNOWN_IN_ARGV = "{date}, {path}, {run}, {workflow}"
WITHIN = "must be above 0; 0.5 is half of the median to either side"

WRONG_LINES = [
    ("required = true", "w.required: expected array, got bool"),
    ("required = [1]", "w.required[0]: expected str, got int"),
    ('name = "x"', "w.name: unknown key; known: "),
    ('requires = ["x"]', "w.requires: unknown key (did you mean required?); known: "),
    ('format = "jsn"', f"w.format: unknown format (did you mean json?); known: {FORMATS}"),
    ("format = 1", "w.format: expected str, got int"),
    ('max_age = "soon"', f"w.max_age: {DURATION}"),
    ('max_age = "30 min"', f"w.max_age: {DURATION}"),
    ('max_age = "-5m"', f"w.max_age: {DURATION}"),
    ('max_age = "٣m"', f"w.max_age: {DURATION}"),
    ("max_age = true", f"w.max_age: {DURATION}, got bool"),
    ("max_age = 0", "w.max_age: must be from 1 to 316,224,000 seconds"),
    ("max_age = nan", "w.max_age: must be from 1 to 316,224,000 seconds"),
    ("max_age = inf", "w.max_age: must be from 1 to 316,224,000 seconds"),
    ('every = "30s"', "w.every: must be from 60 to 316,224,000 seconds"),
    ("grace = -1", "w.grace: must be from 0 to 316,224,000 seconds"),
    ('settle = "2d"', "w.settle: must be from 0 to 86,400 seconds"),
    ('max_size = "1TB"', f"w.max_size: {SIZE}"),
    ("max_size = []", f"w.max_size: {SIZE}, got array"),
    ("max_size = 0", "w.max_size: must be from 1 to 4,000,000,000 bytes"),
    ('max_size = "5GB"', "w.max_size: must be from 1 to 4,000,000,000 bytes"),
    ('status = "status"', "w.status: expected table, got str"),
    ("status = { allowed = [] }", "w.status.allowed: must not be empty"),
    (
        "status = { allow = ['ok'] }",
        "w.status.allow: unknown key (did you mean allowed?); known: allowed, field",
    ),
    ("status = { allowed = ['ok', 1] }", "w.status.allowed[1]: expected str, got int"),
    ("size = {}", "w.size.within: missing"),
    ("size = { within = 0 }", f"w.size.within: {WITHIN}"),
    ("size = { within = nan }", f"w.size.within: {WITHIN}"),
    ("count = {}", "w.count: needs min, max or within"),
    ("count = { min = 2, max = 1 }", "w.count.min: must not be above max"),
    ("count = { within = -1 }", f"w.count.within: {WITHIN}"),
    ("forbid = ['(']", "w.forbid[0]: not a regular expression at character 1"),
    ("forbid = ['x*']", "w.forbid[0]: must not match an empty text: it would be found in every output"),
    ("forbid = ['a{99999999999999999999}']", "w.forbid[0]: a regular expression too large"),
    ("schema = ''", "w.schema: must not be empty"),
    ("unchanged = 1", "w.unchanged: expected bool, got int"),
    ("command = { argv = [] }", "w.command.argv: must not be empty"),
    ("command = {}", "w.command.argv: missing"),
    ("schema_text = '{}'", "w.schema_text: unknown key (did you mean schema?); known: "),
    ("command = { files = {} }", "w.command.files: unknown key"),
    ("command = { folder = '/' }", "w.command.folder: unknown key; known: argv, exit, timeout"),
    ("command = { argv = ['{path}'] }", "w.command.argv[0]: must not hold a placeholder"),
    ("command = { argv = ['x', '{p}'] }", f"w.command.argv[1]: unknown placeholder; known: {KNOWN_IN_ARGV}"),
    ("command = { argv = ['x'], timeout = '2h' }", "w.command.timeout: must be from 1 to 3,600 seconds"),
    ("command = { argv = ['x'], exit = 'x' }", "w.command.exit: expected int, got str"),
    ("expect = '0 2 * *'", "w.expect: must be five fields: minute, hour, day of month, month, day of week"),
    (
        "expect = '0 0 2 * * *'",
        "w.expect: must be five fields: minute, hour, day of month, month, day of week",
    ),
    ("expect = '61 2 * * *'", "w.expect: bad minute"),
    ("expect = '0 2 31 2 *'", "w.expect: bad day-of-month"),
    ("expect = '0 2 * * *'\nevery = '1d'", "w.every: not beside expect; a run is due by either"),
    ("after = 'main'", "w.after: must be SOURCE:NAME, of an agent or a session"),
    ("after = 'main:'", "w.after: must be SOURCE:NAME, of an agent or a session"),
    ("after = 'main:x'", "w.after: no source of that name; known: none"),
    ("fields = 1", "w.fields: expected table, got int"),
    ("fields.a = 1", "w.fields.a: expected table, got int"),
    ("fields.a = { typ = 'x' }", "w.fields.a.typ: unknown key (did you mean type?); known: "),
    ("fields.a = { type = 'int' }", f"w.fields.a.type: unknown type (did you mean integer?); known: {KINDS}"),
    ("fields.a = { type = 1 }", "w.fields.a.type: expected str, got int"),
    ("fields.a = { min = 2, max = 1 }", "w.fields.a.min: must not be above max"),
    ("fields.a = { min = nan }", "w.fields.a.min: must be a finite number"),
    ("fields.a = { min_length = 3, max_length = 2 }", "w.fields.a.min_length: must not be above max_length"),
    ("fields.a = { max_length = -1 }", "w.fields.a.max_length: must not be below 0"),
    ("fields.a = { pattern = '[' }", "w.fields.a.pattern: not a regular expression at character 1"),
    ("format = 'text'\nrequired = ['x']", "w.required: format text has no fields"),
    ("format = 'any'\nstatus = {}", "w.status: format any has no fields"),
    ("format = 'any'\ntimestamp = 'x'", "w.timestamp: format any has no fields"),
    ("format = 'text'\nfields.a = {}", "w.fields: format text has no fields"),
    ("format = 'text'\nschema = 's.json'", "w.schema: format text has no fields"),
    ("format = 'text'\ncount = { of = 'a[]', min = 1 }", "w.count.of: format text has no fields"),
    ("format = 'any'\ncount = { min = 1 }", "w.count: format any has nothing that could be counted"),
    ("required = ['a..b']", "w.required[0]: "),
    ("fields.'a..b' = {}", "w.fields.'a..b': "),
    ("timestamp = ''", "w.timestamp: "),
    ("status = { field = 'a.' }", "w.status.field: "),
    ("count = { of = '[', min = 1 }", "w.count.of: "),
]


@pytest.mark.parametrize(("lines", "message"), WRONG_LINES)
def test_an_error_names_the_place(lines: str, message: str) -> None:
    assert complaint(HEAD + lines).startswith(f"workflows.{message}")


WRONG_TABLES = [
    ("workflows = 1", "workflows: expected table, got int"),
    ("[workflows]", "nothing to watch: there is neither [[sources]] nor [workflows.NAME]"),
    ("[workflows]\nw = 1", "workflows.w: expected table, got int"),
    ('[workflows.""]\noutput = "x"', "workflows.'': must not be empty"),
    ('[workflows."a\\nb"]\noutput = "x"', "workflows.'a\\nb': must not hold control or invisible characters"),
    ("[workflows.w]", "workflows.w.output: missing"),
    ("[workflows.w]\noutput = 1", "workflows.w.output: expected str, got int"),
    ("[workflows.w]\noutput = ''", "workflows.w.output: must not be empty"),
    ('[workflows.w]\noutput = "a\\u0000"', "workflows.w.output: must not hold a NUL character"),
    (
        "[workflows.w]\noutput = '~nobody-here/x'",
        "workflows.w.output: no home folder is known for what follows ~",
    ),
    ("[workflows.w]\noutput = '{day}.json'", "workflows.w.output: unknown placeholder; known: {date}, {run}"),
    ("[workflows.w]\noutput = '{a.json'", "workflows.w.output: unknown placeholder; known: {date}, {run}"),
    (
        "[workflows.w]\noutput = '{dates}.json'",
        "workflows.w.output: unknown placeholder (did you mean {date}?); known: {date}, {run}",
    ),
]


@pytest.mark.parametrize(("text", "message"), WRONG_TABLES)
def test_an_error_of_a_whole_table_names_it(text: str, message: str) -> None:
    assert complaint(text) == message


SECRET = "hunter2hunter2"


@given(
    key=st.sampled_from(WorkflowSpec.__struct_fields__[1:]),
    value=st.sampled_from(
        [
            f'"{SECRET}("',
            f'["{SECRET}[", 1]',
            f'{{ "{SECRET[:5]}" = "{SECRET}" }}',
            f'{{ field = "{SECRET}[" }}',
        ]
    ),
)
def test_an_error_echoes_no_value(key: str, value: str) -> None:
    """Whatever stands where."""
    lines = HEAD if key != "output" else "[workflows.w]\n"
    try:
        parse(f"{lines}{key} = {value}")
    except WatchlistError as error:
        assert SECRET not in str(error)  # noqa: PT017 - what is right raises nothing
        assert "\n" not in str(error)  # noqa: PT017
