"""A digest in words: first how the time was, then what is odd, then all that was counted, at last three questions."""

from collections.abc import Iterator
from zoneinfo import ZoneInfo

from aiogram.types import InlineKeyboardButton
from aiogram.utils.formatting import Bold, Text

from bot.callbacks import DigestButton
from bot.views.digest_drift import drift, too_good
from bot.views.digest_pages import Line, paged
from bot.views.digest_sections import (
    absences,
    checks,
    loops,
    missing,
    pins,
    questions,
    said_done,
    selftest,
)
from bot.views.digest_words import dates, summary, title
from bot.views.screen import Screen, screen
from jobs.digest.digest import Digest


def page(row: int, digest: Digest, number: int, zone: ZoneInfo, at: float) -> Screen:
    """Render one page, counted from 1, of the digest in a row of the table; the last one for a number beyond.

    `at`: when its message was sent.
    """
    pages = paged(list(written(digest, zone, is_late=digest.is_late(at))))
    number = min(number, len(pages))
    beside = [each for each in (number - 1, number + 1) if 1 <= each <= len(pages)]
    buttons = [_button(row, each, len(pages)) for each in beside]
    return screen(pages[number - 1], *([buttons] if buttons else []))


def plain(digest: Digest, zone: ZoneInfo) -> str:
    """Render all of it as one text."""
    told = written(digest, zone)
    return "\n".join(("\n" if line.is_apart else "") + line.content.render()[0] for line in told)


def caption(digest: Digest, zone: ZoneInfo) -> str:
    """Return the line below the picture."""
    return f"{title(digest)}, {dates(digest, zone)}: {summary(digest)}"


def how_many(most: int) -> Screen:
    """Say how a digest is asked for."""
    return screen(
        Text(f"How many weeks? From 1 to {most}, as in /digest 4; without a number, the week so far.")
    )


def gone() -> Screen:
    """Say that the digest of a button is not there any more."""
    return screen(Text("That digest is no longer kept. /digest makes a new one."))


def written(digest: Digest, zone: ZoneInfo, *, is_late: bool = False) -> Iterator[Line]:
    """Yield the lines of a digest."""
    late = ", late" if is_late else ""
    again = ", told again: the clock had been ahead" if digest.is_told_again else ""
    yield Line(
        content=Text("📊 ", Bold(f"{title(digest)}{late}{again}"), f" · {dates(digest, zone)}"),
        is_heading=True,
    )
    yield Line(content=Text(f"{summary(digest)}."))
    for section in (drift, said_done, missing, checks, too_good, selftest):
        yield from section(digest)
    for told in (loops, pins, absences):
        yield from told(digest, zone)
    if said := " ".join(_quiet(digest)):
        yield Line(content=Text(said), is_apart=True)
    yield from questions(digest)


def _quiet(digest: Digest) -> Iterator[str]:
    """Yield what is worth saying because it did not happen."""
    runs = digest.figures.runs
    for happened, said in (
        # Of a week that goes on it is too early to say.
        (digest.alarms or digest.week is None, "No drift."),
        (any(run.said_done for run in runs), "No run said that it was done and was not."),
        (any(run.missing for run in runs), "No run is missing."),
        (digest.stops, "No loop was stopped."),
        (digest.pins, "No pin changed."),
        (digest.absences or not digest.is_watched, "The bot was never away."),
    ):
        if not happened:
            yield said


def _button(row: int, number: int, of: int) -> InlineKeyboardButton:
    data = DigestButton(digest=row, page=number)
    return InlineKeyboardButton(text=f"Page {number} of {of}", callback_data=data.pack())
