"""`loopwarden check` from its command line, and with settings that are wrong in part."""

import asyncio
from pathlib import Path

import pytest

from bot.__main__ import main
from bot.checking.configuration import expanded
from tests.bot.checking.conftest import SetUp
from tests.botapi import USER

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_command_prints_and_exits(right: SetUp, capsys: pytest.CaptureFixture[str]) -> None:
    """0 if all would work, 1 if not, 2 if it was asked wrongly."""
    # With something to hear, the poll that looks for other pollers is answered at once.
    right.api.say("hello")
    assert await asyncio.to_thread(main, ["check"]) == 0
    assert capsys.readouterr().out.endswith("`loopwarden run` would work: 0 errors, 0 warnings\n")
    right.set(TZ="Mars")
    assert await asyncio.to_thread(main, ["check"]) == 1
    with pytest.raises(SystemExit) as caught:
        main(["check", "everything"])
    assert caught.value.code == 2


async def test_whatever_does_not_depend_on_a_mistake_is_checked(right: SetUp) -> None:
    """With half of the settings wrong, the rest goes on with what is right."""
    right.set(TZ="Mars", CHAT="x", THRASH__LAST="x", ADMINS=f"{USER};")
    right.set(TOKN="x")
    checked = await right.check()
    wrong = {f"LOOPWARDEN_{name}" for name in ("TZ", "CHAT", "THRASH__LAST", "ADMINS", "TOKN")}
    assert {line[8:].partition(":")[0] for line in checked.not_fine} == wrong
    assert "accepted: the bot is @loopwarden_bot" in checked.about("token")
    assert checked.about("killer rehearsal").startswith("ok ")
    assert right.api.calls("sendChatAction") == []


async def test_without_a_token_the_machine_is_checked_all_the_same(right: SetUp) -> None:
    right.set(TOKEN="")
    checked = await right.check()
    assert checked.about("killer terminate").startswith("ok ")
    assert checked.about("Telegram").startswith("warning Telegram: not asked anything")
    assert right.api.journal == []


async def test_settings_that_others_can_read_are_a_warning(right: SetUp) -> None:
    file = right.folder / ".env"
    file.touch()
    for mode, is_closed in ((0o600, True), (0o640, False), (0o604, False)):
        file.chmod(mode)
        checked = await right.check()
        assert (checked.not_fine == []) is is_closed
        assert checked.code == 0
    assert checked.about(".env").endswith(" -> chmod 600 .env")


async def test_a_home_folder_that_is_not_known_is_an_error(right: SetUp) -> None:
    """As in a container whose user has none."""
    right.set(DATA_DIR="~no-such-user/data", WATCHLIST="~no-such-user/loopwarden.toml")
    checked = await right.check()
    assert "set LOOPWARDEN_DATA_DIR to an absolute path" in checked.about("data directory")
    assert "set LOOPWARDEN_WATCHLIST to an absolute path" in checked.about("watch list")
    assert checked.code == 1


async def test_paths_are_as_the_bot_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative to the folder where it is started, `~` to the home folder."""
    monkeypatch.setenv("HOME", "/home/anyone")
    assert expanded(Path("~/data")) == Path("/home/anyone/data")
    assert expanded(Path("data")) == Path.cwd() / "data"
