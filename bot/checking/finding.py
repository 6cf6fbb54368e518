"""What a check has found about one point: a line in the terminal."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from bot.views.cleaning import clean

_FOREIGN_LIMIT: Final = 160


class Level(StrEnum):
    """How bad it is; only an error keeps something from working."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One point and how it stands."""

    level: Level
    subject: str
    """What was looked at, such as `token` or `source gateway`."""
    says: str
    mend: str = ""
    """What to do about it; empty if nothing is to be done."""


def fine(subject: str, says: str) -> Finding:
    """Return that a point is as it should be."""
    return Finding(level=Level.OK, subject=subject, says=says)


def warning(subject: str, says: str, mend: str) -> Finding:
    """Return that a point may be meant so, and what to do if it is not."""
    return Finding(level=Level.WARNING, subject=subject, says=says, mend=mend)


def error(subject: str, says: str, mend: str) -> Finding:
    """Return that something would not work, and how it will."""
    return Finding(level=Level.ERROR, subject=subject, says=says, mend=mend)


def foreign(text: str, limit: int = _FOREIGN_LIMIT) -> str:
    """Return text from outside in one line: nothing invisible, nothing secret, at most `limit` UTF-16 units."""
    return " ".join(clean(text, limit).split())
