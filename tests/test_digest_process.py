"""A digest of the bot as its user runs it: a picture and a text that arrive, whenever the bot is ended."""

import signal

import pytest

from tests.botapi import USER
from tests.botapi_model import PNG
from tests.stage import PATIENCE, PROCESS_KILLER, SOURCE, Stage


@pytest.mark.parametrize(
    ("end", "exit_code"),
    [
        pytest.param(signal.SIGKILL, -signal.SIGKILL, id="killed"),
        pytest.param(signal.SIGTERM, 0, id="asked to end", marks=pytest.mark.prove),
    ],
)
@pytest.mark.parametrize("when", ["sendPhoto", pytest.param("sendMessage", marks=pytest.mark.prove)])
async def test_a_digest_that_was_cut_short_comes_whole_after_the_restart(
    stage: Stage, end: signal.Signals, exit_code: int, when: str
) -> None:
    """Whether its picture was on its way, or its text: the text comes once, the picture at least once."""
    stage.watch(SOURCE, PROCESS_KILLER.format(name="stopper", grace=10))
    held = stage.api.hold(when, done=False, chat=USER)
    bot = await stage.bot()
    stage.api.say("/digest")
    await held.arrived(timeout=PATIENCE)
    bot.signal(end)
    assert await bot.exit_code(5) == exit_code
    bot = await stage.bot()
    text = await stage.shown("📊 The week so far")
    pictures = [message for message in stage.api.messages if message.photo.startswith(PNG)]
    assert len(pictures) == (1 if when == "sendPhoto" else 2)
    assert {message.chat for message in (*pictures, text)} == {USER}
    assert text.id > pictures[-1].id
    assert await bot.terminate() == 0
