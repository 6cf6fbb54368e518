"""/digest in the chat: a picture and a text at any time, whose pages are turned."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from bot.callbacks import DigestButton
from bot.chart.picture import Picture
from bot.console import Shown
from bot.drawing import Drawing, DrawingError
from jobs.alert.digest_notice import DigestNotice
from jobs.alert.outgoing import told
from jobs.digest.digest import Digest
from jobs.ports import Told
from tests.bot.room import STRANGER, WATCHLIST, Room, open_room
from tests.botapi_model import PNG
from tests.digests import QUESTIONS, a_digest

NIGHTLY = """
[workflows.nightly]
output = "report.json"
required = ["status", "result", "timestamp"]
timestamp = "timestamp"
"""


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with open_room(tmp_path, watchlist=WATCHLIST + NIGHTLY) as room:
        yield room


@pytest.fixture
def no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes a second, and most tests do not look at what was drawn."""

    def png(_: Drawing, __: Picture) -> bytes:
        raise DrawingError("is not wanted")

    monkeypatch.setattr(Drawing, "png", png)


async def tell(room: Room, digest: Digest) -> Shown:
    """Let the chat have a digest as it comes on Sunday; return the text."""
    desk = room.app.handling.desk
    async with desk.store.transaction() as tables:
        body = msgspec.json.encode(digest).decode()
        row = await tables.digests.add(Told(week=digest.week, until=digest.until, body=body, at=0))
        await tables.outbox.put(told(DigestNotice(digest=row.id, body=digest)), desk.clock.now())
    await room.deliver()
    return room.shown[-1]


LONG = a_digest(answers=QUESTIONS * 60)


async def test_a_digest_can_be_asked_for_at_any_time(room: Room) -> None:
    """Of the week so far: what was verified just now is in it."""
    room.leave()
    await room.check()
    picture, text = await room.type("/digest")
    assert picture.picture
    assert picture.picture.startswith(PNG)
    assert "1 run passed" in picture.text
    assert text.text.startswith("📊 The week so far · ")
    assert "nightly: 1 of 1 run passed" in text.text
    assert picture.reply_to == text.reply_to is not None


@pytest.mark.usefixtures("no_picture")
async def test_a_digest_of_several_weeks_says_so(room: Room) -> None:
    """Of as many as there are."""
    assert (await room.ask("/digest 4")).text.startswith("📊 The week so far · ")
    room.clock.go_on(28 * 86_400)
    assert (await room.ask("/digest 4")).text.startswith("📊 The last 4 weeks · ")


@pytest.mark.usefixtures("no_picture")
@pytest.mark.parametrize("weeks", ["0", "100", "-1", "four", "1 2", "²", "9" * 5000])
async def test_what_is_no_number_of_weeks_is_answered(room: Room, weeks: str) -> None:
    answer = await room.ask(f"/digest {weeks}"[:4000])
    assert answer.text.startswith("How many weeks? From 1 to 99")


@pytest.mark.usefixtures("no_picture")
async def test_pages_are_turned_in_their_message(room: Room) -> None:
    """To and fro."""
    shown = first = await tell(room, LONG)
    pages = [first.text]
    while next_page := [label for label in shown.buttons if label.startswith(f"Page {len(pages) + 1} of")]:
        [shown] = await room.press(shown, next_page[0])
        pages.append(shown.text)
    assert (shown.id, shown.edits) == (first.id, len(pages) - 1)
    assert len(pages) > 2
    assert len({*pages}) == len(pages)
    [back] = await room.press(shown, f"Page {len(pages) - 1} of {len(pages)}")
    assert back.text == pages[-2]


@pytest.mark.usefixtures("no_picture")
@pytest.mark.parametrize(("after", "is_late"), [(60, False), (7200, True)], ids=["in time", "late"])
async def test_a_digest_is_as_late_as_its_message(room: Room, after: float, *, is_late: bool) -> None:
    """Whenever its pages are turned."""
    shown = await tell(room, replace(LONG, until=room.clock.now() - after))
    first = shown.text
    room.clock.go_on(86_400)
    for number in (2, 1):
        [shown] = await room.press(
            shown, next(label for label in shown.buttons if f"Page {number} " in label)
        )
    assert shown.text == first
    assert (", late" in first) is is_late


@pytest.mark.usefixtures("no_picture")
async def test_a_digest_that_is_not_kept_any_more_is_said_to_be_gone(room: Room) -> None:
    shown = await tell(room, LONG)
    shown.buttons["old"] = DigestButton(digest=99, page=1).pack()
    [answer] = await room.press(shown, "old")
    assert answer.text == "That digest is no longer kept. /digest makes a new one."


@pytest.mark.usefixtures("no_picture")
async def test_strangers_get_no_digest(room: Room) -> None:
    shown = await tell(room, LONG)
    before = shown.text
    assert await room.type("/digest", person=STRANGER) == []
    assert await room.press(shown, next(iter(shown.buttons)), person=STRANGER) == []
    assert shown.text == before
