"""Logging, configured once: one line per event, as text or JSON; secrets masked, tracebacks included."""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from types import TracebackType
from typing import Final

from bot.redaction import mask

_NOISY: Final = ("aiogram.event", "apscheduler")
_SELDOM: Final = 60
"""Seconds between two lines about what others can bring about as often as they like."""
_LONGEST_ERROR: Final = 200


class LogFormat(StrEnum):
    """How a log line looks."""

    TEXT = "text"
    JSON = "json"


class _TextLine(logging.Formatter):
    """Masks the finished text, so that arguments and tracebacks are covered; a log line cannot forge another."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        text = mask(super().format(record))
        return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


class _JsonLine(logging.Formatter):
    """One object a line: `time` (ISO 8601, UTC), `level`, `logger`, `message`, and `traceback` of an exception."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "message": mask(record.getMessage()),
        }
        if record.exc_info:
            line["traceback"] = mask(self.formatException(record.exc_info))
        # In ASCII: some take more than "\n" for a line end, and file names may hold what is no text.
        return json.dumps(line)


class _Seldom(logging.Filter):
    """Lets a line a minute pass, with an error's name in the place of its traceback."""

    _last = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        if abs(record.created - self._last) < _SELDOM:
            return False
        self._last = record.created
        if record.exc_info:
            error = repr(record.exc_info[1])[:_LONGEST_ERROR]
            record.msg, record.args, record.exc_info = f"{record.getMessage()}: {error}", None, None
        return True


@contextmanager
def seldom(log: logging.Logger) -> Iterator[None]:
    """Keep a log short while the block runs: for what anybody may bring about."""
    brief = _Seldom()
    log.addFilter(brief)
    try:
        yield
    finally:
        log.removeFilter(brief)


def configure_logging(form: LogFormat = LogFormat.TEXT, level: int = logging.INFO) -> None:
    """Log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_TextLine() if form is LogFormat.TEXT else _JsonLine())
    sys.excepthook = _log_uncaught
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in _NOISY:
        # They log every update and every beat, and APScheduler every run that is left out on purpose.
        logging.getLogger(name).setLevel(logging.ERROR)


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    logging.getLogger(__name__).critical("ended by an error nobody expected", exc_info=(kind, error, trace))
