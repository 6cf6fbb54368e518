"""Logging, configured once: one line per event, secrets masked, tracebacks included."""

import logging
import sys

from bot.redaction import mask

_NOISY = ("aiogram.event", "apscheduler")


class _OneLine(logging.Formatter):
    """Masks the finished text, so that arguments and tracebacks are covered; a log line cannot forge another."""

    def format(self, record: logging.LogRecord) -> str:
        text = mask(super().format(record))
        return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def configure_logging(level: int = logging.INFO) -> None:
    """Log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in _NOISY:
        # They log every update and every beat, and APScheduler every run that is left out on purpose.
        logging.getLogger(name).setLevel(logging.ERROR)
