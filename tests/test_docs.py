"""The documents tell what is true: every command, setting and killer is in them, and every example works."""

import re
import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from bot.__main__ import main
from bot.commands import COMMANDS
from bot.settings import KNOWN_NAMES, Settings, load
from jobs.sources.hook_events import PROGRAMS
from jobs.sources.registry import FORMATS, build_source
from jobs.thrash.price import Price
from jobs.verification.spec import (
    BandSpec,
    CommandCheck,
    CountSpec,
    FieldSpec,
    StatusSpec,
    WorkflowSpec,
)
from jobs.verification.verdict import Check
from jobs.watchlist.killers import CommandSpec, DryRunSpec, ProcessSpec
from jobs.watchlist.reading import parse_watchlist, read_watchlist
from jobs.watchlist.sources import AUTO

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
ENV_EXAMPLE = (ROOT / ".env.example").read_text()


def test_readme_lists_every_command_as_the_chat_does() -> None:
    """README's table and the chat's menu say the same."""
    rows = re.findall(r"^\| `/(\w+)(?: ([\w\[\]]+))?` \| (.+) \|$", README, re.MULTILINE)
    assert rows == [(command.name, command.argument, command.does) for command in COMMANDS]


def test_readme_lists_every_setting() -> None:
    """README's table has exactly the settings that exist."""
    assert set(re.findall(r"^\| `(LOOPWARDEN_\w+)` \|", README, re.MULTILINE)) == KNOWN_NAMES


def test_env_example_lists_every_setting_once() -> None:
    """`.env.example` has exactly the settings that exist."""
    assert sorted(re.findall(r"^#?(LOOPWARDEN_\w+)=", ENV_EXAMPLE, re.MULTILINE)) == sorted(KNOWN_NAMES)


@pytest.mark.parametrize("prefix", ["#", ""])
def test_the_defaults_that_are_written_down_are_the_defaults(
    prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`.env.example`, filled in and with every line made active or not, gives the same settings."""
    filled = ENV_EXAMPLE.replace("TOKEN=", "TOKEN=42:secret").replace("ADMINS=", "ADMINS=7")
    (tmp_path / ".env").write_text(re.sub(r"^#(?=LOOPWARDEN_)", prefix, filled, flags=re.MULTILINE))
    monkeypatch.chdir(tmp_path)
    settings = load(Settings)
    assert settings.admins == (7,)
    assert settings.chat is None
    defaults = {
        name: field.default
        for name, field in Settings.model_fields.items()
        if name not in {"token", "admins"}
    }
    assert {name: getattr(settings, name) for name in defaults} == defaults


def test_readme_names_the_defaults() -> None:
    """The default column of README's table is what the settings say."""
    fields = Settings.model_fields
    rows = dict(re.findall(r"^\| `LOOPWARDEN_(\w+)` \| `([^`]+)` \|", README, re.MULTILINE))
    thrash = fields["thrash"].default.model_dump()
    expected = {f"THRASH__{name.upper()}": f"{value}" for name, value in thrash.items()}
    expected |= {
        name: str(fields[name.lower()].default).rstrip("/")
        for name in (*("DATA_DIR", "WATCHLIST", "TZ", "RETENTION_DAYS", "LOG_FORMAT"),)
    }
    expected["TELEGRAM_API"] = str(fields["telegram_api"].default).rstrip("/")
    assert rows == expected


def test_the_example_watch_list_is_complete_and_right() -> None:
    """`loopwarden.example.toml` parses, shows every format, every kind of killer, and builds."""
    watchlist = read_watchlist(ROOT / "loopwarden.example.toml", FORMATS)
    assert {spec.format for spec in watchlist.sources} == {AUTO, *FORMATS}
    assert {type(spec) for spec in watchlist.killers.values()} == {CommandSpec, ProcessSpec, DryRunSpec}
    assert all(build_source(spec).name == spec.name for spec in watchlist.sources)


def test_readme_shows_the_prices_of_the_example() -> None:
    """They are read as they stand there."""
    shown = README.partition("```toml\n[prices]")[2].partition("```")[0]
    prices = read_watchlist(ROOT / "loopwarden.example.toml", FORMATS).prices
    given = tomllib.loads(shown)
    assert given.pop("currency") == prices.currency
    assert msgspec.convert(given, dict[str, Price]) == prices.models


def test_the_example_watch_list_shows_every_field() -> None:
    """Nothing that can stand in a watch list is missing from the example."""
    text = (ROOT / "loopwarden.example.toml").read_text()
    assert all(f"{field} = " in text.partition("[prices]")[2] for field in Price.__struct_fields__)
    shown = set(re.findall(r"^(?:# )?(\w+) = ", text, re.MULTILINE))
    known = {field for spec in (CommandSpec, ProcessSpec, DryRunSpec) for field in spec.__struct_fields__}
    known |= {*WorkflowSpec.__struct_fields__} - {"name", "fields"}
    filled_in = {"folder", "files", "schema_text"}
    assert known - filled_in <= shown
    inside = set(re.findall(r"[{,] (\w+) = ", text))
    tables = (FieldSpec, StatusSpec, BandSpec, CountSpec, CommandCheck)
    assert {field for spec in tables for field in spec.__struct_fields__} - filled_in <= inside


def test_readme_shows_a_workflow_and_every_check() -> None:
    """The workflow is read as it stands there, and the table names each check in the order in which it is tried."""
    section = _section("Did the run deliver?")
    shown = section.partition("```toml\n")[2].partition("```")[0]
    assert parse_watchlist(shown, ROOT, FORMATS).workflows.keys() == {"nightly"}
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", section, re.MULTILINE)
    assert [name for row in rows for name in re.findall(r"\w+", row)] == list(Check)


@pytest.mark.parametrize(
    "command", ["run", "setup", "check", "sources", "replay", "verify", "hook", "health", "demo"]
)
def test_readme_mentions_every_subcommand(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each subcommand that --help lists is explained in README."""
    with pytest.raises(SystemExit):
        main(["--help"])
    assert f"    {command} " in capsys.readouterr().out
    assert f"loopwarden {command}" in README


def test_the_changelog_has_an_entry_for_operators() -> None:
    """The newest section of the changelog says something."""
    sections = (ROOT / "CHANGELOG.md").read_text().split("\n## ")
    assert len(sections) > 1
    assert sections[1].splitlines()[2:]


def test_readme_shows_the_hook_of_every_program() -> None:
    """Each snippet of JSON is JSON, and calls it by the name of its program."""
    section = README.split("\n## Hooks\n")[1].split("\n## ")[0]
    for snippet in re.findall(r"```json\n(.*?)```", section, re.DOTALL):
        assert msgspec.json.decode(snippet, type=dict[str, dict[str, list[object]]])["hooks"]
    called = {*re.findall(r"loopwarden hook ([\w-]+)", section), *re.findall(r'\["hook", "(\w+)"\]', section)}
    assert called - {"PROGRAM"} == set(PROGRAMS)


def _section(title: str) -> str:
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_readme_and_the_example_show_every_format_where_its_program_writes() -> None:
    """README's table has a row for each; an entry of the example reads what `loopwarden sources` finds first."""
    rows = dict(re.findall(r"^\| `([\w-]+)` \| (.*?) \|", _section("Formats"), re.MULTILINE))
    example = read_watchlist(ROOT / "loopwarden.example.toml", FORMATS)
    paths = {spec.format: spec.path for spec in example.sources}
    assert rows.keys() == FORMATS.keys()
    for name, form in FORMATS.items():
        if form.home:
            usual = form.home.places({})[0]
            assert f"`{usual}`" in rows[name]
            assert paths[name].endswith(usual.removeprefix("~"))
            assert form.home.variable is None or f"`{form.home.variable}`" in rows[name]


def test_readme_and_the_example_show_what_stops_each_program() -> None:
    """README's table of the hooks has the expression of each, the example a killer that needs only its marks removed."""
    shown = dict(re.findall(r"^\| `([\w-]+)` \| `(.+)` \|$", _section("Hooks"), re.MULTILINE))
    assert shown == {name: form.process for name, form in FORMATS.items() if form.process}
    example = (ROOT / "loopwarden.example.toml").read_text()
    blocks = re.findall(r"^# \[killers\..+\n(?:# .+\n)+", example, re.MULTILINE)
    active = re.sub(r"^# ", "", "".join(blocks), flags=re.MULTILINE)
    killers = tomllib.loads(active)["killers"]
    assert killers == {name: {"kind": "process", "match": match} for name, match in shown.items()}


def test_what_readme_asks_of_a_new_format_is_there() -> None:
    """The files that it names exist, and every format of lines or rows has the samples that it lists."""
    section = README.split("\n### Adding a format\n")[1]
    named = set(re.findall(r"`((?:jobs|tests)/[\w/]+\.py)`", section)) | {"tests/sources/test_contract.py"}
    assert all((ROOT / path).exists() for path in named)
    for name in FORMATS:
        samples = {path.name for path in (ROOT / "tests/data" / name).iterdir()}
        assert samples & {"calls.jsonl", "events.jsonl"}
        assert {"labels.json", "unreadable.jsonl"} <= samples


def test_readme_shows_a_watch_list_as_it_is_printed() -> None:
    """The example output's lines can be copied."""
    printed = README.split("$ loopwarden sources\n")[1].partition("```")[0]
    lines = printed[printed.index("# For loopwarden.toml") :]
    sources = parse_watchlist(lines, ROOT, FORMATS).sources
    assert [source.name for source in sources] == ["claude-code", "openclaw"]


def test_the_questions_of_the_format_that_readme_adds_can_be_asked() -> None:
    """Of the table that its program keeps."""
    questions = dict(re.findall(r'^    (heads|rows) = "(SELECT .*)"$', README, re.MULTILINE))
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(
            "CREATE TABLE messages (id INTEGER, session_id, content_json, created_timestamp INTEGER)"
        )
        database.execute("INSERT INTO messages VALUES (7, '20261130_1', '[]', 1796028000)")
        assert database.execute(questions["heads"]).fetchall() == [("20261130_1", 7, 1796028000000)]
        assert database.execute(questions["rows"], ("20261130_1", 6, 7)).fetchall() == [(7, "[]", None)]
