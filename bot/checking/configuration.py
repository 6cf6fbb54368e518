"""The settings: every mistake in them, and what can be used of them all the same."""

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import SecretStr, ValidationInfo, ValidatorFunctionWrapHandler, field_validator
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource

from bot.checking.finding import Finding, error, fine, warning
from bot.settings import ENV_FILE, PREFIX, Settings, read

_REQUIRED: Final = {"token": SecretStr(""), "admins": ()}
"""What stands for a required setting that is missing or wrong."""
_CORRECT: Final = (
    "correct it where it is set (environment, .env or secret file); the README lists what it may be"
)


class LenientSettings(Settings):
    """The settings with the default in place of whatever is wrong, `_REQUIRED` where there is none."""

    @field_validator("*", mode="wrap")
    @classmethod
    def _pass_over(
        cls, value: object, validate: ValidatorFunctionWrapHandler, info: ValidationInfo
    ) -> object:
        try:
            return validate(value)
        except ValueError:
            name = info.field_name or ""
            return _REQUIRED[name] if name in _REQUIRED else cls.model_fields[name].get_default()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Give what is missing a wrong value, so that it is passed over like one."""
        sources = super().settings_customise_sources(
            settings_cls, init_settings, env_settings, dotenv_settings, file_secret_settings
        )
        return *sources, InitSettingsSource(settings_cls, dict.fromkeys(_REQUIRED))


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """What is set."""

    settings: LenientSettings | None
    """None if they cannot be read at all."""
    mistakes: tuple[str, ...]
    """Each begins with the name of its setting."""

    def knows(self, *names: str) -> bool:
        """Whether these settings, named without prefix, are as they were meant."""
        wrong = {mistake.partition(":")[0] for mistake in self.mistakes}
        return wrong.isdisjoint(f"{PREFIX}{name}" for name in names)


def read_configuration() -> Configuration:
    """Read the settings as `loopwarden run` does, and once more as far as they can be used."""
    _, mistakes = read(Settings)
    lenient, _ = read(LenientSettings)
    return Configuration(settings=lenient, mistakes=tuple(mistakes))


def check_settings(configuration: Configuration) -> Iterator[Finding]:
    """Yield every mistake, or that there is none."""
    yield from map(_mistake, configuration.mistakes)
    if not configuration.mistakes:
        yield fine("settings", "complete and right")
    yield from _check_env_file(ENV_FILE)


def expanded(path: Path) -> Path | None:
    """Return an absolute path; None if it begins with `~` and no home folder is known."""
    try:
        return path.expanduser().absolute()
    except RuntimeError:
        return None


def _mistake(line: str) -> Finding:
    name, _, text = line.partition(": ")
    if not name.startswith(PREFIX):
        return error("settings", line, "see that .env and the secret files are readable text")
    says, _, mend = text.partition("; ")
    return error(name, says, mend or _CORRECT)


def _check_env_file(file: Path) -> Iterator[Finding]:
    try:
        mode = file.stat().st_mode
    except OSError:
        return
    if mode & (stat.S_IRGRP | stat.S_IROTH):
        yield warning(str(file), "other users of this machine can read it", f"chmod 600 {file}")
