"""Environment, `.env` and secret files become settings, or an error that names what is wrong and shows no value."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.logs import LogFormat
from bot.settings import (
    KNOWN_NAMES,
    Chat,
    Settings,
    SettingsError,
    TelegramSettings,
    ThrashSettings,
    load,
    parse_chat,
)
from jobs.thrash.policy import OnDetection, ThrashPolicy

pytestmark = pytest.mark.usefixtures("no_settings")

TOKEN = "424242:" + "T" * 35
ENOUGH = {"LOOPWARDEN_TOKEN": TOKEN, "LOOPWARDEN_ADMINS": "1,2"}
OPTIONAL = sorted(KNOWN_NAMES - ENOUGH.keys())


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "secrets"
    folder.mkdir()
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(folder))
    return folder


def settings(**environment: str) -> Settings:
    """Load with this on top of what is required."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**ENOUGH, **environment}.items():
            patch.setenv(name, value)
        return load(Settings)


def complaint(**environment: str) -> str:
    """The error that loading with this on top of what is required ends with, or nothing."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**ENOUGH, **environment}.items():
            patch.setenv(name, value)
        return error_of_load()


def error_of_load() -> str:
    try:
        load(Settings)
    except SettingsError as error:
        return str(error)
    return ""


# ── what is right ─────────────────────────────────────────────────────────────────────────────────


def test_token_and_admins_are_enough() -> None:
    found = settings()
    assert found.token.get_secret_value() == TOKEN
    assert found.admins == (1, 2)
    assert found.home == Chat(id=1)
    assert str(found.telegram_api) == "https://api.telegram.org/"
    assert found.thrash.policy() == ThrashPolicy()


def test_the_token_alone_is_enough_to_talk_to_telegram(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPWARDEN_TOKEN", TOKEN)
    assert load(TelegramSettings).token.get_secret_value() == TOKEN


RIGHT: list[tuple[str, str, str, object]] = [
    ("LOOPWARDEN_ADMINS", "1", "admins", (1,)),
    ("LOOPWARDEN_ADMINS", " 7 , 8, ", "admins", (7, 8)),
    ("LOOPWARDEN_CHAT", "-100123", "chat", Chat(id=-100123)),
    ("LOOPWARDEN_CHAT", " -100123/17 ", "chat", Chat(id=-100123, topic=17)),
    ("LOOPWARDEN_CHAT", "5", "home", Chat(id=5)),
    ("LOOPWARDEN_DATA_DIR", "/data", "data_dir", Path("/data")),
    ("LOOPWARDEN_WATCHLIST", "/etc/watch.toml", "watchlist", Path("/etc/watch.toml")),
    ("LOOPWARDEN_TZ", "Europe/Berlin", "tz", "Europe/Berlin"),
    ("LOOPWARDEN_RETENTION_DAYS", "7", "retention_days", 7),
    ("LOOPWARDEN_LOG_FORMAT", "json", "log_format", LogFormat.JSON),
    ("LOOPWARDEN_THRASH__EVERY", "2.5", "thrash", ThrashSettings(every=2.5)),
    ("LOOPWARDEN_THRASH__WINDOW", "600", "thrash", ThrashSettings(window=600)),
    ("LOOPWARDEN_THRASH__LAST", "20", "thrash", ThrashSettings(last=20)),
    ("LOOPWARDEN_THRASH__DISTANCE", "0", "thrash", ThrashSettings(distance=0)),
    ("LOOPWARDEN_THRASH__THRESHOLD", "10", "thrash", ThrashSettings(threshold=10)),
    ("LOOPWARDEN_THRASH__KILL_AFTER", "1", "thrash", ThrashSettings(kill_after=1)),
    (
        "LOOPWARDEN_THRASH__ON_DETECTION",
        "observe",
        "thrash",
        ThrashSettings(on_detection=OnDetection.OBSERVE),
    ),
    ("loopwarden_tz", "Europe/Berlin", "tz", "Europe/Berlin"),
]


@pytest.mark.parametrize(("name", "value", "field", "expected"), RIGHT)
def test_a_right_value_is_read(name: str, value: str, field: str, expected: object) -> None:
    assert getattr(settings(**{name: value}), field) == expected


@pytest.mark.parametrize("name", OPTIONAL)
def test_an_empty_value_is_as_good_as_none(name: str) -> None:
    assert settings(**{name: ""}) == settings()


def test_reports_of_runs_need_a_port_and_a_secret(secrets: Path) -> None:
    """The secret may lie in a file, and shows nowhere."""
    (secrets / "loopwarden_report_secret").write_text("open-sesame\n")
    found = settings(LOOPWARDEN_REPORT_PORT="8421")
    assert found.report_port == 8421
    assert found.report_secret is not None
    assert found.report_secret.get_secret_value() == "open-sesame"
    assert "open-sesame" not in repr(found)


def test_names_of_other_programs_are_none_of_our_business(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("POSTGRES_PASSWORD=x\nexport PATH=/bin\nLONELY\n# a comment\n")
    assert settings(COMPOSE_FILE="x") == settings()


# ── where it comes from ───────────────────────────────────────────────────────────────────────────


def test_settings_are_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        f"LOOPWARDEN_TOKEN={TOKEN}\nLOOPWARDEN_ADMINS=1,2\nLOOPWARDEN_THRASH__EVERY=5\n"
    )
    found = load(Settings)
    assert found.token.get_secret_value() == TOKEN
    assert found.thrash.every == 5


def test_settings_are_read_from_secret_files(secrets: Path) -> None:
    """As systemd and Docker hand them over, a line end included."""
    (secrets / "loopwarden_token").write_text(f"{TOKEN}\n")
    (secrets / "LOOPWARDEN_ADMINS").write_text("1,2\n")
    (secrets / "another_program_s").write_text("x")
    found = load(Settings)
    assert found.token.get_secret_value() == TOKEN
    assert found.admins == (1, 2)


@pytest.mark.parametrize(("name", "value", "field", "expected"), RIGHT)
def test_every_setting_may_come_from_a_secret_file(
    secrets: Path, name: str, value: str, field: str, expected: object
) -> None:
    """A file whose name is accepted is also read."""
    for each, text in {**ENOUGH, name: value}.items():
        (secrets / each.lower()).write_text(f"{text}\n")
    assert getattr(load(Settings), field) == expected


@pytest.mark.parametrize("name", OPTIONAL)
def test_an_empty_secret_file_is_as_good_as_none(secrets: Path, name: str) -> None:
    (secrets / name.lower()).write_text("\n")
    assert settings() == Settings(token=TOKEN, admins=(1, 2))


def test_the_environment_goes_before_the_file_and_the_file_before_secrets(
    tmp_path: Path, secrets: Path
) -> None:
    (secrets / "loopwarden_tz").write_text("Asia/Tokyo")
    assert settings().tz == "Asia/Tokyo"
    (tmp_path / ".env").write_text("LOOPWARDEN_TZ=Europe/Berlin\n")
    assert settings().tz == "Europe/Berlin"
    assert settings(LOOPWARDEN_TZ="America/Lima").tz == "America/Lima"


def test_a_folder_of_secrets_that_is_not_there_is_passed_over(tmp_path: Path) -> None:
    assert settings(CREDENTIALS_DIRECTORY=str(tmp_path / "none")) == settings()


# ── what is wrong ─────────────────────────────────────────────────────────────────────────────────

WRONG = [
    ("LOOPWARDEN_TOKEN", "no token", "LOOPWARDEN_TOKEN: does not look like a bot token"),
    ("LOOPWARDEN_TOKEN", f"bot{TOKEN}", "LOOPWARDEN_TOKEN: does not look like a bot token"),
    ("LOOPWARDEN_ADMINS", ",", "LOOPWARDEN_ADMINS: names nobody"),
    ("LOOPWARDEN_ADMINS", "@alice", "LOOPWARDEN_ADMINS: must be numeric user ids"),
    ("LOOPWARDEN_ADMINS", "1;2", "LOOPWARDEN_ADMINS: must be numeric user ids"),
    ("LOOPWARDEN_ADMINS", "-100123", "LOOPWARDEN_ADMINS: must be numeric user ids"),
    ("LOOPWARDEN_ADMINS", "²", "LOOPWARDEN_ADMINS: must be numeric user ids"),
    ("LOOPWARDEN_ADMINS", "1087968824", "LOOPWARDEN_ADMINS: holds the id that stands for anonymous group"),
    ("LOOPWARDEN_ADMINS", "1,777000", "LOOPWARDEN_ADMINS: holds the id that stands for Telegram itself"),
    ("LOOPWARDEN_ADMINS", "136817688", "LOOPWARDEN_ADMINS: holds the id that stands for channels"),
    ("LOOPWARDEN_CHAT", "@group", "LOOPWARDEN_CHAT: must be a numeric chat id"),
    ("LOOPWARDEN_CHAT", "-100123/x", "LOOPWARDEN_CHAT: must be a numeric chat id"),
    ("LOOPWARDEN_CHAT", "-100123/", "LOOPWARDEN_CHAT: must be a numeric chat id"),
    ("LOOPWARDEN_TELEGRAM_API", "localhost:8081", "LOOPWARDEN_TELEGRAM_API: "),
    ("LOOPWARDEN_TZ", "Mars/Olympus", "LOOPWARDEN_TZ: is no known time zone"),
    ("LOOPWARDEN_TZ", "Europe", "LOOPWARDEN_TZ: is no known time zone"),
    ("LOOPWARDEN_TZ", "../../etc/passwd", "LOOPWARDEN_TZ: is no known time zone"),
    ("LOOPWARDEN_RETENTION_DAYS", "0", "LOOPWARDEN_RETENTION_DAYS: "),
    ("LOOPWARDEN_LOG_FORMAT", "xml", "LOOPWARDEN_LOG_FORMAT: "),
    ("LOOPWARDEN_THRASH__EVERY", "0.5", "LOOPWARDEN_THRASH__EVERY: "),
    ("LOOPWARDEN_THRASH__EVERY", "301", "LOOPWARDEN_THRASH__EVERY: "),
    ("LOOPWARDEN_THRASH__EVERY", "nan", "LOOPWARDEN_THRASH__EVERY: "),
    ("LOOPWARDEN_REPORT_PORT", "0", "LOOPWARDEN_REPORT_PORT: "),
    ("LOOPWARDEN_REPORT_PORT", "8421", "LOOPWARDEN_REPORT_SECRET is not; set both, or neither"),
    ("LOOPWARDEN_REPORT_SECRET", "hush", "LOOPWARDEN_REPORT_PORT is not; set both, or neither"),
    ("LOOPWARDEN_REPORT_SECRET", "hush hush", "LOOPWARDEN_REPORT_SECRET: must be visible ASCII characters"),
    ("LOOPWARDEN_THRASH__EVERY", "often", "LOOPWARDEN_THRASH__EVERY: "),
    ("LOOPWARDEN_THRASH__WINDOW", "0", "LOOPWARDEN_THRASH__WINDOW: "),
    ("LOOPWARDEN_THRASH__LAST", "1", "LOOPWARDEN_THRASH__LAST: "),
    ("LOOPWARDEN_THRASH__DISTANCE", "-1", "LOOPWARDEN_THRASH__DISTANCE: "),
    ("LOOPWARDEN_THRASH__THRESHOLD", "1", "LOOPWARDEN_THRASH__THRESHOLD: "),
    ("LOOPWARDEN_THRASH__THRESHOLD", "11", "LOOPWARDEN_THRASH__THRESHOLD cannot be above LOOPWARDEN_THRASH_"),
    ("LOOPWARDEN_THRASH__KILL_AFTER", "0", "LOOPWARDEN_THRASH__KILL_AFTER: "),
    ("LOOPWARDEN_THRASH__ON_DETECTION", "kill", "LOOPWARDEN_THRASH__ON_DETECTION: "),
]


@pytest.mark.parametrize(("name", "value", "expected"), WRONG)
def test_a_wrong_value_is_an_error_that_names_the_setting(name: str, value: str, expected: str) -> None:
    assert expected in complaint(**{name: value})


def test_what_is_missing_is_named_with_where_it_comes_from() -> None:
    with pytest.raises(SettingsError) as caught:
        load(Settings)
    assert str(caught.value).splitlines() == [
        "LOOPWARDEN_TOKEN: not set; @BotFather gives one; put it into .env or a secret file",
        "LOOPWARDEN_ADMINS: not set; the numeric ids of who may command the bot; `loopwarden setup` shows yours",
    ]


def test_every_mistake_is_told_at_once() -> None:
    found = complaint(LOOPWARDEN_TOKN="x", LOOPWARDEN_CHAT="x", LOOPWARDEN_THRASH__LAST="x")
    assert [line.partition(":")[0] for line in found.splitlines()] == [
        "LOOPWARDEN_TOKN",
        "LOOPWARDEN_CHAT",
        "LOOPWARDEN_THRASH__LAST",
    ]


def test_a_policy_as_one_lump_of_json_is_not_a_setting() -> None:
    found = complaint(LOOPWARDEN_THRASH='{"every": 5}')
    assert "LOOPWARDEN_THRASH: no such setting; did you mean LOOPWARDEN_THRASH__" in found


@pytest.mark.parametrize("place", ["environment", "file", "secrets"])
def test_an_unknown_name_is_an_error_that_names_the_nearest_wherever_it_stands(
    place: str, tmp_path: Path, secrets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    match place:
        case "environment":
            monkeypatch.setenv("LOOPWARDEN_ADMIN", "hidden")
        case "file":
            (tmp_path / ".env").write_text("LOOPWARDEN_ADMIN=hidden\n")
        case _:
            (secrets / "LOOPWARDEN_ADMIN").write_text("hidden")
    assert complaint() == "LOOPWARDEN_ADMIN: no such setting; did you mean LOOPWARDEN_ADMINS?"


@given(st.sampled_from(sorted(KNOWN_NAMES)), st.data())
def test_a_name_with_a_letter_too_few_is_told_as_the_one_that_was_meant(name: str, data: Any) -> None:
    at = data.draw(st.integers(len("LOOPWARDEN_"), len(name) - 1))
    typed = name[:at] + name[at + 1 :]
    assert f"{typed}: no such setting; did you mean {name}?" in complaint(**{typed: "x"})


@pytest.mark.parametrize("content", [b"LOOPWARDEN_TZ=\xff\xfe", b"\x00", b"=\n'\"`$("])
def test_a_file_that_makes_no_sense_is_an_error_or_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".env").write_bytes(content)
    assert "xff" not in complaint()


def test_a_file_in_another_encoding_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes("LOOPWARDEN_TZ=Ünglück".encode("latin-1"))
    assert "cannot be read" in complaint()


def test_a_secret_file_in_another_encoding_is_an_error(secrets: Path) -> None:
    (secrets / "loopwarden_tz").write_bytes("Ünglück".encode("latin-1"))
    assert "cannot be read" in complaint()


def test_a_secret_file_that_cannot_be_read_is_an_error(secrets: Path) -> None:
    (secrets / "loopwarden_tz").symlink_to("/proc/self/mem")
    assert "cannot be read: Input/output error" in complaint()


# ── no error shows a value ────────────────────────────────────────────────────────────────────────

MARK = "hunter2"


@contextmanager
def removed_after(file: Path) -> Iterator[Path]:
    """Between two examples nothing must be left."""
    try:
        yield file
    finally:
        file.unlink(missing_ok=True)


def values() -> st.SearchStrategy[str]:
    """Texts that an environment can hold and that would be noticed in an error."""
    text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
    return st.builds(
        lambda before, after: before + MARK + after, text | st.sampled_from(["1,", "-100/"]), text
    )


@given(st.sampled_from(sorted(KNOWN_NAMES)), values())
def test_no_error_shows_a_value_of_the_environment(name: str, value: str) -> None:
    assert MARK not in complaint(**{name: value})


@given(st.sampled_from(sorted(KNOWN_NAMES)), values())
def test_no_error_shows_a_value_of_a_file(name: str, value: str) -> None:
    with removed_after(Path(".env")) as file:
        file.write_text(f"{name}={value!r}\n")
        assert MARK not in complaint()


@given(st.sampled_from(sorted(KNOWN_NAMES)), values())
def test_no_error_shows_a_value_of_a_secret_file(name: str, value: str) -> None:
    folder = Path("credentials")
    folder.mkdir(exist_ok=True)
    with removed_after(folder / name.lower()) as file:
        file.write_text(value)
        with pytest.MonkeyPatch.context() as patch:
            for required in ENOUGH.keys() - {name}:
                patch.setenv(required, ENOUGH[required])
            patch.setenv("CREDENTIALS_DIRECTORY", str(folder))
            assert MARK not in error_of_load()


@given(values())
def test_no_error_shows_the_value_of_an_unknown_name(value: str) -> None:
    assert MARK not in complaint(LOOPWARDEN_TOKN=value, LOOPWARDEN_THRASH=value, LOOPWARDEN_CHAT__ID=value)


def test_the_settings_themselves_show_no_token() -> None:
    assert TOKEN not in repr(settings())


@given(st.integers(-(10**17), 10**17), st.none() | st.integers(0, 10**11))
def test_a_chat_reads_as_it_is_written(id_: int, topic: int | None) -> None:
    chat = Chat(id=id_, topic=topic)
    assert parse_chat(str(chat)) == chat
