"""Whole set-ups: a right one, and every way to break one that is told by a line and exit code 1."""

import socket
import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest

from bot.app import open_app
from bot.console import ConsoleSession
from bot.settings import Settings, load
from jobs.store.schema import FILE_NAME
from tests.bot.checking.conftest import KILLERS, SOURCE, SetUp
from tests.botapi import GROUP, USER

pytestmark = pytest.mark.asyncio(loop_scope="module")

POINTS = [
    "settings",
    "time zone",
    "data directory",
    "disk",
    "watch list",
    "source gateway",
    "source gateway",
    "killer terminate",
    "killer abort",
    "killer rehearsal",
    "token",
    "clock",
    "chat",
    f"admin {USER}",
    "polling",
]
ASKED = {"getMe", "getChat", "getChatMember", "sendChatAction", "getWebhookInfo", "getUpdates"}


async def test_a_right_set_up_would_work(right: SetUp) -> None:
    """Every point gets its line, in the order in which things depend on each other; the exit code is 0."""
    checked = await right.check()
    *lines, verdict = checked.lines
    assert [line[8:].partition(":")[0] for line in lines] == POINTS
    assert checked.not_fine == []
    assert verdict == "`loopwarden run` would work: 0 errors, 0 warnings"
    assert checked.code == 0


async def test_workflows_and_reports_of_runs_are_looked_at_where_there_are_any(right: SetUp) -> None:
    """A port that another program listens on is an error; the bot's own is not."""
    (right.folder / "out").mkdir()
    right.watch(SOURCE, KILLERS, '[workflows.nightly]\noutput = "out/{date}.json"\n')
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        right.set(REPORT_PORT=f"{port}", REPORT_SECRET="open-sesame")
        [taken] = (await right.check()).not_fine
    assert taken.startswith(f"error   reports: port {port} cannot be listened on: ")
    checked = await right.check()
    assert checked.about("reports") == f"ok      reports: taken on http://127.0.0.1:{port}/runs/NAME"
    assert checked.about("watch list").endswith(": 1 source, 3 killers, 1 workflow")
    assert checked.about("workflow nightly").startswith("ok      workflow nightly: no output in ")
    async with open_app(load(Settings), session=ConsoleSession(lambda _: None)):
        checked = await right.check()
    assert checked.about("reports").endswith(", by the bot that runs")
    assert checked.not_fine == []


async def test_a_check_changes_nothing(right: SetUp) -> None:
    """No message is sent, no update confirmed, no kind of update chosen, and no file touched."""
    right.api.say("hello")
    before = right.listing()
    await right.check()
    await right.check()
    assert right.listing() == before
    assert right.api.messages == []
    assert len(right.api.pending) == 1
    assert {call.method for call in right.api.journal} == ASKED
    assert all(call.params.keys() <= {"limit", "timeout"} for call in right.api.calls("getUpdates"))
    actions = [call.params for call in right.api.calls("sendChatAction")][:2]
    group = {"chat_id": GROUP, "action": "typing", "message_thread_id": 17}
    assert actions == [group, {"chat_id": USER, "action": "typing"}]


async def test_a_check_beside_a_running_bot_leaves_it_its_updates(right: SetUp) -> None:
    """The bot's poll is not cut off, and the database that it has open is read without a change."""
    async with open_app(load(Settings), session=ConsoleSession(lambda _: None)):
        before = {path.name for path in right.data.iterdir()}
        checked = await right.check()
        assert {path.name for path in right.data.iterdir()} == before
    assert "not tried: a bot runs" in checked.about("polling")
    assert right.api.calls("getUpdates") == []
    assert checked.about("database") == "ok      database: sound"
    assert checked.code == 0


# ── what is broken ────────────────────────────────────────────────────────────────────────────────


def _no_settings(right: SetUp) -> None:
    for name in ("TOKEN", "ADMINS"):
        right.patch.delenv(f"LOOPWARDEN_{name}")


def _unreadable_settings(right: SetUp) -> None:
    (right.folder / ".env").write_bytes("LOOPWARDEN_TZ=Köln".encode("latin-1"))


def _other_token(right: SetUp) -> None:
    right.api.token = "424242:" + "W" * 35


def _unknown_bot(right: SetUp) -> None:
    right.api.fault("getMe", error_code=404, description="Not Found")


def _ill_server(right: SetUp) -> None:
    right.api.fault("getMe", error_code=502, description="Bad Gateway")


def _bot_left(right: SetUp) -> None:
    right.api.standing[GROUP] = {"status": "left"}


def _bot_banned(right: SetUp) -> None:
    right.api.standing[GROUP] = {"status": "kicked", "until_date": 0}


def _bot_restricted(right: SetUp) -> None:
    rights = (
        "send_messages send_audios send_documents send_photos send_videos send_video_notes send_voice_notes"
    )
    rights += " send_polls send_other_messages add_web_page_previews react_to_messages edit_tag change_info"
    rights += " invite_users pin_messages manage_topics"
    forbidden = {f"can_{right}": False for right in rights.split()}
    right.api.standing[GROUP] = {"status": "restricted", "is_member": True, "until_date": 0} | forbidden


def _muted_group(right: SetUp) -> None:
    right.api.about[GROUP] = {"permissions": {"can_send_messages": False}}


def _channel(right: SetUp) -> None:
    right.api.about[GROUP] = {"type": "channel", "is_forum": None}


def _silent_admin(right: SetUp) -> None:
    right.set(CHAT="77", ADMINS=f"77,{USER}")


def _blocked(right: SetUp) -> None:
    right.set(CHAT=f"{USER}")
    right.api.fault("sendChatAction", error_code=403, description="Forbidden: bot was blocked by the user")


def _no_topics(right: SetUp) -> None:
    right.api.about[GROUP] = {"is_forum": False}


def _no_such_topic(right: SetUp) -> None:
    right.api.fault("sendChatAction", error_code=400, description="Bad Request: message thread not found")


def _refused(right: SetUp) -> None:
    right.set(CHAT=f"{GROUP}")
    right.api.fault("sendChatAction", error_code=400, description="Bad Request: CHAT_RESTRICTED")


def _upgraded(right: SetUp) -> None:
    moved = {"migrate_to_chat_id": -100777}
    upgraded = "Bad Request: group chat was upgraded to a supergroup chat"
    right.api.fault("sendChatAction", error_code=400, description=upgraded, parameters=moved)


def _conflict(right: SetUp) -> None:
    right.api.fault(
        "getUpdates", error_code=409, description="Conflict: terminated by other getUpdates request"
    )


def _wrong_watchlist(right: SetUp) -> None:
    right.watch(SOURCE)


def _no_watchlist(right: SetUp) -> None:
    (right.folder / "loopwarden.toml").unlink()


def _other_format(right: SetUp) -> None:
    right.log.write_text("2026-01-01 INFO started\n2026-01-01 INFO ready\n")


def _a_folder_for_a_log(right: SetUp) -> None:
    right.log.unlink()
    right.log.mkdir()


def _no_pid(right: SetUp) -> None:
    right.log.unlink()
    right.log_call()


def _no_program(right: SetUp) -> None:
    right.watch(SOURCE, _command("no-such-program"))


def _not_executable(right: SetUp) -> None:
    (right.folder / "stop.sh").write_text("#!/bin/sh\n")
    right.watch(SOURCE, _command("./stop.sh"))


def _no_interpreter(right: SetUp) -> None:
    script = right.folder / "stop.sh"
    script.write_text("#!/no/such/shell\n")
    script.chmod(0o755)
    right.watch(SOURCE, _command("./stop.sh"))


def _command(program: str) -> str:
    return f'[killers.terminate]\nkind = "command"\nargv = ["{program}", "{{session}}"]\n'


def _file_for_a_folder(right: SetUp) -> None:
    right.data.write_text("")


def _damaged_database(right: SetUp) -> None:
    right.data.mkdir(mode=0o700)
    (right.data / FILE_NAME).write_bytes(b"no database at all" * 100)


def _newer_database(right: SetUp) -> None:
    right.data.mkdir(mode=0o700)
    with closing(sqlite3.connect(right.data / FILE_NAME)) as database:
        database.execute("PRAGMA user_version = 999")


BROKEN: list[tuple[Callable[[SetUp], None], str, str]] = [
    (_no_settings, "LOOPWARDEN_TOKEN: not set", "@BotFather gives one"),
    (_no_settings, "LOOPWARDEN_ADMINS: not set", "the numeric ids of who may command the bot"),
    (lambda right: right.set(TOKEN="x"), "LOOPWARDEN_TOKEN: does not look like", "@BotFather gives one"),
    (lambda right: right.set(TOKN="x"), "LOOPWARDEN_TOKN: no such setting", "did you mean LOOPWARDEN_TOKEN?"),
    (lambda right: right.set(TZ="Mars"), "LOOPWARDEN_TZ: is no known time zone", "such as Europe/Berlin"),
    (lambda right: right.set(CHAT="x"), "LOOPWARDEN_CHAT: must be a numeric chat id", "`loopwarden setup`"),
    (lambda right: right.set(THRASH__LAST="x"), "LOOPWARDEN_THRASH__LAST: ", "correct it where it is set"),
    (_unreadable_settings, "settings: .env or a secret file cannot be read", "see that .env"),
    (_other_token, "token: http://127.0.0.1:", "copy the token that @BotFather shows"),
    (_unknown_bot, "knows no bot with it", "or correct LOOPWARDEN_TELEGRAM_API"),
    (_ill_server, "Bot API server: http://127.0.0.1:", "run the check again later"),
    (lambda right: right.set(CHAT="-100999"), "-100999 cannot be written to: ", "add the bot to that chat"),
    (_bot_left, "does not have the bot among its members", "add the bot to that chat"),
    (_bot_banned, "has banned the bot", "lift the ban"),
    (_bot_restricted, "does not let the bot write", "make the bot an administrator"),
    (_muted_group, "does not let the bot write", "make the bot an administrator"),
    (_channel, "does not let the bot write", "make the bot an administrator"),
    (_silent_admin, "chat: 77 cannot be written to: Bad Request: chat not found", "write /start to the bot"),
    (_blocked, "Forbidden: bot was blocked by the user", "do not block it"),
    (_no_topics, "has no topics", f"set LOOPWARDEN_CHAT={GROUP}, or turn topics on"),
    (_no_such_topic, "message thread not found", "see that the topic is there"),
    (_refused, "CHAT_RESTRICTED", "let the bot write there"),
    (_upgraded, "has become a supergroup", "set LOOPWARDEN_CHAT=-100777/17"),
    (_conflict, "polling: another program polls this bot", "stop that program"),
    (
        _wrong_watchlist,
        "watch list: sources.gateway.killer: no killer of that name",
        "loopwarden.example.toml",
    ),
    (_no_watchlist, "watch list: ", "loopwarden.example.toml"),
    (_other_format, "none of the 2 lines looked at is one of format gateway", "correct `format`"),
    (_a_folder_for_a_log, "it is a directory, not a regular file", "narrow `path`"),
    (_no_pid, "no call names a `pid`", "let the agents log their `pid`"),
    (_no_program, "killer terminate: no-such-program is not on this user's PATH", "install it"),
    (_not_executable, "stop.sh may not be executed", "chmod +x "),
    (_no_interpreter, "the interpreter that its first line names is not there", "correct it, or `argv`"),
    (_file_for_a_folder, "is no directory", "let LOOPWARDEN_DATA_DIR name another one"),
    (_damaged_database, "database: damaged: ", "put a backup in its place"),
    (_newer_database, "database: is of a newer release (schema 999", "update Loopwarden"),
]


@pytest.mark.parametrize(("break_it", "says", "mend"), BROKEN)
async def test_what_is_broken_is_named_with_how_to_mend_it(
    right: SetUp, break_it: Callable[[SetUp], None], says: str, mend: str
) -> None:
    """The line about the broken point is an error, tells what to do, and makes the exit code 1."""
    break_it(right)
    checked = await right.check()
    [line] = [line for line in checked.lines if says in line and line.startswith("error ")]
    assert mend in line.partition(" -> ")[2]
    assert checked.code == 1
    assert checked.lines[-1].startswith("`loopwarden run` would not work as it should: ")
