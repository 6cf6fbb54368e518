"""A log line is one line, and no secret is in it."""

import json
import logging

import pytest

from bot.logs import LogFormat, configure_logging

TOKEN = "424242424:" + "A" * 35
FORGED = "worker\n2100-01-01 12:00:00,000 INFO bot: all is well\r\u2028\x1b[2K"

pytestmark = [
    pytest.mark.parametrize("form", LogFormat),
    pytest.mark.usefixtures("logging_left_alone"),
]

log = logging.getLogger("test")


def line(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that was logged."""
    written = capsys.readouterr().err
    [line] = written.splitlines()
    assert written == f"{line}\n"
    return line


def fail() -> None:
    raise ValueError(f"https://api.telegram.org/bot{TOKEN}/getMe\n{FORGED}")


def test_a_line_says_when_how_bad_and_where(form: LogFormat, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(form)
    log.warning("stop %d ordered", 7)
    written = line(capsys)
    if form is LogFormat.JSON:
        read = json.loads(written)
        assert read.pop("time").endswith("+00:00")
        assert read == {"level": "WARNING", "logger": "test", "message": "stop 7 ordered"}
    else:
        assert written.endswith(" WARNING test: stop 7 ordered")


def test_a_token_is_masked_in_the_message(form: LogFormat, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(form)
    log.info(f"polling with {TOKEN}")  # noqa: G004 - the worst case
    assert TOKEN not in line(capsys)


def test_a_token_is_masked_in_the_arguments(form: LogFormat, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(form)
    log.info("polling with %s and %r", TOKEN, {"token": TOKEN})
    assert TOKEN not in line(capsys)


def test_a_token_is_masked_in_a_traceback(form: LogFormat, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(form)
    try:
        fail()
    except ValueError:
        log.exception("it failed")
    written = line(capsys)
    assert TOKEN not in written
    assert "ValueError: https://api.telegram.org/bot" in written


@pytest.mark.parametrize("name", [FORGED, "\x9b2K\x85", "\u202eeman", "caf\udce9", "tag\U000e0041"])
def test_nothing_in_a_name_forges_a_line_or_hides_one(
    form: LogFormat, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    configure_logging(form)
    log.info("agent %s seen", name)
    assert line(capsys).isprintable()


def test_libraries_that_log_every_beat_are_quiet(form: LogFormat, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(form)
    logging.getLogger("aiogram.event").info("Update id=1 is handled")
    logging.getLogger("apscheduler.executors.default").warning("skipped")
    assert capsys.readouterr().err == ""
