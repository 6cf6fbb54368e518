"""The documents tell what is true: every command, setting and killer is in them, and every example works."""

import re
from pathlib import Path

import pytest

from bot.__main__ import main
from bot.commands import COMMANDS
from bot.settings import KNOWN_NAMES, Settings, load
from jobs.sources.registry import FORMATS, build_source
from jobs.watchlist import CommandSpec, DryRunSpec, ProcessSpec, read_watchlist

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
ENV_EXAMPLE = (ROOT / ".env.example").read_text()


def test_readme_lists_every_command_as_the_chat_does() -> None:
    """README's table and the chat's menu say the same."""
    rows = re.findall(r"^\| `/(\w+)(?: (\w+))?` \| (.+) \|$", README, re.MULTILINE)
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
    assert {spec.format for spec in watchlist.sources} == set(FORMATS)
    assert {type(spec) for spec in watchlist.killers.values()} == {CommandSpec, ProcessSpec, DryRunSpec}
    assert all(build_source(spec).name == spec.name for spec in watchlist.sources)


def test_the_example_watch_list_shows_every_field() -> None:
    """Nothing that can stand in a watch list is missing from the example."""
    text = (ROOT / "loopwarden.example.toml").read_text()
    shown = set(re.findall(r"^(?:# )?(\w+) = ", text, re.MULTILINE))
    known = {field for spec in (CommandSpec, ProcessSpec, DryRunSpec) for field in spec.__struct_fields__}
    assert known <= shown


@pytest.mark.parametrize("command", ["run", "setup", "check", "health", "demo"])
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
