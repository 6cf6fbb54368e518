"""Environment, `.env` and secret files -> typed settings. The only reader of the environment."""

import difflib
import os
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Final, Self, TypeVar
from zoneinfo import ZoneInfo

from dotenv import dotenv_values
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    HttpUrl,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    NestedSecretsSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)
from pydantic_settings import SettingsError as PydanticSettingsError

from bot.data_dir import DEFAULT_DATA_DIR
from bot.logs import LogFormat
from jobs.thrash.policy import LONGEST_BEAT, OnDetection, ThrashPolicy

PREFIX: Final = "LOOPWARDEN_"
ENV_FILE: Final = Path(".env")
_THRASH: Final = "thrash."
_THRASH_NAME: Final = re.compile(PREFIX + r"THRASH__(\w+)")

Kind = TypeVar("Kind", bound="TelegramSettings")

_WHERE_FROM: Final = {
    "LOOPWARDEN_TOKEN": "@BotFather gives one; put it into .env or a secret file",
    "LOOPWARDEN_ADMINS": "the numeric ids of who may command the bot; `loopwarden setup` shows yours",
}
_DEFAULT: Final = ThrashPolicy()
_TOKEN: Final = re.compile(r"\d+:[A-Za-z0-9_-]+")
_SECRET: Final = re.compile(r"[!-~]+")
_CHAT: Final = re.compile(r"(-?\d{1,18})(?:/(\d{1,12}))?")
_SHARED_IDS: Final = {1087968824: "anonymous group admins", 777000: "Telegram itself", 136817688: "channels"}


class SettingsError(Exception):
    """The settings cannot be used; one line for each, naming the setting and never its value."""


class Chat(BaseModel, frozen=True):
    """Where messages go."""

    id: int
    topic: int | None = None

    def __str__(self) -> str:
        return str(self.id) if self.topic is None else f"{self.id}/{self.topic}"


def parse_chat(text: object) -> object:
    """Read `-100123` or `-100123/17`."""
    if not isinstance(text, str):
        return text
    match = _CHAT.fullmatch(text.strip())
    if match is None:
        raise ValueError(
            "must be a numeric chat id, with a topic as in -100123/17; `loopwarden setup` shows it"
        )
    return Chat(id=int(match[1]), topic=int(match[2]) if match[2] else None)


def _parse_admins(text: object) -> object:
    if not isinstance(text, str):
        return text
    numbers = [part.strip() for part in text.split(",") if part.strip()]
    if not all(number.isascii() and number.isdigit() for number in numbers):
        raise ValueError(
            "must be numeric user ids as in 1,2 (a name can change hands); `loopwarden setup` shows them"
        )
    return tuple(int(number) for number in numbers)


def _check_admins(admins: tuple[int, ...]) -> tuple[int, ...]:
    if not admins:
        raise ValueError("names nobody; without an admin nobody could stop anything")
    for admin in admins:
        if admin in _SHARED_IDS:
            raise ValueError(f"holds the id that stands for {_SHARED_IDS[admin]}, which is not a person")
    return admins


def _check_token(token: SecretStr) -> SecretStr:
    if not _TOKEN.fullmatch(token.get_secret_value()):
        raise ValueError("does not look like a bot token (digits, a colon, letters); @BotFather gives one")
    return token


def _check_secret(secret: SecretStr | None) -> SecretStr | None:
    if secret and not _SECRET.fullmatch(secret.get_secret_value()):
        raise ValueError("must be visible ASCII characters without blanks: it travels in a header")
    return secret


def _check_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, LookupError) as error:
        raise ValueError("is no known time zone; use a name such as Europe/Berlin") from error
    return name


class ThrashSettings(BaseModel, frozen=True):
    """The policy, as far as users would choose differently."""

    every: Annotated[float, Field(ge=1, le=LONGEST_BEAT, description="seconds between scans")] = (
        _DEFAULT.every
    )
    window: Annotated[float, Field(gt=0, le=86_400, description="seconds a repeated call may be old")] = (
        _DEFAULT.window
    )
    last: Annotated[int, Field(ge=2, le=100, description="newest calls that are scored")] = _DEFAULT.last
    distance: Annotated[
        int, Field(ge=0, le=100, description="edits between calls that count as the same")
    ] = _DEFAULT.distance
    threshold: Annotated[int, Field(ge=2, le=100, description="score that is a detection")] = (
        _DEFAULT.threshold
    )
    kill_after: Annotated[int, Field(ge=1, le=100, description="detections in a row before the stop")] = (
        _DEFAULT.kill_after
    )
    on_detection: Annotated[OnDetection, Field(description="observe, ask or stop")] = _DEFAULT.on_detection

    @model_validator(mode="after")
    def _threshold_within_last(self) -> Self:
        if self.threshold > self.last:
            raise ValueError("LOOPWARDEN_THRASH__THRESHOLD cannot be above LOOPWARDEN_THRASH__LAST")
        return self

    def policy(self) -> ThrashPolicy:
        """Return the policy with these numbers."""
        return ThrashPolicy(**self.model_dump())


class _SecretFiles(NestedSecretsSettingsSource):
    """Secret files whose names are ours; as in the environment, an empty one sets nothing."""

    @classmethod
    def load_secrets(cls, path: Path) -> dict[str, str]:
        files = (file for file in path.iterdir() if _is_ours(file.name) and file.is_file())
        texts = {file.name: file.read_text(encoding="utf-8").strip() for file in files}
        return {name: text for name, text in texts.items() if text}


class TelegramSettings(BaseSettings):
    """What it takes to talk to Telegram at all: enough for `loopwarden setup`."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
    )

    token: Annotated[SecretStr, AfterValidator(_check_token), Field(description="the bot's token")]
    telegram_api: Annotated[HttpUrl, Field(description="base URL of the Bot API server")] = HttpUrl(
        "https://api.telegram.org"
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the seam of pydantic-settings
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read secret files as the environment is read: its own source knows no nested names."""
        return init_settings, env_settings, dotenv_settings, _SecretFiles(file_secret_settings)


class Settings(TelegramSettings):
    """Everything the bot can be told from outside; what it watches is in the watch list."""

    admins: Annotated[
        tuple[int, ...], NoDecode, BeforeValidator(_parse_admins), AfterValidator(_check_admins)
    ]
    chat: Annotated[Chat | None, NoDecode, BeforeValidator(parse_chat)] = None
    data_dir: Path = Path(DEFAULT_DATA_DIR)
    watchlist: Path = Path("loopwarden.toml")
    tz: Annotated[str, AfterValidator(_check_zone)] = "UTC"
    retention_days: Annotated[int, Field(ge=1, le=36_500)] = 90
    log_format: LogFormat = LogFormat.TEXT
    report_port: Annotated[int | None, Field(ge=1, le=65_535)] = None
    report_secret: Annotated[
        SecretStr | None, AfterValidator(_check_secret), Field(validate_default=True)
    ] = None
    thrash: ThrashSettings = ThrashSettings()

    @field_validator("report_secret")
    @classmethod
    def _beside_the_port(cls, secret: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if "report_port" in info.data and (info.data["report_port"] is None) != (secret is None):
            missing, given = ("SECRET", "PORT") if secret is None else ("PORT", "SECRET")
            raise ValueError(
                f"LOOPWARDEN_REPORT_{given} is set, LOOPWARDEN_REPORT_{missing} is not; set both, or neither"
            )
        return secret

    @property
    def home(self) -> Chat:
        """The chat that alerts go to: the configured one, else the first admin's own."""
        return self.chat or Chat(id=self.admins[0])


def load(kind: type[Kind]) -> Kind:
    """Read the settings from the environment; raise `SettingsError` with every mistake at once."""
    settings, mistakes = read(kind)
    if settings is None or mistakes:
        raise SettingsError("\n".join(mistakes))
    return settings


def read(kind: type[Kind]) -> tuple[Kind | None, list[str]]:
    """Read the settings, which may be usable all the same, and every mistake: a line that begins with its name."""
    folders = sorted({folder for folder in _secret_folders() if folder.is_dir()})
    mistakes: list[str] = []
    settings = None
    try:
        mistakes += [
            _unknown(name, PREFIX, KNOWN_NAMES)
            for name in _given_names(folders)
            if name.upper() not in KNOWN_NAMES
        ]
        settings = kind(_env_file=ENV_FILE, _secrets_dir=folders or None)
    except ValidationError as error:
        mistakes += [_mistake(detail["loc"], detail["type"], detail["msg"]) for detail in error.errors()]
    except PydanticSettingsError as error:
        mistakes.append(f"the settings cannot be read: {type(error.__cause__ or error).__name__}")
    except UnicodeError:
        mistakes.append(f"{ENV_FILE} or a secret file cannot be read: it is not UTF-8")
    except OSError as error:
        mistakes.append(f"{error.filename or 'a secret file'} cannot be read: {error.strerror}")
    return settings, mistakes


def assigned(assignments: Iterable[str]) -> ThrashSettings:
    """Return the defaults but for what is given as `thrash.NAME=VALUE`; raise `SettingsError` with the mistakes."""
    given: dict[str, str] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise SettingsError(f"{assignment}: must be {_THRASH}NAME=VALUE")
        names = [_THRASH + field for field in ThrashSettings.model_fields]
        if name not in names:
            raise SettingsError(_unknown(name, _THRASH, names))
        given[name.removeprefix(_THRASH)] = value
    try:
        return ThrashSettings.model_validate(given)
    except ValidationError as error:
        mistakes = (_mistake_in_assignment(detail["loc"], detail["msg"]) for detail in error.errors())
        raise SettingsError("\n".join(mistakes)) from error


def expanded(path: Path, name: str) -> Path:
    """Return a path with `~` filled in; raise `SettingsError` if that home folder is not known."""
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise SettingsError(
            f"{name}: names a home folder that is not known here; use an absolute path"
        ) from error


def names_of(model: type[BaseModel], prefix: str = PREFIX) -> Iterator[str]:
    """Yield the environment name of every setting."""
    for name, field in model.model_fields.items():
        full = f"{prefix}{name.upper()}"
        if isinstance(field.annotation, type) and issubclass(field.annotation, ThrashSettings):
            yield from names_of(field.annotation, f"{full}__")
        else:
            yield full


KNOWN_NAMES: Final = frozenset(names_of(Settings))


def _secret_folders() -> Iterator[Path]:
    yield Path("/run/secrets")
    if folder := os.environ.get("CREDENTIALS_DIRECTORY"):
        yield Path(folder)


def _given_names(folders: Iterable[Path]) -> list[str]:
    names = [*os.environ, *dotenv_values(ENV_FILE)]
    names += [file.name for folder in folders for file in folder.iterdir()]
    return sorted({name for name in names if _is_ours(name)})


def _is_ours(name: str) -> bool:
    return name.upper().startswith(PREFIX)


def _unknown(name: str, prefix: str, known: Collection[str]) -> str:
    # What all names begin with makes none of them close.
    ends = {each.removeprefix(prefix).lower(): each for each in known}
    close = difflib.get_close_matches(name.lower().removeprefix(prefix.lower()), ends, 1)
    hint = f"did you mean {ends[close[0]]}?" if close else f"there are {', '.join(sorted(known))}"
    return f"{name}: no such setting; {hint}"


def _mistake(loc: tuple[int | str, ...], kind: str, message: str) -> str:
    name = PREFIX + "__".join(str(part).upper() for part in loc)
    if kind == "missing":
        return f"{name}: not set; {_WHERE_FROM.get(name, 'it is required')}"
    return f"{name}: {message.removeprefix('Value error, ')}"


def _mistake_in_assignment(loc: tuple[int | str, ...], message: str) -> str:
    said = message.removeprefix("Value error, ")
    said = _THRASH_NAME.sub(lambda name: _THRASH + name[1].lower(), said)
    return f"{_THRASH}{loc[0]}: {said}" if loc else said
